/*
 * Stacks at the chosen instant, outermost first: an icicle whose widths are bytes. Between two instants
 * the width is the larger of the two, so that what vanished stays visible, and colour and sign say which
 * way it went. Boxes under 0.7 px are not made but counted.
 */

const BOX = 19, NARROW = 0.7;

function frameKey(frame) { return baseName(frame[0]) + ":" + frame[1] + " " + frame[2]; }

function newNode(parent, frame) {
	return {parent, frame, a: 0, b: 0, inside: new Map(), list: null};
}

function addPath(root, head, node, bytes, side) {
	const path = [];
	for (let at = node; at >= 0; at = head.nodes[at][0])
		path.push(head.nodes[at][1]);
	root[side] += bytes;
	let box = root;
	for (let i = path.length - 1; i >= 0; i--) {
		const frame = head.frames[path[i]], key = frameKey(frame);
		if (!box.inside.has(key))
			box.inside.set(key, newNode(box, frame));
		box = box.inside.get(key);
		box[side] += bytes;
	}
}

const MERGED = ["", 0, "merged to fit the page: stack not kept", 0];

function addInstant(root, instant, side) {
	const head = instant.device.head, nodes = state.lib ? head.leaf : head.near;
	vectorOf(instant).forEach((bytes, place) => {
		if (bytes && nodes[place] >= 0) {
			addPath(root, head, nodes[place], bytes, side);
		} else if (bytes) {
			if (!root.inside.has("merged"))
				root.inside.set("merged", newNode(root, MERGED));
			root[side] += bytes;
			root.inside.get("merged")[side] += bytes;
		}
	});
}

function widthOf(node) { return Math.max(node.a, node.b); }

/* Children in order of size; between two instants a box is as wide as what it holds. */
function sortTree(node, signedTree) {
	node.list = [...node.inside.values()];
	let inside = 0;
	for (const child of node.list) {
		sortTree(child, signedTree);
		inside += child.width;
	}
	node.width = Math.max(signedTree ? widthOf(node) : node.b, inside);
	node.list.sort((x, y) => y.width - x.width ||
			       (frameKey(x.frame) < frameKey(y.frame) ? -1 : 1));
}

function makeTree(compared) {
	const root = newNode(null, ["", 0, "in use", 0]);
	if (compared)
		addInstant(root, compared.a, "a");
	addInstant(root, compared ? compared.b : state.chosen, "b");
	sortTree(root, !!compared);
	return root;
}

function nodeName(node) {
	const [file, line, name, mine] = node.frame;
	if (!node.parent)
		return name;
	const where = file ? baseName(file) + (line ? ":" + line : "") : "";
	if (mine)
		return where + (name === "<module>" ? "" : " " + name);
	return name + (where ? " " + where : "");
}

/* Short of room the user's own code keeps its place, a library's its function. */
function shortName(node, width) {
	const [file, line, name, mine] = node.frame, whole = nodeName(node);
	if (measure(whole) <= width || !node.parent)
		return fit(whole, width);
	return fit(mine && file ? baseName(file) + ":" + line : name, width);
}

/* ---- search: outermost hits only, so nothing counts twice ---- */

function matches(node, words) {
	return (node.frame[0] + ":" + node.frame[1] + " " + node.frame[2])
		.toLowerCase()
		.includes(words);
}

/* Hidden frames are looked through too: the tree that is searched has them all. */
function countHits(words) {
	const lib = state.lib;
	state.lib = true;
	const tree = makeTree(null);
	state.lib = lib;
	let count = 0, bytes = 0;
	(function walk(node) {
		if (node.parent && matches(node, words)) {
			count++;
			bytes += node.b;
			return;
		}
		node.list.forEach(walk);
	})(tree);
	return {count, bytes};
}

/* ---- boxes ---- */

function boxFill(node, compared) {
	if (!compared)
		return colours.get(node.frame[3] ? "c4" :
						   "box"); /* the user's own code is in colour */
	const change = node.b - node.a, most = Math.max(1, Math.abs(flame.root.b - flame.root.a));
	const share = Math.min(1, 0.25 + 0.75 * Math.sqrt(Math.abs(change) / most));
	if (Math.abs(change) < state.unit.size / 2)
		return colours.get("box");
	return mix(colours.get("box"), colours.get(change > 0 ? "boxmore" : "boxless"), share);
}

const flame = {
	root: null,
	focus: null,
	boxes: []
};

/* Boxes wide enough to draw, by row; those left out are counted. */
function layOut(node, x, scale, depth, out) {
	out.boxes.push({node, x, width: node.width * scale, depth});
	out.depth = Math.max(out.depth, depth);
	let at = x;
	for (const child of node.list) {
		const width = child.width * scale;
		if (width >= NARROW)
			layOut(child, at, scale, depth + 1, out);
		else if (child.width) {
			out.left++;
			out.leftBytes += child.b;
		}
		at += width;
	}
}

function valueText(node, compared) {
	const change = node.b - node.a;
	return compared ? signed(inUnits(node.b) - inUnits(node.a), change) :
			  shown(inUnits(node.b), node.b);
}

