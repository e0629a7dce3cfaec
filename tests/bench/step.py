# SPDX-License-Identifier: MIT
"""Processor time of one training step of a model of tests/torch, in us: median of the steps but the first 5.

usage: step.py gpt2|mlp STEPS [none|python|all]    the third names torch's own memory history
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../torch"))
import gpt2  # these two first: they set what PyTorch reads at its import
import mlp

import torch


def prepared(name):
    """The function that trains a step."""
    if name == "gpt2":
        model = gpt2.GPT(1000, 64, 128, 4, 4).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        return lambda: gpt2.train_step(model, optimizer, 4, 64, 1000)
    model = mlp.MLP([256, 1024, 1024, 1024, 256]).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    return lambda: mlp.train_step(model, optimizer, 64, "cuda")


torch.set_num_threads(1)
torch.manual_seed(0)
step = prepared(sys.argv[1])
history = sys.argv[3] if len(sys.argv) > 3 else "none"
if history != "none":
    torch.cuda.memory._record_memory_history("all", context="alloc", stacks=history, max_entries=100000)
times = []
for _ in range(int(sys.argv[2])):
    begin = time.process_time_ns()  # the backward pass has a thread of its own
    step()
    times.append((time.process_time_ns() - begin) / 1000)
print("%.1f" % statistics.median(times[5:]))
