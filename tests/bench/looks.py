# SPDX-License-Identifier: MIT
"""Figures of gputrace live: does a recorded program notice that it is looked at?

One run, in which live is stopped and let go on in turn every half second: two runs differ by more than the limit.
Beside the ratio stands that of a control: a process that wakes as often and computes as long as live did, and
touches nothing. What the program loses beside both it loses to the machine; only the rest is the reading.
"""
import os
import signal
import statistics
import subprocess
import tempfile
import time

from measure import OUT, QUICK, TOOL, TRACED, Traced, bench, figure

TURN = 0.5  # seconds with, and as many without
SECONDS = 20 if QUICK else 60


def take_turns(program, neighbour):
    """When each turn began; the neighbour runs in those of even number."""
    turns = [time.monotonic()]
    while program.poll() is None:
        time.sleep(TURN)
        os.kill(neighbour.pid, signal.SIGCONT if len(turns) % 2 == 0 else signal.SIGSTOP)
        turns.append(time.monotonic())
    os.kill(neighbour.pid, signal.SIGCONT)
    return turns


def ratios(printed, turns):
    """Of each turn beside the neighbour to the one after it, by the slices that lie in them."""
    slices = [[float(word) for word in line.split()] for line in printed.splitlines()]
    of = [[ns for began, ns in slices if begin + 0.02 <= began / 1e9 < end - 0.02]
          for begin, end in zip(turns, turns[1:])]
    pairs = [(a, b) for a, b in zip(of[0::2], of[1::2]) if len(a) > 20 and len(b) > 20]
    return [statistics.mean(a) / statistics.mean(b) for a, b in pairs]


def beside(neighbour_of):
    """The ratios, how often the neighbour looked, and its seconds of processor time."""
    command = bench("slices", "2000", "8", "1000", str(SECONDS))
    with tempfile.TemporaryDirectory() as where, open(where + "/looks", "wb+") as looks, \
            open(where + "/slices", "w+") as slices:
        program = subprocess.Popen(["taskset", "-c", "0", *command], env=Traced(TRACED).environment(where),
                                   stdout=slices)
        neighbour = subprocess.Popen(["taskset", "-c", "1", *neighbour_of(program.pid)], stdout=looks)
        turns = take_turns(program, neighbour)
        if program.returncode:
            raise RuntimeError("%s: exit %d" % (" ".join(command), program.returncode))
        os.kill(neighbour.pid, signal.SIGTERM)  # live has ended by itself, but is not reaped yet
        usage = os.wait4(neighbour.pid, 0)[2]
        neighbour.returncode = 0
        looks.seek(0)
        slices.seek(0)
        return ratios(slices.read(), turns), looks.read().count(b"bytes_per_second"), usage.ru_utime + usage.ru_stime


def look_group():
    """Pairs of a recorded program with live and without, then with the control and without: medians."""
    live = [TOOL, "live", "--format", "json", "--interval", "100ms"]
    got, looks, seconds = beside(lambda pid: [*live, str(pid)])
    if looks < SECONDS:  # five in each second with it, but for the first
        raise RuntimeError("live looked only %d times" % looks)
    control, _, _ = beside(lambda pid: [os.path.join(OUT, "bench/wakes"), "%d" % (seconds / looks * 1e6)])
    figure("live.pair_ratio", statistics.median(got), "ratio", 1.02)
    figure("live.control_ratio", statistics.median(control), "ratio")
    figure("live.ms_per_look", seconds / looks * 1000, "ms")
