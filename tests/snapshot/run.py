#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the pickle writer and of gputrace snapshot; prints ok / not ok / skip per case.

usage: run.py BUILD     BUILD is the build folder
VIZCHECK=FILE           a strict checker of memory_viz files; cases that need it are skipped without
"""
import io
import os
import pickle
import pickletools
import subprocess
import sys

BUILD = os.path.abspath(sys.argv[1])
SAY = BUILD + "/tests/snapshot/say"
WORK = BUILD + "/tests/snapshot/work"
VIZCHECK = os.environ.get("VIZCHECK")
# what memory_viz implements
OPCODES = {"PROTO", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1",
           "BINFLOAT", "BINUNICODE", "EMPTY_LIST", "APPENDS", "EMPTY_DICT", "SETITEMS", "TUPLE2", "BINPUT",
           "LONG_BINPUT", "BINGET", "LONG_BINGET"}
failed = False


class Skip(Exception):
    pass


class Wrong(Exception):
    pass


def case(function):
    """Runs a test at its definition."""
    global failed
    name = function.__name__.replace("_", "-")
    try:
        function()
        print("ok " + name)
    except Skip as e:
        print("skip %s: %s" % (name, e))
    except (Wrong, OSError, subprocess.SubprocessError, pickle.UnpicklingError, KeyError, ValueError) as e:
        print("not ok %s: %s" % (name, str(e).replace("\n", " | ")))
        failed = True
    sys.stdout.flush()


def need(condition, text, *args):
    if not condition:
        raise Wrong(text % args if args else text)


class NoGlobals(pickle.Unpickler):
    def find_class(self, module, name):
        raise Wrong("the pickle names %s.%s" % (module, name))


def load(data):
    return NoGlobals(io.BytesIO(data)).load()


def say(*args):
    return subprocess.run([SAY, *map(str, args)], check=True, stdout=subprocess.PIPE, timeout=60).stdout


def vizcheck(*files):
    if not VIZCHECK:
        raise Skip("VIZCHECK is not set")
    result = subprocess.run([sys.executable, VIZCHECK, *files], stdout=subprocess.PIPE, timeout=300, text=True)
    need(result.returncode == 0, "%s", result.stdout)


os.makedirs(WORK, exist_ok=True)


@case
def pickle_values():
    integers = []
    for shift in range(63):
        integers += [2**shift - 1, 2**shift, -2**shift, -2**shift - 1]
    memo = []
    for i in range(600):
        memo += ["text %d" % (i % 300), "word"]
    want = [None, True, False, 0.1, -1e300, (-1, 70000), "", "grüß 😀", integers + [2**63 - 1, -2**63],
            memo + [[], []]]
    for n in (0, 1, 999, 1000, 1001, 2500):
        want += [list(range(n)), {"k%d" % i: i for i in range(n)}]
    got = load(say("pickle"))
    need(len(got) == len(want), "%d values, not %d", len(got), len(want))
    for a, b in zip(got, want):
        need(a == b and type(a) is type(b), "%.100r is not %.100r", a, b)


@case
def pickle_integers_are_shortest():
    """Every integer has CPython's own form, which is the shortest."""
    data = say("pickle")
    for op, arg, _ in pickletools.genops(data):
        if op.name == "LONG1":
            need(not -2**31 <= arg < 2**31, "LONG1 for %d", arg)
    value = load(data)[8]
    lengths = {n: len(pickletools.optimize(pickle.dumps(n, 2))) for n in value}
    at = None
    for op, arg, pos in pickletools.genops(data):
        if at is not None:
            need(pos - at[1] + 3 <= lengths[at[0]], "%d takes %d bytes", at[0], pos - at[1])
        at = (arg, pos) if op.name in ("BININT", "BININT1", "BININT2", "LONG1") and arg in lengths else None


@case
def pickle_uses_only_what_the_viewer_reads():
    batch = 0
    for op, arg, _ in pickletools.genops(say("pickle")):
        need(op.name in OPCODES, "opcode %s", op.name)
        need(op.name != "PROTO" or arg == 2, "protocol %s", arg)
        batch = 0 if op.name == "MARK" else batch + 1


