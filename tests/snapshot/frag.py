# SPDX-License-Identifier: MIT
"""Fragments PyTorch's pools on two devices, writes PyTorch's own snapshot, then waits for a line.

usage: frag.py SNAPSHOT
3,000 random allocations and frees of 1 byte to 32 MiB on the default and a second stream, with
torch.cuda.empty_cache() now and then. Each run makes the same ones.
"""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
from report import report, write_snapshot  # first: it sets what PyTorch reads at its import

import torch


def main():
    rng = random.Random(7)
    streams = [[torch.cuda.default_stream(d), torch.cuda.Stream(d)] for d in range(2)]
    live = []
    for step in range(3000):
        device = rng.randrange(2)
        if live and rng.random() < 0.48:
            live.pop(rng.randrange(len(live)))
        else:
            size = int(2 ** rng.uniform(0, 25))
            with torch.cuda.stream(streams[device][rng.random() < 0.3]):
                live.append(torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}"))
        if step % 700 == 699:
            torch.cuda.empty_cache()
    write_snapshot(sys.argv[1])
    report(1, 2, hold=True)


main()
