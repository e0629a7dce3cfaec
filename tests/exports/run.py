#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports against the numbers of the commands, by readers that need no download.

usage: run.py BUILD [CASE...]
"""
import collections
import csv
import io
import json
import os
import re
import resource
import signal
import shutil
import sqlite3
import stat
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
sys.path.insert(0, HERE)
from harness import Bench, ROOT, equal, expect  # noqa: E402
from wire import Pprof  # noqa: E402

HOSTILE = '=evil;"x\n,\\.py'
START = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)
"""
SCRIPT = START + """
def take(size):
    assert not cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
for size in 4096, 8192, 1 << 20:
    take(size)
"""
# Without a context the driver refuses to free. What has the name of a library of torch's has answers.
TORCH = "int take(int (*from)(void *, unsigned long), void *at, unsigned long size) { return from(at, size); }"
REFUSED = START + """
torch = ctypes.CDLL(sys.argv[1])
def take(size):
    assert not torch.take(cuda.cuMemAlloc_v2, ctypes.byref(address), ctypes.c_size_t(size))
    return ctypes.c_uint64(address.value)
block = take(1 << 20)
cuda.cuCtxSetCurrent(None)
assert cuda.cuMemFree_v2(block)
cuda.cuCtxSetCurrent(context)
take(4096)
assert not cuda.cuMemFree_v2(block)
"""


def export(bench, kind, path, *more):
    """The path of the file that export made."""
    out = os.path.join(bench.dir, "out-%d.%s" % (len(os.listdir(bench.dir)), kind))
    bench.text("export", "--format", kind, path, "-o", out, *more)
    return out


def moments(bench, path):
    """(arguments, device, bytes, count or None) of each device at moments and levels."""
    for at in ("peak", "end"):
        for level in ((), ("--level", "driver")):
            for device in bench.json("at", at, path, *level)["devices"]:
                yield ("--at", at, *level), device


def folded_sums(text):
    sums = collections.Counter()
    for line in text.splitlines():
        stack, number = line.rsplit(" ", 1)
        expect(stack and "" not in stack.split(";"), "an empty frame in %r" % line)
        sums[stack] += int(number)
    return sums


def blocks(bench, path):
    return list(csv.DictReader(io.StringIO(bench.text("export", "--format", "csv", path), newline="")))


def stacks(bench, path, whole=True):
    """Folded, speedscope and pprof of every device, moment and level have the command's sums; all that was
    ever allocated is, of a history that is whole, the sum of its blocks."""
    seen, rows = 0, blocks(bench, path)
    for more, device in moments(bench, path):
        only = (*more, "--device", str(device["device"]))
        wanted = device["bytes"]
        seen += wanted > 0
        text = bench.text("export", "--format", "folded", path, *only)
        equal(sum(folded_sums(text).values()), wanted, "sum of folded %s" % (only,))
        with open(export(bench, "speedscope", path, *only)) as file:
            scope = json.load(file)
        held, ever = scope["profiles"]
        equal((sum(held["weights"]), held["endValue"]), (wanted, wanted), "sums of speedscope")
        equal(sum(ever["weights"]), ever["endValue"], "sum of all allocations")
        if whole:
            column = "reserved" if "--level" in more else "in_use"
            equal(ever["endValue"], sum(int(r["bytes"]) for r in rows if r[column] == "1" and
                                        int(r["device"]) == device["device"]), "all allocations %s" % (only,))
        frames = len(scope["shared"]["frames"])
        for profile in (held, ever):
            equal(len(profile["samples"]), len(profile["weights"]), "samples and weights")
            expect(all(0 <= i < frames for s in profile["samples"] for i in s), "a frame out of range")
        profile = Pprof(export(bench, "pprof", path, *only))
        equal(profile.sum("inuse_space"), wanted, "sum of pprof %s" % (only,))
        equal(profile.sum("alloc_space"), ever["endValue"], "allocated in pprof and speedscope")
        if device["count"] is None:
            expect("inuse_objects" not in profile.types, "objects of unknown number are numbered")
        else:
            equal(profile.sum("inuse_objects"), device["count"], "objects in pprof")
    expect(seen, "nothing was ever held: no test")


