/* Tables: who holds the memory at the instant that is looked at, and what adds up to what. */

function swatch(fill) {
	const node = make("span", {class: "swatch", "aria-hidden": "true"});
	node.style.background = colours.get(fill);
	return node;
}

function headRow(titles) {
	return make("thead", {},
		    make("tr", {},
			 ...titles.map(([text, kind]) =>
					       make("th", {scope: "col", class: kind}, text))));
}

function numberCell(units, bytes, kind) {
	return make("td", {class: kind || "n"}, shown(units, bytes));
}

/* Rows that fit above the fold; a failed run has a table above. */
function roomForRows() {
	const used = $("holders-table").getBoundingClientRect().top + window.scrollY;
	return Math.max(3, Math.floor((792 - used - 50) / 26));
}

/* How many rows are shown: those with their source text take two lines. */
function cutRows(rows, total) {
	let room = roomForRows() * 26, count = 0;
	for (const row of rows) {
		if (count >= 6 && row.bytes < total / 200) /* "<1 %" tells nobody anything */
			break;
		room -= row.bytes > total / 20 && state.device.head.lines[row.line][2] ? 42 : 26;
		if (room < 0)
			break;
		count++;
	}
	return count + 1 === rows.length ? count + (room > -26 ? 1 : 0) : count;
}

/* Of the column of lines; the others have widths of their own. */
function lineWidth() { return $("side").clientWidth - 122 - 58 - (comparison() ? 2 * 58 : 40) - 8; }

/*
 * The texts of rows, cut to their column. Different lines that would read the same lose their
 * function's name before any of their numbers; where that is not enough they take two lines.
 */
function fitRows(rows) {
	const width = lineWidth() - (state.group !== "category" ? 17 : 0);
	const lines = new Map();
	for (const row of rows)
		lines.set(row.device.head.lines[row.line][0], "");
	const short = text => fitChain(text, width), seen = new Map();
	for (const text of lines.keys())
		seen.set(short(text), (seen.get(short(text)) || 0) + 1);
	for (const text of lines.keys()) {
		const bare = text.replace(/ [^ >]+$/, "");
		const fits = (part, share) => part.length * monoWidth() <= share * width;
		if (seen.get(short(text)) === 1 || !(fits(bare, 1) || fits(text, 1.9)))
			lines.set(text, short(text));
		else
			lines.set(text, fits(bare, 1) ? bare : text);
	}
	return lines;
}

function lineCell(row, withSource, texts) {
	const [text, , source] = row.device.head.lines[row.line];
	const groups = groupsOf(state.device, state.group),
	      swatched = state.group !== "category" && row.device === state.device;
	const fitted = texts.get(text);
	const cell =
		make("th", {scope: "row"},
		     make("code", {class: fitted === text ? "" : "clip", title: text}, fitted));
	if (swatched)
		cell.firstChild.prepend(swatch(groups.fills[groups.of[row.place]]));
	if (withSource && source)
		cell.append(make("span", {class: "src", title: source}, source));
	return cell;
}

function categoryCell(row) {
	const name = row.category		   ? row.device.head.cats[row.category] :
		row.device.head.lines[row.line][1] ? "" :
						     "driver";
	const cell = make("td", {class: "cat"});
	if (row.category && state.group === "category")
		cell.append(swatch("c" + row.category));
	cell.append(name);
	return cell;
}

function holderRow(row, units, share, total, texts) {
	return make("tr", {"data-testid": "holders-row", "data-bytes": row.bytes},
		    lineCell(row, row.bytes > total / 20, texts), categoryCell(row),
		    numberCell(units, row.bytes), numberCell(share, row.bytes, "n p"));
}

function sumRow(name, units, bytes, testid, share) {
	return make("tr", {
		class: testid === "holders-rest" ? "rest" : "sum",
		"data-testid": testid,
		"data-bytes": bytes
	},
		    make("th", {scope: "row"}, name), make("td", {}), numberCell(units, bytes),
		    numberCell(share, bytes, "n p"));
}

