#!/usr/bin/env python3
"""The commands of gputrace on traces of programs with known traffic.

usage: run.py BUILD [--write]     --write: golden texts are taken from this run
"""
import json
import os
import re
import shutil
import subprocess
import sys

import every
import memory
from harness import ROOT, Bench, equal, expect, golden, keys

GIB = 1 << 30
BY = ["line", "function", "inside", "stack", "site", "owner", "stream", "level", "category", "step", "phase"]


# ---- screens ---------------------------------------------------------------------------------------

def screens(bench, name, *args):
    golden(name, bench.screen(80, *args, NO_COLOR="1"))


def piped(bench, name, *args):
    golden(name, bench.text(*args))


def fits(bench, path):
    """24 lines and 80 columns, whatever there is to say; the rest folded with its sum."""
    for command in (["summary"], ["peak"], ["peak", "--by", "stack"], ["oom"], ["timeline"],
                    ["at", "end"], ["peak", "--by", "site"]):
        text = bench.screen(80, *command, path, NO_COLOR="1")
        lines = text.splitlines()
        expect(len(lines) <= 24, "%s: %d lines" % (command, len(lines)))
        wide = [line for line in lines[1:] if len(line) > 80]
        expect(not wide, "%s: wider than the screen: %s" % (command, wide[:1]))


def folds(bench, path):
    """Rows that do not fit become one, which is part of the sum; --all and a pipe show each."""
    cut = bench.screen(80, "peak", "--by", "stack", path, NO_COLOR="1")
    found = re.search(r"\.\.\. (\d+) more rows \(--all\) +(\d+)", cut)
    expect(found, "nothing was folded: " + cut)
    whole = bench.text("peak", "--by", "stack", path)
    expect("more rows" not in whole, "a pipe is cut")
    shown = len(re.findall(r"^  \S", cut, re.M))
    all_rows = len(re.findall(r"^  \S", whole, re.M))
    equal(shown - 1 + int(found.group(1)), all_rows, "rows shown and folded")
    rows = [int(n) for n in re.findall(r"^  .*?  +(\d+|<1) ", cut.replace("<1", " 0"), re.M)]
    equal(sum(rows[:-1]), rows[-1], "sum of the rows as printed")


def colours(bench, path):
    styled = bench.screen(80, "oom", path)
    expect("\033[1;31m" in styled and "\033[0m" in styled, "no colour on a terminal")
    expect("\033" not in bench.screen(80, "oom", path, NO_COLOR="1"), "NO_COLOR is not honoured")
    expect("\033" not in bench.screen(80, "oom", path, TERM="dumb"), "a dumb terminal gets colour")
    expect("\033" not in bench.text("oom", path), "a pipe gets colour")


def hostile_name(bench, path):
    """A program can be called anything; a terminal must not obey it."""
    name = os.path.join(bench.dir, "a\033[31mb\nc")
    shutil.copy(bench.program("oom"), name)
    hostile = bench.trace("hostile", [name])
    for command in (["summary"], ["oom"], ["peak"]):
        text = bench.text(*command, hostile)
        expect("\033" not in text, "%s prints an escape sequence" % command)
    shown = bench.text("oom", hostile) + bench.text("peak", hostile)
    expect("\\x1b" in shown or "\ufffd[31m" in shown, "the name is not shown")
    bench.json("peak", hostile)


def two_processes(bench, paths):
    """One row per device of each process; the tightest is the answer and the row with the arrow."""
    text = bench.screen(80, "summary", *paths, NO_COLOR="1")
    answer = bench.json("summary", *paths)
    tightest = max((d["peak_allocated"] / d["total"], p["pid"], d["ordinal"])
                   for p in answer["processes"] for d in p["devices"])
    expect(text.startswith("No failure. Tightest: pid %d on GPU %d, " % tightest[1:]), text)
    rows = [line.split() for line in text.splitlines() if re.match(r" +-  ", line)]
    equal(len(rows), 3, "rows")
    arrow = [row for row in rows if row[-1] == "<--"]
    equal([row[1:3] for row in arrow], [[str(tightest[2]), str(tightest[1])]], "the row to act on")


