/*
 * What is looked at: the device, the part of the run, the chosen instant. Decoded data is never sorted or
 * marked in place, as every panel reads the same arrays.
 */

const meta = JSON.parse($("gt-meta").textContent);

const state = {
	open: meta.open,
	facts: null,
	device: null,
	other: null,
	unit: unitFor(0),
	group: "category",
	view: [0, 1],
	zooms: [],
	chosen: null,
	hover: null,
	a: null,
	b: null,
	lib: false,
	search: "",
	root: null,
};

const NOT_TORCH = 0, UNKNOWN = 8;
const CATEGORY_ORDER =
	[1, 3, 7, 2, 6, 4, 5, UNKNOWN, NOT_TORCH];	   /* from the bottom: what lasts longest */
const LAYERS = ["c1", "c4", "c3", "c7", "c2", "c5", "c6"]; /* of lines, owners and streams */
const REST = "c8";

/* ---- instants: the moments whose holders are known exactly ---- */

function rowInstant(device, letter, row) {
	const chain = device.chain(letter);
	return {device, letter, row, t: chain.t[row], total: chain.total[row], tag: chain.tag[row]};
}

/* peak, oom or end; null = the page has none. */
function namedInstant(device, name) {
	const tag = {peak: 0, oom: 1, end: 2}[name];
	const chain = device.chain("i");
	for (let row = 0; row < chain.count; row++)
		if (chain.tag[row] === tag)
			return Object.assign(rowInstant(device, "i", row), {name});
	if (name === "peak" && device.head.keptPeak) {
		const vector = new Float64Array(device.places);
		for (const [place, bytes] of device.head.keptPeak)
			vector[place] = bytes;
		return {
			device,
			vector,
			t: device.head.peakUs,
			total: device.head.peak,
			name,
			before: true
		};
	}
	return null;
}

/* Of a refused request beside the failure; one that the history has lost has none. */
function refusedInstant(device, index) {
	const [us, name] = state.facts.refused[index], chain = device.chain("i");
	for (let row = 0; row < chain.count; row++)
		if (chain.tag[row] === 3 && chain.t[row] === us)
			return Object.assign(rowInstant(device, "i", row), {refused: name});
	return null;
}

function stepInstant(device, letter, step) {
	const chain = device.chain(letter);
	for (let row = 0; row < chain.count; row++)
		if (chain.tag[row] === step)
			return Object.assign(rowInstant(device, letter, row), {step});
	return highestInStep(device, step);
}

/* Where a step has no row of its own: the highest of those that lie in it, and how far from its peak. */
function highestInStep(device, step) {
	const rows = device.chain("h"), {t0, t1, peak} = device.steps;
	let best = nearestRow(device, (t0[step] + t1[step]) / 2);
	for (let row = d3.bisectLeft(rows.t, t0[step]); row < rows.count && rows.t[row] <= t1[step];
	     row++)
		if (rows.total[row] > rows.total[best])
			best = row;
	const instant = rowInstant(device, "h", best);
	instant.away = "highest recorded instant, the step\u2019s peak is " + inUnits(peak[step]);
	return instant;
}

function vectorOf(instant) {
	if (!instant.vector)
		instant.vector = instant.device.chain(instant.letter).vector(instant.row);
	return instant.vector;
}

/* The recorded instant that lies nearest to a time. */
function nearestRow(device, t) {
	const times = device.chain("h").t;
	const i = d3.bisectRight(times, t);
	if (i === 0)
		return 0;
	return i < times.length && times[i] - t < t - times[i - 1] ? i : i - 1;
}

/* ---- groups: what the layers of the timeline are ---- */

function categoryGroups(device) {
	const used = CATEGORY_ORDER.filter(c => device.head.scat.includes(c));
	return {
		names: used.map(c => device.head.cats[c]),
		fills: used.map(c => "c" + c),
		of: Int32Array.from(device.head.scat, c => used.indexOf(c)),
	};
}

/* The largest names get a layer each, what lasts longest lowest; the others share one. */
function namedGroups(device, of, names) {
	const count = names.length;
	const rows = device.chain("h");
	const sums = rows.sums(of, count);
	const most = new Float64Array(count), mean = new Float64Array(count);
	for (let row = 0; row < rows.count; row++)
		for (let g = 0; g < count; g++) {
			most[g] = Math.max(most[g], sums[row * count + g]);
			mean[g] += sums[row * count + g] / rows.count;
		}
	const order = d3.range(count).sort((x, y) => most[y] - most[x]);
	const own = order.slice(0, LAYERS.length)
			    .filter(g => most[g] > 0)
			    .sort((x, y) => mean[y] / most[y] - mean[x] / most[x]);
	const rest = count > own.length;
	const at = new Int32Array(count).fill(own.length);
	own.forEach((g, i) => { at[g] = i; });
	return {
		names: own.map(g => names[g]).concat(rest ? ["others"] : []),
		fills: own.map((g, i) => LAYERS[i]).concat(rest ? [REST] : []),
		of: Int32Array.from(of, g => at[g]),
	};
}