function drawBox(svg, box, compared, words) {
	const {node, x, width, depth} = box, y = depth * BOX;
	const fill = boxFill(node, compared), ink = inkOn(fill), value = valueText(node, compared);
	const group = draw(svg, "g", {
		role: "treeitem",
		tabindex: node === flame.focus ? 0 : -1,
		"aria-level": depth + 1,
		"aria-label": nodeName(node) + ", " + value + " " + state.unit.name,
		"aria-expanded": node.list.length ? "true" : null
	});
	if (!node.list.length)
		group.removeAttribute("aria-expanded");
	const hit = words && node.parent && matches(node, words);
	const rect = draw(
		group, "rect",
		{x: x + 0.5, y: y + 0.5, width: Math.max(0.7, width - 1), height: BOX - 1.5, fill});
	if (hit) {
		rect.setAttribute("stroke", colours.get("fg"));
		rect.setAttribute("stroke-width", 2);
		group.dataset.hit = "1";
	}
	const room = width - 8, valueWidth = measure(value, true) + 8;
	const wide = room > valueWidth + 24;
	const name = shortName(node, wide ? room - valueWidth : room);
	if (name) {
		const text = draw(group, "text", {x: x + 4, y: y + 13}, name);
		text.style.fill = ink;
	}
	if (wide) {
		const text = draw(group, "text",
				  {x: x + width - 4, y: y + 13, "text-anchor": "end", class: "b"},
				  value);
		text.style.fill = ink;
	}
	draw(group, "title", {},
	     nodeName(node) + "  " + value + " " + state.unit.name +
		     (node.frame[0] ? "\n" + node.frame[0] : ""));
	group.addEventListener("click", () => zoomFlame(node));
	group.addEventListener("focus", () => { flame.focus = node; });
	box.group = group;
}

function drawFlame(keepFocus) {
	const compared = comparison(), words = state.search.trim().toLowerCase();
	if (keepFocus !== "same")
		flame.root = makeTree(compared);
	const shownRoot =
		state.root && state.root.top === flame.root ? state.root.node : flame.root;
	const width = $("flame-panel").clientWidth, svg = $("flame");
	const out = {boxes: [], depth: 0, left: 0, leftBytes: 0};
	const path = [];
	for (let node = shownRoot.parent; node; node = node.parent)
		path.unshift(node);
	layOut(shownRoot, 0, width / (shownRoot.width || 1), path.length, out);
	if (!out.boxes.some(box => box.node === flame.focus))
		flame.focus = shownRoot;
	svg.replaceChildren();
	svg.setAttribute("height", (out.depth + 1) * BOX + 2);
	path.forEach((node, depth) => out.boxes.push({node, x: 0, width, depth}));
	flame.boxes = out.boxes;
	for (const box of out.boxes)
		drawBox(svg, box, compared, words);
	describeFlame(compared, words, out);
}

function describeFlame(compared, words, out) {
	$("flame-note").textContent = compared ?
		"width = the larger of A and B; red + = B uses more, blue \u2212 = less" :
		"at " + timeText(state.chosen.t, span()) + ", " + inUnits(state.chosen.total) +
			" " + state.unit.name + "; widths are bytes, your code in colour";
	$("flame-rest").textContent = out.left ? plural(out.left, "place") +
			" too narrow to draw, " + shown(inUnits(out.leftBytes), out.leftBytes) +
			" " + state.unit.name + "; zoom in to see them" :
						 "";
	$("flame-reset").hidden = !state.root || state.root.top !== flame.root;
	const hits = words ? countHits(words) : null;
	$("flame-hits").textContent = hits ? hits.count + " found, " +
			shown(inUnits(hits.bytes), hits.bytes) + " " + state.unit.name :
					     "";
}

function zoomFlame(node) {
	const had = $("flame").contains(document.activeElement);
	state.root = node.parent ? {top: flame.root, node} : null;
	flame.focus = node;
	drawFlame("same");
	if (had)
		focusBox(node);
}

function focusBox(node) {
	const box = flame.boxes.find(item => item.node === node);
	if (!box)
		return;
	for (const other of flame.boxes)
		other.group.setAttribute("tabindex", other === box ? 0 : -1);
	flame.focus = node;
	box.group.focus();
}

/* Arrows go to the child, the parent and the neighbours; what is not drawn is passed over. */
function flameKey(event) {
	const node = flame.focus, drawn = item => flame.boxes.some(box => box.node === item);
	const beside = step => {
		const list = node.parent ? node.parent.list.filter(drawn) : [];
		return list[list.indexOf(node) + step];
	};
	const targets = {
		ArrowDown: () => node.list.find(drawn),
		ArrowUp: () => node.parent,
		ArrowLeft: () => beside(-1),
		ArrowRight: () => beside(1),
	};
	if (event.key === "Enter" || event.key === " ") {
		zoomFlame(node);
	} else if (targets[event.key]) {
		const target = targets[event.key]();
		if (target)
			focusBox(target);
	} else {
		return;
	}
	event.preventDefault();
	event.stopPropagation();
}