/* Of a failed run what else is on the device; of others nothing. */
function deviceRows(instant) {
	const oom = state.facts.oom, ledger = state.facts.ledger;
	if (!oom || !ledger || instant.name !== "oom" || !ledger.total)
		return [];
	const rows =
		ledger.rows.filter(row => row[4] !== "torch-allocated" && row[4] !== "library");
	const units = apportion([instant.total, ...rows.map(row => Math.max(0, row[3]))],
				state.unit.size, inUnits(ledger.total));
	const list =
		rows.map(([text, level, , bytes],
			  i) => [text === "torch, cached" && oom.largest !== null ?
					 "cached (largest piece " + inUnits(oom.largest) + ")" :
					 text,
				 level, bytes, bytes < 0 ? inUnits(bytes) : units[i + 1]])
			.filter(row => row[2] !== 0);
	list.push(["device", "", ledger.total, inUnits(ledger.total)]);
	return list.map(([text, level, bytes, whole]) =>
				make("tr", {
					"data-testid": "device-row",
					"data-bytes": bytes,
					class: text === "device" ? "sum" : null
				},
				     make("th", {scope: "row"}, text), make("td", {}, level),
				     numberCell(whole, bytes), make("td", {class: "n p"})));
}

function drawHolders(instant) {
	const rows = holderRows(instant.device, vectorOf(instant));
	const total = inUnits(instant.total), parts = rows.map(row => row.bytes);
	const units = apportion(parts, state.unit.size, total);
	const shares = apportion(parts, instant.total / 100 || 1, instant.total ? 100 : 0);
	const device = deviceRows(instant);
	let count = cutRows(rows, instant.total);
	count = Math.max(3, count - device.length);
	if (count >= rows.length - 1)
		count = rows.length;
	const texts = fitRows(rows.slice(0, count));
	const body =
		make("tbody", {},
		     ...rows.slice(0, count).map((row, i) => holderRow(row, units[i], shares[i],
								       instant.total, texts)));
	if (count < rows.length)
		body.append(sumRow(plural(rows.length - count, "more row"),
				   d3.sum(units.slice(count)), d3.sum(parts.slice(count)),
				   "holders-rest", d3.sum(shares.slice(count))));
	body.append(sumRow("in use", total, instant.total, "holders-sum", instant.total ? 100 : 0),
		    ...device);
	const table = make(
		"table", {class: "holders", "aria-labelledby": "holders-title"}, headRow([
			["your lines"], ["category", "cat"], [state.unit.name, "n"], ["%", "n p"]
		]),
		body);
	$("holders-table").replaceChildren(table);
}

/* ---- change between two instants ---- */

function changeRow(row, a, b, change, texts) {
	return make("tr", {"data-testid": "holders-row", "data-bytes": row.b - row.a},
		    lineCell(row, false, texts), categoryCell(row), numberCell(a, row.a),
		    numberCell(b, row.b),
		    make("td", {class: "n " + (row.b > row.a ? "more" : "less")},
			 signed(change, row.b - row.a)));
}

function wholeChange(name, testid, a, b, inA, inB) {
	return make("tr", {
		class: testid === "holders-sum" ? "sum" : "rest",
		"data-testid": testid,
		"data-bytes": inB - inA
	},
		    make("th", {scope: "row"}, name), make("td", {}), numberCell(a, inA),
		    numberCell(b, inB), make("td", {class: "n"}, signed(b - a, inB - inA)));
}

/* Of rows each of which changed by less than half a unit. */
function unchanged(rows) { return rows.every(row => row.a === row.b) ? " unchanged" : ", each <1"; }

