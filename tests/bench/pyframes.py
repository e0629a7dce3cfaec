#!/usr/bin/env python3
"""Nanoseconds per capture of a Python stack. environment: PYLIB, the capture library of tests/python.

Prints per depth the median of several rounds, over the same stack again and again ("same") and over two
stacks that differ in their innermost frames in turn ("alternating"), and the cost of each further frame.
"""
import ctypes
import os
import statistics
import sys

lib = ctypes.CDLL(os.environ["PYLIB"])
lib.pylib_bench.restype = ctypes.c_double
DEPTHS = 5, 20, 60
ROUNDS = 9


def measure():
    return lib.pylib_bench(20000)


def deeper(n, function):
    if n:
        return deeper(n - 1, function)
    return function()


def own_depth():
    frame, n = sys._getframe(1), 0
    while frame:
        frame, n = frame.f_back, n + 1
    return n


def at(depth):
    return deeper(depth - deeper(0, own_depth), measure)


lib.pylib_start(512)
rounds = [[at(depth) for depth in DEPTHS] for _ in range(ROUNDS)]
medians = [statistics.median(column) for column in zip(*rounds)]
for depth, ns in zip(DEPTHS, medians):
    print("python.capture.depth%d %.0f ns" % (depth, ns))
print("python.frame %.1f ns" % ((medians[-1] - medians[0]) / (DEPTHS[-1] - DEPTHS[0])))
