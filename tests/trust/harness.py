# SPDX-License-Identifier: MIT
"""Runs victims and says what a trace has lost: used by cases.py, over tests/interpose/outside.py.

Lost are calls that had returned to the program and that no trace of it counts.
"""
import os
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager

HERE = os.path.dirname(os.path.abspath(__file__))
PAGES = 256


sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "interpose"))
import outside as base  # noqa: E402
from judge import Skipped as Skip, equal, expect as check  # noqa: E402, F401  (outside.py sets the path)
LIB, SIM, TOOL, LIMIT = base.LIB, base.SIM, base.TOOL, base.LIMIT
TRUST = os.path.join(base.BUILD, "tests", "trust")


class Tally:
    """Of one case, for the table."""
    tries = lost = 0

    def clear(self):
        self.tries = self.lost = 0


tally = Tally()


def program(name):
    path = os.path.join(TRUST, name)
    if not os.path.exists(path):
        raise Skip(f"{name} is not built: no CUDA headers (make deps gets them)")
    return path


def library(*names):
    """A shared library of the system's by its file name, for LD_PRELOAD."""
    for name in names:
        found = subprocess.run([os.environ.get("CC", "cc"), "-print-file-name=" + name], capture_output=True,
                               text=True).stdout.strip()
        if os.path.isabs(found):
            return os.path.realpath(found)
    raise Skip(f"no {names[0]} here")


@contextmanager
def folder(**more):
    """A directory for traces with the victims' book in it, and the environment for both."""
    with tempfile.TemporaryDirectory() as d:
        book = os.path.join(d, "book")
        with open(book, "wb") as f:
            f.write(bytes(8 + 24 * PAGES))
        env = {**os.environ, "GT_BUILD": base.BUILD, "GPUTRACE_DIR": d, "GPUTRACE_QUIET": "1", "VICTIM_BOOK": book,
               "GT_SIM_FORK": "1", "GPUTRACE_CELLS": "64", "GPUTRACE_EXTENT": "16K", **more}
        yield d, env


def command(preload, *words, under=()):
    """Set behind the simulator's own script, so that only the program has it."""
    return [SIM, *under, "sh", "-c", 'export LD_PRELOAD="$0"; exec "$@"', preload, *words]


def run(env, preload, *words, limit=LIMIT, under=()):
    try:
        p = subprocess.run(command(preload, *words, under=under), env=env, stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=limit)
    except subprocess.TimeoutExpired:
        return "stopped at its time limit", b"", b""
    return p.returncode, p.stdout, p.stderr


def calls_returned(directory):
    """pid -> (allocs, frees)"""
    with open(os.path.join(directory, "book"), "rb") as f:
        data = f.read()
    sums = {}
    for pid, allocs, frees in struct.iter_unpack("<QQQ", data[8:]):
        if pid:
            old = sums.get(pid, (0, 0))
            sums[pid] = (old[0] + allocs, old[1] + frees)
    return sums


def calls_recorded(directory):
    sums = {}
    for trace in base.traces(directory):
        sound(trace)
        with open(trace, "rb") as f:
            pid = struct.unpack_from("<I", f.read(68), 64)[0]
        lanes = [x for x in base.dump(trace, "--lanes") if x["type"] == "lane" and x["device"] == 0]
        old = sums.get(pid, (0, 0))
        sums[pid] = (old[0] + sum(x["allocs"] for x in lanes), old[1] + sum(x["frees"] for x in lanes))
    return sums


def sound(trace):
    p = subprocess.run([TOOL, "dump", "--check", trace], capture_output=True, text=True, timeout=LIMIT)
    equal(p.returncode, 0, f"dump --check ({p.stdout[-200:]}{p.stderr[-200:]})")


def lost(directory, under_way):
    """Calls that returned and are in no trace, per pid; more than `under_way` too many are wrong too."""
    returned, recorded = calls_returned(directory), calls_recorded(directory)
    total = 0
    for pid, calls in returned.items():
        for want, got in zip(calls, recorded.get(pid, (0, 0))):
            total += max(0, want - got)
            check(got <= want + under_way, f"{got} calls recorded, {want} returned")
    check(set(recorded) <= set(returned), "a trace of a process that never allocated")
    return total


def victim(mode, *words, threads=0, preload=LIB, name="victim", under=(), **env):
    """With and without the preload: status, output, errors; then what the traces lost. Frees come into
    the trace before the call, so that each thread may be one ahead."""
    outcomes = []
    for p in "", preload:
        with folder(**env) as (d, full):
            outcomes.append(run(full, p, program(name), mode, *words, under=under))
            check(p or not base.traces(d), "a trace without the preload")
            if p:
                gone = lost(d, threads + 1)
    base.unseen(outcomes[1], outcomes[0])
    tally.tries += 1
    tally.lost += gone
    equal(gone, 0, "committed events lost")
    return outcomes[1]


def plain(mode, *words, **env):
    with folder(**env) as (_, env):
        return run(env, "", program("victim"), mode, *words)


def starved(reference, mode, *words, under=(), **env):
    """The program is as ever. What is missing in the trace is said there, or there is no trace."""
    with folder(**env) as (d, full):
        base.unseen(run(full, LIB, program("victim"), mode, *words, under=under), reference)
        returned = sum(a + f for a, f in calls_returned(d).values())
        recorded = sum(a + f for a, f in calls_recorded(d).values())
        check(recorded <= returned, f"{recorded} calls recorded, {returned} returned")
        check(all(os.path.getsize(t) for t in base.traces(d)), "an empty file is left")
        stopped = not base.traces(d) or stop_of(base.traces(d)[0])
        check(recorded == returned or stopped, f"{returned - recorded} calls lost and nobody says so")
    tally.tries += 1


def stop_of(trace):
    """Does the header say that recording stopped, or that events were lost?"""
    with open(trace, "rb") as f:
        header = f.read(320)
    return struct.unpack_from("<Q", header, 96)[0] or any(struct.unpack_from("<8Q", header, 256))


def pause(change, mode="pause", preload=LIB, **more):
    """Does something to the file of a program that records; its status, what it says."""
    with folder(**more) as (d, env):
        p = subprocess.Popen(command(preload, program("victim"), mode, "3000"), env=env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(p.stdout.readline(), b"ready\n", "first line")
        change(base.traces(d)[0], p.pid)
        out, err = p.communicate(b"\n", timeout=60)
        tally.tries += 1
        return p.returncode, out, err


def main(cases, chosen):
    failed = 0
    for name in chosen or cases:
        tally.clear()
        try:
            cases[name]()
            print(f"ok {name} # {tally.tries or 1} tries, {tally.lost} lost", flush=True)
        except Skip as e:
            print(f"skip {name}: {e}", flush=True)
        except (AssertionError, subprocess.SubprocessError, OSError, ValueError, LookupError) as e:
            print(f"not ok {name}: {str(e)[:1500]} # {tally.tries} tries, {tally.lost} lost", flush=True)
            failed = 1
    return failed