const GROUPINGS = {
	category: {text: "category", make: categoryGroups},
	line: {
		text: "your line",
		make: d => namedGroups(d, d.head.sline, d.head.lines.map(line => line[0]))
	},
	owner: {text: "owner", make: d => namedGroups(d, d.head.sowner, d.head.owners)},
	stream: {text: "stream", make: d => namedGroups(d, d.head.sstream, d.head.streams)},
};

function groupsOf(device, kind) {
	device.groups = device.groups || {};
	if (!device.groups[kind]) {
		const groups = device.groups[kind] = GROUPINGS[kind].make(device);
		const count = groups.names.length,
		      sums = groups.sums = device.chain("h").sums(groups.of, count);
		groups.most = new Float64Array(count);
		for (let i = 0; i < sums.length; i++)
			groups.most[i % count] = Math.max(groups.most[i % count], sums[i]);
	}
	return device.groups[kind];
}

function groupings(device) {
	const list = ["line", "owner", "stream"];
	return device.head.scat.some(c => c !== NOT_TORCH) ? ["category", ...list] : list;
}

/* By category, but by line where one category says nothing and lines do. */
function defaultGroup(device, instant) {
	if (!groupings(device).includes("category"))
		return "line";
	if (!instant)
		return "category";
	const vector = vectorOf(instant), sums = new Float64Array(16), lines = new Set();
	vector.forEach((bytes, place) => {
		sums[device.head.scat[place]] += bytes;
		if (bytes > instant.total / 50)
			lines.add(device.head.sline[place]);
	});
	return d3.max(sums) > 0.9 * instant.total && lines.size > 1 ? "line" : "category";
}

/* ---- holders: rows of one line and category, as on the command line ---- */

function holderRows(device, vector) {
	const rows = new Map();
	vector.forEach((bytes, place) => {
		if (!bytes)
			return;
		const line = device.head.sline[place], category = device.head.scat[place];
		const key = line * 16 + category;
		if (!rows.has(key))
			rows.set(key, {line, category, bytes: 0, device, place});
		rows.get(key).bytes += bytes;
	});
	return [...rows.values()].sort((x, y) => y.bytes - x.bytes);
}

/* The same name in two devices or traces is the same row. */
function rowKey(row) {
	const line = row.device.head.lines[row.line];
	return line[1] + " " + line[0] + "\n" + row.device.head.cats[row.category];
}

/* Rows of A and B side by side, largest change first. */
function changeRows(a, b) {
	const rows = new Map();
	for (const [side, instant] of [["a", a], ["b", b]])
		for (const row of holderRows(instant.device, vectorOf(instant))) {
			const key = rowKey(row);
			if (!rows.has(key))
				rows.set(key, Object.assign({a: 0, b: 0}, row));
			rows.get(key)[side] += row.bytes;
		}
	return [...rows.values()].sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a) ||
					       y.b - x.b);
}

/* Which two instants are compared now; null = one is looked at. */
function comparison() {
	if (state.a && state.b)
		return {a: state.a, b: state.b, traces: false};
	if (state.other && state.chosen && state.chosen.name)
		return {
			a: namedInstant(state.other, state.chosen.name) ||
				namedInstant(state.other, "peak"),
			b: state.chosen,
			traces: true
		};
	return null;
}

/* ---- words about an instant ---- */

function span() { return state.view[1] - state.view[0]; }

function instantWords(instant) {
	const words = [timeText(instant.t, span())];
	const step = instant.step !== undefined ? instant.step : state.device.stepAt(instant.t);
	if (step >= 0 && state.device.stepCount)
		words[0] += ", step " + stepNumber(step);
	return words;
}

function stepNumber(step) { return step + 1 + state.device.head.firstStep; }

function instantKind(instant) {
	if (instant.before)
		return "exact (peak; before the history that was kept)";
	const names = {peak: "peak", oom: "out of memory", end: "end"};
	if (instant.name)
		return "exact (" + names[instant.name] + ")";
	if (instant.refused)
		return "exact (" + instant.refused + ")";
	if (instant.step !== undefined)
		return "exact (" + (instant.letter === "p" ? "peak" : "end") + " of the step)";
	return "exact";
}

function inUnits(bytes) { return roundTo(bytes, state.unit.size); }
