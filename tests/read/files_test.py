#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Whole files through the tool: against a second reader (pyreader.py), against what the recorder was asked
to record, against the example in docs/format.md, and the messages for files that are no traces.

usage: files_test.py BUILD
Prints "ok NAME" or "not ok NAME: why".
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

import zstandard

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GOLDEN = os.path.join(ROOT, "tests/golden")
BUILD = os.path.abspath(sys.argv[1])
GPUTRACE, MKTRACE, RECORD = (os.path.join(BUILD, p)
                             for p in ("gputrace", "tests/read/mktrace", "tests/read/record"))
LIBRARY, PROGRAMS = os.path.join(BUILD, "libgputrace.so"), os.path.join(BUILD, "prog")
SMALL = {"GPUTRACE_QUIET": "1", "GPUTRACE_EXTENT": "16K", "GPUTRACE_CELLS": "128"}
failed = False


def case(name, why):
    global failed
    failed |= bool(why)
    print(f"not ok {name}: {why}" if why else f"ok {name}", flush=True)


def run(*args, **env):
    return subprocess.run(args, capture_output=True, timeout=120, env={**os.environ, **env})


def dump(trace, *options):
    done = run(GPUTRACE, "dump", "--format", "json", *options, trace)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.splitlines()


def difference(ours, theirs):
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if a != b:
            return f"line {number + 1}: {a[:300]!r} and {b[:300]!r}"
    return None if len(ours) == len(theirs) else f"{len(ours)} and {len(theirs)} lines"


def second_reader(trace, least=100):
    """Both readers, all three outputs."""
    lines = 0
    for options in ((), ("--lanes",), ("--defs",)):
        theirs = run(os.path.join(HERE, "pyreader.py"), *options, trace)
        if theirs.returncode:
            return theirs.stderr.decode()[-300:]
        ours = dump(trace, *options)
        lines += len(ours)
        why = difference(ours, theirs.stdout.splitlines())
        if why:
            return f"{' '.join(options) or 'events'}: {why}"
    return None if lines > least else f"only {lines} lines"


def sound(trace):
    done = run(GPUTRACE, "dump", "--check", trace)
    return done.stderr.decode()[:300] if done.returncode else None


def record(where, threads, events, **env):
    done = run(RECORD, os.path.join(where, "log"), "11", str(events), str(threads), "400",
               **{**SMALL, "GPUTRACE_DIR": where, **env})
    assert done.returncode == 0, done.stderr.decode()
    trace, = (f for f in os.listdir(where) if f.endswith(".gtrace"))
    return os.path.join(where, trace)


def as_asked(trace, where, threads):
    """Every call that the recorder got is an event, in order, and nothing else is."""
    field = re.compile(rb'"lane":(\d+),"seq":\d+,"us":\d+,"op":"(\w+)".*"addr":(\d+),"size":(\d+)')
    events = {lane: [] for lane in range(threads)}
    for line in dump(trace):
        lane, op, addr, size = field.search(line).groups()
        if op != b"exit":
            events[int(lane)].append(b"%s %s %s %s" % (lane, op, addr, size))
    for lane in range(threads):
        with open(os.path.join(where, f"log.{lane}"), "rb") as f:
            why = difference(events[lane], f.read().splitlines())
        if why:
            return f"lane {lane}: {why}"
    return None


def recorded(where):
    trace = record(where, 2, 6000, GPUTRACE_RING="1G")
    case("recorder-events-as-asked", as_asked(trace, where, 2))
    case("recorder-trace-is-sound", sound(trace))
    case("second-reader-recorder", second_reader(trace))
    os.rename(trace, trace + ".old")
    trace = record(where, 3, 20000, GPUTRACE_RING="64K")
    first = min(int(re.search(rb'"history_first":(\d+)', line)[1])
                for line in dump(trace, "--lanes") if b'"type":"lane"' in line)
    case("recorder-ring-was-recycled", None if first > 1 else "history is whole")
    case("recorder-recycled-trace-is-sound", sound(trace))
    case("second-reader-recorder-recycled", second_reader(trace))


def synthetic(where):
    for name, args in {"plain": "1 6000 2 256 131072 1000 50 300",
                       "recycled": "9 30000 3 64 16384 4 50 300"}.items():
        trace = os.path.join(where, name)
        run(MKTRACE, trace, *args.split())
        case(f"second-reader-synthetic-{name}", second_reader(trace))
        case(f"synthetic-{name}-is-sound", sound(trace))


