/* Axes, names and marks over the timeline: few things, which need text, so they are SVG. */

function tickStep(top, unit) {
	let step = 1024 * unit.size;
	while (top / step > 5)
		step *= 2;
	while (top / step < 3 && step > unit.size)
		step /= 2;
	return step;
}

function memoryTicks() {
	const step = tickStep(plot.top, state.unit);
	return d3.range(0, plot.top * 1.001, step);
}

function drawMemoryAxis(svg, box) {
	for (const bytes of memoryTicks()) {
		const y = Math.round(yOf(bytes, box));
		if (plot.printing)
			draw(svg, "line", {class: "grid", x1: box.x0, x2: box.x1, y1: y, y2: y});
		draw(svg, "text", {class: "dim", x: box.x0 - 6, y: y + 4, "text-anchor": "end"},
		     Math.round(bytes / state.unit.size));
	}
	const card = state.facts.card;
	if (card && card <= plot.top) {
		const y = yOf(card, box);
		draw(svg, "line", {class: "card", x1: box.x0, x2: box.x1, y1: y, y2: y});
		draw(svg, "text", {class: "halo", x: box.x0 + 4, y: y + 13}, "card");
	}
}

function drawTimeAxis(svg, box) {
	const milli = span() < 1e5, scale = milli ? 1e3 : 1e6;
	const ticks = d3.ticks(state.view[0] / scale, state.view[1] / scale,
			       Math.max(2, Math.floor((box.x1 - box.x0) / 110)));
	const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1;
	const decimals = Math.max(milli ? 0 : 1, -Math.floor(Math.log10(step) + 1e-9));
	for (const tick of ticks) {
		const x = xOf(tick * scale, box);
		draw(svg, "text", {class: "dim", x, y: box.height - 6, "text-anchor": "middle"},
		     tick.toFixed(decimals) + (milli ? " ms" : " s"));
	}
}

/* Step numbers where they have room, in a row of their own. */
function drawSteps(svg, box) {
	const steps = state.device.steps, count = state.device.stepCount, y = box.y0;
	if (!count)
		return;
	draw(svg, "text", {class: "dim", x: box.x0 - 6, y: y + 15, "text-anchor": "end"}, "step");
	let free = -Infinity, tick = -Infinity;
	for (let i = 0; i < count; i++) {
		const x = xOf(steps.t0[i], box);
		if (x < box.x0 - 1 || x > box.x1)
			continue;
		if (x - tick >= 3) {
			draw(svg, "line", {class: "tick", x1: x, x2: x, y1: y + 1, y2: y + 6});
			tick = x;
		}
		const text = String(stepNumber(i)), width = measure(text);
		if (x + 3 >= free && x + 3 + width <= box.x1 + 6) {
			draw(svg, "text", {x: x + 3, y: y + 15}, text);
			free = x + 3 + width + (count > 30 ? 14 : 5);
		}
	}
}

/* Where a layer is thickest, if it is thick and wide enough for its name there; not in this column. */
function thickest(g, groups, box, avoided) {
	const columns = plot.columns, width = measure(groups.names[g]) + 8,
	      count = groups.names.length;
	const need = Math.ceil(width);
	let best = null, run = [];
	for (let c = 0; c < columns.count; c++) {
		const row = columns.row[c];
		let low = 0;
		for (let k = 0; row >= 0 && k < g; k++)
			low += groups.sums[row * count + k];
		const high = row < 0 ? 0 : low + groups.sums[row * count + g];
		const fits = high > low && columns.exact[c] && Math.abs(c - avoided) > GATE_ROOM;
		run = fits ? [...run.slice(-(need - 1)), [low, high]] : [];
		if (run.length < need)
			continue;
		const top = d3.min(run, r => r[1]), base = d3.max(run, r => r[0]);
		const room = (top - base) / plot.top * (box.y0 - box.y1);
		if (room >= 14 && (!best || room > best.room))
			best = {room, c: c - need / 2, middle: (top + base) / 2};
	}
	return best;
}

const GATE_ROOM = 6;

/* Beside the gate, whose lines would go through it, unless there is room in its place alone. */
function placeName(g, groups, box) {
	const gate = state.a ? Infinity : xOf(state.chosen.t, box) - box.x0;
	const best = thickest(g, groups, box, Infinity);
	const half = measure(groups.names[g]) / 2 + GATE_ROOM;
	return best && Math.abs(best.c - gate) < half ? thickest(g, groups, box, gate) || best :
							best;
}

function drawNames(svg, groups, box) {
	groups.names.forEach((name, g) => {
		const at = placeName(g, groups, box);
		if (!at)
			return;
		const text = draw(svg, "text", {
			class: "halo",
			x: box.x0 + at.c,
			y: yOf(at.middle, box) + 4,
			"text-anchor": "middle"
		},
				  name);
		const fill = colours.get(groups.fills[g]);
		text.style.fill = inkOn(fill);
		text.style.stroke = fill; /* the line of the lows may go through it */
	});
}

