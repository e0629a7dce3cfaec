/* Steps and segments, and in words what was left out. */

/* Of neighbouring steps that share a bar the highest peak and the highest end. */
function barsOf(width) {
	const {peak, end} = state.device.steps, count = state.device.stepCount;
	const each = Math.max(1, Math.ceil(count / (width / 5)));
	return d3.range(0, count, each).map(from => {
		const list = d3.range(from, Math.min(count, from + each));
		const top = list.reduce((best, i) => peak[i] > peak[best] ? i : best, from);
		return {
			from,
			to: list[list.length - 1],
			step: top,
			peak: peak[top],
			end: d3.max(list, i => end[i])
		};
	});
}

const PHASES = ["", "forward", "backward", "optimizer", "after"];

function stepsWords() {
	const {steps, head, stepCount} = state.device;
	const phase = PHASES[steps.phase[head.worst]];
	return "light: peak, dark: end of step" +
		(stepCount > 1 ? "; usual peak " + inUnits(steps.peak[head.usual]) + ", worst " +
				 inUnits(steps.peak[head.worst]) + " in step " +
				 stepNumber(head.worst) + (phase ? " (" + phase + ")" : "") :
				 "");
}

function drawStepBars() {
	const device = state.device, svg = $("steps"), panel = $("steps-panel");
	panel.hidden = device.stepCount < 2;
	if (panel.hidden)
		return;
	$("steps-title").textContent = "Steps, " + state.unit.name;
	$("steps-note").textContent = stepsWords() +
		(device.head.stepSource === "inferred" ? "; steps are inferred" : "");
	const width = svg.clientWidth, height = 190, left = 46, base = height - 18, top = 16;
	const bars = barsOf(width - left), most = d3.max(bars, bar => bar.peak) || 1;
	const y = bytes => base - bytes / most * (base - top),
	      each = (width - left - 6) / bars.length;
	svg.replaceChildren();
	svg.setAttribute("aria-label", stepsWords());
	const step = tickStep(most, state.unit);
	for (let bytes = 0; bytes <= most; bytes += step) {
		draw(svg, "line", {class: "grid", x1: left, x2: width, y1: y(bytes), y2: y(bytes)});
		draw(svg, "text",
		     {class: "dim", x: left - 6, y: y(bytes) + 4, "text-anchor": "end"},
		     Math.round(bytes / state.unit.size));
	}
	const failed = state.facts.oom ? device.stepAt(state.facts.oom.us) : -1;
	const gap = each > 6 ? 1 : each > 3 ? 0.5 : 0;
	bars.forEach((bar, i) => {
		const x = left + i * each, wide = Math.max(0.7, each - gap);
		const worst = bar.from <= device.head.worst && device.head.worst <= bar.to;
		const fill = bar.from <= failed && failed <= bar.to ? "fail" :
			worst					    ? "worst" :
								      "c2";
		draw(svg, "rect", {
			x,
			width: wide,
			y: y(bar.peak),
			height: base - y(bar.peak),
			fill: colours.get(fill)
		});
		if (!device.steps.cut[bar.step])
			draw(svg, "rect", {
				x,
				width: wide,
				y: y(bar.end),
				height: base - y(bar.end),
				fill: colours.get("c1")
			});
		const hit = draw(svg, "rect",
				 {x, width: each, y: top, height: base - top, fill: "transparent"});
		draw(hit, "title", {},
		     "step " + stepNumber(bar.step) + ": peak " + inUnits(bar.peak) + ", end " +
			     inUnits(bar.end));
		hit.addEventListener("click", () => choose(stepInstant(device, "p", bar.step)));
		if (worst)
			labelStep(svg, x + wide / 2, y(bar.peak) - 4,
				  "step " + stepNumber(device.head.worst) + ": " +
					  inUnits(bar.peak),
				  left, width);
	});
	numberSteps(svg, bars, left, each, height);
}

function labelStep(svg, x, y, text, left, width) {
	const half = measure(text) / 2;
	draw(svg, "text", {
		x: Math.min(width - half - 2, Math.max(left + half, x)),
		y,
		"text-anchor": "middle",
		class: "halo"
	},
	     text);
}

function numberSteps(svg, bars, left, each, height) {
	let free = 0;
	bars.forEach((bar, i) => {
		const text = String(stepNumber(bar.from)), x = left + (i + 0.5) * each,
		      half = measure(text) / 2;
		if (x - half < free)
			return;
		draw(svg, "text", {class: "dim", x, y: height - 4, "text-anchor": "middle"}, text);
		free = x + half + 22;
	});
}

/* ---- segments ---- */

