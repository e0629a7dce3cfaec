#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of the pickle writer and of gputrace snapshot; prints ok / not ok / skip per case.

usage: run.py BUILD [NAME...]     BUILD is the build folder; with NAMEs only cases whose names contain one
VIZCHECK=FILE           a strict checker of memory_viz files; cases that need it are skipped without
"""
import glob
import io
import math
import os
import pickle
import pickletools
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from judge import Cases, Failed, Skipped, expect  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
SAY = BUILD + "/tests/snapshot/say"
WORK = BUILD + "/tests/snapshot/work"
VIZCHECK = os.environ.get("VIZCHECK")
# what memory_viz implements
OPCODES = {"PROTO", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1",
           "BINFLOAT", "BINUNICODE", "EMPTY_LIST", "APPENDS", "EMPTY_DICT", "SETITEMS", "TUPLE2", "BINPUT",
           "LONG_BINPUT", "BINGET", "LONG_BINGET"}
case = Cases(sys.argv[2:])


class NoGlobals(pickle.Unpickler):
    def find_class(self, module, name):
        raise Failed("the pickle names %s.%s" % (module, name))


def load(data):
    return NoGlobals(io.BytesIO(data)).load()


def say(*args):
    return subprocess.run([SAY, *map(str, args)], check=True, stdout=subprocess.PIPE, timeout=60).stdout


def actions(loaded, device=0):
    return [e["action"] for e in loaded["device_traces"][device]]


os.makedirs(WORK, exist_ok=True)


@case
def pickle_values():
    integers = []
    for shift in range(63):
        integers += [2**shift - 1, 2**shift, -2**shift, -2**shift - 1]
    memo = []
    for i in range(600):
        memo += ["text %d" % (i % 300), "word"]
    want = [True, False, (-1, 70000), "", "grüß 😀", integers + [2**63 - 1, -2**63],
            memo + [[], []]]
    for n in (0, 1, 999, 1000, 1001, 2500):
        want += [list(range(n)), {"k%d" % i: i for i in range(n)}]
    got = load(say("pickle"))
    expect(len(got) == len(want), "%d values, not %d", len(got), len(want))
    for a, b in zip(got, want):
        expect(a == b and type(a) is type(b), "%.100r is not %.100r", a, b)


@case
def pickle_integers_are_shortest():
    """Every integer has CPython's own form, which is the shortest."""
    data = say("pickle")
    for op, arg, _ in pickletools.genops(data):
        if op.name == "LONG1":
            expect(not -2**31 <= arg < 2**31, "LONG1 for %d", arg)
    value = load(data)[8]
    lengths = {n: len(pickletools.optimize(pickle.dumps(n, 2))) for n in value}
    at = None
    for op, arg, pos in pickletools.genops(data):
        if at is not None:
            expect(pos - at[1] + 3 <= lengths[at[0]], "%d takes %d bytes", at[0], pos - at[1])
        at = (arg, pos) if op.name in ("BININT", "BININT1", "BININT2", "LONG1") and arg in lengths else None


@case
def pickle_uses_only_what_the_viewer_reads():
    batch = 0
    for op, arg, _ in pickletools.genops(say("pickle")):
        expect(op.name in OPCODES, "opcode %s", op.name)
        expect(op.name != "PROTO" or arg == 2, "protocol %s", arg)
        batch = 0 if op.name == "MARK" else batch + 1