def nth_refusal(bench, path):
    """--nth N explains line N of errors: the request that was granted later, or the last; not one more."""
    listed = bench.json("errors", path)["errors"]
    equal([e["outcome"] for e in listed], ["granted on retry", "fatal"], "outcomes")
    for n, wanted in enumerate(listed, 1):
        got = bench.json("oom", "--nth", str(n), path)
        equal((got["oom"], got["outcome"], got["request"]["bytes"]),
              (True, ["recovered", "fatal"][n - 1], wanted["requested"]), "refusal %d" % n)
    plain_answer, second = bench.text("oom", path), bench.text("oom", "--nth", "2", path)
    equal(second.splitlines()[:3], plain_answer.splitlines()[:3], "the last one is the one that is explained")
    first = bench.text("oom", "--nth", "1", path)
    expect("evaluate" in first and "evaluate" not in second.splitlines()[1], first)
    done = bench.gputrace("oom", "--nth", "3", path)
    equal((done.returncode, b"errors lists fewer" in done.stderr), (2, True), "the third of two")
    equal(bench.gputrace("oom", "--nth", "0", path).returncode, 2, "there is no line 0")


def of_a_rank(bench, path):
    """--rank keeps the processes with that RANK: the failure of another one is not theirs."""
    folder = os.path.join(bench.dir, "ranks")
    os.mkdir(folder)
    traces = {0: bench.trace("rank0", [bench.program("traffic"), "3", "4"], RANK="0"),
              3: bench.trace("rank3", [bench.program("oom")], RANK="3")}
    for trace in traces.values():
        os.rename(trace, os.path.join(folder, os.path.basename(trace)))
    equal(bench.json("oom", folder)["oom"], True, "of all")
    equal(bench.json("oom", "--rank", "3", folder)["oom"], True, "of the one that failed")
    equal(bench.json("oom", "--rank", "0", folder)["oom"], False, "of the other")
    equal([len(bench.json("summary", *rank, folder)["processes"]) for rank in ((), ("--rank", "3"))], [2, 1], "processes")
    done = bench.gputrace("oom", "--rank", "7", folder)
    equal((done.returncode, b"no process had RANK=7" in done.stderr), (2, True), "a rank that is not there")
    equal(bench.gputrace("oom", "--rank", "7", path).returncode, 2, "a trace without a rank")


# ---- numbers ---------------------------------------------------------------------------------------

def table_numbers(text, column):
    """The numbers of a text table's column, given by its title; the last row is the sum."""
    lines = text.splitlines()
    header = next(i for i, line in enumerate(lines) if re.match(r"(In use|Held), by ", line))
    end = re.search(r"\b%s(?!\S)" % re.escape(column), lines[header]).end()
    numbers = []
    for line in lines[header + 1:]:
        if not line.startswith("  "):
            break
        cell = re.search(r"([+<-]?\d+)$", line[:end])
        numbers.append(0 if "<" in cell.group(1) else int(cell.group(1)))
    return numbers


def rows_add_up(bench, path):
    for by in BY:
        text = bench.text("peak", "--device", "0", "--by", by, path)
        numbers = table_numbers(text, "KiB")
        equal(sum(numbers[:-1]), numbers[-1], "sum by %s as printed" % by)
        answer = bench.json("peak", "--device", "0", "--by", by, path)
        rows = sum(h["bytes"] for h in answer["holders"])
        equal(rows, answer["devices"][0]["bytes"], "sum by %s in JSON" % by)
        equal(sum(h["count"] for h in answer["holders"]), answer["devices"][0]["count"], "counts")
        lines = bench.text("peak", "--device", "0", "--by", by, "--format", "csv", path)
        table = [line.split(",") for line in lines.splitlines()]
        at = table[0].index("bytes") - len(table[0])
        equal(sum(int(row[at]) for row in table[1:]), rows, "sum by %s in csv" % by)


