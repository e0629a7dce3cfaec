# SPDX-License-Identifier: MIT
"""PyTorch's caching allocator in small: it rounds, cuts, joins and keeps as the real one, and writes snapshots in
the forms of all versions. What it knows of itself (bytes, peaks) is what gputrace must find out."""
import random

SMALL, LARGE = 2 << 20, 20 << 20


class Block:
    def __init__(self, addr, size):
        self.addr, self.size = addr, size
        self.requested, self.state, self.frames = 0, "inactive", []


class Segment:
    def __init__(self, addr, size, small, stream, pool, expandable, frames):
        self.addr, self.size, self.small, self.stream, self.pool = addr, size, small, stream, pool
        self.expandable, self.frames = expandable, frames
        self.blocks = [Block(addr, size)]


class Allocator:
    """One device. time() gives microseconds; segments of expandable pools are one mapped range each."""

    def __init__(self, device, seed, expandable=False, divisions=0, max_split=None):
        self.device, self.random = device, random.Random(seed)
        self.expandable, self.divisions, self.max_split = expandable, divisions, max_split
        self.segments, self.trace, self.live, self.pending = [], [], [], []
        self.next = (0x7f << 40) + (device << 38)
        self.ranges = {}  # of expandable segments: where the next piece is mapped
        self.us = 1700000000000000 + device
        self.allocated = self.reserved = self.peak_allocated = self.peak_reserved = 0
        self.stacks = [[{"filename": "/home/u/train.py", "line": 10 + i, "name": "line%d" % i},
                        {"filename": "/home/u/train.py", "line": 1, "name": "<module>"}] for i in range(8)]

    def tell(self, action, addr, size, stream, frames, same_time=False):
        self.us += 0 if same_time else self.random.randrange(1, 50)
        self.trace.append({"action": action, "addr": addr, "size": size, "stream": stream, "time_us": self.us,
                           "frames": frames})

    def count(self, allocated=0, reserved=0):
        self.allocated += allocated
        self.reserved += reserved
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def round(self, size):
        if size <= 512:
            return 512
        if self.divisions > 1 and size > 512 * self.divisions:
            power = 1 << (size.bit_length() - 1)
            part = power // self.divisions
            return size if size == power else -(-size // part) * part
        return -(-size // 512) * 512

    def grow(self, rounded, small, stream, pool, frames):
        if self.expandable:
            grain = SMALL if small else LARGE
            size = -(-rounded // grain) * grain
        else:
            size = SMALL if small else LARGE if rounded < 10 << 20 else -(-rounded // SMALL) * SMALL
        addr = self.place(size, (small, stream, pool))
        self.tell("segment_map" if self.expandable else "segment_alloc", addr, size, stream, frames)
        self.count(reserved=size)
        segment = Segment(addr, size, small, stream, pool, self.expandable, frames)
        self.segments.append(segment)
        return self.join_segments(segment)

    def place(self, size, kind):
        if not self.expandable:
            self.next += size + (self.random.randrange(3) << 21)
            return self.next - size
        if kind not in self.ranges:
            self.next += 1 << 34
            self.ranges[kind] = self.next
        self.ranges[kind] += size
        return self.ranges[kind] - size

    def join_segments(self, new):
        """Mapped ranges that touch are one segment."""
        for old in self.segments:
            if new.expandable and old is not new and old.addr + old.size == new.addr and \
                    (old.small, old.stream, old.pool) == (new.small, new.stream, new.pool):
                old.blocks += new.blocks
                old.size += new.size
                self.segments.remove(new)
                self.join_blocks(old)
                return old
        return new

    def alloc(self, requested, stream=0, pool=(0, 0), frames=None):
        frames = self.random.choice(self.stacks) if frames is None else frames
        rounded = self.round(requested)
        small = rounded <= 1 << 20
        fits = [(b.size, b.addr, s, b) for s in self.segments for b in s.blocks
                if b.state == "inactive" and b.size >= rounded and (s.small, s.stream, s.pool) == (small, stream, pool)]
        if not fits:
            segment = self.grow(rounded, small, stream, pool, frames)
            fits = [(b.size, b.addr, segment, b) for b in segment.blocks if b.state == "inactive" and b.size >= rounded]
        _, _, segment, block = min(fits, key=lambda f: f[:2])
        rest = block.size - rounded
        cut = rest >= 512 if small or self.expandable else rest > 1 << 20
        if cut and not small and not self.expandable and self.max_split and rounded >= self.max_split:
            cut = False
        if cut:
            segment.blocks.insert(segment.blocks.index(block) + 1, Block(block.addr + rounded, rest))
            block.size = rounded
        block.requested, block.state, block.frames = requested, "active_allocated", frames
        self.live.append((segment, block))
        self.tell("alloc", block.addr, requested, stream, frames, same_time=self.random.random() < 0.3)
        self.count(allocated=block.size)
        return block

    def join_blocks(self, segment):
        out = []
        for block in segment.blocks:
            if out and out[-1].state == block.state == "inactive":
                out[-1].size += block.size
            else:
                out.append(block)
        segment.blocks = out

    def free(self, index, pending=False):
        segment, block = self.live.pop(index)
        frames = self.random.choice(self.stacks + [[]])
        self.tell("free_requested", block.addr, block.requested, segment.stream, frames)
        self.count(allocated=-block.size)
        block.state = "active_pending_free"
        if pending:
            self.pending.append((segment, block))
        else:
            self.complete(segment, block, frames, True)

    def complete(self, segment, block, frames, same_time=False):
        self.tell("free_completed", block.addr, block.requested, segment.stream, frames, same_time)
        block.state, block.frames = "inactive", []
        self.join_blocks(segment)

    def settle(self):
        while self.pending:
            self.complete(*self.pending.pop(0), self.random.choice(self.stacks))

    def empty_cache(self):
        for segment in list(self.segments):
            if all(b.state == "inactive" for b in segment.blocks):
                self.tell("segment_unmap" if segment.expandable else "segment_free", segment.addr, segment.size,
                          segment.stream, [])
                self.count(reserved=-segment.size)
                self.segments.remove(segment)
            elif segment.expandable:
                self.unmap_ends(segment)

    def unmap_ends(self, segment):
        """The last pieces of the range, as far as they are free."""
        grain, last = SMALL if segment.small else LARGE, segment.blocks[-1]
        keep = -(-(last.addr - segment.addr) // grain) * grain
        gone = segment.size - keep
        if last.state != "inactive" or gone <= 0:
            return
        self.tell("segment_unmap", segment.addr + keep, gone, segment.stream, [])
        self.count(reserved=-gone)
        last.size -= gone
        segment.size = keep
        if not last.size:
            segment.blocks.pop()

    def oom(self, size, free):
        self.us += 5
        self.trace.append({"action": "oom", "device_free": free, "size": size, "stream": 0, "time_us": self.us,
                           "frames": self.stacks[0]})

    def work(self, events, streams=(0,), pools=((0, 0),)):
        rng = self.random
        for _ in range(events):
            what = rng.random()
            if what < 0.55 or not self.live:
                size = rng.choice([rng.randrange(1, 4096), rng.randrange(1, 1 << 20), rng.randrange(1, 9 << 20),
                                   rng.randrange(10 << 20, 60 << 20) if rng.random() < 0.3 else 1 << 20])
                self.alloc(size, rng.choice(streams), rng.choice(pools))
            elif what < 0.97:
                self.free(rng.randrange(len(self.live)), rng.random() < 0.1)
            elif what < 0.99:
                self.settle()
            else:
                self.empty_cache()

    def segment(self, s):
        used = [b for b in s.blocks if b.state == "active_allocated"]
        active = [b for b in s.blocks if b.state != "inactive"]
        return {"device": self.device, "address": s.addr, "total_size": s.size,
                "allocated_size": sum(b.size for b in used), "active_size": sum(b.size for b in active),
                "requested_size": sum(b.requested for b in active), "stream": s.stream,
                "segment_type": "small" if s.small else "large", "segment_pool_id": s.pool,
                "is_expandable": s.expandable, "frames": s.frames,
                "blocks": [{"address": b.addr, "size": b.size,
                            "requested_size": b.requested if b.state != "inactive" else 0,
                            "state": b.state, "frames": b.frames} for b in s.blocks]}


def snapshot(devices, entries=None):
    """As torch 2.3 and later. entries: no more events than that, the latest."""
    first = devices[0]
    return {"segments": [d.segment(s) for d in devices for s in sorted(d.segments, key=lambda s: s.addr)],
            "device_traces": [d.trace[-entries:] if entries else d.trace for d in devices],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if first.expandable else "",
                "max_split_size": first.max_split or -1, "garbage_collection_threshold": 0.0,
                "expandable_segments": first.expandable,
                "roundup_power2_divisions": {str(1 << i): first.divisions for i in range(16)}},
            "external_annotations": []}


def without(d, *keys):
    return {k: v for k, v in d.items() if k not in keys}


def form_2_0(full):
    """A dict without settings; events have no time; blocks have their stack in a history."""
    segments = []
    for s in full["segments"]:
        blocks = []
        for b in s["blocks"]:
            old = {"size": b["size"], "state": b["state"]}
            if b["state"] != "inactive":
                old["history"] = [{"addr": b["address"], "real_size": b["requested_size"], "frames": b["frames"]}]
            blocks.append(old)
        segments.append(dict(without(s, "is_expandable", "segment_pool_id", "frames"), blocks=blocks))
    return {"segments": segments, "device_traces": [[without(e, "time_us") for e in t] for t in full["device_traces"]]}


def form_1_13(full):
    return [without(s, "requested_size") for s in form_2_0(full)["segments"]]
