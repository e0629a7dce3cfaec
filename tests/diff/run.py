#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gputrace diff: rows that add up in every grouping, stacks that find each other, windows, limits.

usage: run.py BUILD [--write] [CASE...]     --write: golden texts are taken from this run
"""
import json
import os
import random
import sys

from trained import TESTS, Once, cases, checkout, neutral, speed, train, without_options  # noqa: E402  (sets the path)
from harness import Bench, equal, expect, golden  # noqa: E402

BY = ["line", "function", "inside", "stack", "site", "owner", "stream", "level", "category", "step", "phase"]
PAIRS = 50
# A function in which a line each takes so many MiB, behind so many other lines.
HOLD = """
import ctypes, sys
lines = ["pass"] * int(sys.argv[1]) + ["take(%s)" % size for size in sys.argv[2:]]
cuda = ctypes.CDLL("libcuda.so.1")
context, at = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
def take(size):
    assert not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size << 20))
exec(compile("def hold():\\n    " + "\\n    ".join(lines) + "\\nhold()", "/home/u/hold.py", "exec"))
"""


# ---- sums ------------------------------------------------------------------------------------------

def random_traces(bench):
    """Traces of random traffic that share some of their call sites."""
    numbers = random.Random(7)
    paths = []
    for i in range(11):
        paths.append(bench.trace("random%d" % i, [
            bench.program("traffic"), "--events", str(numbers.randint(100, 3000)), "--seed", str(i),
            "--live", str(numbers.randint(5, 300)), "--sites", str(numbers.randint(2, 40)),
            "--max", str(1 << numbers.randint(12, 24)), "--devices", str(numbers.randint(1, 2)), "--threads", "2"],
            sim=["--devices", "2"]))
    return paths


def adds_up(answer, what):
    for device in answer["devices"]:
        rows = device["rows"]
        for side in ("a", "b"):
            equal(sum(row[side] for row in rows), device["bytes_" + side], "%s: sum of %s" % (what, side))
        equal(sum(row["delta"] for row in rows), device["bytes_b"] - device["bytes_a"], what + ": sum of deltas")
        for row in rows:
            equal(row["delta"], row["b"] - row["a"], what + ": a row's delta")
            lone = {"added": row["a"] == 0, "removed": row["b"] == 0}
            expect(lone.get(row["status"], True), "%s: %r is %s" % (what, row["key"], row["status"]))


def random_pairs(bench, paths):
    pairs = [(a, b) for a in range(len(paths)) for b in range(a)]
    random.Random(1).shuffle(pairs)
    expect(len(pairs) >= PAIRS, "only %d pairs" % len(pairs))
    changed = 0
    for a, b in pairs[:PAIRS]:
        for by in BY:
            answer = bench.json("diff", "--by", by, paths[a], paths[b])
            adds_up(answer, "%d and %d by %s" % (a, b, by))
            changed += sum(d["delta"] != 0 for d in answer["devices"])
    expect(changed >= PAIRS * len(BY) / 2, "hardly any pair differs: %d" % changed)


def trained_pairs(bench, a, b):
    peaks = [bench.json("summary", p)["processes"][0]["devices"][0]["peak_allocated"] for p in (a, b)]
    for by in BY:
        answer = bench.json("diff", "--by", by, a, b)
        adds_up(answer, "trained by " + by)
        equal(answer["difference"], peaks[1] - peaks[0], "difference by " + by)
        adds_up(bench.json("diff", "--at", "end", "--by", by, a, b), "ends by " + by)
        adds_up(bench.json("diff", "--level", "driver", "--by", by, a, b), "held by " + by)
    rows = bench.json("diff", "--by", "step", a, b)["rows"]
    expect({"step 2", "step 1", "before the first step"} <= {r["key"] for r in rows}, "steps %r" % rows)
    rows = bench.json("diff", "--by", "phase", a, b)["rows"]
    expect({"forward", "backward", "optimizer"} <= {r["key"] for r in rows}, "phases %r" % rows)


# ---- alignment -------------------------------------------------------------------------------------

def alone(answer):
    return [row for row in answer["rows"] if row["status"] in ("added", "removed")]


def two_checkouts(bench, a, b):
    """The same program at another path, and there five lines further down."""
    for by in BY:
        answer = bench.json("diff", "--by", by, a, b)
        equal((answer["difference"], alone(answer)), (0, []), "by " + by)
        expect(all(row["status"] == "same" for row in answer["rows"]), "by %s: bytes moved" % by)
    rows = bench.json("diff", "--by", "line", a, b)["rows"]
    moved = [row for row in rows if row["key"] != row["key_a"]]
    expect(len(moved) >= len(rows) - 1, "lines did not move: %r" % rows)


def two_versions(bench, old, new):
    """Two minor versions of torch: whatever both allocate is found by function names."""
    for by in ("line", "function", "inside", "stack", "site"):
        answer = bench.json("diff", "--by", by, old, new)
        adds_up(answer, "versions by " + by)
        lone = sum(max(r["a"], r["b"]) for r in alone(answer))
        expect(lone <= answer["b"]["bytes"] / 100,
               "by %s %d of %d bytes have no partner: %r" % (by, lone, answer["b"]["bytes"], alone(answer)))
    expect("torch" in answer["differs"], "not said that torch differs: %r" % answer["differs"])


def one_line(bench, a, b):
    """Where all that changed is behind one line of the program, the table shows what is inside it."""
    lines = bench.text("diff", a, b).splitlines()
    expect(", all in temporaries of train.py:" in lines[0], lines[0])
    expect(any(line.startswith("In use, by function") for line in lines), "not by function: %r" % lines)
    names = {line.split()[1] for line in lines if line.startswith("  ") and "adam.py " in line}
    expect({"_multi_tensor_adam", "_single_tensor_adam"} <= names, "functions %r" % names)
    equal(bench.json("diff", a, b)["by"], "line", "rows of JSON")


# ---- windows and limits ----------------------------------------------------------------------------

def windows(bench, path):
    steps = bench.json("steps", path)["steps"]
    for a, b in ((1, 3), (3, 2), (2, 2)):
        args = ["diff", path, "--from", "step:%d" % a, "--to", "step:%d" % b]
        for by in BY:
            answer = bench.json(*args, "--by", by)
            adds_up(answer, "windows by " + by)
            equal((answer["a"]["bytes"], answer["b"]["bytes"]),
                  (steps[a - 1]["peak_allocated"], steps[b - 1]["peak_allocated"]), "peaks of %d and %d" % (a, b))
        answer = bench.json(*args, "--at", "end")
        equal((answer["a"]["bytes"], answer["b"]["bytes"]),
              (steps[a - 1]["end_allocated"], steps[b - 1]["end_allocated"]), "ends of %d and %d" % (a, b))
    answer = bench.json("diff", path, "--from", "peak", "--to", "end")
    adds_up(answer, "peak and end")
    grows = bench.gputrace("diff", path, "--from", "step:1", "--to", "step:3", "--fail-if-peak-grows", "1%")
    equal(grows.returncode, 1, "status of a window that grows")
    shrinks = bench.gputrace("diff", path, "--from", "step:3", "--to", "step:1", "--fail-if-peak-grows", "0")
    equal(shrinks.returncode, 0, "status of a window that shrinks")


def largest_first(bench, _):
    """Of two lines of a function that may be the one that moved, the larger is."""
    a, b = (bench.trace("hold-" + name, [sys.executable, "-c", HOLD, *words])
            for name, words in (("a", ["0", "1", "100"]), ("b", ["7", "101"])))
    rows = bench.json("diff", "--by", "line", a, b)["rows"]
    equal([(r["status"], r["a"] >> 20, r["b"] >> 20) for r in rows], [("changed", 100, 101), ("removed", 1, 0)], "rows")


def limit_per_device(bench, _):
    """Only the second device grows: the check says which."""
    args = [bench.program("traffic"), "--threads", "2", "--events", "500", "--devices", "2"]
    a = bench.trace("limit-a", args, sim=["--devices", "2"])
    b = bench.trace("limit-b", [*args, "--seed", "5", "--max", "16777216"], sim=["--devices", "2"])
    peaks = [[d["peak_allocated"] for d in bench.json("summary", p)["processes"][0]["devices"]] for p in (a, b)]
    grown = [y - x for x, y in zip(*peaks)]
    expect(len(grown) == 2 and all(g > 0 for g in grown), "grown by %r" % grown)
    low = min(range(2), key=lambda i: grown[i])
    done = bench.gputrace("diff", "--fail-if-peak-grows", str(grown[low]), a, b)
    equal(done.returncode, 1, "status")
    lines = done.stderr.decode().splitlines()
    equal(len(lines), 1, "lines %r" % lines)
    expect("GPU %d grew" % (1 - low) in lines[0], lines[0])
    equal(bench.gputrace("diff", "--device", str(low), "--fail-if-peak-grows", str(grown[low]), a, b).returncode, 0,
          "status of the other device")


def says(bench, words, *args):
    done = bench.gputrace(*args)
    equal(done.returncode, 2, "status of %r, which said %r" % (args, done.stderr))
    lines = done.stderr.decode().splitlines()
    equal(len(lines), 1, "lines of %r: %r" % (args, lines))
    expect(lines[0].startswith("gputrace: ") and words in lines[0], "%r is not in %r" % (words, lines[0]))


def levels(bench, blocks, none):
    says(bench, "has no torch level (PYTORCH_NO_CUDA_MEMORY_CACHING)", "diff", blocks, none)
    says(bench, "compare with --level driver", "compare", none, blocks)
    adds_up(bench.json("diff", "--level", "driver", blocks, none), "level driver")


def bad_arguments(bench, paths):
    a, b, c = paths[:3]
    says(bench, "usage: gputrace diff", "diff", a)
    says(bench, "usage: gputrace diff", "diff", a, "--from", "1s")
    says(bench, "no step:7", "diff", a, "--from", "step:7", "--to", "step:8")
    says(bench, "the trace has no marks", "diff", a, "--from", "warm up", "--to", "end")
    says(bench, "--at peak or --at end only", "diff", a, "--from", "0s", "--to", "end", "--at", "oom")
    says(bench, "name two", "diff", "--by", "line", a, b, c)
    says(bench, "name two", "diff", "--fail-if-peak-grows", "5%", a, b, c)
    says(bench, "--by colour", "diff", "--by", "colour", a, b)
    says(bench, "--fail-if-peak-grows lots", "diff", "--fail-if-peak-grows", "lots", a, b)
    says(bench, "no request for memory failed", "diff", "--at", "oom", a, b)
    says(bench, "GPU 9", "diff", "--device", "9", a, b)


# ---- screens ---------------------------------------------------------------------------------------

def screens(bench, a, b):
    for columns in (80, 120):
        golden("diff-%d.txt" % columns, speed(bench.screen(columns, "diff", a, b, NO_COLOR="1")))
        golden("diff-windows-%d.txt" % columns, speed(bench.screen(
            columns, "diff", a, "--from", "step:1", "--to", "step:3", "--by", "step", NO_COLOR="1")))
        text = bench.screen(columns, "diff", a, b, NO_COLOR="1")
        expect(len(text.splitlines()) <= 24, "%d lines" % len(text.splitlines()))
        wide = [line for line in text.splitlines() if len(line) > columns]
        expect(not wide, "wider than %d: %r" % (columns, wide))
    answer = neutral(bench.json("diff", "--by", "category", a, b))
    golden("diff.json", json.dumps(answer, indent=1) + "\n")
    golden("help-diff.txt", without_options(bench.text("diff", "--help")))


def main():
    bench = Bench(sys.argv[1])
    program, other = checkout(bench, "here"), checkout(bench, "there", 5)
    small = Once(train, bench, "b4", program, "--batch", "4", "--steps", "4")
    large = Once(train, bench, "b8", program, "--batch", "8", "--steps", "4")
    there = Once(train, bench, "there", other, "--batch", "4", "--steps", "4")
    old = Once(train, bench, "old", program, "--batch", "4", "--steps", "4", TORCH="2.6.0", TORCH_MADE="1")
    none = Once(train, bench, "none", program, "--batch", "4", "--steps", "3",
                PYTORCH_NO_CUDA_MEMORY_CACHING="1")
    mlp = os.path.join(TESTS, "answers", "train.py")
    plain, single = (Once(train, bench, name, mlp, "--variant", name) for name in ("plain", "no-foreach"))
    paths = Once(random_traces, bench)
    cases(bench, [
        ("random-pairs", random_pairs, paths),
        ("bad-arguments", bad_arguments, paths),
        ("limit-per-device", limit_per_device, None),
        ("largest-first", largest_first, None),
        ("trained-pairs", trained_pairs, small, large),
        ("windows", windows, large),
        ("two-checkouts", two_checkouts, small, there),
        ("two-versions", two_versions, old, small),
        ("one-line", one_line, single, plain),
        ("levels", levels, small, none),
        ("screens", screens, small, large),
    ])
    return bench.bad > 0


if __name__ == "__main__":
    sys.exit(main())