/* A and B are rounded as their sums are; a change is the difference of what is printed. */
function drawChange({a, b, traces}) {
	const rows = changeRows(a, b);
	const inA = apportion(rows.map(row => row.a), state.unit.size, inUnits(a.total));
	const inB = apportion(rows.map(row => row.b), state.unit.size, inUnits(b.total));
	const moved = rows.filter(row => Math.abs(row.b - row.a) >= state.unit.size / 2);
	const texts = fitRows(moved);
	const width = lineWidth() / monoWidth();
	let count = 0;
	for (let room = roomForRows() - 2; room > 0 && count < moved.length; count++) {
		const [text] = moved[count].device.head.lines[moved[count].line];
		room -= texts.get(text).length > width ? 1.7 : 1;
	}
	const body =
		make("tbody", {},
		     ...rows.slice(0, count).map(
			     (row, i) => changeRow(row, inA[i], inB[i], inB[i] - inA[i], texts)));
	const sum = (list, from) => d3.sum(list.slice(from));
	if (count < rows.length)
		body.append(wholeChange(
			moved.length > count ?
				plural(rows.length - count, "more row") :
				plural(rows.length - count, "row") + unchanged(rows.slice(count)),
			"holders-rest", sum(inA, count), sum(inB, count),
			d3.sum(rows.slice(count), r => r.a), d3.sum(rows.slice(count), r => r.b)));
	body.append(wholeChange("in use", "holders-sum", inUnits(a.total), inUnits(b.total),
				a.total, b.total));
	$("holders-table")
		.replaceChildren(make(
			"table", {class: "holders", "aria-labelledby": "holders-title"}, headRow([
				["your lines"], ["category", "cat"], ["A", "n"], ["B", "n"],
				["B\u2212A", "n"]
			]),
			body));
	$("holders-title").textContent =
		traces ? "In use at the peaks" : "Change between two instants";
	$("holders-instant").textContent = traces ? "A " + meta.places[state.pair].file + "  B " +
			state.facts.file + " \u00b7 + = B uses more" :
						    "A " + instantWords(a)[0] + "  B " +
			instantWords(b)[0] + " \u00b7 + = B uses more; both exact";
}

function titleOf(instant) {
	if (instant.name)
		return {
			peak: "In use at the peak",
			oom: "In use at the failure",
			end: "In use at the end"
		}[instant.name];
	if (instant.step !== undefined)
		return "In use at the " + (instant.letter === "p" ? "peak" : "end") + " of step " +
			stepNumber(instant.step);
	return "In use at this instant";
}

function levelOf(device) {
	const torch = device.head.lines.some(line => line[1]),
	      driver = device.head.lines.some(line => !line[1]);
	return torch && driver ? "torch and driver" : torch ? "torch" : "driver";
}

/* The panel beside the timeline: for the pointer's instant while there is one. */
function drawSide() {
	const compared = state.hover ? null : comparison();
	if (compared)
		return drawChange(compared);
	const instant = state.hover || state.chosen;
	$("holders-title").textContent = titleOf(instant);
	$("holders-instant").textContent = [
		...instantWords(instant), instant.away || instantKind(instant),
		levelOf(state.device)
	].join(" \u00b7 ");
	return drawHolders(instant);
}

/* ---- what would have been enough ---- */

function drawOom() {
	const oom = state.facts.oom, panel = $("oom-panel");
	panel.classList.toggle("empty", !oom || !oom.remedies.length);
	if (!oom || !oom.remedies.length)
		return;
	const lack = oom.over || oom.short;
	const title = "Enough?" +
		(lack ? (oom.over ? " over by " : " short by ") + inUnits(lack) + " " +
				 state.unit.name :
			"");
	const rows = oom.remedies.map(
		(remedy, i) =>
			make("tr", {class: i === 0 && remedy.enough ? "act" : null},
			     make("th", {scope: "row", title: remedy.how},
				  make("code", {},
				       (i === 0 && remedy.enough ? "\u25b8 " : "") + remedy.text)),
			     numberCell(inUnits(remedy.bytes), remedy.bytes),
			     make("td", {},
				  remedy.lasts +
					  (remedy.result === "same" ? "" : ", " + remedy.result))));
	panel.replaceChildren(
		make("table", {"data-testid": "enough", "aria-labelledby": "oom-title"},
		     make("thead", {},
			  make("tr", {},
			       make("th", {scope: "col"}, make("h2", {id: "oom-title"}, title)),
			       make("th", {scope: "col", class: "n"}, "gives " + state.unit.name),
			       make("th", {scope: "col"}, "lasts"))),
		     make("tbody", {}, ...rows)));
}

function drawWhy() {
	const oom = state.facts.oom, why = state.facts.head.slice(3);
	$("why-panel").hidden = !oom || (!oom.line && !why.length);
	if (!oom)
		return;
	const parts = [];
	if (oom.line)
		parts.push(make("p", {class: "quote"}, make("code", {}, oom.line[0]),
				make("code", {class: "text"}, oom.line[1])));
	const segments = state.facts.segments;
	if (oom.cause === "fragmentation" && segments)
		why.push("no cached piece is large enough: largest " + inUnits(segments.largest) +
			 " " + state.unit.name +
			 ", each beside a block that is in use (map below)");
	for (const line of why)
		parts.push(make("p", {class: "muted"}, line.replace(/^Why {1,2}/, "")));
	$("why").replaceChildren(...parts);
}

