#!/usr/bin/env python3
"""Lengths of C functions: names those above the ceiling, and the median when it is too high.

usage: functions.py CEILING MEDIAN FILE...    status 1 when a limit is broken
A function is a body whose braces stand in column 0, as the kernel style puts them.
"""
import re
import statistics
import sys


def functions(path):
    start = name = None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            called = re.match(r"[A-Za-z_].*?(\w+)\(", line)
            if start is None and called:
                name = called.group(1)
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start is not None:
                yield name, start, number - start - 1
                start = None


def main():
    ceiling, median = int(sys.argv[1]), int(sys.argv[2])
    lengths, bad = [], False
    for path in sys.argv[3:]:
        for name, start, length in functions(path):
            lengths.append(length)
            if length > ceiling:
                print("%s:%d: %s has %d lines, ceiling %d" % (path, start, name, length, ceiling))
                bad = True
    if lengths and statistics.median(lengths) > median:
        print("median of %d functions is %g lines, limit %d" % (len(lengths), statistics.median(lengths), median))
        bad = True
    return bad


sys.exit(main())
