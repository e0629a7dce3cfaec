/* Keys, the pointer, zooming. Keys do nothing while a field has the focus or with Ctrl, Alt or Meta. */

const KEYS = [
	["\u2190 \u2192", "instant before, after (Shift: ten)"],
	["[ ]", "peak of the step before, after"],
	["P", "the peak"],
	["O", "the failure"],
	["R", "the next refused request"],
	["E", "the end"],
	["+ \u2212", "zoom (also drag, Ctrl+wheel, the strip below)"],
	["0", "whole run"],
	["Esc", "undo the last zoom; leave a comparison"],
	["Shift+drag", "compare two instants"],
	["G", "colour by the next"],
	["/", "search stacks"],
	["?", "this list"],
];

function drawKeys() {
	$("keylist").replaceChildren(
		...KEYS.map(([key, text]) => make("span", {}, make("kbd", {}, key), " " + text)));
}

function toggleKeys() {
	$("keylist").hidden = !$("keylist").hidden;
	$("keys").setAttribute("aria-expanded", String(!$("keylist").hidden));
}

/* ---- zoom ---- */

function setView(from, to, remember) {
	const {t0, t1} = state.device.head, least = Math.max(1, (t1 - t0) / 1e7);
	if (to - from < least) {
		const middle = (from + to) / 2;
		from = middle - least / 2;
		to = middle + least / 2;
	}
	const wide = Math.min(to - from, t1 - t0 || 1);
	from = Math.max(t0, Math.min(from, t1 - wide));
	if (remember)
		state.zooms.push(state.view);
	state.view = [from, from + wide];
	showView();
}

function isWhole() {
	const {t0, t1} = state.device.head;
	return state.view[0] <= t0 && state.view[1] >= t1;
}

function showView() {
	const {t1} = state.device.head;
	$("zoom-reset").hidden = isWhole();
	const bare = us => timeText(us, span()).replace(/ m?s$/, "");
	$("zoom-range").textContent = isWhole() ? "" :
						  "shown: " + bare(state.view[0]) + " to " +
			bare(state.view[1]) + " of " + timeText(t1, span());
	drawTimeline();
}

function zoomBy(factor, around) {
	const middle = around === undefined ? state.chosen.t : around;
	const inside = middle >= state.view[0] && middle <= state.view[1] ?
		middle :
		(state.view[0] + state.view[1]) / 2;
	setView(inside - (inside - state.view[0]) * factor,
		inside + (state.view[1] - inside) * factor, true);
}

function wholeRun() { setView(state.device.head.t0, state.device.head.t1, !isWhole()); }

function undoZoom() {
	if (state.a || state.b) {
		state.a = state.b = null;
		refresh();
		return;
	}
	const before = state.zooms.pop();
	if (before) {
		state.view = before;
		showView();
	}
}

/* ---- instants ---- */

function rowIndex(instant) {
	return instant.letter === "h" ? instant.row : nearestRow(state.device, instant.t);
}

function moveInstant(by) {
	const rows = state.device.chain("h");
	const row = Math.max(0, Math.min(rows.count - 1, rowIndex(state.chosen) + by));
	choose(rowInstant(state.device, "h", row));
}

function moveStep(by) {
	const device = state.device;
	if (!device.stepCount)
		return;
	let step =
		state.chosen.step !== undefined ? state.chosen.step : device.stepAt(state.chosen.t);
	if (step < 0)
		step = state.chosen.t < device.steps.t0[0] ? -1 : device.stepCount;
	step = Math.max(0, Math.min(device.stepCount - 1, step + by));
	choose(stepInstant(device, "p", step));
}

function chooseNamed(name) {
	const instant = namedInstant(state.device, name);
	if (instant)
		choose(instant);
}

function chooseRefused(index) {
	const instant = refusedInstant(state.device, index);
	if (instant)
		choose(instant);
}

/* The first one behind what is chosen, else the first of all. */
function nextRefused() {
	const times = state.facts.refused.map(([us]) => us);
	const next = times.findIndex(us => us > state.chosen.t);
	if (times.length)
		chooseRefused(next < 0 ? 0 : next);
}

/* Of a pixel column the highest recorded instant; where it has none, the nearest one, which is said. */
function instantAt(x, box) {
	const device = state.device, rows = device.chain("h"), columns = plot.columns;
	const c = Math.max(0, Math.min(columns.count - 1, Math.floor(x - box.x0)));
	const begin = state.view[0] + (state.view[1] - state.view[0]) * c / columns.count;
	const end = state.view[0] + (state.view[1] - state.view[0]) * (c + 1) / columns.count;
	let best = -1;
	for (let row = d3.bisectLeft(rows.t, begin); row < rows.count && rows.t[row] < end; row++)
		if (best < 0 || rows.total[row] > rows.total[best])
			best = row;
	if (best >= 0)
		return rowInstant(device, "h", best);
	const middle = (begin + end) / 2;
	const instant =
		rowInstant(device, "h",
			   columns.row[c] >= 0 && columns.exact[c] ? columns.row[c] :
								     nearestRow(device, middle));
	const away = instant.t - middle;
	instant.away = "nearest recorded instant, " + timeText(Math.abs(away), span()) +
		(away < 0 ? " before" : " after") + " the cursor";
	return instant;
}

/* ---- the pointer on the plot ---- */

