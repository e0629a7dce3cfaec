#!/usr/bin/env python3
"""Trains on the simulator with PyTorch's own memory history on, and writes what it says of each allocation.

usage: history.py OUT     OUT: JSON lines [address, size, [[file, function, line], ...]], innermost first
Allocations from generators, callbacks, comprehensions, hooks, autograd functions, checkpointing,
optimizers and threads.
"""
import functools
import json
import sys
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="python", max_entries=1 << 20)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return (lambda g: g * 2)(grad)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x + checkpoint(lambda y: torch.relu(self.a(y)), x, use_reentrant=True)
        return self.norm(Double.apply(self.b(x)))


def batches(count, width):
    for n in range(count):
        yield torch.randn(8 + n, width, device="cuda"), [torch.ones(8 + n, device="cuda") for _ in range(2)]


def train(width, steps):
    model = nn.Sequential(*map(Block, [width] * 3)).cuda()
    model[1].register_forward_hook(lambda module, inputs, output: output.clone())
    optimizer = torch.optim.AdamW(model.parameters())
    for x, weights in batches(steps, width):
        loss = functools.reduce(lambda s, w: s + (model(x).sum(1) * w).sum(), weights, torch.zeros(1, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


train(64, 6)
exec(compile("def made():\n    return torch.empty(100, device='cuda')\nkept = [made() for _ in range(3)]",
             "<made here>", "exec"))
for _ in range(3):
    thread = threading.Thread(target=train, args=(32, 2))
    thread.start()
    thread.join()
sorted([3, 1, 2], key=lambda n: torch.empty(n * 1000, device="cuda").numel())

with open(sys.argv[1], "w", encoding="utf-8") as out:
    for entry in torch.cuda.memory._snapshot()["device_traces"][0]:
        if entry["action"] == "alloc":
            frames = [[f["filename"], f["name"], f["line"]] for f in entry["frames"]]
            print(json.dumps([entry["addr"], entry["size"], frames]), file=out)
