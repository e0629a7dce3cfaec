#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Torch snapshots as input of every command; prints ok / not ok / skip per case.

usage: run.py BUILD [NAME...]     BUILD is the build folder; with NAMEs only cases whose names contain one
FULL=1                            more runs of PyTorch
VIZCHECK=FILE                     a strict checker of memory_viz files; its case is skipped without
"""
import json
import os
import pickle
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
TOOL = BUILD + "/gputrace"
WORK = BUILD + "/tests/pickle"
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
from judge import Cases, Skipped, equal, expect  # noqa: E402
from allocator import Allocator, form_1_13, form_2_0, snapshot  # noqa: E402
case = Cases(sys.argv[2:])


def tool(*args, status=0):
    done = subprocess.run([TOOL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    expect(done.returncode == status, "gputrace %s: exit %d: %s", " ".join(args[:2]), done.returncode, done.stderr[-300:])
    return done.stderr if status else done.stdout


def answer(*args):
    return json.loads(tool(*args, "--format", "json"))


def write(name, value, protocol=4):
    path = "%s/%s.pickle" % (WORK, name)
    with open(path, "wb") as f:
        f.write(value if isinstance(value, bytes) else pickle.dumps(value, protocol))
    return path


def again(path, *options):
    """What gputrace writes of it."""
    out = path + ".again"
    tool("snapshot", *options, "-o", out, path)
    with open(out, "rb") as f:
        return pickle.load(f)


def frames(where):
    return [(f["filename"], f["line"], f["name"]) for f in where.get("frames", ())]


def event(e):
    return [e.get(k) for k in ("action", "addr", "device_free", "size", "stream", "time_us")] + [frames(e)]


def block(b):
    """What a block that is not in use was requested for once is not worth anything."""
    used = b["state"] != "inactive"
    return [b["address"], b["size"], b["state"], b["requested_size"] if used else 0, frames(b) if used else []]


def compare_segments(got, want):
    """A segment without a stack in torch's list has that of the event that made it."""
    key = lambda s: (s["device"], s["address"])
    got, want = sorted(got, key=key), sorted(want, key=key)
    equal(len(got), len(want), "number of segments")
    for a, b in zip(got, want):
        for word in ("device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
                     "segment_type", "segment_pool_id", "is_expandable"):
            equal(a[word], b[word], "%s of segment %#x" % (word, b["address"]))
        expect(not b["frames"] or frames(a) == frames(b), "frames of segment %#x", b["address"])
        equal([block(x) for x in a["blocks"]], [block(x) for x in b["blocks"]], "blocks of %#x" % b["address"])


def compare(got, want):
    compare_segments(got["segments"], want["segments"])
    equal(len(got["device_traces"]), len(want["device_traces"]), "number of devices")
    for device, (a, b) in enumerate(zip(got["device_traces"], want["device_traces"])):
        equal(len(a), len(b), "events of device %d" % device)
        for i, (x, y) in enumerate(zip(a, b)):
            equal(event(x), event(y), "event %d of device %d" % (i, device))


def compare_totals(path, devices):
    found = {d["ordinal"]: d for d in answer("summary", path)["processes"][0]["devices"]}
    for d in devices:
        for key, value in (("torch_allocated", d.allocated), ("torch_peak_allocated", d.peak_allocated),
                           ("reserved", d.reserved), ("peak_reserved", d.peak_reserved)):
            equal(found[d.device][key], value, "%s of device %d" % (key, d.device))
        equal(found[d.device]["unknown_frees"] + found[d.device]["implicit_frees"], 0, "frees that do not fit")


def worked(seed, count=400, devices=1, **options):
    made = [Allocator(d, seed * 10 + d, **options) for d in range(devices)]
    for d in made:
        d.work(count, streams=(0, 0x55d0c0de), pools=((0, 0), (0, 0), (0, 1)))
    return made


os.makedirs(WORK, exist_ok=True)


