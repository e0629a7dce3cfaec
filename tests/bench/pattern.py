# SPDX-License-Identifier: MIT
"""Runs the pattern of pattern.c under as many Python and C frames as wanted.

usage: pattern.py LIBRARY PAIRS PYTHON_DEPTH C_DEPTH THREADS    prints "pair CPU WALL", ns per pair
"""
import ctypes
import sys

sys.setrecursionlimit(10000)
library = ctypes.CDLL(sys.argv[1])
pairs, python_depth, depth, threads = map(int, sys.argv[2:])
library.pattern.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_int] + [ctypes.POINTER(ctypes.c_double)] * 2


def at_depth(n):
    if n > 1:
        return at_depth(n - 1)
    cpu, wall = ctypes.c_double(), ctypes.c_double()
    if library.pattern(pairs, depth, threads, cpu, wall):
        raise SystemExit("pattern.py: bad arguments")
    return cpu.value, wall.value


print("pair %.1f %.1f" % at_depth(python_depth))