def labels(bench, path):
    """Labels of pprof split the sum as --by does."""
    profile = Pprof(export(bench, "pprof", path))
    for device in bench.json("peak", path)["devices"]:
        equal(profile.sum("inuse_space", device="GPU %d" % device["device"]), device["bytes"], "a device's bytes")
    for level in ("torch", "driver"):
        wanted = sum(h["bytes"] for h in bench.json("peak", "--by", "owner", path)["holders"] if h["level"] == level)
        equal(profile.sum("inuse_space", level=level), wanted, "bytes at level " + level)
    equal(profile.units, ["count", "bytes", "count", "bytes"], "units")


def several(bench, a, b):
    """Several traces in one file: a root for each device of each process, and the sums of all."""
    wanted = {}
    for path in (a, b):
        for d in bench.json("peak", path)["devices"]:
            wanted["pid %d GPU %d" % (d["pid"], d["device"])] = d["bytes"]
    done = bench.text("export", "--format", "folded", a, b)
    got = collections.Counter()
    for stack, number in folded_sums(done).items():
        got[stack.split(";")[0]] += number
    equal(dict(got), {k: v for k, v in wanted.items() if v}, "sums by root")
    out = os.path.join(bench.dir, "both.db")
    bench.text("export", "--format", "sqlite", a, b, "-o", out)
    rows = sqlite3.connect(out).execute(
        "SELECT 'pid ' || pid || ' GPU ' || device, sum(bytes) FROM holder JOIN process USING (process) "
        "WHERE moment = 'peak' GROUP BY process, device").fetchall()
    equal(dict(rows), {k: v for k, v in wanted.items() if v}, "sums in the database")


# ---- tables ---------------------------------------------------------------------------------------

def document():
    with open(os.path.join(ROOT, "docs", "exports.md"), encoding="utf-8") as file:
        return file.read()


def queries(language):
    return re.findall(r"^```%s\n(.*?)^```" % language, document(), re.M | re.S)


def database(bench, path, *more):
    return sqlite3.connect(export(bench, "sqlite", path, *more))


def documented(bench, path):
    """Tables and columns are those of the document, and nothing else."""
    db = database(bench, path)
    part = document().split("\n## SQLite\n")[1].split("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| [^|]*\| (\w+(?:, \w+)+) \|$", part, re.M))
    tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    equal(sorted(told), sorted(tables), "tables")
    for table in tables:
        columns = [r[1] for r in db.execute("PRAGMA table_info(%s)" % table)]
        equal(told[table].split(", "), columns, "columns of " + table)
    views = {r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'view'")}
    named = re.search(r"Views: (.*?)\.\n", document(), re.S).group(1)
    equal(set(re.findall(r"`(\w+)`", named)), views, "views")
    for view in views:
        db.execute("SELECT * FROM %s" % view).fetchall()
    equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)], "SQLite's own check")


def answers(bench, path):
    """The three documented queries have the sums of gputrace peak."""
    db, texts = database(bench, path), queries("sql")
    equal(len(texts), 3, "documented queries")
    for device in bench.json("peak", path)["devices"]:
        for text in texts:
            text = text.replace("device = 0", "device = %d" % device["device"])
            cursor = db.execute(text)
            column = [d[0] for d in cursor.description].index("bytes")
            equal(sum(r[column] for r in cursor), device["bytes"], "sum of " + " ".join(text.split())[:60])


def lines(bench, path):
    """Rows of peak_by_line are those of peak --by line: name, device, bytes, blocks."""
    rows = csv.DictReader(io.StringIO(bench.text("peak", "--by", "line", "--format", "csv", path)))
    wanted = sorted((r["holder"], int(r["device"]), int(r["bytes"]), int(r["blocks"])) for r in rows)
    got = sorted(database(bench, path).execute("SELECT line, device, bytes, blocks FROM peak_by_line"))
    expect(len(wanted) > 5, "few lines: no test")
    equal(got, wanted, "lines")