@case
def equals_the_original_and_its_totals():
    """Random programs, rounded and cut as torch does: plain, with settings, expandable; several devices."""
    kinds = [{}, {"devices": 3}, {"expandable": True}, {"divisions": 8}, {"max_split": 5 << 20}]
    for seed in range(25):
        devices = worked(seed, **kinds[seed % len(kinds)])
        full = snapshot(devices)
        path = write("random", full)
        compare_totals(path, devices)
        compare(again(path), full)
        tool("dump", "--check", path)


@case
def a_history_that_is_short():
    """What lived before it is there from the start; the end is exact."""
    for seed in range(20):
        devices = worked(100 + seed, expandable=seed % 3 == 2, devices=1 + seed % 2)
        full = snapshot(devices, entries=random.Random(seed).randrange(1, 200))
        path = write("short", full)
        got = answer("summary", path)["processes"][0]
        for d, found in zip(devices, got["devices"]):
            equal(found["torch_allocated"], d.allocated, "allocated")
            equal(found["reserved"], d.reserved, "reserved")
            expect(found["torch_peak_allocated"] <= d.peak_allocated, "a peak that never was")
        compare(again(path), full)
        tool("dump", "--check", path)
    expect("not known      a higher peak before it" in tool("summary", path), "not said")


@case
def every_protocol():
    full = snapshot(worked(7, devices=2))
    for protocol in range(6):
        path = write("protocol-%d" % protocol, full, protocol)
        compare(again(path), full)


@case
def old_forms():
    """torch 2.0 has no times and keeps stacks in a history; 1.13 wrote the segments alone."""
    devices = worked(8, devices=2)
    full = snapshot(devices)
    path = write("form-2.0", form_2_0(full))
    compare_totals(path, devices)
    got = again(path)
    equal([[event(dict(e, time_us=None)) for e in t] for t in full["device_traces"]],
          [[event(e) for e in t] for t in got["device_traces"]], "events")
    for s in full["segments"]:
        s["segment_pool_id"], s["is_expandable"] = (0, 0), False
    compare_segments(got["segments"], full["segments"])
    for protocol in range(6):
        path = write("form-1.13", form_1_13(full), protocol)
        got = again(path)
        for s in full["segments"]:
            s["frames"] = []
        compare_segments(got["segments"], full["segments"])
        found = answer("summary", path)["processes"][0]["devices"]
        equal([d["torch_allocated"] for d in found], [d.allocated for d in devices], "allocated")


@case
def a_free_that_waits():
    """Requested, pending, completed: allocated ends with the request, the block later."""
    a = Allocator(0, 1)
    a.alloc(5 << 20)
    a.alloc(3 << 20)
    a.free(0, pending=True)
    full = snapshot([a])
    path = write("pending", full)
    compare(again(path), full)
    compare_totals(path, [a])
    segments = answer("segments", path)["devices"][0]["segments"]
    expect([s["used"] for s in segments] == [3 << 20], "%r", segments)
    a.settle()
    compare(again(write("settled", snapshot([a]))), snapshot([a]))
    half = snapshot([a], entries=1)
    equal(half["device_traces"][0][0]["action"], "free_completed", "what is left")
    compare(again(write("half", half)), half)


@case
def idle_segments():
    """Since when each segment is left alone is the time of the last event in it."""
    a = Allocator(0, 6)
    a.work(150)
    full = snapshot([a])
    events = full["device_traces"][0]
    found = answer("segments", write("idle", full))["devices"][0]
    last = {}
    for s in full["segments"]:
        inside = [e["time_us"] for e in events if s["address"] <= e.get("addr", 0) < s["address"] + s["total_size"]]
        last.setdefault(s["total_size"], []).append(max(t for t in inside))
    got = {}
    for s in found["segments"]:
        got.setdefault(s["size"], []).append(events[-1]["time_us"] - round(s["idle_seconds"] * 1e6))
    equal({k: sorted(v) for k, v in got.items()}, {k: sorted(v) for k, v in last.items()}, "times of the last events")