/* ---- the whole device, categories ---- */

function drawLedger() {
	const ledger = state.facts.ledger, panel = $("ledger-panel");
	panel.classList.toggle("empty", !ledger);
	if (!ledger)
		return;
	const total = ledger.total || d3.sum(ledger.rows, row => row[3]);
	const positive = ledger.rows.every(row => row[3] >= 0);
	const units = positive ?
		apportion(ledger.rows.map(row => row[3]), state.unit.size, inUnits(total)) :
		ledger.rows.map(row => inUnits(row[3]));
	const rows =
		ledger.rows.map(([text, level, measured, bytes], i) => make(
					"tr", {"data-testid": "ledger-row", "data-bytes": bytes},
					make("th", {scope: "row"}, text), make("td", {}, level),
					make("td", {}, measured), numberCell(units[i], bytes)));
	if (ledger.total)
		rows.push(make("tr",
			       {class: "sum", "data-testid": "ledger-sum", "data-bytes": total},
			       make("th", {scope: "row"}, "device"), make("td", {}), make("td", {}),
			       numberCell(inUnits(total), total)));
	panel.replaceChildren(
		make("div", {class: "head"},
		     make("h2", {id: "ledger-title"}, "The whole device, " + state.unit.name),
		     make("span", {class: "muted"},
			  "at " + timeText(ledger.us, span()) +
				  (ledger.total ? "; rows add up to it" : ""))),
		make("table", {"aria-labelledby": "ledger-title"},
		     headRow([["what"], ["level"], ["measured"], [state.unit.name, "n"]]),
		     make("tbody", {}, ...rows)));
}

function categorySums(instant) {
	const sums = new Float64Array(16);
	vectorOf(instant).forEach(
		(bytes, place) => { sums[instant.device.head.scat[place]] += bytes; });
	return sums;
}

function drawCategories() {
	const end = namedInstant(state.device, "end") || state.chosen;
	const now = categorySums(state.chosen), last = categorySums(end);
	const used = CATEGORY_ORDER.filter(c => now[c] || last[c])
			     .sort((x, y) => now[y] - now[x] || last[y] - last[x]);
	$("category-panel").hidden = !groupings(state.device).includes("category");
	if ($("category-panel").hidden)
		return;
	const parts =
		apportion(used.map(c => now[c]), state.unit.size, inUnits(state.chosen.total));
	const ends = apportion(used.map(c => last[c]), state.unit.size, inUnits(end.total));
	const rows = used.map(
		(c, i) =>
			make("tr", {"data-testid": "category-row", "data-bytes": now[c]},
			     make("th", {scope: "row"}, swatch("c" + c), state.device.head.cats[c]),
			     numberCell(parts[i], now[c]), numberCell(ends[i], last[c])));
	rows.push(make("tr", {class: "sum"}, make("th", {scope: "row"}, "in use"),
		       numberCell(inUnits(state.chosen.total), state.chosen.total),
		       numberCell(inUnits(end.total), end.total)));
	$("categories")
		.replaceChildren(make("table", {"aria-labelledby": "category-title"}, headRow([
					      ["category"],
					      [
						      "at " + timeText(state.chosen.t, span()) +
							      ", " + state.unit.name,
						      "n"
					      ],
					      ["at the end", "n"]
				      ]),
				      make("tbody", {}, ...rows)));
}

/* ---- legend ---- */

function drawLegend() {
	const groups = groupsOf(state.device, state.group), entries = [];
	for (let g = groups.names.length - 1; g >= 0; g--)
		if (groups.most[g] > scaleTop() / 800) /* less cannot be seen */
			entries.push(make("li", {}, swatch(groups.fills[g]), groups.names[g]));
	const dash = (kind, text) =>
		make("li", {}, make("span", {class: "dash " + kind, "aria-hidden": "true"}), text);
	entries.push(make("li", {}, swatch("cached"), "cached (held, not in use)"),
		     dash("", "in use, highest in the column"));
	if (state.facts.card && state.facts.card <= scaleTop())
		entries.push(dash("d-card", "card"));
	if (state.other)
		entries.push(dash("d-a", "A, its steps laid on B\u2019s"));
	$("legend").replaceChildren(...entries);
}
