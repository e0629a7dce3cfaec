/* Numbers and words as the command line prints them, and elements without markup. */

const SVG = "http://www.w3.org/2000/svg";
const $ = id => document.getElementById(id);

/* An element with attributes and children; texts become text nodes, never markup. */
function make(name, attributes, ...children) {
	const node = document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {}))
		if (value !== undefined && value !== null && value !== false)
			node.setAttribute(key, value);
	node.append(...children.filter(child => child !== null && child !== undefined));
	return node;
}

function draw(parent, name, attributes, text) {
	const node = document.createElementNS(SVG, name);
	for (const key in attributes)
		node.setAttribute(key, attributes[key]);
	if (text !== undefined)
		node.textContent = text;
	parent.append(node);
	return node;
}

function unitFor(bytes) {
	return bytes < 64 * 1048576 ? {size: 1024, name: "KiB"} : {size: 1048576, name: "MiB"};
}

/* Parts in whole units that add up to the total as printed: the rest goes to the largest remainders. */
function apportion(parts, unit, total) {
	const whole = parts.map(part => Math.floor(part / unit));
	let missing = total - whole.reduce((a, b) => a + b, 0);
	const order = parts.map((part, i) => [part - whole[i] * unit, i])
			      .sort((a, b) => b[0] - a[0] || a[1] - b[1]);
	for (let i = 0; missing > 0 && i < order.length; i++, missing--)
		whole[order[i][1]]++;
	return whole;
}

function roundTo(bytes, unit) { return Math.floor(bytes / unit + 0.5); }

/* Units as people read them: what is there is not printed as nothing. */
function shown(units, bytes) {
	return units === 0 && bytes !== 0 ? "<1" : String(units).replace("-", "\u2212");
}

function signed(units, bytes) { return (bytes > 0 ? "+" : "") + shown(units, bytes); }

function secondsText(us, decimals) {
	return (us / 1e6).toFixed(decimals === undefined ? 3 : decimals) + " s";
}

/* One form of time for all that is shown: milliseconds where that is short. */
function timeText(us, span) {
	return span < 1e5 ? (us / 1e3).toFixed(span < 1e4	  ? 3 :
						       span < 1e5 ? 2 :
								    1) +
			" ms" :
			    secondsText(us);
}

function baseName(path) { return path.slice(path.lastIndexOf("/") + 1); }

function plural(count, word) { return count + " " + word + (count === 1 ? "" : "s"); }

/* Text is measured, as widths differ between fonts. */
const measure = (function() {
	const context = document.createElement("canvas").getContext("2d");
	const cache = new Map();
	return function(text, bold) {
		const key = (bold ? "b" : "n") + text;
		if (!cache.has(key)) {
			context.font = (bold ? "700 " : "") + "11px " +
				getComputedStyle(document.body).fontFamily;
			cache.set(key, context.measureText(text).width);
		}
		return cache.get(key);
	};
})();

/* The longest beginning of text that fits, with an ellipsis; "" when nothing useful does. */
function fit(text, width) {
	if (measure(text) <= width)
		return text;
	let low = 0, high = text.length;
	while (low < high) {
		const middle = (low + high + 1) >> 1;
		if (measure(text.slice(0, middle) + "\u2026") <= width)
			low = middle;
		else
			high = middle - 1;
	}
	return low > 2 ? text.slice(0, low) + "\u2026" : "";
}

/* "a.py:1 > :2 > b.py:3 f": the parts of a chain, each with the file that it lies in. */
function chainParts(text) {
	let file = "";
	return text.split(" > ").map(part => {
		const at = part.indexOf(":");
		if (at > 0)
			file = part.slice(0, at);
		return {part, whole: at === 0 ? file + part : part};
	});
}

/* A chain that is too long keeps its ends: where it began, and what asked in the end. */
function fitChain(text, width) {
	const most = Math.max(8, Math.floor(width / monoWidth()));
	if (text.length <= most)
		return text;
	const parts = chainParts(text), last = parts.length - 1;
	let best = parts[last].whole;
	for (let from = last; from > 0; from--) {
		const tail =
			[parts[from].whole, ...parts.slice(from + 1).map(part => part.part)].join(
				" > ");
		for (const whole of ["\u2026 > " + tail, parts[0].part + " > \u2026 > " + tail])
			if (whole.length <= most && (from > 1 || whole[0] === "\u2026"))
				best = whole;
	}
	return best.length <= most ? best : best.slice(0, most - 1) + "\u2026";
}

function monoWidth() {
	if (!monoWidth.value) {
		const probe = make("code", {class: "sr"}, "0".repeat(50));
		document.body.append(probe);
		probe.style.width = "auto";
		monoWidth.value = probe.scrollWidth / 50;
		probe.remove();
	}
	return monoWidth.value;
}

/* ---- colours: read once per theme, as reading styles is slow ---- */

const colours = {
	cache: new Map(),
	get(name) {
		if (!this.cache.has(name))
			this.cache.set(name,
				       getComputedStyle(document.documentElement)
					       .getPropertyValue("--" + name)
					       .trim());
		return this.cache.get(name);
	},
	forget() { this.cache.clear(); },
};

function channels(colour) { return [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16)); }

function mix(a, b, share) {
	const x = channels(a), y = channels(b);
	return "#" +
		x.map((v, i) => Math.round(v + (y[i] - v) * share).toString(16).padStart(2, "0"))
			.join("");
}

function luminance(colour) {
	const [r, g, b] = channels(colour).map(v => {
		v /= 255;
		return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a, b) {
	const x = luminance(a) + 0.05, y = luminance(b) + 0.05;
	return x > y ? x / y : y / x;
}

/* What reads best on a fill: the page's own ink, or where that is too weak black or white. */
function inkOn(fill) {
	for (const ink of ["#1a1d21", "#ffffff", "#000000"])
		if (contrast(ink, fill) >= 4.5)
			return ink;
	return "#ffffff";
}
