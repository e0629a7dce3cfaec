# SPDX-License-Identifier: MIT
"""Figures of the hook path: single pairs from C, captures, many live blocks, threads."""
import os
import re
import statistics
import sys
import tempfile

from measure import NOP, OUT, QUICK, ROUNDS, TRACED, Traced, added, bench, figure, run, side_by_side


def hook_group():
    """cuMemAlloc/cuMemFree pairs from C: what each hook call adds."""
    pairs = "20000" if QUICK else "100000"
    for depth in (16, 56):
        command = bench("hook", pairs, str(depth - 8), "1000")
        got = side_by_side({
            "bare": (command, Traced()),
            "nop": (command, Traced(NOP)),
            "nostack": (command, Traced(TRACED, stacks="none")),
            "native": (command, Traced(TRACED, stacks="native")),
        })
        if depth == 16:
            added("hook.nop", got, "nop", "bare", "ns/event", 5, .5)
            added("hook.nostack.1e3", got, "nostack", "nop", "ns/event", 100, .5)
        added("hook.native.depth%d" % depth, got, "native", "nop", "ns/event", None, .5)


def stack_group():
    """Captures alone: nanoseconds of a further frame, and how often the tail of the stack before was still right."""
    unwind = run([os.path.join(OUT, "stacks/bench")], Traced())
    ns = {(what, int(frames)): float(value) for frames, what, value in
          re.findall(r"unwind +(\d+) frames: (.*?) +([\d.]+) ns", unwind)}
    for what, name in (("same stack", "same"), ("walk", "walk")):
        figure("stack.native.frame." + name, (ns[what, 56] - ns[what, 16]) / 40, "ns/frame")
    with tempfile.NamedTemporaryFile() as tally:
        os.environ.update(PYLIB=os.path.join(OUT, "tests/python/pylib.so"), CHECK_OUT=tally.name)
        python = run([sys.executable, "tests/bench/pyframes.py"], Traced())
        figure("stack.python.frame", float(re.search(r"python.frame ([\d.]+)", python).group(1)), "ns/frame")
        run(["tests/torch/python", "tests/stacks/torch_load.py", "1"],
            Traced(os.path.join(OUT, "stacks/torch_check.so")), pin=False)
        counts = dict(re.findall(r"(\w+)=(\d+)", tally.read().decode()))
    figure("stack.tail.hits", 100 * int(counts["tails"]) / int(counts["captures"]), "%")
    figure("stack.tail.frames", 100 * int(counts["kept"]) / (int(counts["kept"]) + int(counts["walked"])), "%")


def live_group():
    """The same with many live blocks: any of them goes (cache misses), or a recent one."""
    pairs = "100000" if QUICK else "400000"
    for live, target in ((100000, 240),) if QUICK else ((100000, 240), (1000000, 350)):
        for order, near in (("random", "0"), ("recent", "64")):
            command = bench("hook", pairs, "8", str(live), "3", near)
            got = side_by_side({"nop": (command, Traced(NOP)),
                                "nostack": (command, Traced(TRACED, stacks="none"))})
            added("hook.nostack.1e%d.%s" % (len(str(live)) - 1, order), got, "nostack", "nop", "ns/event",
                  target if order == "random" else None, .5)


def thread_group():
    """The recorder alone, threads on devices: processor time of a thread per event, and how often one had to
    wait for a lock. Not pinned."""
    program, pairs = os.path.join(OUT, "bench/recorder"), "50000" if QUICK else "500000"
    shapes = [(t, d) for t in (1, 2, 4, 8) for d in (1, 2, 8) if d <= t and not (QUICK and t == 4)]
    values, waits = {shape: [] for shape in shapes}, {shape: [] for shape in shapes}
    for _ in range(ROUNDS):
        for t, d in shapes:
            words = run([program, "threads", str(t), str(d), pairs], Traced(), pin=False).split()
            waits[t, d].append(float(words[1]) / (2 * t * float(pairs)) * 1e6)
            values[t, d].append(float(words[3]))
    for t, d in shapes:
        figure("recorder.threads%d.devices%d" % (t, d), statistics.median(values[t, d]), "ns/event")
    figure("recorder.threads2.devices2/1", statistics.median(
        b / a for a, b in zip(values[1, 1], values[2, 2])), "ratio", 1.15)
    for t, d in ((8, 1), (8, 8)):
        figure("recorder.threads%d.devices%d.waits" % (t, d), statistics.median(waits[t, d]), "per-Mevent",
               0 if d == 8 else None)


def sealing_group():
    """Sealing alone: a lane's staged events into a compressed chunk, per event of random traffic."""
    program, pairs = os.path.join(OUT, "bench/recorder"), "100000" if QUICK else "1000000"
    figure("recorder.sealing", statistics.median(
        float(run([program, "sealing", "1000", pairs], Traced())) for _ in range(ROUNDS)), "ns/event", 31)
