# SPDX-License-Identifier: MIT
"""Figures of gputrace live: does a recorded program notice that it is looked at?"""
import statistics
import subprocess
import tempfile

from measure import QUICK, ROUNDS, TOOL, TRACED, Traced, bench, figure


def pairs_of(command, where, watched):
    """ns per pair of one run, looked at ten times a second from another core or not."""
    program = subprocess.Popen(["taskset", "-c", "0", *command], env=Traced(TRACED).environment(where), text=True,
                               stdout=subprocess.PIPE)
    live = subprocess.Popen(["taskset", "-c", "1", TOOL, "live", "--format", "json", "--interval", "100ms",
                             str(program.pid)], stdout=subprocess.PIPE) if watched else None
    printed = program.communicate(timeout=600)[0]
    if program.returncode:
        raise RuntimeError("%s: exit %d" % (" ".join(command), program.returncode))
    if live and live.communicate(timeout=60)[0].count(b"bytes_per_second") < 3:
        raise RuntimeError("live did not look at the program")
    return float(printed)


def look_group():
    """Pairs of a recorded program, alone and looked at in turn: the median of the rounds' ratios."""
    command = bench("hook", "100000" if QUICK else "400000", "8", "1000", "9")
    ratios = []
    for i in range(3 * ROUNDS):  # the limit is less than what one run differs from the next
        with tempfile.TemporaryDirectory() as where:
            order = (False, True) if i % 2 else (True, False)
            got = {watched: pairs_of(command, where, watched) for watched in order}
            ratios.append(got[True] / got[False])
    figure("live.pair_ratio", statistics.median(ratios), "ratio", 1.02)
