# SPDX-License-Identifier: MIT
"""A training that grows until it is out of memory: it keeps every step's predictions for a metric.

The classic mistake: the list holds tensors that are still on the device. It ends with an uncaught
OutOfMemoryError, or after --steps steps when those come first.
"""

import argparse

from report import report  # first: it sets what PyTorch reads at its import

import torch
from torch import nn


def evaluate(predictions, seen):
    """Meant to keep figures for later; keeps 64 MiB a step."""
    seen.append(predictions)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 4096)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    seen = []
    for step in range(1, args.steps + 1):
        inputs = torch.randn(args.batch, 256).cuda()
        predictions = model(inputs)
        loss = predictions.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        evaluate(predictions.detach(), seen)
        report(step, 1)


if __name__ == "__main__":
    main()
