/*
 * The timeline's pixels. Everything is reduced to one value per pixel column first; what is drawn is
 * then of the size of the screen, however long the run is. Heights are exact maxima; where the nearest
 * recorded row is of another moment, its split is drawn faded.
 */

const MARGIN = {
	left: 46,
	right: 10,
	top: 17,
	bottom: 40
};

function plotBox() {
	const box = $("timeline");
	const width = box.clientWidth, height = box.clientHeight;
	return {
		width,
		height,
		x0: MARGIN.left,
		x1: width - MARGIN.right,
		y0: height - MARGIN.bottom,
		y1: MARGIN.top,
		columns: Math.max(1, Math.floor(width - MARGIN.left - MARGIN.right)),
	};
}

function xOf(t, box) {
	return box.x0 + (t - state.view[0]) / (state.view[1] - state.view[0]) * (box.x1 - box.x0);
}

function timeAt(x, box) {
	const share = (x - box.x0) / (box.x1 - box.x0);
	return state.view[0] + Math.min(1, Math.max(0, share)) * (state.view[1] - state.view[0]);
}

function yOf(bytes, box) { return box.y0 - bytes / plot.top * (box.y0 - box.y1); }

/* Of the slices in one column the highest; `at` is the slice that the column begins in. */
function highestIn(device, at, end, begin) {
	const column = {high: 0, held: 0, low: Infinity, slice: -1};
	if (at >= 0) {
		const inside = device.last[at] >= begin;
		column.high = inside ? device.max[at] : device.end[at];
		column.low = inside ? device.min[at] : device.end[at];
		column.held = device.held[at];
		column.slice = at;
	}
	for (let i = at + 1; i < device.count && device.first[i] < end; i++) {
		if (device.max[i] > column.high || column.slice < 0) {
			column.high = device.max[i];
			column.slice = i;
		}
		if (device.min[i] < column.low)
			column.low = device.min[i];
		if (device.held[i] > column.held)
			column.held = device.held[i];
	}
	return column;
}

/* One value per column of [from, to]. */
function columnsOf(device, from, to, count) {
	const columns = {
		count,
		high: new Float64Array(count),
		low: new Float64Array(count),
		held: new Float64Array(count),
		row: new Int32Array(count).fill(-1),
		exact: new Uint8Array(count),
		slice: new Int32Array(count),
	};
	const rows = device.chain("h");
	let at = device.sliceAt(from);
	for (let c = 0; c < count; c++) {
		const begin = from + (to - from) * c / count,
		      end = from + (to - from) * (c + 1) / count;
		const column = highestIn(device, at, end, begin);
		columns.high[c] = column.high;
		columns.low[c] = column.low;
		columns.held[c] = column.held;
		columns.slice[c] = column.slice;
		if (column.slice >= 0) {
			columns.row[c] = device.rowOf[column.slice];
			columns.exact[c] = rows.total[columns.row[c]] === column.high ? 1 : 0;
		}
		while (at + 1 < device.count && device.first[at + 1] < end)
			at++;
	}
	return columns;
}

const plot = {
	top: 1,
	columns: null,
	draws: []
};

/* A peak before the history that was kept is told, but not drawn. */
function peakShown() {
	return state.device.head.keptPeak ? d3.max(state.device.max) || 0 : state.device.head.peak;
}

/* Room above the highest value; the card where it is known, so that "how near" is seen. */
function scaleTop() {
	const most = Math.max(d3.max(state.device.held) || 0, peakShown(),
			      state.other ? state.other.head.peak : 0);
	const card = state.facts.card;
	return card && card < 6 * most ? Math.max(card, most) : most || 1;
}

