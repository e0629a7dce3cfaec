#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command on files that are cut, empty, foreign or damaged, with a tool built with sanitizers.

usage: damaged.py BUILD SANITIZED [DAMAGES]     SANITIZED: the tool; DAMAGES: damaged copies per trace
The file decides: status 0 where what is left makes sense, else 3 and one line that names the file, the
place and what is wrong. Nothing may crash, hang or read what is not there.
"""
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(sys.argv[1])
TOOL = os.path.abspath(sys.argv[2])
DAMAGES = int(sys.argv[3]) if len(sys.argv) > 3 else 12
GOLDEN = os.path.join(ROOT, "tests/golden/v1-small.gtrace")
COMMANDS = [["summary"], ["peak", "--by", "stack"], ["at", "end", "--format", "json"], ["at", "0.001s"], ["oom"],
            ["timeline", "--all", "--format", "csv"], ["steps"], ["growth"], ["dump"], ["dump", "--defs"],
            ["dump", "--lanes"], ["diff", GOLDEN], ["diff", "--by", "site", GOLDEN, "--format", "json"]]
FEW = [["summary"], ["dump"], ["diff", GOLDEN]]  # where nothing but the opening can differ
SANITIZERS = {"ASAN_OPTIONS": "exitcode=99:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096",
              "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99:print_stacktrace=1"}
PLACE = re.compile(r"\b(byte|at|offset) (0x[0-9a-f]+|\d+)|\bempty \(0 bytes\)|starts with|byte order|format \d+, this")


def run(*args):
    done = subprocess.run([TOOL, *args], capture_output=True, timeout=60, env={**os.environ, **SANITIZERS})
    return done.returncode, done.stderr.decode(errors="replace")


def wrong(status, said, path, allowed):
    """Why this is no answer, or None. In a database things have no place but their table."""
    if status not in allowed:
        return "status %d: %s" % (status, " | ".join(said.strip().splitlines()[:12]))
    if status == 3 and not (said.count("\n") == 1 and said.startswith("gputrace: " + path) and (PLACE.search(said) or "SQLite" in said or path.endswith(".db"))):
        return "message %r" % said
    return None


def every_command(path, folder, allowed, commands=COMMANDS):
    """The first command that goes wrong on this file, and how; and the statuses met."""
    met = set()
    snapshot = ["snapshot", "-o", os.path.join(folder, "out.pickle")]
    page = [["html", "--budget", "300K", "-o", os.path.join(folder, "out.html")]] if commands is COMMANDS else []
    for command in commands + [snapshot] + page:
        status, said = run(*command, path)
        met.add(status)
        why = wrong(status, said, path, allowed)
        if why:
            return "%s: %s" % (" ".join(command), why), met
    return None, met


def write(path, data):
    with open(path, "wb") as out:
        out.write(data)
    return path


def undamaged(folder, whole):
    return every_command(write(os.path.join(folder, "whole.gtrace"), whole), folder, {0, 2})[0]


def cut(folder, whole):
    """A copy that ended early, anywhere; what is left can be read only when asked for."""
    path = os.path.join(folder, "cut.gtrace")
    for size in (1, 7, 8, 100, 4095, 4096, 5000, len(whole) // 2, len(whole) - 4096, len(whole) - 1):
        why, _ = every_command(write(path, whole[:size]), folder, {3}, FEW)
        if why:
            return "%d bytes: %s" % (size, why)
        for command in (["dump", "--partial"], ["dump", "--partial", "--defs"]):
            why = wrong(*run(*command, path), path, {0, 3})
            if why:
                return "%d bytes, %s: %s" % (size, " ".join(command), why)
        answer = subprocess.run([TOOL, "summary", "--partial", path], capture_output=True, text=True, timeout=60,
                                env={**os.environ, **SANITIZERS}).stdout
        if answer and not answer.startswith(("Cut file: ", "Out of memory")):
            return "%d bytes: what is left was said to be all: %r" % (size, answer.splitlines()[0])
    return None


def foreign(folder, whole):
    for name, data in (("empty", b""), ("text", b"Dear diary\n" * 900), ("zeros", bytes(1 << 16)),
                       ("pickle", b"\x80\x04\x95" * 3000), ("elf", b"\x7fELF" + whole)):
        why, _ = every_command(write(os.path.join(folder, name), data), folder, {3}, FEW)
        if why:
            return "%s: %s" % (name, why)
    return None


def flip(whole, rng):
    """One to eight bits, half of them where structures begin."""
    data = bytearray(whole)
    for _ in range(1 + rng.randrange(8)):
        at = rng.randrange(len(data))
        if rng.random() < 0.5:
            at = at // 4096 * 4096 + at % 256
        data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


MET = set()


def flipped(folder, whole):
    rng = random.Random(len(whole))
    path = os.path.join(folder, "flipped.gtrace")
    for n in range(DAMAGES):
        data = flip(whole, rng)
        why, statuses = every_command(write(path, data), folder, {0, 2, 3})
        MET.update(statuses)
        if why:
            kept = write(os.path.join(os.path.dirname(TOOL), "flipped-%d.gtrace" % n), data)
            return "damage %d (kept as %s): %s" % (n, kept, why)
    return None


def edit(path, rng):
    """One value of one table becomes another: what SQLite itself finds nothing wrong with."""
    values = (0, 1, -1, 2 ** 31, 2 ** 32, 2 ** 62, -2 ** 63, 2 ** 63 - 1, 1e300, None, "x", b"")
    db = sqlite3.connect(path)
    tables = [t for t, in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'raw_%' OR name = 'block'")]
    for _ in range(1 + rng.randrange(3)):
        table = rng.choice(tables)
        column = rng.choice([c[1] for c in db.execute("PRAGMA table_info(%s)" % table)])
        count, = db.execute("SELECT count(*) FROM %s" % table).fetchone()
        db.execute("UPDATE %s SET %s = ? WHERE rowid = ?" % (table, column),
                   (rng.choice(values), 1 + rng.randrange(max(count, 1))))
    db.commit()
    db.close()


def database(folder, whole):
    """The same of an export: bits of the file, and values of its rows."""
    rng = random.Random(len(whole))
    trace, path = write(os.path.join(folder, "whole.gtrace"), whole), os.path.join(folder, "damaged.db")
    status, said = run("export", "--format", "sqlite", trace, "-o", path)
    if status:
        return "export: " + said
    with open(path, "rb") as f:
        whole = f.read()
    for n in range(2 * DAMAGES):
        write(path, whole if n % 2 else flip(whole, rng))
        if n % 2:
            edit(path, rng)
        why, statuses = every_command(path, folder, {0, 2, 3}, COMMANDS[:9:2])
        MET.update(statuses)
        if why:
            with open(path, "rb") as f:
                kept = write(os.path.join(os.path.dirname(TOOL), "damaged-%d.db" % n), f.read())
            return "damage %d (kept as %s): %s" % (n, kept, why)
    return None


def simulated(folder, program, *args):
    """The trace of a program on the simulated GPU."""
    subprocess.run([os.path.join(ROOT, "tests/sim/run"), os.path.join(BUILD, "prog", program), *args],
                   stdout=subprocess.DEVNULL, timeout=120,
                   env={**os.environ, "GT_BUILD": BUILD, "GPUTRACE_DIR": folder, "GPUTRACE_QUIET": "1",
                        "LD_PRELOAD": os.path.join(BUILD, "libgputrace.so")})
    name, = (f for f in os.listdir(folder) if f.startswith("gputrace.%s." % program))
    return os.path.join(folder, name)


def sources(folder):
    yield "golden", GOLDEN
    if os.path.exists(os.path.join(BUILD, "prog/oom")):
        yield "oom", simulated(folder, "oom")
        yield "traffic", simulated(folder, "traffic", "--events", "3000", "--devices", "2", "--threads", "2")
    else:
        print("skip damaged-oom, damaged-traffic: the programs are not built (no CUDA headers)")


def main():
    failed = False
    with tempfile.TemporaryDirectory(prefix="gputrace-damaged-") as folder:
        for name, trace in sources(folder):
            with open(trace, "rb") as f:
                whole = f.read()
            for what, test in (("whole", undamaged), ("cut", cut), ("foreign", foreign), ("flipped", flipped), ("database", database)):
                result = test(folder, whole)
                print("not ok damaged-%s-%s: %s" % (name, what, result) if result
                      else "ok damaged-%s-%s" % (name, what), flush=True)
                failed |= bool(result)
    if not MET >= {0, 3}:
        print("not ok damaged-both-ways: only statuses %s" % MET)
    return failed or not MET >= {0, 3}


sys.exit(main())
