#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A second reader of traces, written from docs/format.md alone, in another language, to find what that
document leaves open. Prints the JSON lines of "gputrace dump --format json": events, or with --lanes
the lanes, or with --defs the definitions.

usage: pyreader.py [--lanes | --defs] TRACE
"""
import json
import struct
import sys

import zstandard

OPS = ("? alloc free implicit_free unfree unknown_free failed oom exit mark push pop step sample "
       "pending settled begin end").split()
SPACES = "none driver torch handle mapping pool host array ipc context module graph range".split()
APIS = ["", "cuMemAlloc", "cuMemAllocPitch", "cuMemAllocManaged", "cuMemAllocAsync",
        "cuMemAllocFromPoolAsync", "torch", "cuMemFree", "cuMemFreeAsync", "cuMemCreate", "cuMemMap",
        "memory pool", "cuMemHostAlloc", "cuMemHostRegister", "cuArrayCreate", "cuArray3DCreate",
        "cuMipmappedArrayCreate", "cuIpcOpenMemHandle", "cuImportExternalMemory", "context", "module",
        "graph memory", "cuMemAddressReserve"]
DEFS, LIVE, SITES, LANE, RING, REPORTS = range(1, 7)
COLUMNS = ("op space us thread addr size stream age birth_thread site free_site aux extra back").split()
OF_BLOCK = ("space", "addr", "size", "stream", "age", "birth_thread", "site")
FIELDS = ("lane seq us op space addr size stream thread birth_us birth_thread site free_site aux "
          "extra").split()
NOT_RECORDED = {"requested": 0, "pool": 0}  # what only gputrace merge writes
ALIVE, GONE = ("alloc", "unfree"), ("free", "implicit_free")
MASK64 = 2**64 - 1


class Damaged(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Damaged(what)


# ---- XXH64 -------------------------------------------------------------------------------------

P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                      0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def rotl(x, r):
    return (x << r | x >> (64 - r)) & MASK64


def xxh_round(acc, word):
    return rotl((acc + word * P2) & MASK64, 31) * P1 & MASK64


def xxh64(data):
    at, left = 0, len(data)
    if left >= 32:
        acc = [(P1 + P2) & MASK64, P2, 0, -P1 & MASK64]
        while left >= 32:
            for i, word in enumerate(struct.unpack_from("<4Q", data, at)):
                acc[i] = xxh_round(acc[i], word)
            at, left = at + 32, left - 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & MASK64
        for a in acc:
            h = ((h ^ xxh_round(0, a)) * P1 + P4) & MASK64
    else:
        h = P5
    h = (h + len(data)) & MASK64
    while left >= 8:
        h = (rotl(h ^ xxh_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK64
        at, left = at + 8, left - 8
    if left >= 4:
        h = (rotl(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK64, 23) * P2 + P3) & MASK64
        at, left = at + 4, left - 4
    for byte in data[at:]:
        h = rotl(h ^ byte * P5 & MASK64, 11) * P1 & MASK64
    h = (h ^ h >> 33) * P2 & MASK64
    h = (h ^ h >> 29) * P3 & MASK64
    return h ^ h >> 32


# ---- columns (8) -------------------------------------------------------------------------------

def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        need(shift <= 70, "varint")
        if byte < 128:
            values.append(value & MASK64)
            value = shift = 0
    need(shift == 0, "varint is cut")
    return values


def column_values(coding, data, count):
    if coding == 1:
        values = varints(data)
        need(len(values) == 1, "const column")
        return values * count
    if coding == 2:
        values = list(data)
    else:
        need(coding in (3, 4, 5), "coding")
        values = varints(data)
    need(len(values) == count, "column length")
    if coding in (3, 4):
        last = 0
        for i, z in enumerate(values):
            last = (last + (z >> 1 ^ -(z & 1))) & MASK64
            values[i] = last
    if coding == 4:
        values = [rotl(v, 9) for v in values]
    return values


def chunk_events(lane, first, count, raw, before):
    """before: the events of the same extent that stand before this chunk."""
    columns = dict.fromkeys(COLUMNS, None)
    backs = [0] * count
    at = 0
    while at < len(raw):
        ident, coding, _, length = struct.unpack_from("<BBHI", raw, at)
        data = raw[at + 8:at + 8 + length]
        need(len(data) == length, "column is cut")
        if 1 <= ident <= len(COLUMNS):
            name = COLUMNS[ident - 1]
            there = range(count)
            if name == "back":
                there = [i for i in there if op_name((columns["op"] or backs)[i]) in GONE]
            elif name in OF_BLOCK:
                there = [i for i in there if not backs[i]]
            values = [0] * count
            for i, value in zip(there, column_values(coding, data, len(there))):
                values[i] = value
            columns[name] = values
            backs = columns["back"] or backs
        at += 8 + length
    for name, values in columns.items():
        columns[name] = values or [0] * count
    events = list(before)
    for i in range(count):
        event = {name: columns[name][i] for name in COLUMNS}
        event["birth_us"] = (event["us"] - event.pop("age")) & MASK64
        event.update(lane=lane, seq=first + i, op=op_name(event["op"]), space=SPACES[event["space"]])
        back = event.pop("back")
        if back:
            need(back <= min(len(events), 32768) and events[-back]["op"] == "alloc", "back")
            event.update({name: events[-back][name] for name in OF_BLOCK if name != "age"})
            event.update(birth_us=events[-back]["us"], birth_thread=events[-back]["thread"])
        events.append(event)
    return events[len(before):]


def op_name(op):
    return OPS[op] if 0 < op < len(OPS) else "unknown"


# ---- the file ----------------------------------------------------------------------------------

class Extent:
    def __init__(self, data, at):
        (self.kind, self.lane, offset, self.length, self.gen, used, self.first_seq, self.first_index,
         self.serial) = struct.unpack_from("<IIQQQQQQQ", data, at)
        need(self.kind and offset == at and self.length >= 4096 and self.length % 4096 == 0, "extent")
        need(at + self.length <= len(data), "extent is longer than the file")
        self.at = at
        self.used = max(used, 64)
        need(self.used <= self.length, "used")


class Trace:
    def __init__(self, data):
        self.data = data
        need(data[:8] == b"GPUTRACE", "magic")
        version, header_size, order, _, end = struct.unpack_from("<IIIIQ", data, 8)
        need(version in (1, 2) and header_size == 4096 and order == 0x01020304, "header")
        need(end <= len(data), "cut")
        self.extents = []
        at = 4096
        while at < end:
            self.extents.append(Extent(data, at))
            at += self.extents[-1].length
        self.defs = {kind: [] for kind in RECORDS}
        self.sites = {}
        self.read_definitions()
        self.lanes = sorted((Lane(self, e) for e in self.of_kind(LANE)), key=lambda lane: lane.number)

    def of_kind(self, kind, lane=None):
        return [e for e in self.extents if e.kind == kind and lane in (None, e.lane)]

    def read_definitions(self):
        mapped = []
        for extent in sorted(self.of_kind(DEFS), key=lambda e: e.first_index):
            at = extent.at + 64
            while at < extent.at + extent.used:
                kind, _, length = struct.unpack_from("<HHI", self.data, at)
                need(length >= 8 and length % 8 == 0, "record length")
                self.read_record(kind, self.data[at:at + length], mapped)
                at += length

    def read_record(self, kind, record, mapped):
        if kind not in RECORDS and kind not in (4, 8):
            return
        if kind == 4:
            module, _, us = struct.unpack_from("<IIQ", record, 8)
            self.defs[3][module - 1]["unloaded_us"] = us
            mapped.remove(self.defs[3][module - 1])
        elif kind == 8:
            lane, index, native, python, space, mask, api = struct.unpack_from("<IIIIBBH", record, 8)
            sites = self.sites.setdefault(lane, [None])
            need(index == len(sites), "site order")
            sites.append({"type": "site", "lane": lane, "id": index, "native": native,
                          "python": python, "space": SPACES[space], "mask": mask, "api": APIS[api]})
        else:
            new = RECORDS[kind](record)
            self.defs[kind].append(new)
            if kind == 3:
                mapped.append(new)
            if kind == 5:
                pc = new["pc"] - 1
                owners = [m for m in mapped if m["start"] <= pc < m["end"] and pc > 1]
                new["module"] = owners[-1]["id"] if owners else 0


def text(raw):
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "".join(chr(b) if b < 128 else "?" for b in raw)


def signed64(value):
    return value - 2**64 if value >> 63 else value


def info(r):
    k, v = struct.unpack_from("<II", r, 8)
    return {"type": "info", "key": text(r[16:16 + k]), "value": text(r[16 + k:16 + k + v])}


def string(r):
    ident, length = struct.unpack_from("<II", r, 8)
    return {"type": "string", "id": ident, "text": text(r[16:16 + length])}


def module(r):
    ident, length, start, end, bias, build_id, build_id_length = struct.unpack_from("<IIQQQ32sI", r, 8)
    return {"type": "module", "id": ident, "start": start, "end": end, "bias": signed64(bias),
            "build_id": build_id[:build_id_length].hex(), "unloaded_us": 0,
            "path": text(r[80:80 + length])}


def node(r):
    ident, parent, pc = struct.unpack_from("<IIQ", r, 8)
    return {"type": "node", "id": ident, "parent": parent, "pc": pc, "module": 0}


def pycode(r):
    ident, file, name, qualname, line = struct.unpack_from("<IIIIi", r, 8)
    return {"type": "pycode", "id": ident, "file": file, "name": name, "qualname": qualname,
            "first_line": line}


def pynode(r):
    ident, parent, code, line = struct.unpack_from("<IIIi", r, 8)
    more, = struct.unpack_from("<H", r, 2)
    return {"type": "pynode", "id": ident, "parent": parent, "code": code, "line": line,
            "calls": more - 1 if more else None}


def thread(r):
    ident, tid, us, length = struct.unpack_from("<IIQI", r, 8)
    return {"type": "thread", "id": ident, "tid": tid, "us": us, "name": text(r[32:32 + length])}


def stream(r):
    ident, device, handle = struct.unpack_from("<IiQ", r, 8)
    return {"type": "stream", "id": ident, "device": device, "handle": signed64(handle)}


def device(r):
    ordinal, length, total, uuid = struct.unpack_from("<iIQ16s", r, 8)
    return {"type": "device", "ordinal": ordinal, "total": total, "uuid": uuid.hex(),
            "name": text(r[40:40 + length])}


def context(r):
    names = "handle us bytes device flags native python thread".split()
    return {"type": "context", **dict(zip(names, struct.unpack_from("<QQqiIIII", r, 8)))}


RECORDS = {1: info, 2: string, 9: thread, 10: stream, 11: device, 12: context, 3: module, 5: node,
           6: pycode, 7: pynode}


# ---- lanes (5, 10.1) ---------------------------------------------------------------------------

class Lane:
    def __init__(self, trace, extent):
        self.trace, self.at, self.number = trace, extent.at, extent.lane
        (self.seq, self.sealed, self.cap, self.device, self.incomplete,
         self.lost) = struct.unpack_from("<QQIiQQ", trace.data, extent.at + 64)
        words = struct.unpack_from("<21Q", trace.data, extent.at + 128 + 192 * (self.seq & 1))
        self.cur, self.peak, self.peak_seq, self.peak_us = (words[i:i + 3] for i in (0, 3, 6, 9))
        self.counts = dict(zip(("allocs frees alloc_bytes free_bytes live_count unknown_frees "
                                "implicit_frees failed torch_allocs").split(), words[12:]))
        self.read_history()
        self.read_lines()
        self.read_blocks()

    def cell(self, seq):
        seq_op, time, key, size, birth, site, _, free_site, aux, extra = struct.unpack_from(
            "<QQQQQIIIIQ", self.trace.data, self.at + 1024 + 64 * (seq % self.cap))
        if seq_op >> 8 != seq:
            return None
        return {"lane": self.number, "seq": seq, "us": time & (1 << 48) - 1,
                "op": op_name(seq_op & 255), "space": SPACES[key & 127], "addr": key >> 7,
                "size": size & (1 << 48) - 1, "stream": size >> 48, "thread": time >> 48,
                "birth_us": birth & (1 << 48) - 1, "birth_thread": birth >> 48, "site": site,
                "free_site": free_site, "aux": aux, "extra": extra}

    def chunks_of(self, extent):
        data, at = self.trace.data, extent.at + 64
        decoder = zstandard.ZstdDecompressor().decompressobj()
        before = []
        while at < extent.at + extent.used:
            (magic, lane, first, count, raw_length, packed_length, _, _, _,
             digest) = struct.unpack_from("<IIQIIIIQQQ", data, at)
            packed = data[at + 64:at + 64 + packed_length]
            need(magic == 0x4B435447 and lane == self.number and count, "chunk")
            need(xxh64(packed) == digest, "chunk checksum")
            raw = decoder.decompress(packed)
            need(len(raw) == raw_length, "chunk length")
            if before and first != before[-1]["seq"] + 1:
                before = []
            events = chunk_events(lane, first, count, raw, before)
            yield events
            before += events
            at += 64 + (packed_length + 7 & ~7)

    def read_history(self):
        chunks = [chunk for extent in self.trace.of_kind(RING, self.number) if not extent.gen & 1
                  for chunk in self.chunks_of(extent)]
        chunks.sort(key=lambda chunk: chunk[0]["seq"])
        events = [event for chunk in chunks for event in chunk]
        sealed = events[-1]["seq"] if events else 0
        for seq in range(max(sealed, min(self.sealed, self.seq + 1 - self.cap), 0) + 1, self.seq + 1):
            event = self.cell(seq)
            if event:
                events.append(event)
        self.history, expected = [], self.seq
        for event in reversed(events):
            if event["seq"] != expected:
                break
            self.history.append(event)
            expected -= 1
        self.history.reverse()

    def read_lines(self):
        self.lines = {}
        for extent in sorted(self.trace.of_kind(SITES, self.number), key=lambda e: e.first_index):
            for i in range((extent.length - 64) // 64):
                self.lines[extent.first_index + i] = struct.unpack_from(
                    "<8Q", self.trace.data, extent.at + 64 + 64 * i)
        redo = self.at + 512 + 128 * (self.seq & 1)
        site, = struct.unpack_from("<I", self.trace.data, redo)
        if self.seq and site != 0xFFFFFFFF:
            self.lines[site] = struct.unpack_from("<8Q", self.trace.data, redo + 64)

    def read_blocks(self):
        self.blocks = {}
        for extent in self.trace.of_kind(LIVE, self.number):
            for at in range(extent.at + 64, extent.at + extent.length - 31, 32):
                key, size, birth, site = struct.unpack_from("<QQQI", self.trace.data, at)
                if key:
                    self.blocks[key >> 7, key & 127] = (size & (1 << 48) - 1, birth & (1 << 48) - 1,
                                                        site, size >> 48, birth >> 48)
        last = self.history[-1] if self.history else {"op": None}
        if last["op"] in ALIVE + GONE:
            key = last["addr"], SPACES.index(last["space"])
            self.blocks.pop(key, None)
            if last["op"] in ALIVE:
                self.blocks[key] = tuple(last[k] for k in ("size", "birth_us", "site", "stream",
                                                           "birth_thread"))

    def at_peak(self, site, mask):
        line = self.lines[site]
        return [0 if not mask >> k & 1 else line[4] if line[3] <= self.peak_seq[k] else line[k]
                for k in range(3)]


# ---- output ------------------------------------------------------------------------------------

def show(line):
    print(json.dumps(line, separators=(",", ":"), ensure_ascii=False))


def show_events(trace):
    merged = []
    for lane in trace.lanes:
        latest = 0
        for event in lane.history:
            latest = max(latest, event["us"])
            merged.append((latest, lane.number, event["seq"], event))
    merged.sort(key=lambda entry: entry[:3])
    for _, _, _, event in merged:
        show({"type": "event", **{field: event[field] for field in FIELDS}, **NOT_RECORDED})


def show_lanes(trace):
    for lane in trace.lanes:
        first = lane.seq + 1 - len(lane.history)
        show({"type": "lane", "lane": lane.number, "device": lane.device, "seq": lane.seq,
              "history_first": first,
              "history_us": lane.history[0]["us"] if first > 1 and lane.history else 0,
              "incomplete_seq": lane.incomplete, "lost": lane.lost, "cur": lane.cur,
              "peak": lane.peak, "peak_seq": lane.peak_seq, "peak_us": lane.peak_us, **lane.counts})
        for (addr, space), (size, birth, site, strm, thrd) in sorted(lane.blocks.items()):
            show({"type": "block", "lane": lane.number, "addr": addr, "space": SPACES[space],
                  "size": size, "birth_us": birth, "site": site, "stream": strm, "thread": thrd,
                  **NOT_RECORDED})
        for index, site in enumerate(trace.sites.get(lane.number, [None])):
            line = lane.lines[index]
            show({"type": "totals", "lane": lane.number, "site": index, "last_seq": line[3],
                  "live": line[4], "live_count": line[5], "ever": line[6], "ever_count": line[7],
                  "at_peak": lane.at_peak(index, site["mask"] if site else 0)})


def header(data):
    names = "mono_us real_us ring_limit _ pid ppid start_ticks pid_ns exit_us stop_us stop depth".split()
    fields = dict(zip(names, struct.unpack_from("<QQQQIIQQQQII", data, 32)))
    del fields["_"]
    reasons = "events sites stacks truncated_stacks streams threads reports python_stacks".split()
    texts = {name: text(data[at:at + size].rstrip(b"\0"))
             for name, at, size in (("boot_id", 112, 40), ("comm", 152, 32), ("host", 184, 72))}
    return {"type": "header", "version": struct.unpack_from("<I", data, 8)[0], **fields, **texts,
            "lost": dict(zip(reasons, struct.unpack_from("<8Q", data, 256)))}


def report(data, at):
    number, outcome, lane, space = struct.unpack_from("<IIII", data, at)
    if not number:
        return None
    new = {"type": "report", "number": number, "outcome": outcome, "lane": lane,
           "space": SPACES[space]}
    names = "seq us requested torch_requested device_free device_total".split()
    new.update(zip(names, map(signed64, struct.unpack_from("<6Q", data, at + 16))))
    new["torch_allocated"], new["torch_reserved"], new["outcome_us"] = map(
        signed64, struct.unpack_from("<3Q", data, at + 88))
    new["thread"], new["site"], new["result"], new["tries"], holders, others = struct.unpack_from(
        "<IIiIII", data, at + 112)
    new["holders"] = [dict(zip(("bytes", "count", "site"),
                               struct.unpack_from("<QQI", data, at + 192 + 24 * i)))
                      for i in range(holders)]
    new["holders"] = [{name: h[name] for name in ("site", "bytes", "count")} for h in new["holders"]]
    new["others"] = []
    for i in range(others):
        size, pid, name = struct.unpack_from("<QI20s", data, at + 6336 + 32 * i)
        new["others"].append({"pid": pid, "bytes": size, "name": text(name.rstrip(b"\0"))})
    return new


def show_defs(trace):
    show(header(trace.data))
    for kind in RECORDS:
        for line in trace.defs[kind]:
            show(line)
    for lane in trace.lanes:
        for line in trace.sites.get(lane.number, [None])[1:]:
            show(line)
    reports = [report(trace.data, at) for extent in trace.of_kind(REPORTS)
               for at in range(extent.at + 64, extent.at + extent.length - 7359, 7360)]
    for line in sorted(filter(None, reports), key=lambda r: r["number"]):
        show(line)


def main(args):
    with open(args[-1], "rb") as f:
        trace = Trace(f.read())
    show_lanes(trace) if "--lanes" in args else show_defs(trace) if "--defs" in args \
        else show_events(trace)


if __name__ == "__main__":
    main(sys.argv[1:])
