#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Snapshots of twenty traces of all kinds: each passes the checker, with and without a budget, and its sums are exact.

usage: many.py BUILD     make check-snapshot-all; VIZCHECK=FILE names the checker, without which that part is skipped
"""
import glob
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from judge import expect, judge  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
TOOL = BUILD + "/gputrace"
VIZCHECK = os.environ.get("VIZCHECK")
TRAFFIC = [BUILD + "/prog/traffic", "--events"]
TORCH = HERE + "/../torch/"
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
# name, devices, program, environment; a name of a script is one of PyTorch's tests
TRACES = [
    ("traffic", 1, [*TRAFFIC, "3000"], {}),
    ("traffic-many-live", 1, [*TRAFFIC, "20000", "--live", "3000", "--sites", "300"], {}),
    ("traffic-two-devices", 2, [*TRAFFIC, "3000", "--threads", "2", "--devices", "2"], {}),
    ("traffic-lost", 1, [*TRAFFIC, "200000", "--live", "200"], {"GPUTRACE_RING": "256K"}),
    ("traffic-no-stacks", 1, [*TRAFFIC, "3000"], {"GPUTRACE_STACKS": "none"}),
    ("traffic-redacted", 1, [*TRAFFIC, "3000"], {"GPUTRACE_REDACT": "1"}),
    ("traffic-free-stacks", 1, [*TRAFFIC, "3000"], {"GPUTRACE_FREE_STACKS": "1"}),
    ("refused", 1, [BUILD + "/prog/oom"], {}),
    ("runtime", 1, [BUILD + "/prog/rt"], {}),
    ("mlp", 1, ["mlp.py"], {}),
    ("mlp-expandable", 1, ["mlp.py"], EXPANDABLE),
    ("mlp-two-devices", 2, ["mlp.py"], {}),
    ("gpt2", 1, ["gpt2.py", "--steps", "4"], {}),
    ("gpt2-varying", 1, ["gpt2.py", "--steps", "8", "--vary"], {}),
    ("gpt2-async", 1, ["gpt2.py", "--steps", "3"], {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ("gpt2-uncached", 1, ["gpt2.py", "--steps", "2"], {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
    ("gpt2-native-stacks", 1, ["gpt2.py", "--steps", "3"], {"GPUTRACE_STACKS": "native"}),
    ("torch-refused", 1, ["oom.py", "recovered", "caught", "fatal"], {}),
    ("leak", 1, ["leak.py", "--steps", "20"], {}),
    ("graph", 1, ["graph.py"], {}),
]


def record(folder, devices, program, environment):
    command = [HERE + "/../sim/run", "--devices", str(devices), *program]
    if program[0].endswith(".py"):
        command = [TORCH + "python", "--devices", str(devices), TORCH + program[0], *program[1:]]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300, env=dict(
        os.environ, GT_BUILD=BUILD, GPUTRACE_DIR=folder, GPUTRACE_QUIET="1", LD_PRELOAD=BUILD + "/libgputrace.so",
        **environment))
    found = glob.glob(folder + "/*.gtrace")
    expect(len(found) == 1, "%d traces, exit %d: %s", len(found), done.returncode, done.stderr.decode()[-200:])
    return found[0]


def snapshot(trace, at, *options):
    path = "%s.%s%s.pickle" % (trace, at, "".join(options))
    done = subprocess.run([TOOL, "snapshot", "--at", at, *options, trace, "-o", path], capture_output=True, text=True,
                          timeout=300)
    if "is gone" in done.stderr:  # the peak's history: the command says what to ask instead
        return None, None
    smallest = re.search(r"the smallest snapshot of this is (\S+) (\w+)\n", done.stderr)
    if smallest:
        expect(done.returncode == 2 and not os.path.exists(path), "%s: exit %d", at, done.returncode)
        return None, (float(smallest.group(1)) + 1) * UNITS[smallest.group(2)]  # it was rounded
    expect(done.returncode == 0, "%s: %s", at, done.stderr)
    with open(path, "rb") as f:
        return pickle.load(f), path


def sums(loaded):
    """Of each device with segments: their bytes, and those of the blocks in use."""
    found = {}
    for s in loaded["segments"]:
        held, used = found.get(s["device"], (0, 0))
        live = sum(b["size"] for b in s["blocks"] if b["state"] == "active_allocated")
        found[s["device"]] = held + s["total_size"], used + live
    return found


def check_budget(trace, at, full, path):
    """A third of the file, and less than its segments and stacks need: it fits, or there is no file and what would
    fit is named, which does."""
    paths = []
    for share in 3, 12:
        budget = max(os.path.getsize(path) // share, 1)
        some, short = snapshot(trace, at, "--budget", str(budget))
        if not some:
            expect(short > budget, "%s: %d bytes do, but not %d", at, short, budget)
            budget = int(short)
            some, short = snapshot(trace, at, "--budget", str(budget))
            expect(some, "%s: %d bytes are said to do", at, budget)
        paths.append(short)
        expect(sums(some) == sums(full), "%s: other sums within %d bytes", at, budget)
        settings = some["allocator_settings"]
        expect(budget >= os.path.getsize(path) or "budget" in settings or "merged" in settings,
               "%s: what gave way is not said", at)
        size = os.path.getsize(short)
        expect(size <= budget, "%s: %d bytes for a budget of %d", at, size, budget)
    return paths


def check(name, devices, program, environment):
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        trace = record(folder, devices, program, environment)
        paths = []
        for at in "end", "peak":
            full, path = snapshot(trace, at)
            if not full:
                continue
            told = json.loads(subprocess.run([TOOL, "at", at, "--format", "json", trace], check=True,
                                             stdout=subprocess.PIPE).stdout)["devices"]
            used = {d["device"]: d["allocated"] for d in told if d["device"] is not None and d["allocated"]}
            expect({d: u for d, (_, u) in sums(full).items() if u} == used, "%s: %s, not %s", at, sums(full), used)
            expect(len(full["device_traces"]) == devices or len(used) < devices, "devices")
            paths += [path, *check_budget(trace, at, full, path)]
        expect(paths, "no snapshot")
        if VIZCHECK:
            done = subprocess.run([sys.executable, VIZCHECK, *paths], stdout=subprocess.PIPE, text=True, timeout=300)
            expect(done.returncode == 0, "%s", [l for l in done.stdout.splitlines() if ": ok" not in l])
        return "%d files" % len(paths)


def main():
    good = [judge(name, check, name, *how) for name, *how in TRACES]
    if not VIZCHECK:
        print("skip checker: VIZCHECK is not set")
    return not all(good)


sys.exit(main())
