# SPDX-License-Identifier: MIT
"""Processor time of one training step of a small GPT-2, in us: the median of the steps but the first 5.

usage: step.py STEPS [none|python|all]    the second names torch's own memory history
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../torch"))
import gpt2  # first: it sets what PyTorch reads at its import

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
model = gpt2.GPT(1000, 64, 128, 4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
history = sys.argv[2] if len(sys.argv) > 2 else "none"
if history != "none":
    torch.cuda.memory._record_memory_history("all", context="alloc", stacks=history, max_entries=100000)
times = []
for _ in range(int(sys.argv[1])):
    begin = time.process_time_ns()  # the backward pass has a thread of its own
    gpt2.train_step(model, optimizer, 4, 64, 1000)
    times.append((time.process_time_ns() - begin) / 1000)
print("%.1f" % statistics.median(times[5:]))