def diff_adds_up(bench, a, b):
    for by in BY:
        answer = bench.json("diff", "--by", by, a, b)
        for device in answer["devices"]:
            delta = sum(row["delta"] for row in device["rows"])
            equal(delta, device["peak_b"] - device["peak_a"], "sum by " + by)
            equal(delta, device["delta"], "delta")
            equal(sum(row["a"] for row in device["rows"]), device["peak_a"], "sum of A")
            equal(sum(row["b"] for row in device["rows"]), device["peak_b"], "sum of B")
    text = bench.text("diff", "--device", "0", a, b)
    for column in ("A", "B", "B-A"):
        numbers = table_numbers(text, column)
        equal(sum(numbers[:-1]), numbers[-1], "sum of %s as printed" % column)


def totals(bench, path, log):
    """The tool's totals against the program's own."""
    devices = bench.json("summary", path)["processes"][0]["devices"]
    for device in devices:
        own = [line for line in log if line[0] == device["ordinal"]]
        live, high = {}, 0
        for _, sign, address, size in own:
            if sign == "+":
                live[address] = size
            else:
                live.pop(address)
            high = max(high, sum(live.values()))
        equal(device["allocations"] + device["frees"], len(own), "allocations and frees")
        expect(device["events"] >= len(own), "events %d" % device["events"])
        equal(device["allocations"], sum(sign == "+" for _, sign, _, _ in own), "allocations")
        equal(device["allocated"], sum(live.values()), "allocated")
        equal(device["live_blocks"], len(live), "live blocks")
        equal(device["peak_allocated"], high, "peak")
        equal(device["torch_allocated"], 0, "torch")


def timeline(bench, path):
    """Slices keep the peak; the last slice ends in what is in use now."""
    device = bench.json("summary", path)["processes"][0]["devices"][0]
    for points in (1, 7, 1000):
        rows = bench.json("timeline", "--device", "0", "--points", str(points), path)
        rows = rows["devices"][0]["points"]
        equal(len(rows), points, "points")
        equal(max(row["allocated"] for row in rows), device["peak_allocated"], "peak of slices")
    csv = bench.text("timeline", "--all", "--device", "0", "--format", "csv", path).splitlines()
    equal(csv[0].split(",")[:3], ["seconds", "allocated", "reserved"], "columns")
    equal(int(csv[-1].split(",")[1]), device["allocated"], "the last point")
    equal(max(int(line.split(",")[1]) for line in csv[1:]), device["peak_allocated"], "peak")