def events(bench, path):
    """Blocks alive after any event add up to what gputrace at says of that moment; also the CSV's."""
    db = database(bench, path)
    rows = blocks(bench, path)
    equal(len(rows), db.execute("SELECT count(*) FROM block").fetchone()[0], "rows of both")
    for device in bench.json("peak", path)["devices"]:
        number = device["device"]
        peak, = db.execute("SELECT peak_event FROM device WHERE device = ?", (number,)).fetchone()
        change = collections.Counter()
        for row in rows:
            if row["in_use"] == "1" and int(row["device"]) == number:
                change[int(row["from_event"])] += int(row["bytes"])
                if row["to_event"]:
                    change[int(row["to_event"])] -= int(row["bytes"])
        level, top = 0, (-1, 0)
        for event in sorted(change):
            level += change[event]
            if level > top[0]:
                top = (level, event)
        equal(top, (device["bytes"], peak), "highest sum and its event")
        now, = db.execute("SELECT allocated FROM device WHERE device = ?", (number,)).fetchone()
        equal(level, now, "sum after the last event")
        highest, = db.execute("SELECT max(allocated) FROM usage WHERE device = ?", (number,)).fetchone()
        equal(highest, device["bytes"], "highest usage")


def lost(bench, path):
    """A ring that has lost the peak: totals, sites and holders are exact still, and it is said."""
    done = bench.gputrace("export", "--format", "csv", path, "-o", os.path.join(bench.dir, "lost.csv"))
    expect(done.returncode == 0 and b"history starts at" in done.stderr, "nothing was said: %r" % done.stderr)
    db = database(bench, path)
    for device in bench.json("peak", path)["devices"]:
        equal(device["count"], None, "blocks at a peak that is gone")
        for table, column in (("holder WHERE moment = 'peak' AND", "bytes"), ("site WHERE in_use AND", "peak_bytes")):
            got, = db.execute("SELECT sum(%s) FROM %s device = ?" % (column, table), (device["device"],)).fetchone()
            equal(got, device["bytes"], "sum of " + table)
        early, = db.execute("SELECT count(*) FROM block WHERE from_event = 0").fetchone()
        expect(early > 0, "no block from before the history: no test")


def ranges(bench, path):
    """Ranges of the program's own in SQLite and as slices are those of timeline --range."""
    wanted = collections.Counter((r["kind"], r["name"] or "") for r in
                                 bench.json("timeline", "--range", "*", path)["devices"][0]["ranges"])
    wanted = collections.Counter({k: n for k, n in wanted.items() if k[0] in ("range", "window")})
    got = collections.Counter(database(bench, path).execute(
        "SELECT kind, ifnull(name, '') FROM range WHERE kind IN ('range', 'window')"))
    expect(sum(wanted.values()) > 100, "few ranges: no test")
    equal(got, wanted, "ranges")
    with open(export(bench, "chrome", path)) as file:
        trace = json.load(file)["traceEvents"]
    slices = collections.Counter(e["name"] for e in trace if e["ph"] == "X")
    equal(slices, collections.Counter({name: 0 for _, name in wanted}) + collections.Counter(
        {name: n for (kind, name), n in wanted.items() if kind == "range"}), "slices")
    equal(sum(e["ph"] == "b" for e in trace), sum(e["ph"] == "e" for e in trace), "begins and ends of windows")


def chrome(bench, path):
    """Counters reach the peak of each device; refused requests are instants."""
    for points in ((), ("--points", "10")):
        with open(export(bench, "chrome", path, *points)) as file:
            trace = json.load(file)["traceEvents"]
        for device in bench.json("peak", path)["devices"]:
            counters = [e["args"] for e in trace
                        if e["ph"] == "C" and e["name"] == "GPU %d memory" % device["device"]]
            used = [c["in use"] for c in counters]
            equal(max(used), device["bytes"], "highest counter")
            expect(not any(a == b for a, b in zip(counters, counters[1:])), "points that say nothing new")
            expect(not points or len(used) <= 10, "%d points, not 10" % len(used))
        instants = [e for e in trace if e["ph"] == "i" and e["name"].startswith("out of memory")]
        equal(len(instants), len(bench.json("errors", path)["errors"]), "instants of refused requests")


# ---- the database as a trace ------------------------------------------------------------------------

COMMANDS = ("summary", "oom", "at peak", "at end", "peak --by stack", "peak --level driver", "peak --by category", "steps",
            "growth", "segments", "errors", "ledger", "timeline --points 100", "timeline --range *")