@case
def a_refused_request():
    """An oom event is a refused request: caught if the device allocated again, else open."""
    a = Allocator(0, 2)
    a.alloc(3 << 20)
    a.oom(64 << 20, 9 << 20)
    path = write("oom", snapshot([a]))
    got = answer("oom", path)
    equal((got["oom"], got["outcome"], got["request"]["torch_bytes"], got["device"]["free"], got["device"]["total"],
           got["pid"]), (True, "open", 64 << 20, 9 << 20, None, None), "the headline")
    expect("at oom" in tool("oom", path) or "in use" in tool("oom", path), "no screen")
    a.alloc(1 << 20)
    got = answer("errors", write("caught", snapshot([a])))["errors"]
    equal([(e["outcome"], e["requested"]) for e in got], [("caught", 64 << 20)], "errors")


@case
def every_command_takes_it():
    path = write("commands", snapshot(worked(9)))
    other = write("commands-b", snapshot(worked(10)))
    for command in (["summary"], ["oom"], ["at", "peak"], ["at", "end"], ["at", "0.001s"], ["peak", "--by", "stack"],
                    ["timeline"], ["steps"], ["growth"], ["errors"], ["segments"], ["ledger"], ["dump"],
                    ["summary", "--torch"]):
        expect(tool(*command, path), "%s says nothing", command)
    expect(tool("diff", path, other) and tool("diff", path, path), "diff says nothing")
    expect(tool(path), "no summary")
    equal(answer("summary", path)["processes"][0]["pid"], None, "pid")
    equal(answer("summary", path)["processes"][0]["state"], "snapshot", "state")
    equal(answer("summary", path)["processes"][0]["devices"][0]["total"], None, "the card's size")
    equal(answer("ledger", path)["devices"][0]["nvidia_smi"], [], "what nvidia-smi shows")
    expect("not in a torch snapshot" in tool("ledger", path), "the ledger claims too much")


