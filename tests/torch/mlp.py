# SPDX-License-Identifier: MIT
"""Trains a small MLP (256-1024-1024-1024-256, ReLU) with AdamW, a replica on each device.

Prints after every step what PyTorch itself says of its memory, as JSON lines. --hold makes it wait
for a line on standard input after each step, so that a test can look at the trace meanwhile.
"""

import argparse

from report import report, write_snapshot  # first: it sets what PyTorch reads at its import

import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


def train_step(model, optimizer, batch, device):
    inputs = torch.randn(batch, 256).to(device)
    targets = torch.randn(batch, 256).to(device)
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--snapshot", help="where to write PyTorch's own snapshot after the last step")
    args = parser.parse_args()
    torch.manual_seed(0)
    replicas = []
    for device in range(args.devices):
        model = MLP([256, 1024, 1024, 1024, 256]).to(f"cuda:{device}")
        replicas.append((model, torch.optim.AdamW(model.parameters())))
    for step in range(1, args.steps + 1):
        for device, (model, optimizer) in enumerate(replicas):
            train_step(model, optimizer, args.batch, f"cuda:{device}")
        if step == args.steps and args.snapshot:
            write_snapshot(args.snapshot)
        report(step, args.devices, args.hold)


if __name__ == "__main__":
    main()
