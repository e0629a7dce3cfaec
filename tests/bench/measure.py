# SPDX-License-Identifier: MIT
"""What the groups of figures share: running a command under a preload, alternating variants, medians, and
the line of a figure.

Runs of one group alternate (A B C A B C ...) so that the machine's drift hits all alike; values are
medians. Each measured command is pinned to one core. Costs are processor time, so that other programs
on the machine count only for the caches that they take; pauses are what a clock on the wall says.
"""
import glob
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, os.environ.get("O", "build"))
TRACED = os.path.join(OUT, "libgputrace.so")
DRIVER = os.path.join(OUT, "bench/driver")
TOOL = os.path.join(OUT, "gputrace")
NOP = os.path.join(OUT, "libgputrace-nop.so")
QUICK = "--quick" in sys.argv[1:]
ROUNDS = 3 if QUICK else 7
RING = 256 << 20  # the default; hours are those at 20,000 events per second


def figure(name, value, unit, target=None, ok=lambda value, target: value <= target):
    verdict = "-" if target is None else "ok" if ok(value, target) else "missed"
    print("%-36s %10.2f %-10s %8s %s" % (name, value, unit, "-" if target is None else "%g" % target, verdict),
          flush=True)


def at_least(name, value, unit, target=None):
    figure(name, value, unit, target, lambda value, target: value >= target)


class Traced:
    """A preload and its options; a directory for the traces that is emptied after each run."""

    def __init__(self, library=None, **options):
        self.library, self.options = library, options

    def environment(self, directory):
        env = dict(os.environ, GPUTRACE_DIR=directory, GPUTRACE_QUIET="1", O=OUT)
        env.pop("LD_PRELOAD", None)
        if self.library:
            env["LD_PRELOAD"] = self.library
        env.update({"GPUTRACE_" + k.upper(): v for k, v in self.options.items()})
        return env


def run(command, traced, keep=None, where=None, pin=True):
    with tempfile.TemporaryDirectory(dir=where) as directory:
        pinned = (["taskset", "-c", "0"] if pin else []) + command
        done = subprocess.run(pinned, env=traced.environment(directory), cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        if done.returncode:
            raise RuntimeError("%s: exit %d: %s" % (" ".join(command), done.returncode, done.stderr.strip()[-300:]))
        traces = glob.glob(directory + "/*.gtrace")
        if keep and traces:
            shutil.copy(max(traces, key=os.path.getsize), keep)
        return done.stdout


class Values(dict):
    """{variant: one number per round}; rounds alternate, so the numbers of one round belong together."""

    def median(self, name):
        return statistics.median(self[name])

    def added(self, name, to):
        """Median of the differences, and their noise: two standard errors of it. Of n values with a normal
        spread the median's is 1.25 sigma / sqrt(n), and the quartiles are 1.35 sigma apart.
        """
        differences = sorted(a - b for a, b in zip(self[name], self[to]))
        quarter = len(differences) // 4
        spread = differences[-1 - quarter] - differences[quarter]
        return statistics.median(differences), 2 * 1.25 / 1.35 * spread / math.sqrt(len(differences))


def added(name, got, what, to, unit, target=None, share=1.0):
    """What one variant adds to another; where noise is larger nothing is known, and that is said."""
    value, noise = got.added(what, to)
    if target is not None and abs(value) < noise:
        print("%-36s %10.2f %-10s %8g noise +-%.1f" % (name, value * share, unit, target, noise * share), flush=True)
    elif target is not None and value < 0:
        print("%-36s %10.2f %-10s %8g noise below zero" % (name, value * share, unit, target), flush=True)
    else:
        figure(name, value * share, unit, target)
    return value


def side_by_side(variants, rounds=ROUNDS):
    """{name: (command, Traced)} -> the last number that each run printed"""
    values = Values({name: [] for name in variants})
    for _ in range(rounds):
        for name, (command, traced) in variants.items():
            values[name].append(float(run(command, traced).split()[-1]))
    return values


def bench(program, *arguments):
    """A program of this folder on the driver that does nothing."""
    return ["env", "LD_LIBRARY_PATH=" + DRIVER, os.path.join(OUT, "bench", program), *arguments]


def used(command, **environment):
    """Seconds of processor time, user and system, and MB at most of one command."""
    child = subprocess.Popen(["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL,
                             env=dict(os.environ, **environment))
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("%s: exit %d" % (" ".join(command), child.returncode))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def ratio(name, got, history, target):
    """What we add to what torch's history adds; where ours is lost in the noise, the most that it can be."""
    (ours, our_noise), (theirs, their_noise) = got.added("traced", "bare"), got.added(history, "bare")
    name = "%s.traced/history_%s" % (name, history)
    if ours >= our_noise and theirs >= their_noise:
        figure(name, ours / theirs, "ratio", target)
    elif target and theirs > their_noise and ours + our_noise <= target * (theirs - their_noise):
        most = max(0, ours + our_noise) / (theirs - their_noise)
        print("%-36s %10s %-10s %8g ok" % (name, "<%.2f" % most, "ratio", target), flush=True)
    else:
        print("%-36s %10s %-10s %8s noise" % (name, "?", "ratio", target or "-"), flush=True)
