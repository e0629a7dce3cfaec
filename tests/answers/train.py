# SPDX-License-Identifier: MIT
"""A small MLP (256-1024-1024-1024-256, ReLU, fp32, batch 64) trained in one of many ways.

Its sizes are whole multiples of the allocator's, so every block is as large as its tensor, and what
each category holds can be worked out on paper.

usage: train.py [--optimizer adam|sgd|momentum] [--variant NAME] [--loss mse|sum] [--steps N]
"""
import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402


def mlp():
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256))


def make_optimizer(name, parameters, variant):
    options = {"foreach": False} if variant == "no-foreach" else {}
    if variant == "fused":
        options = {"fused": True}
    if name == "adam":
        return torch.optim.Adam(parameters, **options)
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9 if name == "momentum" else 0)


def forward(model, x, variant):
    if not variant.endswith("checkpoint"):
        return model(x)
    middle = checkpoint(model[:4], x, use_reentrant=False)
    return checkpoint(model[4:], middle, use_reentrant=False)


def batch():
    return torch.randn(64, 256).to("cuda"), torch.randn(64, 256).to("cuda")


def loss_of(out, y, kind):
    return out.sum() if kind == "sum" else nn.functional.mse_loss(out, y)


def plain(model, optimizer, args):
    for _ in range(args.steps):
        x, y = batch()
        optimizer.zero_grad(set_to_none=args.variant != "keep-grads")
        with torch.autocast("cuda", torch.bfloat16, enabled=args.variant.startswith("bf16")):
            out = forward(model, x, args.variant)
            loss = loss_of(out, y, args.loss)
        loss.backward()
        optimizer.step()


def accumulate(model, optimizer, args):
    for _ in range(args.steps):
        optimizer.zero_grad()
        for _ in range(4):
            x, y = batch()
            loss = loss_of(model(x), y, args.loss) / 4
            loss.backward()
        optimizer.step()


WAYS = {"accumulate": accumulate}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--variant", default="plain")
    parser.add_argument("--loss", default="mse")
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = mlp().cuda()
    optimizer = make_optimizer(args.optimizer, model.parameters(), args.variant)
    WAYS.get(args.variant, plain)(model, optimizer, args)


if __name__ == "__main__":
    main()
