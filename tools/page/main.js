/* From the page's facts to its panels; the pickers, the theme and print. */

const timings = {
	hover: [],
	decode: [],
	ready: 0
};
const decoded = new Map();

async function deviceOf(place) {
	if (!decoded.has(place)) {
		const begin = performance.now();
		decoded.set(place, new Device(await inflate($("gt-blob-" + place).textContent)));
		timings.decode.push(performance.now() - begin);
	}
	return decoded.get(place);
}

/* ---- what changes together ---- */

function refresh() {
	drawTimeline();
	drawSide();
	drawFlame();
	drawCategories();
}

function choose(instant) {
	if (!instant)
		return;
	state.chosen = instant;
	state.hover = null;
	state.a = state.b = null;
	if (instant.t < state.view[0] || instant.t > state.view[1]) {
		const wide = state.view[1] - state.view[0];
		setView(instant.t - wide / 2, instant.t + wide / 2, false);
	}
	refresh();
	say();
}

/* For those who hear the page: the chosen instant, not the pointer's. */
function say() {
	const words = instantWords(state.chosen)[0] + ", " +
		shown(inUnits(state.chosen.total), state.chosen.total) + " " + state.unit.name +
		" in use";
	const slider = $("timeline");
	slider.setAttribute("aria-valuemin", Math.round(state.device.head.t0));
	slider.setAttribute("aria-valuemax", Math.round(state.device.head.t1));
	slider.setAttribute("aria-valuenow", Math.round(state.chosen.t));
	slider.setAttribute("aria-valuetext", words);
	$("live").textContent = words;
}

function setGroup(kind) {
	state.group = kind;
	for (const button of $("group-by").children)
		button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
	drawLegend();
	drawTimeline();
	drawSide();
}

function nextGroup() {
	const list = groupings(state.device);
	setGroup(list[(list.indexOf(state.group) + 1) % list.length]);
}

function drawGroupings() {
	$("group-by").replaceChildren(...groupings(state.device).map(kind => {
		const button =
			make("button", {type: "button", "data-kind": kind, "aria-pressed": "false"},
			     GROUPINGS[kind].text);
		button.addEventListener("click", () => setGroup(kind));
		return button;
	}));
}

/* ---- which panel stands where ---- */

/* The proof of fragmentation is the map of segments: it goes under the timeline. */
function arrange() {
	const oom = state.facts.oom, proof = oom && oom.cause === "fragmentation";
	const pairs = $("pairs"), segments = $("segments-panel");
	if (proof)
		$("grid").append(segments);
	else
		pairs.insertBefore(segments, $("ledger-panel"));
	document.body.classList.toggle("failed", !!oom);
}

function drawHead() {
	const facts = state.facts;
	$("answer").textContent = meta.diff ? meta.head[0] : facts.head[0];
	$("where").textContent = meta.diff ? meta.head.slice(1).join(" \u00b7 ") :
					     facts.head.slice(1, 3).join(" \u00b7 ");
	$("loss").replaceChildren(...facts.loss.map(line => make("p", {}, line)));
	$("unit").textContent = $("flame-unit").textContent = state.unit.name;
	document.title = $("answer").textContent;
}

/* From when to when more than a tenth of the most is in use. */
function busySpan(device) {
	const {t0, t1} = device.head, least = peakShown() / 10, isBusy = bytes => bytes > least;
	const first = device.max.findIndex(isBusy), last = device.max.findLastIndex(isBusy);
	if (first < 0)
		return [t0, t1];
	if (!isBusy(device.end[last]))
		return [device.first[first], device.last[last]];
	return [device.first[first], last + 1 < device.count ? device.first[last + 1] : t1];
}

/*
 * Failed runs open on what led to the failure: after it Python only unwinds. A long import before
 * there is memory worth seeing would squeeze the rest, and so would a long end after it.
 */
function firstView() {
	const {t0, t1} = state.device.head, oom = state.facts.oom,
		   [busy, idle] = busySpan(state.device), room = (idle - busy) / 20;
	let from = t0, to = Math.max(t1, t0 + 1);
	if (oom && oom.us > t0)
		to = Math.min(to, oom.us + (oom.us - Math.min(busy, oom.us)) * 0.04 + 1);
	if (to > idle && to - idle > (to - from) / 6)
		to = idle + room + 1;
	if (busy - from > (to - from) / 3)
		from = Math.max(t0, busy - Math.min(room, (to - busy) / 20));
	return [from, to];
}

function firstInstant() {
	return namedInstant(state.device, state.facts.when) || namedInstant(state.device, "peak") ||
		namedInstant(state.device, "end") || rowInstant(state.device, "h", 0);
}