def same(bench, command, paths, database):
    """A command says the same of a database as of the traces in it."""
    answers = []
    for inputs in (paths, (database,)):
        done = bench.gputrace(*command.split(), *inputs, "--format", "json")
        text = (done.stdout + done.stderr).decode()
        for path in inputs:
            text = text.replace(path, "FILE")
        answers.append((done.returncode, text))
    equal(answers[1], answers[0], "answer of " + command)
    return answers[0][0]


def round_trip(bench, path):
    out = export(bench, "sqlite", path)
    statuses = [same(bench, command, (path,), out) for command in COMMANDS]
    expect(statuses.count(0) > 8, "statuses %s: no test" % statuses)
    equal(bench.json("diff", path, out)["rows"], bench.json("diff", path, path)["rows"], "difference to itself")
    for kind in ("snapshot", "csv", "sqlite"):
        files = []
        for source in (path, out):
            to = os.path.join(bench.dir, "again-%d" % len(files))
            bench.text(*(["snapshot"] if kind == "snapshot" else ["export", "--format", kind]), source, "-o", to)
            with open(to, "rb") as file:  # of a database the rows: pages depend on the order in which they were written
                files.append(file.read() if kind != "sqlite" else sorted(sqlite3.connect(to).iterdump()))
        equal(files[1] == files[0], True, "%s from the database is that from the trace" % kind)
    equal(bench.gputrace("dump", "--check", out).returncode, 0, "status of dump --check")


def round_several(bench, a, b):
    out = os.path.join(bench.dir, "several.db")
    bench.text("export", "--format", "sqlite", a, b, "-o", out)
    for command in ("summary", "peak", "ledger", "errors"):
        same(bench, command, (a, b), out)