def at_time(bench, path):
    """The state at each of the timeline's points is what the timeline says."""
    csv = bench.text("timeline", "--all", "--device", "0", "--format", "csv", path).splitlines()[1:]
    after = {}
    for line in csv:
        seconds, allocated = line.split(",")[:2]
        after[seconds] = int(allocated)  # of equal times the last
    for seconds in list(after)[:: max(1, len(after) // 7)]:
        answer = bench.json("at", seconds + "s", "--device", "0", path)
        equal(answer["devices"][0]["allocated"], after[seconds], "in use at " + seconds)
        equal(sum(h["bytes"] for h in answer["holders"]), after[seconds], "sum at " + seconds)


def oom(bench, path):
    answer = bench.json("oom", path)
    equal(answer["oom"], True, "oom")
    equal([f["outcome"] for f in answer["failures"]], ["recovered", "fatal"], "outcomes")
    request, device = answer["request"], answer["device"]
    equal(request["bytes"], GIB, "requested")
    equal(device["total"], 8 * GIB, "total")
    equal(device["free"], GIB // 2, "free")
    equal(device["allocated"], 7 * GIB + GIB // 2, "allocated")
    equal(answer["short_by"], GIB // 2, "short by")
    equal(request["where"]["function"], "train", "function")
    fatal = answer["failures"][-1]
    equal(sum(h["bytes"] for h in fatal["holders"]), device["allocated"], "sum of the holders")
    names = {f["function"] for h in fatal["holders"] for f in h["frames"]}
    expect({"load_weights", "evaluate", "main"} <= names, "holders %r" % names)
    text = bench.text("oom", path)
    expect(re.search(r"^  .*evaluate +\d.* granted on retry$", text, re.M), "recovered: " + text)
    expect(re.search(r"^  .*train +\d.* fatal$", text, re.M), "fatal: " + text)
    at = bench.json("at", "oom", path)
    equal(sum(h["bytes"] for h in at["holders"]), device["allocated"], "at oom")


def others(bench, _):
    """Another process on the card is a row of its own; the rows add up to the device."""
    path = bench.trace("others", [bench.program("oom")], GT_SIM_OTHERS="4711:700")
    device = bench.json("oom", path)["device"]
    equal([(o["pid"], o["bytes"]) for o in device["others"]], [(4711, 700 << 20)], "others")
    total = device["reserved"] + 700 * (1 << 20) + device["unexplained"] + device["free"]
    equal(total, device["total"], "sum of the device")
    expect(re.search(r"other process: 4711\b.*\b700$", bench.text("oom", path), re.M), "not a row")


# ---- history that is gone ----------------------------------------------------------------------------

def ring(bench, _):
    """What the ring drops never makes totals, peak, its holders or the live set wrong."""
    command = [bench.program("traffic"), "--events", "2000000"]
    short = bench.trace("short", command, GPUTRACE_RING="1M")
    whole = bench.trace("whole", command, GPUTRACE_RING="1G")
    rest = 7 * (256 << 10)  # extents of definitions, live blocks, sites and lane
    expect(os.path.getsize(short) <= (1 << 20) + rest, "%d bytes" % os.path.getsize(short))
    expect(os.path.getsize(whole) > 8 << 20, "the other file is small too")
    text = bench.text("summary", short)
    expect(re.search(r"History starts at \d+\.\d+ of", text), "not said since when: " + text)
    expect("History starts" not in bench.text("summary", whole), "said of a whole history")
    different = {"peak_seconds", "history_starts"}
    a, b = (bench.json("summary", f)["processes"][0]["devices"][0] for f in (short, whole))
    equal({k: v for k, v in a.items() if k not in different},
          {k: v for k, v in b.items() if k not in different}, "totals")
    expect(a["events"] >= 2000000, "only %d events" % a["events"])
    expect(a["history_starts"] > 0 and b["history_starts"] == 0, "start of the history")
    since = re.search(r"History starts at (\d+\.\d+) of", text).group(1)
    expect(abs(float(since) - a["history_starts"]) < 0.001, "%s is not the start" % since)
    for command in (["peak"], ["peak", "--level", "driver"], ["at", "end"]):
        a, b = (bench.json(*command, f) for f in (short, whole))
        held = [sorted((h["bytes"], json.dumps(h["frames"])) for h in x["holders"]) for x in (a, b)]
        equal(held[0], held[1], " ".join(command))
    early = bench.gputrace("at", "0.001s", short)
    equal(early.returncode, 2, "status of a time before the history")
    expect(b"history starts at" in early.stderr, "not said: %r" % early.stderr)


# ---- JSON --------------------------------------------------------------------------------------------

def documented(bench, paths):
    """Every key that is printed stands in docs/json.md, and every command has its own."""
    with open(os.path.join(ROOT, "docs/json.md"), encoding="utf-8") as text:
        names = set(re.findall(r"`([\w.\[\]]+)`", text.read()))
    for command in (["summary"], ["peak"], ["at", "end"], ["oom"], ["timeline", "--points", "3"], ["steps"],
                    ["growth"]):
        for path in paths:
            answer = bench.json(*command, path)
            equal((answer["schema"], answer["command"] in (command[0], "at")), (1, True), "schema and command")
            missing = {k.split(".")[-1].replace("[]", "") for k in keys(answer)} - names
            expect(not missing, "%s: not documented: %s" % (command[0], sorted(missing)))
    for command in (["diff", *paths[:2]], ["compare", *paths[:2]],
                    ["plan", "--params", "350M", "--gpu", "24G", "--sample", "400M", "--target", "256"]):
        missing = {k.split(".")[-1].replace("[]", "") for k in keys(bench.json(*command))} - names
        expect(not missing, "%s: not documented: %s" % (command[0], sorted(missing)))


PROMISED = {
    ("summary",): """processes[].devices[]. ordinal allocated reserved peak_allocated peak_reserved torch_allocated
        torch_reserved torch_peak_allocated live_blocks events lost""",
    ("peak",): """holders[]. bytes count level owner category stream frames[].function frames[].file frames[].line
        frames[].module frames[].kind""",
    ("at", "end"): "holders[]. bytes count level owner category stream frames[].function",
    ("oom",): """ schema command oom level verdict request.bytes request.torch_bytes request.device request.seconds
        request.step request.first_step request.phase request.where.file request.where.line request.where.function
        device.total device.allocated device.cached device.largest_free_block device.context device.modules
        device.others device.unexplained device.free categories short_by to_come remedies lost_events history_starts
        failures[].device failures[].requested failures[].outcome failures[].free failures[].total
        failures[].allocated failures[].reserved failures[].holders[].bytes""",
}


def promised(bench, path):
    """Other programs rely on these names: none may go."""
    for command, text in PROMISED.items():
        prefix, *names = text.split() if "[]. " in text else ("", *text.split())
        missing = {prefix + name for name in names} - keys(bench.json(*command, path))
        expect(not missing, "%s has no %s" % (command[0], sorted(missing)))
    found = keys(bench.json("diff", path, bench.quiet))
    names = {"schema", "command", "at", "by", "files", "devices[].ordinal", "devices[].peak_a", "devices[].peak_b",
             "devices[].delta"}
    names |= {"devices[].rows[]." + n for n in "key file line function category a b delta".split()}
    expect(names <= found, "diff has no %s" % sorted(names - found))


def same_keys(bench, paths):
    """Keys do not come and go with what there is to say."""
    for command in (["summary"], ["oom"]):
        tops = [set(bench.json(*command, path)) for path in paths]
        equal(tops[0], tops[1], "top keys of " + command[0])
    answer = bench.json("oom", paths[1])
    equal((answer["oom"], answer["request"], answer["short_by"]), (False, None, None), "no oom")


# ---- statuses and messages ---------------------------------------------------------------------------

def says(bench, status, words, *args, **more):
    done = bench.gputrace(*args, **more)
    equal(done.returncode, status, "status, with %r" % done.stderr)
    lines = done.stderr.decode().splitlines()
    equal(len(lines), 1, "lines on standard error: %r" % lines)
    expect(lines[0].startswith("gputrace: "), "message %r" % lines[0])
    for word in words:
        expect(word in lines[0], "%r is not in %r" % (word, lines[0]))


def messages(bench, path):
    notes = os.path.join(bench.dir, "notes.txt")
    with open(notes, "w", encoding="utf-8") as out:
        out.write("Dear diary, today nothing leaked.\n" * 200)
    empty = os.path.join(bench.dir, "empty")
    os.mkdir(empty)
    says(bench, 3, ["notes.txt"], notes)
    says(bench, 3, ["missing.gtrace"], os.path.join(bench.dir, "missing.gtrace"))
    says(bench, 3, ["no *.gtrace files"], empty)
    says(bench, 2, ["sumary: no such command or file (summary?); see"], "sumary", path)
    says(bench, 2, ["qwerty: no such command or file; see"], "qwerty", path)
    says(bench, 2, ["--colour"], "summary", "--colour", path)
    says(bench, 2, ["--by"], "peak", "--by", "colour", path)
    says(bench, 2, ["yesterday"], "at", "yesterday", path)
    says(bench, 2, ["usage: gputrace diff"], "diff", path)
    says(bench, 2, ["GPU 9"], "peak", "--device", "9", path)
    says(bench, 2, ["--format"], "peak", "--format", "xml", path)
    says(bench, 2, ["no request"], "at", "oom", bench.quiet)
    says(bench, 2, ["no request"], "at", "oom", "--format", "json", bench.quiet)
    equal(bench.gputrace().returncode, 2, "status without arguments")


def check_limit(bench, a, b):
    """peak A 1 and B 2: the limit decides, in percent and in bytes, also the other way round."""
    peaks = [bench.json("summary", p)["processes"][0]["devices"][0]["peak_allocated"] for p in (a, b)]
    grown = peaks[1] - peaks[0]
    expect(grown > 0, "B is not larger than A: %r" % peaks)
    percent = grown * 100 / peaks[0]
    for limit, status in (("%f%%" % (percent * 0.99), 1), ("%f%%" % (percent * 1.01), 0),
                          (str(grown - 1), 1), (str(grown), 0)):
        done = bench.gputrace("diff", "--fail-if-peak-grows", limit, a, b)
        equal(done.returncode, status, "status at a limit of " + limit)
    done = bench.gputrace("diff", "--fail-if-peak-grows", "0", b, a)
    equal(done.returncode, 0, "status of a shrinking peak")


def help_texts(bench, _):
    golden("help.txt", bench.text("--help"))
    names = re.findall(r"^  (\w+) ", bench.text("--commands"), re.M)
    expect(len(names) >= 9, "commands %r" % names)
    screen = bench.text("--help").splitlines()
    expect(len(screen) <= 24 and max(map(len, screen)) <= 80, "--help does not fit a screen")
    listed = re.findall(r"^  (\w+) ", "\n".join(screen), re.M)
    listed += re.search(r"^Also: ((?:\w+,\s+)*\w+)$", "\n".join(screen), re.M).group(1).replace(",", "").split()
    equal(listed, names, "commands of --help")
    for name in names:
        text = bench.text(name, "--help")
        expect(re.search(r"^Usage: gputrace %s" % name, text, re.M), name + " has no usage")
        wide = [line for line in text.splitlines() if len(line) > 80]
        expect(not wide, "%s --help is wider than a screen: %r" % (name, wide))


def output_file(bench, path):
    target = os.path.join(bench.dir, "out.csv")
    equal(bench.text("peak", "--format", "csv", "-o", target, path), "", "standard output")
    with open(target, encoding="utf-8") as written:
        equal(written.read(), bench.text("peak", "--format", "csv", path), "the file")
    full = bench.gputrace("peak", "-o", "/dev/full", path)
    equal(full.returncode, 3, "status on a full disk")


# ---- run -----------------------------------------------------------------------------------------------

def traced(bench, *args, **more):
    sim = os.path.join(ROOT, "tests/sim/run")
    return subprocess.run([sim, bench.tool, "run", *args], capture_output=True, timeout=120,
                          cwd=bench.dir, **more)


def run_program(bench, _):
    where = os.path.join(bench.dir, "run")
    os.mkdir(where)
    done = traced(bench, "--dir", where, "--", bench.program("oom"))
    equal(done.returncode, 1, "status")
    equal(done.stdout, b"the last request returned 2\n", "output of the program")
    lines = done.stderr.decode().splitlines()
    equal(sum("out of memory on GPU 0" in line and "exit 1" in line for line in lines), 1, repr(lines))
    hint = [line.split("next: gputrace ")[1] for line in lines if "next: gputrace" in line]
    equal(len(hint), 1, "hints")
    expect(bench.text(*hint[0].split()).startswith("Out of memory: "), "the hint leads nowhere")


def run_without_cuda(bench, _):
    done = traced(bench, "--", "sh", "-c", "exit 7")
    equal(done.returncode, 7, "status")
    expect(b"no process used CUDA" in done.stderr, "%r" % done.stderr)
    done = traced(bench, "--", "sh", "-c", "kill -9 $$")
    equal(done.returncode, 137, "status of a killed program")
    equal(traced(bench, "--", "no-such-program").returncode, 127, "status of no program")


def run_keeps_preload(bench, _):
    done = traced(bench, "--", "sh", "-c", 'echo "$LD_PRELOAD"',
                  env=dict(os.environ, LD_PRELOAD="libm.so.6",
                           ASAN_OPTIONS="verify_asan_link_order=0"))
    first, last = done.stdout.decode().strip().split(":")
    equal(first, "libm.so.6", "first in LD_PRELOAD")
    equal(last, os.path.join(bench.build, "libgputrace.so"), "last in LD_PRELOAD")


def run_static(bench, _):
    source = os.path.join(bench.dir, "static.c")
    with open(source, "w", encoding="utf-8") as out:
        out.write("int main(void) { return 5; }\n")
    program = os.path.join(bench.dir, "solver")
    subprocess.run(["cc", "-static", "-o", program, source], check=True)
    done = traced(bench, "--", program)
    equal(done.returncode, 5, "status")
    expect(b"static binary" in done.stderr, "%r" % done.stderr)


def doctor(bench, _):
    text = subprocess.run([os.path.join(ROOT, "tests/sim/run"), bench.tool, "doctor"],
                          capture_output=True, timeout=60, check=True).stdout.decode()
    expect(re.search(r"^ok .*libgputrace\.so loads", text, re.M), text)
    expect(re.search(r"^ok .*torch blocks: hooked", text, re.M), text)


def read_log(path):
    """thread, sign, device, address, size, site -> (device, sign, address, size)"""
    with open(path, encoding="utf-8") as log:
        rows = [line.split() for line in log]
    return [(int(r[2]), r[1], r[3], int(r[4])) for r in rows]


def main():
    bench = Bench(sys.argv[1])
    log = os.path.join(bench.dir, "log")
    traffic = [bench.program("traffic"), "--events", "5003", "--log", log]
    failed = bench.trace("oom", [bench.program("oom")])
    small = bench.trace("small", traffic)
    own = read_log(log)
    large = bench.trace("large", [bench.program("traffic"), "--events", "5003", "--seed", "2",
                                  "--sites", "200", "--live", "300"])
    two = bench.trace("two", [bench.program("traffic"), "--events", "3001", "--threads", "2",
                              "--devices", "2"], sim=("--devices", "2"))
    bench.quiet = small

    bench.case("golden-summary", screens, "summary.txt", small)
    bench.case("golden-summary-piped", piped, "summary-piped.txt", small)
    bench.case("golden-summary-oom", screens, "summary-oom.txt", failed)
    bench.case("golden-oom", piped, "oom.txt", "oom", failed)
    bench.case("golden-no-oom", piped, "no-oom.txt", "oom", small)
    bench.case("golden-peak", screens, "peak.txt", "peak", small)
    bench.case("golden-peak-by-function", piped, "peak-function.txt", "peak", "--by", "function", failed)
    bench.case("golden-peak-csv", piped, "peak.csv", "peak", "--format", "csv", failed)
    bench.case("golden-peak-md", piped, "peak.md", "peak", "--format", "md", failed)
    bench.case("two-processes", two_processes, [two, small])
    bench.case("golden-diff", piped, "diff.txt", "diff", small, failed)
    bench.case("screen-fits", fits, large)
    bench.case("screen-fits-oom", fits, failed)
    bench.case("rows-fold", folds, large)
    bench.case("colours", colours, failed)
    bench.case("hostile-name", hostile_name, failed)
    bench.case("rows-add-up", rows_add_up, small)
    bench.case("rows-add-up-many-sites", rows_add_up, large)
    bench.case("diff-adds-up", diff_adds_up, small, large)
    bench.case("diff-adds-up-two-devices", diff_adds_up, two, failed)
    bench.case("totals", totals, small, own)
    bench.case("timeline", timeline, large)
    bench.case("at-time", at_time, small)
    bench.case("oom", oom, failed)
    bench.case("oom-nth", nth_refusal, failed)
    bench.case("oom-rank", of_a_rank, failed)
    bench.case("oom-others", others, None)
    bench.case("json-documented", documented, [failed, two])
    bench.case("json-promised", promised, failed)
    bench.case("json-same-keys", same_keys, [failed, small])
    bench.case("messages", messages, small)
    bench.case("peak-limit", check_limit, small, large)
    bench.case("help", help_texts, None)
    bench.case("golden-every-command", every.goldens, failed)
    bench.case("every-command-is-covered", every.complete, None)
    bench.case("output-file", output_file, small)
    bench.case("run", run_program, None)
    bench.case("run-without-cuda", run_without_cuda, None)
    bench.case("run-keeps-preload", run_keeps_preload, None)
    bench.case("run-static", run_static, None)
    bench.case("doctor", doctor, None)
    bench.case("ring", ring, None)
    crowded = bench.trace("crowded", [bench.program("traffic"), "--events", "5003"],
                          GT_SIM_CONTEXT_COST="412M", GT_SIM_OTHERS="4711:600")
    memory.cases(bench, failed, crowded, small)
    return 1 if bench.bad else 0


sys.exit(main())