function sizeCanvas(canvas, width, height) {
	const scale = window.devicePixelRatio || 1;
	const w = Math.round(width * scale), h = Math.round(height * scale);
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
	}
	const context = canvas.getContext("2d");
	context.setTransform(scale, 0, 0, scale, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

/* Neighbouring columns that look the same are one rectangle. */
function eachRun(columns, visit) {
	for (let c = 0, from = 0; c <= columns.count; c++)
		if (c === columns.count ||
		    (c > from &&
		     (columns.row[c] !== columns.row[from] ||
		      columns.high[c] !== columns.high[from] ||
		      columns.held[c] !== columns.held[from]))) {
			visit(from, c);
			from = c;
		}
}

/* The layers of a column from the bottom: [group, low, high, exact]; what the row lacks is "not split". */
function layersOf(columns, c, groups) {
	const layers = [], count = groups.names.length, row = columns.row[c];
	let low = 0;
	for (let g = 0; row >= 0 && g < count && low < columns.high[c]; g++) {
		const high = Math.min(low + groups.sums[row * count + g], columns.high[c]);
		if (high > low)
			layers.push([g, low, high]);
		low = Math.max(low, high);
	}
	if (low < columns.high[c])
		layers.push([-1, low, columns.high[c]]);
	return layers;
}

function fillsOf(groups) {
	const background = colours.get("bg");
	const full = groups.fills.map(name => colours.get(name));
	return {full, faded: full.map(fill => mix(fill, background, 0.6))};
}

function fillColumn(context, columns, from, to, groups, fills, box) {
	const x = box.x0 + from, width = to - from;
	const high = yOf(columns.high[from], box), held = yOf(columns.held[from], box);
	if (held < high) {
		context.fillStyle = colours.get("cached");
		context.fillRect(x, held, width, high - held);
	}
	for (const [g, low, top] of layersOf(columns, from, groups)) {
		const y = yOf(top, box), base = yOf(low, box);
		context.fillStyle = g < 0 ? colours.get("nosplit") :
					    (columns.exact[from] ? fills.full : fills.faded)[g];
		context.fillRect(x, y, width, base - y);
		if (low > 0 && base - y > 3) {
			context.fillStyle = colours.get("bg");
			context.fillRect(x, base - 0.5, width, 1);
		}
	}
	if (columns.high[from] > 0) {
		context.fillStyle = colours.get("fg");
		context.fillRect(x, high - 0.5, width, 1);
	}
}

function drawTimeline() {
	const begin = performance.now();
	const box = plotBox(), groups = groupsOf(state.device, state.group);
	plot.top = scaleTop();
	plot.columns = columnsOf(state.device, state.view[0], state.view[1], box.columns);
	const context = sizeCanvas($("canvas"), box.width, box.height);
	const fills = fillsOf(groups);
	context.fillStyle = colours.get("line");
	for (const bytes of memoryTicks())
		context.fillRect(box.x0, Math.round(yOf(bytes, box)), box.x1 - box.x0, 1);
	eachRun(plot.columns,
		(from, to) => fillColumn(context, plot.columns, from, to, groups, fills, box));
	plot.draws.push(performance.now() - begin);
	const pale = plot.columns.exact.reduce(
		(count, exact, c) => count + (!exact && plot.columns.slice[c] >= 0), 0);
	$("split-note").hidden = pale < 3; /* nobody sees fewer */
	$("split-note").textContent =
		"Pale: the height is exact, the split is that of the nearest recorded instant." +
		" Slate: not split at this zoom.";
	drawOverlay(box, groups);
	drawOverview();
}

function drawOverview() {
	const frame = $("overview"), width = frame.clientWidth, height = frame.clientHeight;
	const context = sizeCanvas($("overview-canvas"), width, height);
	const head = state.device.head,
	      count = Math.max(1, Math.floor(width - MARGIN.left - MARGIN.right));
	if (!plot.whole || plot.whole.device !== state.device || plot.whole.count !== count)
		plot.whole = Object.assign(columnsOf(state.device, head.t0, head.t1, count),
					   {device: state.device});
	context.fillStyle = mix(colours.get("muted"), colours.get("bg"), 0.35);
	for (let c = 0; c < count; c++) {
		const y = plot.whole.high[c] / Math.max(1, peakShown()) * (height - 5);
		context.fillRect(MARGIN.left + c, height - 1 - y, 1, y);
	}
	const svg = $("overview-svg");
	svg.replaceChildren();
	draw(svg, "text",
	     {x: MARGIN.left - 6, y: height / 2 + 4, "text-anchor": "end", class: "dim"}, "all");
	const x = t => MARGIN.left + (t - head.t0) / (head.t1 - head.t0 || 1) * count;
	draw(svg, "rect", {
		class: "span",
		x: x(state.view[0]),
		y: 0.5,
		width: Math.max(3, x(state.view[1]) - x(state.view[0])),
		height: height - 1
	});
}
