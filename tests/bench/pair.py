"""Cost of torch.empty + free at a Python depth: ns of processor time per pair, median of 7 rounds.

usage: pair.py DEPTH [none|python|all]    the second names torch's own memory history
"""
import statistics
import sys
import time

import torch


def rounds(pairs=5000):
    times = []
    for _ in range(7):
        begin = time.thread_time_ns()
        for _ in range(pairs):
            torch.empty(1024, device="cuda")
        times.append((time.thread_time_ns() - begin) / pairs)
    return statistics.median(times)


def at_depth(depth):
    return at_depth(depth - 1) if depth > 1 else rounds()


depth = int(sys.argv[1])
history = sys.argv[2] if len(sys.argv) > 2 else "none"
torch.empty(1, device="cuda")
if history != "none":
    torch.cuda.memory._record_memory_history("all", context="alloc", stacks=history, max_entries=100000)
print("%.1f" % at_depth(depth))
