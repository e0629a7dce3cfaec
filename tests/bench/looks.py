# SPDX-License-Identifier: MIT
"""Figures of gputrace live: does a recorded program notice that it is looked at?

Beside the ratio stands that of a control: a process that wakes as often and computes as long as live did, and
touches nothing. What the program loses beside both it loses to the machine; only the rest is the reading.
"""
import os
import statistics
import subprocess
import tempfile

from measure import OUT, QUICK, ROUNDS, TOOL, TRACED, Traced, bench, figure


def end_of(neighbour):
    """Looks that it printed, and its seconds of processor time per look."""
    looks = neighbour.stdout.read().count(b"bytes_per_second")
    usage = os.wait4(neighbour.pid, 0)[2]
    neighbour.returncode = 0
    if looks < 3:
        raise RuntimeError("live did not look at the program")
    return (usage.ru_utime + usage.ru_stime) / looks


def pairs_of(command, beside=None):
    """ns per pair of one run; beside: its process id -> the command of a neighbour on the other core, started too."""
    with tempfile.TemporaryDirectory() as where:
        program = subprocess.Popen(["taskset", "-c", "0", *command], env=Traced(TRACED).environment(where), text=True,
                                   stdout=subprocess.PIPE)
        neighbour = beside and subprocess.Popen(["taskset", "-c", "1", *beside(program.pid)], stdout=subprocess.PIPE)
        printed = program.communicate(timeout=600)[0]
        if program.returncode:
            raise RuntimeError("%s: exit %d" % (" ".join(command), program.returncode))
    return float(printed), neighbour


def run_of(command, kind, seconds):
    """ns per pair of one run, and the seconds of processor time per wake of whoever was beside it last."""
    neighbours = {
        "alone": None,
        "live": lambda pid: [TOOL, "live", "--format", "json", "--interval", "100ms", str(pid)],
        "control": lambda pid: [os.path.join(OUT, "bench/wakes"), "%d" % (seconds * 1e6)],
    }
    ns, neighbour = pairs_of(command, neighbours[kind])
    if kind == "control":
        neighbour.kill()
        neighbour.communicate()
    return ns, end_of(neighbour) if kind == "live" else seconds


def look_group():
    """Pairs of a recorded program looked at, alone and beside the control, in turn: medians of the rounds' ratios."""
    command = bench("hook", "100000" if QUICK else "400000", "8", "1000", "9")
    rounds, used, seconds = [], [], 0
    for i in range(3 * ROUNDS):  # the limit is less than what one run differs from the next
        got = {}
        for kind in ("live", "alone", "control")[::-1 if i % 2 else 1]:
            got[kind], seconds = run_of(command, kind, seconds)
        rounds.append(got)
        used.append(seconds)
    figure("live.pair_ratio", statistics.median(got["live"] / got["alone"] for got in rounds), "ratio", 1.02)
    figure("live.control_ratio", statistics.median(got["control"] / got["alone"] for got in rounds), "ratio")
    figure("live.ms_per_look", statistics.median(used) * 1000, "ms")