function drawSegment(row, most) {
	const svg = document.createElementNS(SVG, "svg");
	svg.setAttribute("viewBox", "0 0 1000 11");
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("aria-hidden", "true");
	let at = 0;
	const scale = 998 / most;
	for (const [size, kind] of row.pieces) {
		const rect = draw(svg, "rect", {
			x: at * scale + 1,
			width: Math.max(1, size * scale - 1.5),
			y: 0.5,
			height: 10,
			fill: kind === 0   ? colours.get("c1") :
				kind === 1 ? "url(#hatch)" :
					     colours.get("cached")
		});
		if (kind)
			rect.setAttribute("stroke", colours.get(kind === 1 ? "fail" : "edge"));
		at += size;
	}
	return svg;
}

function hatch() {
	const svg = document.createElementNS(SVG, "svg");
	svg.setAttribute("class", "sr");
	svg.setAttribute("aria-hidden", "true");
	const pattern = draw(draw(svg, "defs", {}), "pattern", {
		id: "hatch",
		width: 5,
		height: 5,
		patternUnits: "userSpaceOnUse",
		patternTransform: "rotate(45)"
	});
	draw(pattern, "rect", {width: 5, height: 5, fill: colours.get("bg")});
	draw(pattern, "rect", {width: 1.6, height: 5, fill: colours.get("fail")});
	return svg;
}

function segmentWords(list) {
	return plural(list.count, "segment") + " at the " + list.at + ": in use " +
		inUnits(list.used) + ", cached and stuck " +
		shown(inUnits(list.stuck), list.stuck) + ", cached and empty " +
		shown(inUnits(list.empty), list.empty) +
		(list.largest ? "; largest piece " + inUnits(list.largest) : "");
}

function drawSegments() {
	const list = state.facts.segments, panel = $("segments-panel");
	panel.hidden = !list || !list.count || !list.rows.some(row => row.pool);
	if (panel.hidden)
		return;
	$("segments-title").textContent = "Pool segments, " + state.unit.name;
	$("segments-note").textContent = segmentWords(list);
	const most = d3.max(list.rows, row => row.size),
	      pinWidth = panel.clientWidth * 0.38 - 8 * monoWidth() - 16;
	const rows = list.rows.map(
		row => make("div", {class: "row", "data-testid": "segment-row"},
			    make("span", {class: "size"},
				 (row.n > 1 ? row.n + " \u00d7 " : "") +
					 shown(inUnits(row.size), row.size)),
			    drawSegment(row, most),
			    make("code", {class: "clip", title: row.pin},
				 row.used ? "kept by " + fitChain(row.pin, pinWidth) : "empty")));
	if (list.rest.n)
		rows.push(make("p", {class: "muted"},
			       plural(list.rest.n, "more segment") + ", " +
				       inUnits(list.rest.size) + ": in use " +
				       inUnits(list.rest.used) + ", cached " +
				       shown(inUnits(list.rest.size - list.rest.used),
					     list.rest.size - list.rest.used)));
	const key = (fill, text) => make("li", {}, swatch(fill), text);
	const stuck = key("bg", "cached, stuck beside a live block");
	stuck.firstChild.style.background = "repeating-linear-gradient(135deg," +
		colours.get("fail") + " 0 1.5px," + colours.get("bg") + " 1.5px 4px)";
	$("segments")
		.replaceChildren(hatch(), ...rows,
				 make("ul", {class: "legend"}, key("c1", "in use"), stuck,
				      key("cached", "cached, whole segment empty")));
}

/* ---- in words, what this page has and has not ---- */

function mergedWords() {
	const device = state.device, head = device.head, rows = device.chain("h");
	const words = [head.events + " events."];
	const single = device.count === head.events;
	words.push(
		single ? "Every event is in this page." :
			 "They are told in " + device.count +
				" slices; each keeps its exact highest and lowest, so no peak is lost." +
				(head.windows.length ? " Every event of " +
						 head.windows.filter(w => w[2])
							 .map(w => "step " + w[2])
							 .join(", ") +
						 (head.windows.some(w => w[2]) ?
							  "" :
							  "the time around the peak") +
						 " is told." :
						       ""));
	words.push("Holders are exact at " + rows.count + " instants (the highest of " +
		   (head.group > 1 ? head.group + " slices" : "each slice") + ")" +
		   (device.stepCount ? ", at the peak and the end of " +
				    (head.stepEvery > 1 ? "every " + head.stepEvery + "th of " :
							  "each of ") +
				    plural(device.stepCount, "step") :
				       "") +
		   (state.facts.oom ? ", at the failure" : "") +
		   ", at the peak and at the end. The cursor moves between these instants only.");
	words.push(
		head.merged ? head.merged + " of " + head.places +
				" places in the code, the smallest, share rows with others of the same line, " +
				"category, owner and stream: sums are exact, their stacks are not kept." :
			      "Every place in the code is kept.");
	return words.join(" ");
}