class Ranges:
    """Address ranges that must not overlap."""

    def __init__(self):
        self.ends = {}

    def overlaps(self, addr, size):
        return [a for a, e in self.ends.items() if a < addr + size and addr < e]

    def add(self, addr, size, what):
        expect(not self.overlaps(addr, size), "%s %#x+%d overlaps", what, addr, size)
        self.ends[addr] = addr + size

    def remove(self, addr, size, what):
        expect(self.ends.pop(addr, None) == addr + size, "%s %#x+%d does not exist", what, addr, size)

    def holds(self, addr, size):
        return any(a <= addr and addr + size <= e for a, e in self.ends.items())

    def cut(self, addr, size, what):
        """Takes a part of what touches away."""
        self.ends = self.join()
        expect(self.holds(addr, size), "%s %#x+%d is not all mapped", what, addr, size)
        start = max(a for a in self.ends if a <= addr)
        end = self.ends.pop(start)
        for a, e in ((start, addr), (addr + size, end)):
            if a < e:
                self.ends[a] = e

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
    times = [e["time_us"] for e in snapshot["device_traces"][device] if "time_us" in e]
    expect(times == sorted(times), "times step back")
    allocs, maps, blocks, freed = Ranges(), Ranges(), Ranges(), None
    for e in snapshot["device_traces"][device]:
        a, n, what = e.get("addr"), e["size"], e["action"]
        expect((freed is not None) == (what == "free_completed"), "free_requested and _completed are apart")
        if what == "segment_alloc":
            expect(not maps.overlaps(a, n), "%s %#x in a mapping", what, a)
            allocs.add(a, n, what)
        elif what == "segment_free":
            expect(not blocks.overlaps(a, n), "%s %#x with blocks in it", what, a)
            allocs.remove(a, n, what)
        elif what == "segment_map":
            expect(not allocs.overlaps(a, n), "%s %#x in a segment", what, a)
            maps.add(a, n, what)
        elif what == "segment_unmap":
            expect(not blocks.overlaps(a, n), "%s %#x with blocks in it", what, a)
            maps.cut(a, n, what)
        elif what == "alloc":
            expect(allocs.holds(a, n) or any(m <= a and a + n <= e for m, e in maps.join().items()),
                 "%s %#x in no segment", what, a)
            blocks.add(a, n, what)
        elif what == "free_requested":
            freed = a, n
        elif what == "free_completed":
            expect(freed == (a, n), "free_completed of another block")
            blocks.remove(a, n, what)
            freed = None
    mine = [s for s in snapshot["segments"] if s["device"] == device]
    expect({**allocs.ends, **maps.join()} == {s["address"]: s["address"] + s["total_size"] for s in mine},
         "the events end in other segments")
    expect(blocks.ends == {b["address"]: b["address"] + b["size"] for s in mine for b in s["blocks"]
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
    expect(len(kinds) == 8, "only %s", kinds)
    expect(segments > 500, "only %d segments", segments)


NOTHING = WORK + "/nothing.pickle"


@case
def snapshot_of_nothing():
    """The viewer needs an event or a segment."""
    with open(NOTHING, "wb") as f:
        f.write(say("viz", 0, 0))
    with open(NOTHING, "rb") as f:
        expect(actions(load(f.read())) == ["snapshot"], "not one event")


# ---- files of real runs -----------------------------------------------------------------------


def clean(name):
    """An empty folder for a case's files."""
    path = "%s/%s" % (WORK, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def environment(folder, **more):
    return dict(os.environ, GT_BUILD=BUILD, GPUTRACE_DIR=folder, GPUTRACE_QUIET="1",
                LD_PRELOAD=BUILD + "/libgputrace.so", **more)


def record(folder, *program, status=0, **more):
    """Runs a program on the simulated stack; its trace and what it printed."""
    result = subprocess.run([HERE + "/../sim/run", *map(str, program)], env=environment(folder, **more), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    expect(result.returncode == status, "%s: exit %d: %s", program[0], result.returncode, result.stderr[-300:])
    return trace_in(folder), result.stdout


def trace_in(folder):
    found = [f for f in os.listdir(folder) if f.endswith(".gtrace")]
    expect(len(found) == 1, "traces: %s", found)
    return "%s/%s" % (folder, found[0])


def snapshot(trace, at, *options, status=0, name=None):
    """The loaded snapshot and its path; replayed, and seen by only its owner."""
    path = "%s.%s.pickle" % (trace[:-len(".gtrace")], name or at)
    result = subprocess.run([BUILD + "/gputrace", "snapshot", *(["--at", at] if at else []), *options, trace], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    expect(result.returncode == status, "exit %d: %s", result.returncode, result.stderr)
    if status:
        return result.stderr, path
    expect(result.stdout.startswith(path) and result.stdout.count("\n") == 1, "said %r", result.stdout)
    expect(os.stat(path).st_mode & 0o777 == 0o600, "mode %o", os.stat(path).st_mode)
    TAKEN.add(path)
    with open(path, "rb") as f:
        loaded = load(f.read())
    for device in range(len(loaded["device_traces"])):
        replay(loaded, device)
    return loaded, path


def blocks_of(loaded):
    return {(s["device"], b["address"], b["size"]) for s in loaded["segments"] for b in s["blocks"]
            if b["state"] == "active_allocated"}


def segments_of(loaded):
    return {(s["device"], s["address"], s["total_size"], s["stream"], s["segment_type"], s["is_expandable"])
            for s in loaded["segments"]}


def said(text, device, what):
    """A number that the program `traffic` printed of a device."""
    found = re.search(r"device %d .*?\b%s (\d+)" % (device, what), text)
    expect(found, "no %s of device %d in %r", what, device, text)
    return int(found.group(1))


TAKEN = set()
PLAIN = {}


@case
def plain_c_program():
    folder = clean("plain")
    trace, text = record(folder, BUILD + "/prog/traffic", "--events", 3000, "--live", 60, "--sites", 24)
    end, PLAIN["end"] = snapshot(trace, "end")
    peak, PLAIN["peak"] = snapshot(trace, "peak")
    expect(len(blocks_of(end)) == said(text, 0, "live"), "%d blocks live", len(blocks_of(end)))
    expect(sum(b[2] for b in blocks_of(end)) == said(text, 0, "bytes"), "other bytes than the program says")
    expect(sum(b[2] for b in blocks_of(peak)) == said(text, 0, "peak"), "not the peak")
    expect(actions(end).count("alloc") == said(text, 0, "allocations"), "allocs are missing")
    expect(actions(end).count("free_completed") == said(text, 0, "frees"), "frees are missing")
    names = {f["name"] for e in end["device_traces"][0] for f in e["frames"]}
    expect("fill_slot" in names, "the program's own function is not in %s", names)
    expect(not [n for n in names if "libgputrace" in n], "frames of our own")
    expect(all(len(s["blocks"]) == 1 for s in end["segments"]), "a driver allocation in parts")


@case
def a_full_ring_leaves_the_segments_exact():
    folder = clean("ring")
    trace, text = record(folder, BUILD + "/prog/traffic", "--events", 500000, "--live", 200, "--sites", 16,
                         GPUTRACE_RING="1M")
    end, path = snapshot(trace, "end")
    expect(end["allocator_settings"]["history"] != "complete", "the ring did not fill")
    expect(sum(b[2] for b in blocks_of(end)) == said(text, 0, "bytes"), "other bytes than the program says")
    old = [e for e in end["device_traces"][0] if "user_metadata" in e]
    expect({e["action"] for e in old} == {"segment_alloc", "alloc"}, "%s", {e["action"] for e in old})
    expect(all(e["frames"] for e in old), "an old block without its stack")


@case
def a_budget_keeps_the_latest_events():
    trace = trace_in(WORK + "/ring")
    full, _ = snapshot(trace, "end")
    some, path = snapshot(trace, "end", "--budget", "300K")
    expect(150 << 10 < os.stat(path).st_size <= 300 << 10, "%d bytes", os.stat(path).st_size)
    expect(some["segments"] == full["segments"], "other segments")
    told = [e for e in some["device_traces"][0] if "user_metadata" not in e]
    expect(told == full["device_traces"][0][-len(told):], "not the latest events")


@case
def a_part_of_the_history():
    """--from and --to: the events between them, and the segments of the end."""
    trace = trace_in(WORK + "/plain")
    full, _ = snapshot(trace, "end")
    times = [e["time_us"] for e in full["device_traces"][0]]
    header = subprocess.run([BUILD + "/gputrace", "dump", "--defs", trace], check=True, stdout=subprocess.PIPE).stdout
    start = int(re.search(rb"real_us (\d+)", header).group(1))
    cuts = [(times[len(times) * k // 4] - start) / 1e6 for k in (1, 3)]
    part, _ = snapshot(trace, None, "--from", "%.6fs" % cuts[0], "--to", "%.6fs" % cuts[1], name="part")
    whole, _ = snapshot(trace, "%.6fs" % cuts[1], name="time")
    expect(part["segments"] == whole["segments"], "other segments than at that time")
    told = [e for e in part["device_traces"][0] if "user_metadata" not in e][:-1]
    expect(len(told) > 500 and told == whole["device_traces"][0][-len(told) - 1:-1], "not its end")
    expect(len(told) < 0.8 * len(whole["device_traces"][0]), "all of it")
    expect(part["allocator_settings"]["from"] == "%.6fs" % cuts[0], "--from is not said")
    text, _ = snapshot(trace, "peak", "--to", "1s", status=2)
    expect("one moment" in text, "said %r", text)


@case
def refused_requests():
    """One is granted after frees, one ends the program: only that one is an oom."""
    folder = clean("oom")
    trace, _ = record(folder, BUILD + "/prog/oom", status=1)
    oom, path = snapshot(trace, "oom")
    expect(actions(oom).count("oom") == 1, "%d oom events", actions(oom).count("oom"))
    event = [e for e in oom["device_traces"][0] if e["action"] == "oom"][0]
    expect(event["size"] == 1 << 30 and 0 < event["device_free"] < 1 << 30, "%s", event)
    expect(len(blocks_of(oom)) == 8, "%d blocks live", len(blocks_of(oom)))
    expect([f for f in event["frames"] if f["name"] == "train"], "no stack")


@case
def another_build_is_not_asked_for_names():
    folder = clean("rebuilt")
    program = folder + "/rebuilt"
    shutil.copy(BUILD + "/prog/oom", program)
    trace, _ = record(folder, program, status=1)
    subprocess.run(["strip", "--remove-section=.note.gnu.build-id", program], check=True)
    loaded, _ = snapshot(trace, "end")
    names = {f["name"] for e in loaded["device_traces"][0] for f in e["frames"] if f["filename"] == program}
    expect(names and all(name.startswith("rebuilt+0x") for name in names), "names %s", names)
    expect(program + ": is another build now" in loaded["allocator_settings"].values(), "not said")


@case
def wrong_use_is_said():
    trace = trace_in(WORK + "/plain")
    text, path = snapshot(trace, "oom", status=2)
    expect("no request for memory failed" in text, "said %r", text)
    expect(not os.path.exists(path), "left a file")
    text, _ = snapshot(trace, "end", "--device", "7", status=2)
    expect("device 7" in text, "said %r", text)
    os.symlink("/dev/null", WORK + "/plain/link")
    text, _ = snapshot(trace, "end", "-o", WORK + "/plain/link", status=3)
    expect("link" in text, "said %r", text)


# ---- PyTorch ----------------------------------------------------------------------------------


def torch(*args, **kwargs):
    """A process on the test environment's Python."""
    return subprocess.Popen([HERE + "/../torch/python", *args], text=True, **kwargs)


def skip_without_torch(status):
    if status == 77:
        raise Skipped("PyTorch cannot be had here")


def hold(folder, *program, **more):
    """Runs a program until it has written own.pickle and said so, takes a snapshot, kills it."""
    own = folder + "/own.pickle"
    process = torch("--devices", "2", *program, env=environment(folder, **more), stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        while process.stdout.readline():
            if os.path.exists(own):
                break
            process.stdin.write("\n")
            process.stdin.flush()
        else:
            skip_without_torch(process.wait(10))
        expect(os.path.exists(own), "the program ended early")
        running, _ = snapshot(trace_in(folder), "end")
    finally:
        process.kill()
        process.wait()
    killed, path = snapshot(trace_in(folder), "end")
    expect(running["segments"] == killed["segments"], "other segments after the kill")
    with open(own, "rb") as f:
        return pickle.load(f), killed, path


TORCH = []


def expect_equal(name, *program, **more):
    folder = clean(name)
    own, ours, path = hold(folder, *[p.replace("OWN", folder + "/own.pickle") for p in program], **more)
    TORCH.append(path)
    expect(len(own["segments"]) > 3, "hardly any segments")
    expect(segments_of(own) == segments_of(ours), "segments differ: %s", segments_of(own) ^ segments_of(ours))
    expect(blocks_of(own) == blocks_of(ours), "blocks differ: %s", blocks_of(own) ^ blocks_of(ours))
    used = [b for s in ours["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
    expect(all(b["requested_size"] == b["size"] for b in used), "a size that nobody knows")
    expect("sizes are those of the blocks" in ours["allocator_settings"]["requested_size"], "not said")


MLP = [HERE + "/../torch/mlp.py", "--hold", "--snapshot", "OWN"]
FRAG = [HERE + "/frag.py", "OWN"]
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


@case
def torch_training_equals_its_own_snapshot():
    expect_equal("mlp", *MLP)


@case
def torch_fragmented_equals_its_own_snapshot():
    expect_equal("frag", *FRAG)


@case
def torch_expandable_training_equals_its_own_snapshot():
    expect_equal("mlp-expandable", *MLP, **EXPANDABLE)


@case
def torch_expandable_fragmented_equals_its_own_snapshot():
    expect_equal("frag-expandable", *FRAG, **EXPANDABLE)


def sums(loaded):
    """Bytes of each device: of its segments, of its blocks, of what was asked for."""
    found = {}
    for s in loaded["segments"]:
        mine = found.setdefault(s["device"], [0, 0, 0])
        live = [b for b in s["blocks"] if b["state"] == "active_allocated"]
        mine[0] += s["total_size"]
        mine[1] += sum(b["size"] for b in live)
        mine[2] += sum(b["requested_size"] for b in live)
    return found


@case
def a_budget_below_what_lives():
    """Blocks that touch become one, the smallest first; segments and sums stay, and the file says so."""
    if not TORCH:
        raise Skipped("no PyTorch run")
    trace = trace_in(WORK + "/frag")
    full, path = snapshot(trace, "end")
    for budget in (16, 14):
        some, path = snapshot(trace, "end", "--budget", "%dK" % budget)
        expect(os.stat(path).st_size <= budget << 10, "%d bytes", os.stat(path).st_size)
        expect(sums(some) == sums(full), "other sums")
        expect([s["address"] for s in some["segments"]] == [s["address"] for s in full["segments"]], "other segments")
        blocks, of = len(blocks_of(some)), len(blocks_of(full))
        said = re.match(r"(\d+) blocks that touch are told as (\d+): those of one line",
                        some["allocator_settings"].get("merged", ""))
        expect(blocks < of and said and int(said.group(1)) - int(said.group(2)) == of - blocks,
             "%d of %d blocks: %s", blocks, of, some["allocator_settings"])


@case
def a_budget_that_nothing_meets():
    """The limit is kept: no file, and the size that would do, which does."""
    if not TORCH:
        raise Skipped("no PyTorch run")
    trace, path = trace_in(WORK + "/frag"), WORK + "/frag/small.pickle"
    said, _ = snapshot(trace, "end", "--budget", "2K", "-o", path, status=2)
    expect(not os.path.exists(path), "a file of %s", path)
    with open(path, "w") as file:
        file.write("old")
    snapshot(trace, "end", "--budget", "2K", "-o", path, status=2)
    expect(os.path.getsize(path) == 3 and not glob.glob(path + ".*"), "what was there is gone: %s", glob.glob(path + "*"))
    size = re.fullmatch(r"gputrace: --budget 2048 B: the smallest snapshot of this is (\S+) KiB\n", said)
    expect(size, "said %r", said)
    least = math.ceil(float(size.group(1))) + 1
    _, path = snapshot(trace, "end", "--budget", "%dK" % least)
    expect(os.stat(path).st_size <= least << 10, "%d bytes", os.stat(path).st_size)


@case
def torch_at_its_peak():
    if not TORCH:
        raise Skipped("no PyTorch run")
    peak, path = snapshot(trace_in(WORK + "/mlp"), "peak")
    TORCH.append(path)
    expect(len(peak["device_traces"]) == 2, "%d devices", len(peak["device_traces"]))
    for device in range(2):
        live = sum(b[2] for b in blocks_of(peak) if b[0] == device)
        end = sum(b[2] for b in blocks_of(load(open(TORCH[0], "rb").read())) if b[0] == device)
        expect(live > 1.5 * end, "device %d: %d at its peak, %d at the end", device, live, end)


@case
def torch_out_of_memory():
    folder = clean("torch-oom")
    process = torch(HERE + "/../torch/oom.py", "recovered", "caught", "fatal", env=environment(folder),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status = process.wait(120)
    skip_without_torch(status)
    expect(status == 1, "exit %d", status)
    oom, path = snapshot(trace_in(folder), "oom")
    TORCH.append(path)
    events = [e for e in oom["device_traces"][0] if e["action"] == "oom"]
    expect([e["size"] for e in events] == [6 << 30, 50 << 27], "oom events of %s", [e["size"] for e in events])
    expect(all(0 < e["device_free"] < e["size"] for e in events), "device_free: %s", [e["device_free"] for e in events])


@case
def torch_shows_them():
    """stats, trace and segments of torch/cuda/_memory_viz.py, on every file above."""
    if not TORCH:
        raise Skipped("no PyTorch run")
    files = TORCH + [PLAIN["end"], PLAIN["peak"], NOTHING]
    process = torch(HERE + "/torch_views.py", *files, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=120)
    expect(process.returncode == 0, "%s", err[-500:])
    expect(len(out.splitlines()) == len(files), "%s", out)


@case
def vizcheck():
    """Random programs with mappings are left out: the checker does not undo maps."""
    if not VIZCHECK:
        raise Skipped("VIZCHECK is not set")
    files = [random_file(seed) for seed in SEEDS if seed % 2] + [NOTHING] + sorted(TAKEN)
    result = subprocess.run([sys.executable, VIZCHECK, *files], stdout=subprocess.PIPE, timeout=300, text=True)
    expect(result.returncode == 0, "%s", [line for line in result.stdout.splitlines() if ": ok" not in line])


sys.exit(case.failed)
