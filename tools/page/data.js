/*
 * The blobs of the page: one per device of a process, decoded when that device is looked at. Columns are
 * differences as variable-length numbers (docs/page.md). Numbers are joined by multiplication, as bytes of
 * a device do not fit 31 bits.
 */

function bytesOf(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const raw = atob(text);
	const bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		bytes[i] = raw.charCodeAt(i);
	return bytes;
}

async function inflate(text) {
	const stream = new Blob([bytesOf(text)])
			       .stream()
			       .pipeThrough(new DecompressionStream("deflate-raw"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* count numbers at bytes[at]; sums: they are differences. */
function numbers(bytes, at, count, sums) {
	const out = new Float64Array(count);
	let sum = 0;
	for (let i = 0; i < count; i++) {
		let byte = bytes[at++];
		let value;
		if (byte < 128) {
			value = (byte >>> 1) ^ -(byte & 1);
		} else {
			let scale = 128;
			value = byte & 127;
			do {
				byte = bytes[at++];
				value += (byte & 127) * scale;
				scale *= 128;
			} while (byte >= 128);
			value = value % 2 ? -(value + 1) / 2 : value / 2;
		}
		out[i] = sums ? sum += value : value;
	}
	return out;
}

/* The places changed in each row: differences that begin anew with every row. */
function placesOf(bytes, at, counts, total) {
	const steps = numbers(bytes, at, total, false);
	const out = new Uint32Array(total);
	let i = 0;
	for (let row = 0; row < counts.length; row++) {
		let place = 0;
		for (let k = 0; k < counts[row]; k++, i++)
			out[i] = place += steps[i];
	}
	return out;
}

function columnReader(bytes, head, begin) {
	const where = new Map();
	for (const [name, count, size] of head.cols) {
		where.set(name, {at: begin, count});
		begin += size;
	}
	return {
		sums: name => numbers(bytes, where.get(name).at, where.get(name).count, true),
		plain: name => numbers(bytes, where.get(name).at, where.get(name).count, false),
		places: (name, counts) =>
			placesOf(bytes, where.get(name).at, counts, where.get(name).count),
	};
}

/* Rows told as changes; a row is put together from the nearest whole one before it. */
class Chain {
	constructor(read, letter, places) {
		this.letter = letter;
		this.t = read.sums(letter + "_t");
		this.tag = read.sums(letter + "_b");
		this.n = read.sums(letter + "_n");
		this.place = read.places(letter + "_s", this.n);
		this.bytes = read.plain(letter + "_v");
		this.places = places;
		this.count = this.t.length;
		this.begin = new Uint32Array(this.count + 1);
		for (let i = 0; i < this.count; i++)
			this.begin[i + 1] = this.begin[i] + this.n[i];
		this.total = new Float64Array(this.count);
		this.keep();
	}

	/* Whole rows every so often, in 16 MB at most; and the sum of each row. */
	keep() {
		this.every = Math.max(32, Math.ceil(this.count * this.places * 8 / 16e6));
		this.whole = [];
		const now = new Float64Array(this.places);
		let sum = 0;
		for (let row = 0; row < this.count; row++) {
			for (let i = this.begin[row]; i < this.begin[row + 1]; i++) {
				now[this.place[i]] += this.bytes[i];
				sum += this.bytes[i];
			}
			this.total[row] = sum;
			if (row % this.every === 0)
				this.whole.push(now.slice());
		}
	}

	vector(row) {
		const now = this.whole[Math.floor(row / this.every)].slice();
		for (let i = this.begin[row - row % this.every + 1]; i < this.begin[row + 1]; i++)
			now[this.place[i]] += this.bytes[i];
		return now;
	}

	/* Sums of every row by group: row * groups + group. */
	sums(groupOf, groups) {
		const out = new Float64Array(this.count * groups);
		const now = new Float64Array(groups);
		for (let row = 0; row < this.count; row++) {
			for (let i = this.begin[row]; i < this.begin[row + 1]; i++)
				now[groupOf[this.place[i]]] += this.bytes[i];
			out.set(now, row * groups);
		}
		return out;
	}
}

class Device {
	constructor(bytes) {
		const length = new DataView(bytes.buffer).getUint32(0, true);
		this.head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
		this.read = columnReader(bytes, this.head, 4 + length);
		this.places = this.head.leaf.length;
		this.chains = {};
		this.slices();
		this.steps = {};
		for (const name of ["t0", "t1", "peak", "end", "held", "allocs", "phase", "cut"])
			this.steps[name] = this.read.sums("s_" + name);
		this.stepCount = this.steps.t0.length;
		for (let i = 0; i < this.stepCount; i++)
			this.steps.t1[i] += this.steps.t0[i];
		this.findRows();
	}

	slices() {
		this.first = this.read.sums("bt");
		this.top = this.read.sums("bp");
		this.last = this.read.sums("be");
		this.max = this.read.sums("bmax");
		this.min = this.read.sums("bdip");
		this.end = this.read.sums("blast");
		this.held = this.read.sums("bheld");
		this.count = this.first.length;
		for (let i = 0; i < this.count; i++) {
			this.top[i] += this.first[i];
			this.last[i] += this.first[i];
			this.min[i] = this.max[i] - this.min[i];
			this.end[i] = this.max[i] - this.end[i];
		}
	}

	/* Only the highest instants are needed at once; the others when first asked for. */
	chain(letter) {
		if (!this.chains[letter])
			this.chains[letter] = new Chain(this.read, letter, this.places);
		return this.chains[letter];
	}

	/* Of each slice the row that lies nearest to its highest instant. */
	findRows() {
		const rows = this.chain("h");
		this.rowOf = new Int32Array(this.count);
		let row = 0;
		for (let i = 0; i < this.count; i++) {
			while (row + 1 < rows.count &&
			       Math.abs(rows.t[row + 1] - this.top[i]) <=
				       Math.abs(rows.t[row] - this.top[i]))
				row++;
			this.rowOf[i] = row;
		}
		for (let r = 0; r < rows.count; r++)
			this.rowOf[rows.tag[r]] = r;
	}

	/* The last slice that begins at or before a time; -1 = none. */
	sliceAt(us) { return d3.bisectRight(this.first, us) - 1; }

	stepAt(us) {
		const step = d3.bisectRight(this.steps.t0, us) - 1;
		return step >= 0 && us <= this.steps.t1[step] ? step : -1;
	}
}