/* ---- marks: what has the place first keeps it ---- */

const MARK_HEIGHT = 14, MARK_REACH = 7; /* of the triangles at the top */

function placeLabel(taken, x, y, text, box) {
	const width = measure(text);
	for (const left of [x - width - 8, x + 8]) {
		const area = {x0: left - 2, x1: left + width + 2, y0: y - 11, y1: y + 3};
		if (left < box.x0 + 2 || left + width > box.x1)
			continue;
		if (taken.every(t => area.x1 < t.x0 || area.x0 > t.x1 || area.y1 < t.y0 ||
					area.y0 > t.y1)) {
			taken.push(area);
			return left;
		}
	}
	return null;
}

function drawFailure(svg, box, taken) {
	const oom = state.facts.oom;
	if (!oom || oom.us < state.view[0] || oom.us > state.view[1])
		return;
	const x = xOf(oom.us, box);
	draw(svg, "path", {d: `M${x - 5} 2h10l-5 9z`, fill: colours.get("fail")});
	for (let y = 11, left = null; left === null && y < 40; y += 14) {
		left = placeLabel(taken, x, y, "out of memory", box);
		if (left !== null)
			draw(svg, "text", {class: "fail halo", x: left, y}, "out of memory");
	}
	taken.push({x0: x - 40, x1: x + 8, y0: 0, y1: 14});
}

/* The request whose mark is under the pointer; -1 = none. */
function refusedAt(x, y, box) {
	return y > MARK_HEIGHT ?
		-1 :
		state.facts.refused.findIndex(([us]) => Math.abs(xOf(us, box) - x) <= MARK_REACH);
}

/* Those that did not end the run: hollow, so that they are not taken for the failure. */
function drawRefused(svg, box, taken) {
	for (const [us, name] of state.facts.refused) {
		if (us < state.view[0] || us > state.view[1])
			continue;
		const x = xOf(us, box), text = fit(name, 200);
		draw(svg, "path", {
			"data-testid": "refused",
			d: `M${x - 4} 2.5h8l-4 7z`,
			fill: colours.get("bg"),
			stroke: colours.get("fail")
		});
		const left = text ? placeLabel(taken, x, 11, text, box) : null;
		if (left !== null)
			draw(svg, "text", {class: "fail halo", x: left, y: 11}, text);
	}
}

/* Their triangles have their places before any name has. */
function takeRefused(box, taken) {
	for (const [us] of state.facts.refused)
		if (us >= state.view[0] && us <= state.view[1])
			taken.push({
				x0: xOf(us, box) - 5,
				x1: xOf(us, box) + 5,
				y0: 0,
				y1: MARK_HEIGHT
			});
}

function drawPeak(svg, box, taken) {
	const head = state.device.head;
	if (head.peakUs < state.view[0] || head.peakUs > state.view[1])
		return;
	const x = xOf(head.peakUs, box), y = yOf(head.peak, box);
	draw(svg, "path", {
		class: "peak",
		d: `M${x} ${y - 4}l4 4l-4 4l-4 -4z`,
		fill: colours.get("fg"),
		stroke: colours.get("bg")
	});
	const text = "peak " + inUnits(head.peak), at = Math.max(y + 4, box.y1 + 10);
	const left = placeLabel(taken, x, at, text, box);
	if (left !== null)
		draw(svg, "text", {class: "halo", x: left, y: at}, text);
}

function drawMarks(svg, box, taken) {
	for (const [us, name] of state.facts.marks) {
		if (us < state.view[0] || us > state.view[1])
			continue;
		const x = xOf(us, box);
		draw(svg, "line", {class: "cross", x1: x, x2: x, y1: box.y1 - 3, y2: box.y0});
		const text = fit(name, 150);
		for (let row = 0, left = null; text && left === null && row < 4; row++) {
			const y = box.y1 + 8 + 14 * row;
			left = placeLabel(taken, x, y, text, box);
			if (left !== null)
				draw(svg, "text", {class: "halo", x: left, y}, text);
		}
	}
}

/* Where the swings inside the columns are large, their lower ends. */
function drawLow(svg, box) {
	const columns = plot.columns;
	let wide = 0;
	for (let c = 0; c < columns.count; c++)
		wide += columns.high[c] - columns.low[c] > plot.top / 12;
	if (wide <= columns.count / 6)
		return false;
	const line = d3.line().x((d, c) => box.x0 + c + 0.5).y(d => yOf(d, box)).defined(isFinite);
	draw(svg, "path", {class: "low", d: line(columns.low)});
	return true;
}

/* ---- A of two traces: its steps laid on those of B ---- */

