#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gputrace live on running programs: printed (once), or on the screen of a real terminal (screen).

usage: run.py BUILD once|screen [--write]     --write makes the golden screens anew
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from harness import Bench, ROOT, equal, expect, same_as_file  # noqa: E402
import terminal  # noqa: E402

MIB = 1 << 20
ALLOWED = {"openat", "open", "fstat", "newfstatat", "statx", "mmap", "pread64", "read", "close"}
TOUCHES = {"kill", "tkill", "tgkill", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_send_signal",
           "pidfd_getfd", "flock", "fcntl_lock", "rt_sigqueueinfo", "prlimit64", "sched_setaffinity", "setpriority"}


class Steps:
    """A program that does what it is told, recorded on the simulated device."""

    def __init__(self, bench, where, device=0, **environment):
        env = dict(os.environ, GPUTRACE_DIR=where, GPUTRACE_QUIET="1",
                   LD_PRELOAD=os.path.join(bench.build, "libgputrace.so"), **environment)
        self.process = subprocess.Popen(
            [os.path.join(ROOT, "tests/sim/run"), "--devices", "2", "--capacity", "8G",
             os.path.join(bench.build, "tests/live/steps"), str(device)],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.file = os.path.join(where, "gputrace.steps.%d.gtrace" % self.pid)

    def do(self, what, count, size):
        self.process.stdin.write("%s %d %d\n" % (what, count, size))
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "done\n", "answer of steps")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


def folder(bench, name):
    path = os.path.join(bench.dir, name)
    os.mkdir(path)
    return path