async function open(place) {
	state.open = place;
	state.facts = meta.places[place];
	state.device = await deviceOf(place);
	state.pair = meta.diff ? meta.places.findIndex(p => p.process !== state.facts.process &&
							       p.gpu === state.facts.gpu) :
				 -1;
	state.other = state.pair >= 0 && state.pair < place ? await deviceOf(state.pair) : null;
	state.unit = unitFor(state.facts.card || state.device.head.peak);
	state.zooms = [];
	state.hover = state.a = state.b = state.root = null;
	state.view = firstView();
	arrange();
	drawHead();
	if (!state.device.count && !state.device.head.keptPeak)
		return;
	state.chosen = firstInstant();
	state.group = defaultGroup(state.device, state.chosen);
	drawPickers();
	drawGroupings();
	drawOom();
	drawWhy();
	setGroup(state.group);
	showView();
	drawFlame();
	drawStepBars();
	drawSegments();
	drawLedger();
	drawCategories();
	$("merged-note").textContent = mergedWords();
	say();
}

/* ---- pickers ---- */

function processName(facts) {
	const rank = facts.rank === null ? "" : "rank " + facts.rank + " \u00b7 ";
	if (meta.diff)
		return (facts.process ? "B " : "A ") + facts.file;
	return rank + "pid " + facts.pid + " \u00b7 " + facts.command;
}

function drawPickers() {
	const processes = [...new Set(meta.places.map(p => p.process))];
	const mine = meta.places.filter(p => p.process === state.facts.process);
	$("process-label").hidden = processes.length < 2;
	$("gpu-label").hidden =
		meta.places.length < 2 && state.facts.gpu === "GPU 0" && processes.length < 2;
	$("process").replaceChildren(...processes.map(process => {
		const facts = meta.places.find(p => p.process === process);
		return make("option", {
			value: meta.places.indexOf(facts),
			selected: facts.process === state.facts.process
		},
			    processName(facts));
	}));
	$("gpu").replaceChildren(...mine.map(
		p => make("option", {value: meta.places.indexOf(p), selected: p === state.facts},
			  p.gpu)));
}

/* ---- theme ---- */

const THEMES = ["auto", "light", "dark"];

function setTheme(name) {
	if (name === "auto")
		document.documentElement.removeAttribute("data-theme");
	else
		document.documentElement.setAttribute("data-theme", name);
	$("theme").textContent = "Theme: " + name;
	$("theme").dataset.name = name;
	recolour();
}

function recolour() {
	colours.forget();
	if (!state.chosen)
		return;
	refresh();
	drawLegend();
	drawStepBars();
	drawSegments();
}

function nextTheme() {
	const now = THEMES.indexOf($("theme").dataset.name || "auto");
	setTheme(THEMES[(now + 1) % THEMES.length]);
}

/* Paper is narrower than the screen: what was drawn for the one is scaled to the other. */
function scaleForPrint(on) {
	const frame = $("timeline");
	frame.style.aspectRatio = on ? frame.clientWidth + " / " + frame.clientHeight : "";
	frame.style.height = on ? "auto" : "";
	for (const id of ["overlay", "flame", "steps"]) {
		const svg = $(id), box = svg.getBoundingClientRect();
		if (on && box.width)
			svg.setAttribute("viewBox", "0 0 " + box.width + " " + box.height);
		else
			svg.removeAttribute("viewBox");
	}
}

/* ---- print: light, whole width, layers as paths ---- */

function print(on) {
	if (!state.chosen)
		return;
	plot.printing = on;
	document.body.classList.toggle("printing", on);
	scaleForPrint(on);
	if (on) {
		plot.theme = $("theme").dataset.name || "auto";
		setTheme("light");
	} else {
		setTheme(plot.theme);
	}
}

/* ---- begin ---- */

function framesOf() {
	const frames = {list: [], last: 0};
	(function next(now) {
		if (frames.last)
			frames.list.push(now - frames.last);
		if (frames.list.length > 2000)
			frames.list.splice(0, 1000);
		frames.last = now;
		requestAnimationFrame(next);
	})(0);
	return frames;
}

/* What tests read; nothing here changes the page. */
function expose() {
	const frames = framesOf();
	window.gputrace = Object.freeze({
		state: () => ({
			open: state.open,
			view: [...state.view],
			group: state.group,
			chosen: state.chosen,
			hover: state.hover,
			a: state.a,
			b: state.b
		}),
		data: () => state.device,
		columns: () => plot.columns,
		frames: () => frames.list,
		hov: () => timings.hover,
		tm: () => Object.assign({draws: plot.draws}, timings),
	});
}

async function start() {
	document.body.classList.remove("noscript-mode");
	drawKeys();
	listen();
	$("theme").addEventListener("click", nextTheme);
	for (const id of ["process", "gpu"])
		$(id).addEventListener("change", event => open(Number(event.target.value)));
	if (meta.places.length)
		await open(meta.open);
	window.addEventListener("resize", () => state.chosen && (refresh(), drawStepBars()));
	window.addEventListener("beforeprint", () => print(true));
	window.addEventListener("afterprint", () => print(false));
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
	expose();
	timings.ready = performance.now();
	document.documentElement.setAttribute("data-ready", "1");
}

start();
