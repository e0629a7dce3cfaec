# SPDX-License-Identifier: MIT
"""tests/torch/gpt2.py until the card is full: each step keeps 3 MiB. Takes gpt2.py's options."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
import gpt2

import torch

kept = []
train_step = gpt2.train_step


def leaking_step(*arguments):
    train_step(*arguments)
    kept.append(torch.empty(3 << 20, dtype=torch.uint8, device="cuda"))


gpt2.train_step = leaking_step
gpt2.main()