class Ranges:
    """Address ranges that must not overlap."""

    def __init__(self):
        self.ends = {}

    def overlaps(self, addr, size):
        return [a for a, e in self.ends.items() if a < addr + size and addr < e]

    def add(self, addr, size, what):
        need(not self.overlaps(addr, size), "%s %#x+%d overlaps", what, addr, size)
        self.ends[addr] = addr + size

    def remove(self, addr, size, what):
        need(self.ends.pop(addr, None) == addr + size, "%s %#x+%d does not exist", what, addr, size)

    def holds(self, addr, size):
        return any(a <= addr and addr + size <= e for a, e in self.ends.items())

    def join(self):
        """What touches is one."""
        out = {}
        for a, e in sorted(self.ends.items()):
            last = max(out, default=None)
            if last is not None and out[last] == a:
                out[last] = e
            else:
                out[a] = e
        return out


def replay(snapshot, device):
    """Forwards from nothing: every event must be possible, and the end must be the segments listed."""
    allocs, maps, blocks, freed = Ranges(), Ranges(), Ranges(), None
    for e in snapshot["device_traces"][device]:
        a, n, what = e.get("addr"), e["size"], e["action"]
        need((freed is not None) == (what == "free_completed"), "free_requested and _completed are apart")
        if what == "segment_alloc":
            need(not maps.overlaps(a, n), "%s %#x in a mapping", what, a)
            allocs.add(a, n, what)
        elif what == "segment_free":
            need(not blocks.overlaps(a, n), "%s %#x with blocks in it", what, a)
            allocs.remove(a, n, what)
        elif what == "segment_map":
            need(not allocs.overlaps(a, n), "%s %#x in a segment", what, a)
            maps.add(a, n, what)
        elif what == "segment_unmap":
            need(not blocks.overlaps(a, n), "%s %#x with blocks in it", what, a)
            for part in range(a, a + n, 2 << 20):
                maps.remove(part, 2 << 20, what)
        elif what == "alloc":
            need(allocs.holds(a, n) or any(m <= a and a + n <= e for m, e in maps.join().items()),
                 "%s %#x in no segment", what, a)
            blocks.add(a, n, what)
        elif what == "free_requested":
            freed = a, n
        elif what == "free_completed":
            need(freed == (a, n), "free_completed of another block")
            blocks.remove(a, n, what)
            freed = None
    mine = [s for s in snapshot["segments"] if s["device"] == device]
    need({**allocs.ends, **maps.join()} == {s["address"]: s["address"] + s["total_size"] for s in mine},
         "the events end in other segments")
    need(blocks.ends == {b["address"]: b["address"] + b["size"] for s in mine for b in s["blocks"]
                         if b["state"] == "active_allocated"}, "the events end in other blocks")


SEEDS = range(60)


def random_file(seed):
    return "%s/random-%d.pickle" % (WORK, seed)


@case
def random_programs_replay():
    """Overlaps, lost frees, frees of nothing: events and segments agree all the same."""
    kinds, segments = set(), 0
    for seed in SEEDS:
        data = say("viz", seed, 20 + 20 * seed)
        with open(random_file(seed), "wb") as f:
            f.write(data)
        snapshot = load(data)
        replay(snapshot, 0)
        kinds |= {e["action"] for e in snapshot["device_traces"][0]}
        segments += len(snapshot["segments"])
    need(len(kinds) == 8, "only %s", kinds)
    need(segments > 500, "only %d segments", segments)


@case
def random_programs_pass_vizcheck():
    """Those without mappings: the checker does not undo maps."""
    vizcheck(*[random_file(seed) for seed in SEEDS if seed % 2])


@case
def snapshot_of_nothing():
    with open(WORK + "/nothing.pickle", "wb") as f:
        f.write(say("viz", 0, 0))
    vizcheck(WORK + "/nothing.pickle")


sys.exit(failed)
