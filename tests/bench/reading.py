# SPDX-License-Identifier: MIT
"""Figures of the tool: events per second and memory, from a warm page cache."""
import os
import statistics
import subprocess
import tempfile
import time

from measure import OUT, QUICK, ROUNDS, TOOL, TRACED, Traced, at_least, bench, figure, run, used


def tool_group():
    """Reading random traffic: events per second of processor time, and memory."""
    for millions in (1,) if QUICK else (1, 10, 30):
        pairs = millions * 500000
        with tempfile.NamedTemporaryFile(suffix=".gtrace", dir=OUT) as kept:
            run(bench("hook", str(pairs), "0", "1000", "1"),
                Traced(TRACED, stacks="none", ring="1G"), keep=kept.name, where=OUT)
            for command in ("summary", "peak"):
                results = [used([TOOL, command, kept.name]) for _ in range(ROUNDS)]
                name = "tool.%s.%dM" % (command, millions)
                at_least(name, 2 * pairs / statistics.median(r[0] for r in results) / 1e6, "Mevents/s",
                         15 if command == "summary" else None)
                figure(name + ".memory", statistics.median(r[1] for r in results), "MB", 200)
            if millions == 10:
                two_cores(kept.name)
                difference(kept.name)
                snapshot(kept.name)


def wall(cores, trace):
    begin = time.monotonic()
    subprocess.run(["taskset", "-c", cores, TOOL, "summary", trace], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - begin


def two_cores(trace):
    """By the clock on the wall: how much sooner the answer is there with a second core."""
    if os.cpu_count() < 2:
        return
    both = [(wall("0", trace), wall("0,1", trace)) for _ in range(ROUNDS)]
    at_least("tool.summary.10M.cores1/2", statistics.median(one / two for one, two in both), "ratio", 1.7)


def difference(trace):
    seconds, memory = zip(*(used([TOOL, "diff", trace, trace]) for _ in range(3)))
    at_least("tool.diff.10M", 20 / statistics.median(seconds), "Mevents/s")
    figure("tool.diff.10M.memory", statistics.median(memory), "MB")


def snapshot(trace):
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        results = [used([TOOL, "snapshot", trace, "-o", os.path.join(folder, "%d.pickle" % i)]) for i in range(3)]
    figure("tool.snapshot.10M", statistics.median(r[0] for r in results), "s", 10)
    figure("tool.snapshot.10M.memory", statistics.median(r[1] for r in results), "MB", 500)