def no_database(bench, path):
    """What is no export, or not one any more, is refused in one line; so is what needs the trace's bytes."""
    out = export(bench, "sqlite", path)
    other = os.path.join(bench.dir, "other.db")

    def refused(why, source, *command):
        done = bench.gputrace(*(command or ("summary",)), source)
        said = done.stderr.decode()
        expect(done.returncode in (2, 3) and said.count("\n") == 1 and why in said, "%s: %d %r" % (why, done.returncode, said))

    refused("has its names in it already", out, "pack", "-o", other)
    for why, script in (("not one that gputrace exported", "CREATE TABLE t (a)"),
                        ("not one that gputrace exported", "DROP TABLE raw_node"),
                        ("not one that gputrace exported", "ALTER TABLE block DROP COLUMN space"),
                        ("not one that gputrace exported", "DROP TABLE raw_info; CREATE VIEW raw_info AS SELECT 1"),
                        ("no process", "DELETE FROM raw_header"), ("missing", "DELETE FROM block WHERE from_event > 0"),
                        ("missing", "UPDATE raw_lane SET history_first = 0"), ("missing", "UPDATE raw_lane SET events = 1 << 62"),
                        ("cannot be", "UPDATE raw_node SET parent = -1"), ("cannot be", "UPDATE raw_node SET address = 'x'"),
                        ("not defined", "UPDATE raw_node SET parent = 99999"), ("not defined", "UPDATE raw_node SET parent = rowid"),
                        ("not defined", "UPDATE raw_site SET native = 99999"), ("not defined", "DELETE FROM raw_thread"),
                        ("cannot be", "UPDATE block SET site = 99999"), ("cannot be", "UPDATE block SET from_seconds = -1"),
                        ("cannot be", "UPDATE raw_module SET build_id = x'00'"), ("longer", "UPDATE raw_module SET build_id_length = 33"),
                        ("in order", "UPDATE raw_block SET address = 4096"), ("missing", "UPDATE raw_lane SET device = 64"),
                        ("missing", "UPDATE raw_lane SET history_first = 1 << 62, events = (1 << 62) - 2"),
                        ("cannot be", "UPDATE raw_report SET site = 1 << 40")):
        shutil.copy(out, other)
        if script.startswith("CREATE TABLE t"):
            os.remove(other)
        with sqlite3.connect(other) as db:
            db.executescript(script)
        db.close()
        refused(why, other)
    with open(out, "rb") as file:
        whole = file.read()
    for size in (16, 100, 4096, len(whole) // 2):
        with open(other, "wb") as file:
            file.write(whole[:size])
        refused("SQLite database", other)


# ---- metrics --------------------------------------------------------------------------------------

def samples(text):
    found = {}
    for line in text.splitlines():
        if line and line[0] != "#":
            name, device, value = re.fullmatch(r'(\w+)\{device="(-?\d+)",.*\} (\d+)', line).groups()
            found[name, int(device)] = int(value)
    return found


def metrics(bench, path):
    wanted = bench.json("summary", path)["processes"][0]["devices"]
    for text in (bench.text("metrics", path), bench.text("export", "--format", "openmetrics", path)):
        got = samples(text)
        for d in wanted:
            for ours, theirs in (("allocated_bytes", "allocated"), ("reserved_bytes", "reserved"),
                                 ("peak_allocated_bytes", "peak_allocated"),
                                 ("peak_reserved_bytes", "peak_reserved"), ("device_bytes", "total")):
                equal(got["gputrace_" + ours, d["ordinal"]], d[theirs], ours)
    equal(text.splitlines()[-1], "# EOF", "end of OpenMetrics")


def promtool(bench, path):
    done = subprocess.run(["promtool", "check", "metrics"], input=bench.text("metrics", path).encode(),
                          capture_output=True, timeout=60)
    equal((done.returncode, done.stderr, done.stdout), (0, b"", b""), "promtool check metrics")


def watched(bench, path):
    """The file is whole at every moment; traces come, go and are broken; the end leaves nothing."""
    where, out = os.path.join(bench.dir, "watched"), os.path.join(bench.dir, "prom")
    os.mkdir(where)
    os.mkdir(out)
    target = os.path.join(out, "gpu.prom")
    process = subprocess.Popen([bench.tool, "metrics", "--watch", where, "--every", "1ms", "-o", target],
                               stderr=subprocess.PIPE)
    states, reads, until = set(), 0, time.monotonic() + 60
    try:
        while len(states) < 2 and time.monotonic() < until:
            if reads == 200:
                shutil.copy(path, os.path.join(where, "a.gtrace"))
                with open(os.path.join(where, "b.gtrace"), "w") as broken:
                    broken.write("broken")
            try:
                with open(target) as file:
                    text = file.read()
            except FileNotFoundError:
                continue
            reads += 1
            states.add(len(samples(text)) > 0)
            expect("HELP gputrace_out_of_memory_total" in text, "a file that is not whole")
        equal(states, {False, True}, "states seen")
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    equal(process.returncode, 0, "status after SIGTERM")
    expect(b"b.gtrace" in errors, "the broken trace was not named")
    equal(os.listdir(out), ["gpu.prom"], "files left")
    equal(stat.S_IMODE(os.stat(target).st_mode), 0o644, "mode for the collector")


# ---- safety ---------------------------------------------------------------------------------------

def hostile_trace(bench):
    return bench.trace("hostile", [sys.executable, "-c", "exec(compile(%r, %r, 'exec'))" % (SCRIPT, HOSTILE)])


def hostile(bench, path):
    """A file name with every separator in it stays one name, in every format."""
    text = bench.text("export", "--format", "folded", path)
    equal(sum(folded_sums(text).values()), bench.json("peak", path)["devices"][0]["bytes"], "sum")
    ours = [line for line in text.splitlines() if "evil" in line]
    expect(ours and all("evil:" in line and ";\"" not in line for line in ours), "names break: %r" % ours[:1])
    profile = Pprof(export(bench, "pprof", path))
    expect(any("evil" in t for t in profile.text), "the name is not in pprof")
    for kind in ("speedscope", "chrome"):
        with open(export(bench, kind, path)) as file:
            json.load(file)
    rows = list(csv.reader(io.StringIO(bench.text("export", "--format", "csv", path), newline="")))
    equal({len(row) for row in rows}, {15}, "cells per row")
    cells = [cell for row in rows[1:] for cell in row if "evil" in cell]
    expect(cells and all(cell.startswith("'=evil") for cell in cells), "a formula: %r" % cells[:1])
    expect(database(bench, path).execute("SELECT count(*) FROM frame WHERE file LIKE '%evil%'").fetchone()[0],
           "the name is not in the database")


def stays(bench, kind, path, out):
    """A file that there is no room for leaves the one that was there, and nothing beside it."""
    with open(out, "rb") as file:
        before = file.read()
    done = bench.gputrace("export", "--format", kind, path, "-o", out, restore_signals=False,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)))
    with open(out, "rb") as file:
        equal((done.returncode, file.read() == before), (3, True), "%s without room: %r" % (kind, done.stderr))
    equal([name for name in os.listdir(bench.dir) if name.startswith("mode." + kind)], ["mode." + kind], "files")