function otherTime(t) {
	const a = state.other, b = state.device;
	const step = a.stepAt(t), count = Math.min(a.stepCount, b.stepCount);
	if (step >= 0 && step < count) {
		const share = (t - a.steps.t0[step]) / (a.steps.t1[step] - a.steps.t0[step] || 1);
		return b.steps.t0[step] + share * (b.steps.t1[step] - b.steps.t0[step]);
	}
	if (count && t < a.steps.t0[0])
		return b.head.t0 +
			(t - a.head.t0) / (a.steps.t0[0] - a.head.t0 || 1) *
			(b.steps.t0[0] - b.head.t0);
	if (count)
		return b.steps.t1[count - 1] + (t - a.steps.t1[count - 1]);
	return t;
}

function drawOther(svg, box) {
	const a = state.other, high = new Float64Array(box.columns).fill(-1);
	for (let i = 0; i < a.count; i++) {
		const c = Math.floor(xOf(otherTime(a.top[i]), box) - box.x0);
		if (c >= 0 && c < high.length && a.max[i] > high[c])
			high[c] = a.max[i];
	}
	let end = high.length - 1;
	while (end > 0 && high[end] < 0) /* A may have ended before B */
		end--;
	for (let c = 1; c <= end; c++)
		if (high[c] < 0)
			high[c] = high[c - 1];
	const line = d3.line()
			     .defined((d, c) => c <= end)
			     .x((d, c) => box.x0 + c + 0.5)
			     .y(d => yOf(Math.max(0, d), box))
			     .curve(d3.curveStepAfter);
	draw(svg, "path", {class: "other", d: line(high), "data-testid": "line-a"});
}

/* ---- the chosen instant: a gate, since one line would cover the spike that it names ---- */

function drawGate(svg, box) {
	const t = state.chosen && state.chosen.t;
	if (state.a || t === null || t < state.view[0] || t > state.view[1])
		return;
	const x = Math.round(xOf(t, box));
	for (const dx of [-2.5, 2.5])
		draw(svg, "line", {class: "gate", x1: x + dx, x2: x + dx, y1: 0, y2: box.y0});
	draw(svg, "path", {class: "handle", d: `M${x - 5} ${box.y0 + 3}h10l-5 -9z`});
}

function drawAB(svg, box) {
	for (const [name, instant] of [["A", state.a], ["B", state.b]]) {
		if (!instant)
			continue;
		const x = Math.round(xOf(instant.t, box));
		draw(svg, "line", {class: "ab", x1: x, x2: x, y1: 0, y2: box.y0});
		draw(svg, "text", {class: "b halo", x: x + 4, y: 12}, name);
	}
}

function drawOverlay(box, groups) {
	const svg = $("overlay"), taken = [];
	svg.replaceChildren();
	drawMemoryAxis(svg, box);
	drawTimeAxis(svg, box);
	plot.lowDrawn = drawLow(svg, box);
	if (plot.printing)
		drawPrinted(svg, box, groups);
	drawSteps(svg, box);
	if (state.other)
		drawOther(svg, box);
	drawNames(svg, groups, box);
	drawGate(svg, box);
	drawAB(svg, box);
	takeRefused(box, taken);
	drawFailure(svg, box, taken);
	drawRefused(svg, box, taken);
	drawPeak(svg, box, taken);
	drawMarks(svg, box, taken);
	plot.live = draw(svg, "g", {id: "cross"});
	drawCross();
}

/* Redrawn with every move of the pointer, so it is alone in its group. */
function drawCross() {
	const box = plotBox();
	plot.live.replaceChildren();
	if (!state.hover)
		return;
	const x = Math.round(xOf(state.hover.t, box)), y = yOf(state.hover.total, box);
	draw(plot.live, "line", {class: "cross", x1: x, x2: x, y1: 0, y2: box.y0});
	draw(plot.live, "circle", {cx: x, cy: y, r: 2.5, fill: colours.get("fg")});
}

/* ---- print: a canvas drifts away from what lies over it, so the layers are paths ---- */

function drawPrinted(svg, box, groups) {
	const columns = plot.columns, count = groups.names.length;
	const base = new Float64Array(columns.count);
	const area = (low, high, fill, name) => {
		const shape = d3.area()
				      .x((d, c) => box.x0 + c)
				      .y0((d, c) => yOf(low[c], box))
				      .y1((d, c) => yOf(high[c], box))
				      .curve(d3.curveStepAfter);
		draw(svg, "path", {class: "printed", d: shape(low), fill: colours.get(fill)})
			.dataset.name = name;
	};
	area(columns.high, columns.held, "cached", "cached");
	for (let g = 0; g < count; g++) {
		const high =
			base.map((low, c) => columns.row[c] < 0 ?
					 0 :
					 Math.min(columns.high[c],
						  low + groups.sums[columns.row[c] * count + g]));
		area(base, high, groups.fills[g], groups.names[g]);
		base.set(high);
	}
	area(base, columns.high, "nosplit", "not split");
}