def harm(data):
    """Damaged files by name."""
    rng = random.Random(5)
    out = {"cut-%d" % n: data[:n] for n in (2, 3, 11, 100, len(data) // 2, len(data) - 1)}
    for i in range(6):
        at = rng.randrange(2, len(data))
        out["bad-opcode-%d" % i] = data[:at] + b"\xff\xfe" + data[at:]
    out["global"] = b"\x80\x04cos\nsystem\n(S'true'\ntR."
    out["stack-global"] = b"\x80\x04\x8c\x02os\x8c\x06system\x93."
    out["reduce"] = b"\x80\x02(dN)R."
    out["build"] = b"\x80\x02}}b."
    out["inst"] = b"\x80\x02(ios\nsystem\n."
    out["newobj"] = b"\x80\x02))\x81."
    out["persid"] = b"\x80\x02Pabc\n."
    out["ext"] = b"\x80\x02\x82\x01."
    out["protocol-9"] = b"\x80\x09N."
    out["long-text"] = b"\x80\x02X\xff\xff\xff\x7fabc."
    out["long-text-8"] = b"\x80\x04\x8d" + b"\xff" * 8 + b"abc."
    out["memo-unset"] = b"\x80\x02h\x05."
    out["memo-huge"] = b"\x80\x02Nr\xff\xff\xff\xff."
    out["empty-stack"] = b"\x80\x02a."
    out["no-mark"] = b"\x80\x02]e."
    out["odd-dict"] = b"\x80\x02}(Nu."
    out["append-to-int"] = b"\x80\x02K\x01K\x02a."
    out["frame"] = b"\x80\x04\x95" + b"\xff" * 8 + b"N."
    out["int"] = b"\x80\x02Inonsense\n."
    out["number"] = pickle.dumps(42, 4)
    out["strings"] = pickle.dumps(["a", "b"], 4)
    out["no-segments"] = pickle.dumps({"weights": [1, 2]}, 2)
    shared = {"action": "alloc", "addr": 512, "size": 512, "stream": 0}
    for name, value in (
            ("segment-number", [3]), ("segment-no-size", [{"blocks": [], "address": 1}]),
            ("device-99", [{"blocks": [], "address": 1, "total_size": 1, "device": 99}]),
            ("block-too-large", [{"blocks": [{"size": 9, "state": "inactive"}], "address": 1, "total_size": 8}])):
        out[name] = pickle.dumps({"segments": value, "device_traces": []}, 4)
    for name, value in (
            ("event-number", [[7]]), ("no-action", [[{"size": 1}]]), ("no-addr", [[{"action": "alloc", "size": 1}]]),
            ("size-negative", [[{"action": "alloc", "addr": 1, "size": -1}]]), ("traces-number", 3),
            ("address-beyond", [[{"action": "alloc", "addr": 1 << 60, "size": 1}]]), ("shared", [[shared, shared]])):
        out[name] = pickle.dumps({"segments": [], "device_traces": value}, 4)
    out["stop-behind-mark"] = b"\x80\x02](."
    out["deep"] = b"\x80\x02N" + b"\x85" * 200000 + b"."
    return out


@case
def damaged_pickles_give_one_clear_line():
    """Status 3, the file's name, and what is wrong where."""
    for name, data in harm(pickle.dumps(snapshot(worked(3, 60)), 4)).items():
        path = write("damaged-" + name, data)
        said = tool(path, status=3)
        expect(said.startswith("gputrace: %s: " % path) and said.count("\n") == 1, "%s: %r", name, said)
        what = said[len("gputrace: %s: " % path):]
        expect(what.startswith(("damaged", "refused at byte", "a pickle, but not")), "%s: %r", name, what)
    for name, word in (("global", 'GLOBAL (0x63): it names "os.system"'), ("stack-global", "STACK_GLOBAL (0x93)"),
                       ("reduce", "REDUCE (0x52)"), ("build", "BUILD (0x62)"), ("persid", "PERSID (0x50)")):
        said = tool("%s/damaged-%s.pickle" % (WORK, name), status=3)
        expect("refused at byte" in said and word in said and "would run code" in said, "%s: %r", name, said)


@case
def changed_bytes_never_crash():
    """Statuses are 0 or 3, nothing else, whatever single bytes become."""
    rng, data = random.Random(11), pickle.dumps(snapshot(worked(4, 60)), 2)
    for i in range(120):
        changed = bytearray(data)
        for _ in range(1 + i % 3):
            changed[rng.randrange(2, len(data))] = rng.randrange(256)
        path = write("changed", bytes(changed))
        done = subprocess.run([TOOL, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
        expect(done.returncode in (0, 3), "number %d: exit %d", i, done.returncode)
        expect(done.returncode == 0 or done.stderr.count(b"\n") == 1, "number %d: %r", i, done.stderr[-200:])


@case
def what_is_neither():
    path = WORK + "/notes.txt"
    with open(path, "w") as f:
        f.write("Dear diary,\n")
    equal(tool(path, status=3), 'gputrace: %s: not a gputrace trace (starts with "Dear dia"); '
          "torch snapshots (.pickle) are read too\n" % path, "the message")
    with open(path, "w") as f:
        f.write("(d or not\n")
    expect("not a gputrace trace" in tool(path, status=3), "taken for a pickle")


# ---- PyTorch ----------------------------------------------------------------------------------


def train(name, *options, version=None, traced=False, **more):
    """Runs train.py on the simulated stack: the path of its snapshot, and what PyTorch said."""
    out = "%s/torch-%s" % (WORK, name)
    environment = dict(os.environ, GT_BUILD=BUILD, GPUTRACE_QUIET="1", **more)
    if version:
        environment.update(TORCH=version, TORCH_MADE="" if os.environ.get("FULL") else "1")
    if traced:
        os.makedirs(out, exist_ok=True)
        for old in os.listdir(out):
            os.unlink(out + "/" + old)
        environment.update(GPUTRACE_DIR=out, LD_PRELOAD=BUILD + "/libgputrace.so")
    done = subprocess.run([HERE + "/../torch/python", "--devices", "2", HERE + "/train.py", out, *options],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip().splitlines()[-1])
    expect(done.returncode == 0, "train.py: exit %d: %s", done.returncode, done.stderr[-300:])
    with open(out + ".json") as f:
        return out + ".pickle", json.load(f)


def compare_stats(path, said, sums=True):
    """Each figure of memory_stats() that the events tell."""
    compared = 0
    for device, stats in zip(answer("summary", "--torch", path)["torch"], said["stats"]):
        for key, pools in device.items():
            if not isinstance(pools, dict):
                continue
            for pool, values in pools.items():
                for what, value in values.items():
                    if value is None:
                        continue
                    compared += 1
                    equal(value, stats["%s.%s.%s" % (key, pool, what)],
                          "%s.%s.%s of device %d" % (key, pool, what, device["ordinal"]))
        if device["num_ooms"] is not None:
            equal(device["num_ooms"], stats["num_ooms"], "num_ooms")
    expect(compared == 2 * (108 if sums else 54), "%d figures", compared)


def torch_case(name, *options, sums=True, **more):
    path, said = train(name, *options, **more)
    with open(path, "rb") as f:
        own = pickle.load(f)
    compare(again(path), own)
    compare_stats(path, said, sums)
    MADE.append(path)
    return path, own


MADE = []


def full_only(function):
    """A run of PyTorch more than every change needs: make check-pickle-full."""
    return case(function) if os.environ.get("FULL") else None


@case
def torch_writes_it():
    """All of it: C++ frames, two devices, a refused request, a pool, a stream that delays a free."""
    path, own = torch_case("whole", "--oom", "--pool")
    expect({s["segment_pool_id"] for s in own["segments"]} - {(0, 0)}, "no pool")
    steps = answer("steps", path)
    expect(steps["source"] == "inferred" and len(steps["steps"]) >= 12, "%d steps", len(steps["steps"]))
    held = answer("at", "end", path)["devices"][0]["categories"]
    expect(held["weights"] and held["optimizer_state"] and held["workspaces"], "categories %r", held)
    equal([e["outcome"] for e in answer("errors", path)["errors"]], ["caught"], "the refused request")


@case
def torch_begins_late():
    """Expandable segments, Python's frames alone, recording from the second step on."""
    torch_case("late", "--late", "--stacks", "python", sums=False,
               PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")


@case
def torch_of_a_trace():
    """The same peaks from the trace of the run; what exit handlers free makes free pieces, so not those."""
    path, said = train("traced", "--steps", "3", traced=True)
    folder = path[:-len(".pickle")]
    trace, = [folder + "/" + f for f in os.listdir(folder) if f.endswith(".gtrace")]
    devices = answer("summary", "--torch", trace)["torch"]
    for device, stats in zip(devices, said["stats"]):
        for key in ("allocated_bytes", "active_bytes", "reserved_bytes", "allocation", "active", "segment"):
            for pool in ("all", "large_pool", "small_pool"):
                equal(device[key][pool]["peak"], stats["%s.%s.peak" % (key, pool)],
                      "%s.%s.peak of device %d" % (key, pool, device["ordinal"]))
        equal(device["requested_bytes"]["all"]["current"], None, "what nobody knows")
    expect("names in it already" in tool("pack", path, "-o", path + ".gtrace", status=2), "packed")


# ---- a trace and a snapshot of one run --------------------------------------------------------------


def both(name, *options, **more):
    """A run that both recorded: the trace, the snapshot's path and content, what PyTorch said."""
    path, said = train(name, *options, traced=True, **more)
    folder = path[:-len(".pickle")]
    trace, = [folder + "/" + f for f in os.listdir(folder) if f.endswith(".gtrace")]
    with open(path, "rb") as f:
        return trace, path, pickle.load(f), said


def merge(trace, path, events, of, older=None):
    """The merged trace, of which so many of the snapshot's events were found, and older blocks."""
    out = trace + ".merged"
    first, second = tool("merge", trace, path, "-o", out).splitlines()
    numbers = [int(n) for n in re.findall(r"(?<= )\d+", first[len(out):] + " " + second)]
    equal((numbers[0], numbers[1]), (events, of), "matched events: %s" % first)
    expect(older is None or (numbers[2] == numbers[3] and numbers[2] >= older), "older blocks: %s", first)
    equal((numbers[4], numbers[5]), (of - events, numbers[6] - events), "what each side has alone")
    tool("dump", "--check", out)
    return out


def moment(trace, own):
    """Right behind the snapshot's last event, as the trace counts: torch writes its file then."""
    header = json.loads(tool("dump", "--defs", "--format", "json", trace).splitlines()[0])
    last = max(t[-1]["time_us"] for t in own["device_traces"])
    return "%.6fs" % ((last - header["real_us"]) / 1e6 + 0.001)


def counted(own):
    """The events that have two sides: each half of a free is half of one."""
    return sum(e["action"] in ("alloc", "free_requested", "segment_alloc", "segment_free")
               for t in own["device_traces"] for e in t)


def asked(found):
    """Requests by address, in order, and those of the blocks that are there."""
    return ([[(e["addr"], e["size"]) for e in t if e["action"] == "alloc"] for t in found["device_traces"]],
            {(s["device"], b["address"]): b["requested_size"] for s in found["segments"] for b in s["blocks"]
             if b["state"] != "inactive"},
            {(s["device"], s["address"]): tuple(s["segment_pool_id"]) for s in found["segments"]})


def at_its_moment(merged, own):
    """What gputrace writes of that moment has the snapshot's own requests, pools and blocks."""
    got = again(merged, "--at", moment(merged, own))
    for device, (a, b) in enumerate(zip(asked(got)[0], asked(own)[0])):
        equal(a[len(a) - len(b):], b, "requests of device %d" % device)
    equal(asked(got)[1:], asked(own)[1:], "blocks and pools")
    return got


def shows_it(trace, merged, own):
    """at and dump say what was asked and whose pool it is; of the trace alone nothing."""
    when = moment(trace, own)
    for device in range(2):
        blocks = [(b, tuple(s["segment_pool_id"])) for s in own["segments"] if s["device"] == device
                  for b in s["blocks"] if b["state"] != "inactive"]
        held = answer("at", when, "--level", "torch", "--device", str(device), merged)["holders"]
        equal(sum(h["requested"] for h in held), sum(b["requested_size"] for b, _ in blocks), "asked of device %d" % device)
        private = sum(h["bytes"] for h in held if h["pool"] == "private 0.1")
        equal(private, sum(b["size"] for b, pool in blocks if pool == (0, 1)), "in the private pool")
        equal({h["pool"] for h in held} - {"default", "private 0.1"}, set(), "pools")
    expect(re.search(r"The program asked for \d+ MiB of it; \d+ [KM]iB are torch's rounding\.",
                   tool("at", when, "--device", "0", merged)), "the sum is not said")
    alone = answer("at", when, trace)["holders"]
    equal({(h["requested"], h["pool"]) for h in alone}, {(None, None)}, "of the trace alone")
    events = [json.loads(line) for line in tool("dump", "--format", "json", merged).splitlines()]
    told = [e["requested"] for e in events if e["op"] == "alloc" and e["space"] == "torch" and e["requested"]]
    equal(sorted(told), sorted(e["size"] for t in own["device_traces"] for e in t if e["action"] == "alloc"),
          "requests of events")
    equal([{**e, "requested": 0, "pool": 0} for e in events],
          [json.loads(line) for line in tool("dump", "--format", "json", trace).splitlines()], "the rest of the events")
    pools = [json.loads(line) for line in tool("dump", "--defs", "--format", "json", merged).splitlines()]
    equal([(p["id"], p["first"], p["second"]) for p in pools if p["type"] == "pool"], [(1, 0, 1)], "pools defined")


WHOLE = []


@case
def merge_a_trace_and_its_snapshot():
    """Every event finds its own; the requests, to the byte, and PyTorch's own figures of them."""
    trace, path, own, said = both("merged", "--oom", "--pool", "--steps", "3")
    WHOLE[:] = trace, path, own
    merged = merge(trace, path, counted(own), counted(own), 0)
    equal(os.stat(merged).st_mode & 0o777, 0o600, "mode")
    got = at_its_moment(merged, own)
    expect(set(asked(got)[2].values()) - {(0, 0)}, "no pool")
    for device, stats in zip(answer("summary", "--torch", merged)["torch"], said["stats"]):
        for pool in ("all", "large_pool", "small_pool"):
            equal(device["requested_bytes"][pool]["peak"], stats["requested_bytes.%s.peak" % pool], "requested")
    found = answer("segments", "--at", moment(trace, own), merged)
    wanted = sorted((s["total_size"], list(s["segment_pool_id"])) for s in own["segments"])
    equal(sorted((s["size"], s["pool_id"]) for d in found["devices"] for s in d["segments"]), wanted, "segments' pools")
    private = sum(s["cached"] for s in found["devices"][0]["segments"] if s["pool"].startswith("private "))
    equal(found["devices"][0]["cached_private"], private, "cached in private pools")
    expect(private > 0 and "in private pools (of CUDA graphs" in tool("segments", "--at", moment(trace, own), merged),
         "private pools are not said")
    expect(all(s["pool_id"] is None for d in answer("segments", trace)["devices"] for s in d["segments"]), "a guess")
    shows_it(trace, merged, own)
    twice = trace + ".twice"
    expect("merged into it already" in tool("merge", merged, path, "-o", twice, status=2), "merged twice")
    tool("pack", merged, "-o", twice)
    equal(asked(again(twice)), asked(again(merged)), "a merged trace, packed")
    tool("pack", trace, "-o", twice)
    equal(asked(again(merge(twice, path, counted(own), counted(own)))), asked(again(merged)), "a packed trace, merged")


@case
def merge_a_part_of_the_run():
    """Expandable segments; the snapshot begins behind the first step, and what it then held is older."""
    trace, path, own, said = both("merged-late", "--late", "--stacks", "python", "--steps", "4",
                                  PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    out = tool("merge", trace, path, "-o", trace + ".merged").splitlines()
    numbers = [int(n) for n in re.findall(r"(?<= )\d+", out[0].split(": ")[-1].join("  "))]
    expect(numbers[0] == numbers[1] and numbers[2] == numbers[3] >= 40, "%s", out[0])
    at_its_moment(trace + ".merged", own)


@case
def merge_of_a_lost_history():
    """The trace's ring has lost the first steps: what lived then has its beginning in the snapshot alone."""
    trace, path, own, said = both("merged-ring", "--pool", "--steps", "30", GPUTRACE_RING="16K", GPUTRACE_EXTENT="8K",
                                  GPUTRACE_CELLS="32")
    lanes = [json.loads(line) for line in tool("dump", "--lanes", "--format", "json", trace).splitlines()]
    expect(all(l["history_first"] > 500 for l in lanes if l["type"] == "lane"), "nothing is lost")
    merged = trace + ".merged"
    said = tool("merge", trace, path, "-o", merged)
    matched, of = [int(n) for n in re.search(r"(\d+) of the snapshot's (\d+)", said).groups()]
    expect(0 < matched < of == counted(own), "%s", said)
    found = re.search(r"older than the trace's history: (\d+) of its (\d+) ", said)
    expect(found and int(found.group(1)) == int(found.group(2)) > 40, "%s", said)
    equal(asked(again(merged, "--at", moment(trace, own)))[1:], asked(own)[1:], "blocks and pools")
    expect("GPUTRACE_RING=64K (4x this history)" in tool("at", "end", merged), "the advice")
    tool("dump", "--check", merged)


@case
def merge_what_differs():
    """Events that one side lacks: at the start, some here and there, many in one place; no times; no history."""
    if not WHOLE:
        raise Skipped("no run to take apart")
    trace, path, own = WHOLE
    rng = random.Random(3)
    changed = pickle.loads(pickle.dumps(own))
    for events in changed["device_traces"]:
        keep = [e for i, e in enumerate(events) if not 200 <= i < 212 and not 600 <= i < 900]
        events[:] = [e for e in keep for e in [e] + [dict(e, addr=512 << 20)] * (e["action"] == "alloc" and rng.random() < 0.04)]
    kept = counted(changed) - sum(e.get("addr") == 512 << 20 for t in changed["device_traces"] for e in t)
    for events in changed["device_traces"]:
        start = [dict(events[0], action="alloc", addr=512 * n, size=512, time_us=events[0]["time_us"] - 900)
                 for n in range(1, 300)]
        events[:] = start + events
    out = tool("merge", trace, write("differs", changed), "-o", trace + ".differs").splitlines()[0]
    matched, of = [int(n) for n in re.findall(r"(\d+) of the snapshot's (\d+)", out)[0]]
    expect(0.95 * kept <= matched <= kept and of > kept + 500, "%d kept: %s", kept, out)
    got, whole = asked(again(trace + ".differs"))[0], asked(own)[0]
    right = sum(x == y for a, b in zip(got, whole) for x, y in zip(a, b))
    rounded = sum(x[1] != y[1] and x[1] % 512 == 0 for a, b in zip(got, whole) for x, y in zip(a, b))
    equal(right + rounded, sum(len(b) for b in whole), "requests that are either right or not known")
    expect(right >= 0.7 * sum(len(b) for b in whole), "%d requests are right", right)

    untimed = pickle.loads(pickle.dumps(own))
    for e in (e for events in untimed["device_traces"] for e in events):
        e.pop("time_us")
    merged = merge(trace, write("untimed", untimed), counted(own), counted(own))
    equal(asked(again(merged, "--at", moment(trace, own))), asked(again(trace + ".merged", "--at", moment(trace, own))),
          "without times")
    bare = dict(own, device_traces=[[], []])
    out = tool("merge", trace, write("bare", bare), "-o", trace + ".bare").splitlines()[0]
    expect(re.search(r": 0 of the snapshot's 0 events matched, and (\d\d\d) of \d+ blocks", out), "%s", out)


@case
def merge_refuses():
    """Another run, a running order, what is neither; and merged traces that were damaged."""
    if not WHOLE:
        raise Skipped("no run to take apart")
    trace, path, own = WHOLE
    out = trace + ".no"
    later = pickle.loads(pickle.dumps(own))
    for e in (e for events in later["device_traces"] for e in events):
        e["time_us"] += 10 ** 8
    said = tool("merge", trace, write("later", later), "-o", out, status=2)
    expect("is not of the run of" in said and "only 0 of its" in said, "%s", said)
    said = tool("merge", trace, write("stranger", snapshot(worked(21, devices=2))), "-o", out, status=2)
    expect("is not of the run of" in said, "%s", said)
    for operands in ((path, trace), (trace, trace), (path, path)):
        expect("in this order" in tool("merge", *operands, "-o", out, status=2), "%s", operands)
    expect("-o OUT" in tool("merge", trace, path, status=2), "no -o")
    tool("merge", trace, write("cut", open(path, "rb").read()[:5000]), "-o", out, status=3)
    expect(not os.path.exists(out), "something was written")
    with open(trace, "rb") as f:
        before = len(f.read())
    with open(trace + ".merged", "rb") as f:
        whole = f.read()
    rng = random.Random(9)
    for i in range(150):
        harmed = bytearray(whole)
        for _ in range(1 + i % 4):
            harmed[rng.randrange(before, len(whole))] = rng.randrange(256)
        with open(out, "wb") as f:
            f.write(harmed)
        for command in (("segments",), ("dump", "--check")):
            done = subprocess.run([TOOL, *command, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
            expect(done.returncode in (0, 1, 3), "number %d: exit %d", i, done.returncode)
    os.unlink(out)


@full_only
def torch_rounds_by_settings():
    torch_case("settings", PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:4,max_split_size_mb:32")


@case
def torch_2_6_writes_it():
    torch_case("2.6", "--oom", "--pool", version="2.6.0")


@full_only
def torch_2_6_overwrote_its_beginning():
    path, said = train("2.6-ring", "--entries", "1500", version="2.6.0")
    with open(path, "rb") as f:
        own = pickle.load(f)
    compare(again(path), own)
    found = answer("summary", path)["processes"][0]["devices"]
    for device, stats in zip(found, said["stats"]):
        equal(device["torch_allocated"], stats["allocated_bytes.all.current"], "allocated")
        equal(device["reserved"], stats["reserved_bytes.all.current"], "reserved")
    MADE.append(path)


@case
def vizcheck():
    checker = os.environ.get("VIZCHECK")
    if not checker:
        raise Skipped("VIZCHECK is not set")
    if not MADE:
        raise Skipped("no PyTorch run")
    result = subprocess.run([sys.executable, checker, *[p + ".again" for p in MADE]], stdout=subprocess.PIPE,
                            timeout=120, text=True)
    expect(result.returncode == 0, "%s", [line for line in result.stdout.splitlines() if ": ok" not in line])


sys.exit(case.failed)