def refused_trace(bench):
    library = os.path.join(bench.dir, "libtorch_cpu.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=TORCH.encode(), check=True)
    return bench.trace("refused", [sys.executable, "-c", REFUSED, library])


def refused(bench, path):
    """A free that was refused ends a row and begins another; what is inferred of the block holds for both."""
    rows = [r for r in blocks(bench, path) if r["bytes"] == str(1 << 20)]
    events = [(r["from_event"] != "", r["to_event"] != "") for r in rows]
    equal(events, [(True, True)] * 2, "ends of the block's rows")
    expect(rows[0]["category"], "nothing is inferred: no test")
    for column in ("category", "owner", "line"):
        equal(rows[1][column], rows[0][column], column + " after the refusal")


def files(bench, path):
    """Modes, links, traces that would be replaced, disks that are full."""
    for kind in ("folded", "pprof", "speedscope", "sqlite", "chrome", "csv", "openmetrics"):
        out = os.path.join(bench.dir, "mode." + kind)
        with open(out, "w") as file:
            file.write("old")
        os.chmod(out, 0o666)
        bench.text("export", "--format", kind, path, "-o", out)
        equal(stat.S_IMODE(os.stat(out).st_mode), 0o600, "mode of " + kind)
        expect(os.stat(out).st_size > 100, "%s is empty" % kind)
        stays(bench, kind, path, out)
        link = os.path.join(bench.dir, "link." + kind)
        os.symlink(out, link)
        done = bench.gputrace("export", "--format", kind, path, "-o", link)
        equal(done.returncode, 3, "status behind a link")
        victim = os.path.join(bench.dir, "victim.gtrace")
        shutil.copy(path, victim)
        done = bench.gputrace("export", "--format", kind, path, "-o", victim)
        equal((done.returncode, b"would replace a trace" in done.stderr), (2, True), "a trace in the way")
        if kind != "sqlite":
            done = bench.gputrace("export", "--format", kind, path, "-o", "/dev/full")
            equal((done.returncode, os.path.exists("/dev/full")), (3, True), "status on a full disk")


def usage(bench, path):
    for arguments, words in ((("--format", "xml"), b"folded|pprof"), ((), b"is missing"),
                             (("--format", "sqlite"), b"needs a file"),
                             (("--format", "csv", "--at", "end"), b"has the whole run"),
                             (("--format", "folded", "--device", "7"), b"GPU 7")):
        done = bench.gputrace("export", *arguments, path)
        equal((done.returncode, words in done.stderr), (2, True), "status of %s (%r)" % (arguments, done.stderr))
    for kind in re.search(r"--format xml: (.*)", bench.gputrace("export", "--format", "xml", path).stderr.decode()
                          ).group(1).split("|"):
        expect("`%s`" % kind in document(), "%s is not in docs/exports.md" % kind)


def most_memory(command):
    """The largest resident set of a command, in KiB."""
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    _, status, used = os.wait4(pid, 0)
    equal(status, 0, "status of " + " ".join(command))
    return used.ru_maxrss


def bounded(bench, small, large):
    """Ten times the events, the same live set: no more memory."""
    for kind in ("folded", "csv", "sqlite", "chrome"):
        used = [most_memory([bench.tool, "export", "--format", kind, path, "--points", "1000", "-o",
                             os.path.join(bench.dir, "bounded")]) for path in (small, large)]
        expect(used[1] < 1.5 * used[0], "%s: %d KiB, then %d" % (kind, *used))


def go(bench, path):
    """Go's own pprof reads the profile and has the same sum."""
    wanted = sum(d["bytes"] for d in bench.json("peak", path)["devices"])
    done = subprocess.run(["go", "tool", "pprof", "-raw", export(bench, "pprof", path)], capture_output=True,
                          text=True, timeout=120, env=dict(os.environ, HOME=bench.dir))
    equal(done.returncode, 0, "status of go tool pprof (%s)" % done.stderr[:200])
    rows = re.findall(r"^ +\d+ +\d+ +\d+ +(\d+): ", done.stdout, re.M)
    equal(sum(map(int, rows)), wanted, "sum of go tool pprof")


FLAMEGRAPH = next(filter(None, (shutil.which("flamegraph.pl"), "/usr/share/perl5/Devel/NYTProf/flamegraph.pl")))


def flamegraph(bench, path):
    """The renderer's picture has a frame with the command's sum for each device of each process, and for all."""
    folded = bench.text("export", "--format", "folded", path)
    done = subprocess.run(["perl", FLAMEGRAPH, "--countname", "bytes", "--minwidth", "0"], input=folded,
                          capture_output=True, text=True, timeout=120)
    equal((done.returncode, done.stderr), (0, ""), "status and warnings of flamegraph.pl")
    titles = collections.Counter(re.findall(r"<title>(.*?) \(([\d,]+) bytes[^<]*</title>", done.stdout))
    devices = bench.json("peak", path)["devices"]
    expect(titles["all", "{:,}".format(sum(d["bytes"] for d in devices))] == 1, "no frame with the sum of all")
    expect(len(titles) > 10, "%d frames: no test" % len(titles))
    for device in devices:
        expect(titles["GPU %d" % device["device"], "{:,}".format(device["bytes"])] == 1 or
               any(name.endswith("GPU %d" % device["device"]) and size == "{:,}".format(device["bytes"])
                   for name, size in titles), "no frame with the sum of device %d" % device["device"])


def traces(bench):
    program = os.path.join(bench.build, "prog")
    traffic = [os.path.join(program, "traffic"), "--live", "200", "--sites", "40", "--events"]
    return {
        "oom": bench.trace("oom", [os.path.join(program, "oom")]),
        "two": bench.trace("two", [*traffic, "5000", "--devices", "2", "--threads", "2"],
                           sim=("--devices", "2")),
        "large": bench.trace("large", [*traffic, "400000"]),
        "lost": bench.trace("lost", [*traffic, "200000", "--max", "60000", "--seed", "3"], GPUTRACE_RING="200K"),
        "hostile": hostile_trace(bench),
        "refused": refused_trace(bench),
    }


def main():
    bench, wanted = Bench(sys.argv[1]), sys.argv[2:]
    paths = traces(bench)
    cases = [("stacks-" + n, stacks, paths[n], n != "lost") for n in ("oom", "two", "lost")]
    cases += [("again-" + n, round_trip, paths[n]) for n in ("two", "lost", "refused")]
    cases += [(n, f, paths["two"]) for n, f in (("labels", labels), ("documented", documented), ("answers", answers),
                                                ("lines", lines), ("events", events), ("chrome-two", chrome),
                                                ("files", files), ("usage", usage))]
    cases += [("several", several, paths["oom"], paths["two"]), ("events-oom", events, paths["oom"]), ("refused", refused, paths["refused"]), ("events-refused", events, paths["refused"]),
              ("lost", lost, paths["lost"]), ("chrome-oom", chrome, paths["oom"]), ("metrics", metrics, paths["oom"]),
              ("metrics-two", metrics, paths["two"]), ("watched", watched, paths["oom"]),
              ("several-again", round_several, paths["oom"], paths["two"]), ("no-database", no_database, paths["oom"]),
              ("hostile", hostile, paths["hostile"]), ("bounded", bounded, paths["two"], paths["large"])]
    say = os.path.join(bench.build, "tests", "marks", "say")
    if os.path.exists(say):
        path = bench.trace("say", [say, "random"], sim=("--devices", "2"))
        cases += [("ranges", ranges, path), ("again-say", round_trip, path)]
    else:
        print("skip ranges: tests/marks/say is not built (no CUDA headers)")
    for name, test, tool in (("go-pprof", go, "go"), ("promtool", promtool, "promtool"), ("flamegraph", flamegraph, FLAMEGRAPH)):
        if shutil.which(tool) or os.path.exists(tool):
            cases.append((name, test, paths["two"]))
        else:
            print("skip %s: %s is not installed (apt-get install %s)" %
                  (name, os.path.basename(tool), {"go": "golang-go", "promtool": "prometheus"}.get(tool, "libdevel-nytprof-perl")))
    return bench.cases(cases, wanted)


if __name__ == "__main__":
    sys.exit(main())