def simulated(where):
    """Programs on the simulated GPU: contexts, devices, native stacks, reports of refused requests."""
    for program in ("traffic", "oom"):
        binary = os.path.join(PROGRAMS, program)
        if not os.path.exists(binary) or not os.path.exists(LIBRARY):
            print(f"skip second-reader-{program}: {program} is not built (no CUDA headers)")
            continue
        run(os.path.join(ROOT, "tests/sim/run"), binary, GPUTRACE_DIR=where, LD_PRELOAD=LIBRARY,
            GPUTRACE_QUIET="1", GT_BUILD=BUILD)
        traces = [f for f in os.listdir(where) if f.startswith(f"gputrace.{program}.")]
        if len(traces) != 1:
            case(f"second-reader-{program}", f"{len(traces)} traces")
            continue
        trace = os.path.join(where, traces[0])
        case(f"second-reader-{program}", second_reader(trace, 60))
        case(f"{program}-trace-is-sound", sound(trace))
        if program == "oom":
            case("report-is-read", None if b'"type":"report"' in b"".join(dump(trace, "--defs"))
                 else "no report")


def raw_of_chunk(data, chunk):
    """The raw bytes of a chunk: all packed bytes of its extent up to it, decompressed."""
    at, decoder = (chunk // 4096) * 4096 + 64, zstandard.ZstdDecompressor().decompressobj()
    while True:
        packed, = struct.unpack_from("<I", data, at + 24)
        raw = decoder.decompress(data[at + 64:at + 64 + packed])
        if at == chunk:
            return raw
        at += 64 + (packed + 7 & ~7)


def example():
    """Every hex line of docs/format.md against the golden trace."""
    with open(os.path.join(GOLDEN, "v1-small.gtrace"), "rb") as f:
        data = f.read()
    with open(os.path.join(ROOT, "docs/format.md"), encoding="utf-8") as f:
        blocks = re.findall(r"```(hex|raw (\w+))\n(.*?)```", f.read(), re.S)
    checked = 0
    for kind, chunk, lines in blocks:
        source = data if kind == "hex" else raw_of_chunk(data, int(chunk, 16))
        for line in lines.splitlines():
            offset, _, octets = line.partition(":")
            octets = bytes.fromhex(octets)
            if source[int(offset, 16):][:len(octets)] != octets:
                return f"{kind} {line}"
            checked += 1
    return None if checked > 20 else f"only {checked} lines of hex"


def messages(where):
    notes = os.path.join(where, "notes.txt")
    cut = os.path.join(where, "cut.gtrace")
    with open(notes, "w", encoding="ascii") as f:
        f.write("Dear diary")
    with open(os.path.join(GOLDEN, "v1-small.gtrace"), "rb") as f, open(cut, "wb") as out:
        out.write(f.read()[:9000])
    for name, path, options, text in (
            ("foreign", notes, [], 'not a gputrace trace (starts with "Dear dia")'),
            ("missing", notes + "x", [], "cannot be opened: No such file or directory"),
            ("cut", cut, [], "cut at byte 9000 of 24576: copy it again, or read what is there with "
                             "--partial")):
        for extra in ([], ["--check"], ["--lanes"], ["--defs"]):
            done = run(GPUTRACE, "dump", *options, *extra, path)
            err = done.stderr.decode()
            good = done.returncode == 3 and not done.stdout and err.count("\n") == 1 \
                and err.startswith(f"gputrace: {path}: {text}")
            if not good:
                break
        case(f"message-{name}", None if good else f"exit {done.returncode}: {err}")
    done = run(GPUTRACE, "dump", "--partial", "--defs", cut)
    case("partial-of-a-cut-file", None if done.returncode == 0 and b"record" in done.stdout
         else f"exit {done.returncode}")
    done = run(GPUTRACE, "dump", "--nonsense", cut)
    case("usage-exits-2", None if done.returncode == 2 and b"no option --nonsense" in done.stderr
         else f"exit {done.returncode}")


def main():
    for trace in sorted(os.listdir(GOLDEN)):
        if trace.endswith(".gtrace"):
            path = os.path.join(GOLDEN, trace)
            case(f"second-reader-golden-{trace}", second_reader(path))
            case(f"golden-{trace}-is-sound", sound(path))
    case("format-example", example())
    for test in (synthetic, recorded, simulated, messages):
        with tempfile.TemporaryDirectory() as where:
            test(where)
    sys.exit(failed)


main()
