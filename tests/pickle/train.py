# SPDX-License-Identifier: MIT
"""A training whose snapshot PyTorch writes itself, with what PyTorch says of the same moment beside it.

usage: train.py OUT [--late] [--entries N] [--stacks all|python] [--oom] [--pool] [--steps N]

OUT.pickle is _dump_snapshot's file, OUT.json has memory_stats() of each device and the peaks since recording
began. --late: recording begins behind the first step; --entries: the history is that short.
"""
import argparse
import json

import torch
from torch import nn


def training(device):
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 256)).to(device)
    return model, torch.optim.Adam(model.parameters())


def step(model, optimizer, batch, device):
    x = torch.zeros(batch, 256, device=device)
    y = torch.zeros(batch, 256, device=device)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def pieces(device):
    """Free ranges of many sizes, segments given back, large ones cut."""
    kept = []
    for i in range(400):
        kept.append(torch.empty((i * 7919) % 3000000 + 1, dtype=torch.uint8, device=device))
        if i % 3 == 2:
            kept.pop((i * 31) % len(kept))
        if i % 150 == 149:
            torch.cuda.empty_cache()
    return kept[::2]


def waited(device):
    """A block that another stream still uses when it is freed."""
    other = torch.cuda.Stream(device)
    block = torch.empty(5 << 20, dtype=torch.uint8, device=device)
    block.record_stream(other)
    del block
    return torch.empty(3 << 20, dtype=torch.uint8, device=device)


def private():
    if not hasattr(torch.cuda, "MemPool"):
        return None
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        return pool, torch.empty(7 << 20, dtype=torch.uint8, device="cuda:0"), torch.empty(100, device="cuda:0")


parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("--late", action="store_true")
parser.add_argument("--oom", action="store_true")
parser.add_argument("--pool", action="store_true")
parser.add_argument("--entries", type=int, default=1000000)
parser.add_argument("--stacks", default="all")
parser.add_argument("--steps", type=int, default=12)
args = parser.parse_args()

devices = ["cuda:%d" % i for i in range(torch.cuda.device_count())]
record = lambda: torch.cuda.memory._record_memory_history(max_entries=args.entries, stacks=args.stacks)
if not args.late:
    record()
runs = [(*training(d), d) for d in devices]
for model, optimizer, device in runs:
    step(model, optimizer, 64, device)
if args.late:
    record()
    for device in devices:
        torch.cuda.reset_peak_memory_stats(device)
for n in range(args.steps):
    for model, optimizer, device in runs:
        step(model, optimizer, 64 + 16 * (n % 3), device)
kept = [pieces(d) for d in devices]
held = private() if args.pool else None
if args.oom:
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device=devices[0])
    except torch.cuda.OutOfMemoryError:
        pass
kept.append([waited(d) for d in devices])
torch.cuda.memory._dump_snapshot(args.out + ".pickle")
with open(args.out + ".json", "w") as f:
    json.dump({"version": torch.__version__, "stats": [dict(torch.cuda.memory_stats(d)) for d in devices],
               "summary": torch.cuda.memory_summary(devices[0])}, f)