def looks(bench, *args, until=lambda answer: False, interval="100ms"):
    """Answers of live as they come, until one satisfies or it ends by itself."""
    live = subprocess.Popen([bench.tool, "live", "--format", "json", "--interval", interval, *args],
                            stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(60, live.kill)
    watchdog.start()
    try:
        for line in live.stdout:
            answer = json.loads(line)
            yield answer
            if until(answer):
                return
        equal(live.wait(), 0, "status of live")
    finally:
        watchdog.cancel()
        live.kill()
        live.stdout.close()
        live.wait()


# ---- printed ---------------------------------------------------------------------------------------

def once(bench):
    """One answer: what three processes hold, by whom, and that one of them was killed."""
    where = folder(bench, "once")
    with Steps(bench, where, RANK="0") as a, Steps(bench, where, device=1, RANK="1") as b, Steps(bench, where) as c:
        a.do("keep", 3, 100 * MIB)
        a.do("grow", 1, MIB)
        b.do("keep", 2, 50 * MIB)
        c.do("keep", 1, MIB)
        answer = json.loads(bench.text("live", "--once", "--interval", "100ms", "--format", "json", where))
        equal({p["pid"]: (p["rank"], p["state"], p["devices"][0]["device"], p["devices"][0]["allocated"] // MIB)
               for p in answer["processes"]},
              {a.pid: (0, "running", 0, 301), b.pid: (1, "running", 1, 100), c.pid: (None, "running", 0, 1)}, "processes")
        first = answer["sites"][0]
        equal((first["pid"], first["bytes"], first["count"], first["allocations_per_second"]),
              (a.pid, 300 * MIB, 3, 0), "the largest site")
        expect(re.search(r"> :\d+ keep > ", first["key"]), "key is %r" % first["key"])
        equal(first["growth_per_second"], None, "growth after two looks")
        c.kill()
        states = [p["state"] for p in json.loads(
            bench.text("live", "--once", "--all", "--interval", "100ms", "--format", "json", where))["processes"]]
        equal(sorted(states), ["killed", "running", "running"], "states with --all")
        text = bench.text("top", "--once", "--interval", "100ms", where)
        expect("2 processes, 2 running" in text and str(c.pid) not in text, "an ended process is shown: " + text)
        equal(len(bench.text("live", "--once", "--interval", "100ms", "--format", "csv", where).splitlines()), 4,
              "rows of csv and its head")


def sorted_by(bench):
    """--sort chooses what comes first in every format; growth takes as many looks as it needs."""
    where = folder(bench, "sorted")
    with Steps(bench, where) as a, Steps(bench, where) as b:
        a.do("keep", 1, 300 * MIB)
        a.do("grow", 7, MIB)
        b.do("keep", 1, MIB)

        def first(*args):
            answer = json.loads(bench.text("live", "--once", "--interval", "100ms", "--format", "json", *args, where))
            return re.search(r"> :\d+ (keep|grow|churn)\b", answer["sites"][0]["key"]).group(1), answer["sites"][0]

        equal((first()[0], first("--sort", "bytes")[0], first("--sort", "blocks")[0]), ("keep", "keep", "grow"), "first sites")
        rows = bench.text("live", "--once", "--sort", "blocks", "--interval", "100ms", "--format", "csv", where).splitlines()
        expect("grow" in rows[1], "csv by blocks begins with " + rows[1])
        expect("in use, by blocks" in bench.text("live", "--once", "--sort", "blocks", "--interval", "100ms", where), "title")
        done = threading.Event()

        def traffic():
            while not done.wait(.02):
                b.do("grow", 1, MIB)
                a.do("churn", 50, 32 * MIB)

        worker = threading.Thread(target=traffic)
        worker.start()
        try:
            name, site = first("--sort", "growth")
            equal((name, site["pid"]), ("grow", b.pid), "what grows")
            expect(site["growth_per_second"] > 0, "growth is %r" % site["growth_per_second"])
            equal(first("--sort", "allocs")[0], "churn", "what allocates most")
        finally:
            done.set()
            worker.join()
        bad = bench.gputrace("live", "--once", "--sort", "size", where)
        equal((bad.returncode, b"bytes|growth|blocks|allocs" in bad.stderr), (2, True), "another key: %r" % bad.stderr)


def found_by_pid(bench):
    """A process is found by its number, wherever its trace is; one that ended gets a hint."""
    where = folder(bench, "pid")
    with Steps(bench, where) as a, Steps(bench, where) as b:
        a.do("keep", 1, MIB)
        b.do("keep", 1, MIB)
        answer = json.loads(bench.text("live", str(a.pid), "--once", "--interval", "100ms", "--format", "json"))
        equal([p["pid"] for p in answer["processes"]], [a.pid], "processes")
        everyone = json.loads(bench.text("live", "--once", "--interval", "100ms", "--format", "json"))
        expect({a.pid, b.pid} <= {p["pid"] for p in everyone["processes"]}, "not all of ours were found")
        b.kill()
        os.environ["GPUTRACE_DIR"] = where
        done = bench.gputrace("live", "--once", str(b.pid))
        del os.environ["GPUTRACE_DIR"]
        equal((done.returncode, done.stderr.decode()),
              (3, "gputrace: pid %d has ended; see: gputrace at end %s\n" % (b.pid, b.file)), "hint")
        done = bench.gputrace("live", b.file)
        equal((done.returncode, done.stderr.decode()),
              (3, "gputrace: pid %d has ended; see: gputrace at end %s\n" % (b.pid, b.file)), "hint of a file")
    equal(bench.gputrace("live", "--once", "nothing-like-it").returncode, 3, "status for what is not there")
    equal(bench.gputrace("live", "--interval", "1ms", where).returncode, 2, "status for too short an interval")


def adds_up(bench):
    """Under traffic that goes round its ring many times: every look is the state after one event."""
    where = folder(bench, "adds")
    with Steps(bench, where, GPUTRACE_RING="1M", GPUTRACE_STACKS="native") as a:
        a.do("keep", 100, 3 * MIB)
        a.do("fast", 1, MIB)
        seen, rates = 0, []
        for answer in looks(bench, where, until=lambda answer: seen >= 15):
            device = answer["processes"][0]["devices"][0]
            equal(sum(s["bytes"] for s in answer["sites"]), device["allocated"], "sum of the sites")
            equal(sum(s["count"] for s in answer["sites"]), device["blocks"], "sum of their blocks")
            equal(sum(s["allocations"] for s in answer["sites"]), device["allocations"], "sum of their allocations")
            equal(device["allocations"] - device["frees"], device["blocks"], "allocations less frees")
            expect(device["allocated"] in (300 * MIB, 301 * MIB), "allocated is %d" % device["allocated"])
            rates.append(device["allocations_per_second"])
            seen += 1
            if seen == 12:
                a.kill()
        expect(rates[0] is None and min(rates[1:10]) > 1000, "rates %r" % rates)
        last = answer["processes"][0]
        equal(last["state"], "killed", "state at the end")
        expect(last["devices"][0]["allocations"] > 20000, "too few events for the ring to have gone round")
        end = bench.json("at", "end", a.file)["devices"][0]
        equal(last["devices"][0]["allocated"], end["bytes"], "bytes at the end")


def comes_and_goes(bench):
    """JSON goes on from before the first process until the last one has ended."""
    where = folder(bench, "comes")
    states = []
    with contextlib.ExitStack() as stack:
        for answer in looks(bench, where):
            states.append([p["state"] for p in answer["processes"]])
            if len(states) == 1:
                a = stack.enter_context(Steps(bench, where))
                a.do("keep", 1, MIB)
            elif states[-1] == ["running"]:
                a.end()
    equal(states[0], [], "processes of the first look")
    equal(states[-1], ["exited"], "processes of the last look")


# ---- strace ----------------------------------------------------------------------------------------

def calls_of(log, path):
    """Calls that name the trace or its descriptor, and all others: (name, line)."""
    fds, ours, others = set(), [], []
    for line in log.splitlines():
        m = re.match(r"(?:\d+ +)?(\w+)\((.*)", line)
        if not m:
            continue
        name, rest = m.groups()
        opened = re.search(r"= (\d+)$", rest)
        first = re.match(r"(\d+)\b", rest)
        mapped = re.match(r"\w+, \d+, \S+, \S+, (\d+),", rest)
        if name in ("openat", "open") and '"%s"' % path in rest and opened:
            fds.add(opened.group(1))
            ours.append((name, line))
        elif (mapped.group(1) if name == "mmap" and mapped else first.group(1) if first else None) in fds:
            ours.append((name, line))
            if name == "close":
                fds.discard(first.group(1))
        elif '"%s"' % path in rest:
            ours.append((name, line))
        else:
            others.append((name, line))
    return ours, others


def only_reads(bench):
    """Every system call on the trace opens, looks at, maps for reading or reads; none touches the process."""
    where = folder(bench, "strace")
    log = os.path.join(bench.dir, "strace.log")
    with Steps(bench, where) as a:
        a.do("keep", 10, MIB)
        a.do("fast", 1, MIB)
        live = subprocess.Popen(["strace", "-f", "-o", log, bench.tool, "live", "--format", "json", "--interval", "100ms",
                                 where], stdout=subprocess.PIPE, env=dict(os.environ, GPUTRACE_CACHE="0"))
        for _ in range(8):
            live.stdout.readline()
        a.kill()
        live.stdout.read()
        equal(live.wait(60), 0, "status of live under strace")
        live.stdout.close()
        with open(log, encoding="utf-8", errors="replace") as file:
            ours, others = calls_of(file.read(), a.file)
    names = [name for name, _ in ours]
    expect(names.count("mmap") >= 1 and "openat" in names, "the trace was not opened and mapped: %r" % names)
    equal(sorted(set(names) - ALLOWED), [], "other calls on the trace")
    for name, line in ours:
        if name in ("openat", "open"):
            expect("O_RDONLY" in line and "O_WR" not in line and "O_RDWR" not in line, "opened to write: " + line)
        if name == "mmap":
            expect("PROT_READ, MAP_SHARED" in line, "not mapped for reading alone: " + line)
    touching = {line for name, line in others if name in TOUCHES and "(0, RLIMIT" not in line}  # its own limits
    equal(sorted(touching), [], "calls that could touch the process")
    expect(not any(name == "fcntl" and "LK" in line for name, line in others), "a lock was taken")
    return names


# ---- the screen ------------------------------------------------------------------------------------

def golden(name, screen, pids):
    """The screen with the processes' numbers replaced, against golden/NAME."""
    for letter, pid in zip("ABC", pids):
        screen = screen.replace(str(pid).rjust(7), ("pid-" + letter).rjust(7))
    same_as_file(os.path.join(HERE, "golden", name), screen)


def at_rest(screen):
    """Nothing has been allocated since the look before."""
    rows = [line for line in screen.splitlines() if line.endswith("running")]
    return len(rows) == 3 and all(re.search(r" 0 +0 running", line) for line in rows)


def screens(bench):
    """Three processes in a terminal of 80 columns; keys; one is killed; the window grows."""
    where = folder(bench, "screens")
    with Steps(bench, where, RANK="0") as a, Steps(bench, where, device=1, RANK="1") as b, Steps(bench, where) as c:
        pids = [a.pid, b.pid, c.pid]
        a.do("keep", 12, 100 * MIB)
        a.do("churn", 1, 600 * MIB)
        a.do("grow", 3, 7 * MIB)
        b.do("keep", 40, 100 * MIB)
        c.do("keep", 5, 80 * MIB)
        with terminal.Terminal(bench, ["live", "--interval", "200ms", where]) as window:
            golden("three.txt", window.until(at_rest), pids)
            window.keys("Down", "Enter")
            golden("stack.txt", window.until(lambda s: "outermost first" in s), pids)
            window.keys("Escape")
            window.until(lambda s: "where (" in s)
            window.keys("s", "s", "l", "l")
            golden("driver.txt", window.until(lambda s: "driver, by blocks" in s and "where (driver)" in s), pids)
            window.keys("l", "s", "s", "Tab")
            golden("one.txt", window.until(lambda s: "in use, by bytes" in s and "\n>" in s), pids)
            window.keys("Tab", "Tab", "Tab", "?")
            golden("help.txt", window.until(lambda s: "look more often" in s and "\n>" not in s), pids)
            window.keys("?")
            c.kill()
            golden("killed.txt", window.until(lambda s: "killed" in s and "where (" in s), pids)
            window.resize(100, 30)
            golden("wide.txt", window.until(lambda s: len(s.splitlines()) == 30), pids)
            window.keys("q")
            equal(window.status(), 0, "status after q")


def grows(bench):
    """What never comes down gets an arrow, what goes up and down does not; pause holds the screen."""
    where = folder(bench, "grows")
    with Steps(bench, where) as a:
        a.do("keep", 1, 100 * MIB)
        done, rounds = threading.Event(), []

        def traffic():
            while not done.wait(.02):
                a.do("grow", 1, 2 * MIB)
                a.do("churn", 50, 32 * MIB)
                rounds.append(time.monotonic())

        worker = threading.Thread(target=traffic)
        with terminal.Terminal(bench, ["live", "--interval", "100ms", where]) as window:
            window.until(lambda s: "running" in s)
            worker.start()
            try:
                screen = window.until(lambda s: "▲" in s, still=False)
                arrows = [line for line in screen.splitlines() if "▲" in line]
                equal(len(arrows), 1, "lines with an arrow in " + screen)
                expect("grow" in arrows[0], "the arrow stands at " + arrows[0])
                window.keys("p")
                held = window.until(lambda s: "paused" in s)
                enough = time.monotonic() + .5  # five looks long, while traffic goes on
                window.wait(lambda: rounds[-1] > enough)
                equal(window.capture(), held, "the screen while paused")
                window.keys("p")
                window.until(lambda s: "paused" not in s and s.splitlines()[1:] != held.splitlines()[1:], still=False)
            finally:
                done.set()
                worker.join()
            window.keys("C-c")
            equal(window.status(), 0, "status after an interrupt")


def main():
    bench = Bench(sys.argv[1])
    if sys.argv[2] == "once":
        bench.case("live-once", once)
        bench.case("live-sorted", sorted_by)
        bench.case("live-by-pid", found_by_pid)
        bench.case("live-adds-up-under-traffic", adds_up)
        bench.case("live-json-until-the-last-has-ended", comes_and_goes)
    else:
        bench.case("live-only-reads", only_reads)
        bench.case("live-screens", screens)
        bench.case("live-growth-and-pause", grows)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