const drag = {
	from: null,
	shift: false
};

function localY(event) { return event.clientY - $("timeline").getBoundingClientRect().top; }

function localX(event) { return event.clientX - $("timeline").getBoundingClientRect().left; }

function hover(event) {
	const begin = performance.now(), box = plotBox(), x = localX(event);
	if (drag.from !== null)
		return dragTo(x, box);
	if (x < box.x0 || x > box.x1)
		return leave();
	state.hover = instantAt(x, box);
	drawCross();
	drawSide();
	timings.hover.push(performance.now() - begin);
	return undefined;
}

function leave() {
	if (!state.hover)
		return;
	state.hover = null;
	drawCross();
	drawSide();
}

function dragTo(x, box) {
	plot.live.replaceChildren();
	const from = Math.max(box.x0, Math.min(drag.from, x)),
	      to = Math.min(box.x1, Math.max(drag.from, x));
	draw(plot.live, "rect",
	     {class: "span", x: from, y: 0, width: Math.max(1, to - from), height: box.y0});
}

function pressed(event) {
	if (event.button !== 0)
		return;
	drag.from = localX(event);
	drag.shift = event.shiftKey;
	$("timeline").setPointerCapture(event.pointerId);
	leave();
}

function released(event) {
	if (drag.from === null)
		return;
	const box = plotBox(), x = localX(event), from = drag.from;
	drag.from = null;
	plot.live.replaceChildren();
	if (Math.abs(x - from) < 4) {
		const refused = refusedAt(x, localY(event), box);
		if (refused >= 0)
			chooseRefused(refused);
		else
			choose(instantAt(x, box));
	} else if (drag.shift) {
		state.a = instantAt(Math.min(from, x), box);
		state.b = instantAt(Math.max(from, x), box);
		refresh();
	} else {
		setView(timeAt(Math.min(from, x), box), timeAt(Math.max(from, x), box), true);
	}
}

function wheel(event) {
	if (!event.ctrlKey)
		return;
	event.preventDefault();
	zoomBy(event.deltaY > 0 ? 1.25 : 0.8, timeAt(localX(event), plotBox()));
}

/* ---- the strip: drag moves the window; outside of it a new one begins ---- */

function stripTime(event) {
	const frame = $("overview").getBoundingClientRect(), {t0, t1} = state.device.head;
	const width = frame.width - MARGIN.left - MARGIN.right;
	return t0 +
		Math.min(1, Math.max(0, (event.clientX - frame.left - MARGIN.left) / width)) *
		(t1 - t0);
}

const strip = {
	from: null,
	view: null
};

function stripPressed(event) {
	const t = stripTime(event);
	state.zooms.push(state.view);
	strip.from = t;
	strip.view = !isWhole() && t >= state.view[0] && t <= state.view[1] ? state.view : null;
	$("overview").setPointerCapture(event.pointerId);
}

function stripMoved(event) {
	if (strip.from === null)
		return;
	const t = stripTime(event), by = t - strip.from;
	if (strip.view)
		setView(strip.view[0] + by, strip.view[1] + by, false);
	else if (t !== strip.from)
		setView(Math.min(t, strip.from), Math.max(t, strip.from), false);
}

/* ---- keys ---- */

const ACTIONS = {
	"[": () => moveStep(-1),
	"]": () => moveStep(1),
	p: () => chooseNamed("peak"),
	o: () => chooseNamed("oom"),
	e: () => chooseNamed("end"),
	r: nextRefused,
	"+": () => zoomBy(0.5),
	"=": () => zoomBy(0.5),
	"-": () => zoomBy(2),
	"0": wholeRun,
	Escape: undoZoom,
	g: nextGroup,
	"/": () => $("flame-search").focus(),
	"?": toggleKeys,
};

function inField(target) {
	return target.closest && target.closest("input, select, textarea") !== null;
}

function keyPressed(event) {
	if (event.ctrlKey || event.altKey || event.metaKey || !state.device)
		return;
	if (inField(event.target)) {
		if (event.key === "Escape")
			event.target.blur();
		return;
	}
	if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
		moveInstant((event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
		event.preventDefault();
		return;
	}
	const action = ACTIONS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
	if (action) {
		action();
		event.preventDefault();
	}
}

function listen() {
	const frame = $("timeline"), over = $("overview");
	frame.addEventListener("pointermove", hover);
	frame.addEventListener("pointerleave", leave);
	frame.addEventListener("pointerdown", pressed);
	frame.addEventListener("pointerup", released);
	frame.addEventListener("wheel", wheel, {passive: false});
	over.addEventListener("pointerdown", stripPressed);
	over.addEventListener("pointermove", stripMoved);
	over.addEventListener("pointerup", () => { strip.from = null; });
	document.addEventListener("keydown", keyPressed);
	$("flame").addEventListener("keydown", flameKey);
	$("zoom-reset").addEventListener("click", wholeRun);
	$("keys").addEventListener("click", toggleKeys);
	$("flame-lib").addEventListener("change", event => {
		state.lib = event.target.checked;
		drawFlame();
	});
	$("flame-search").addEventListener("input", event => {
		state.search = event.target.value;
		drawFlame("same");
	});
	$("flame-reset").addEventListener("click", () => {
		state.root = null;
		drawFlame("same");
	});
}
