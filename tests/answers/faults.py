# SPDX-License-Identifier: MIT
"""Small trainings, each with one fault planted in it. usage: faults.py FAULT

The line to be named by the answers carries the comment "the fault".
"""
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

MIB = 1 << 20


def mlp(width=1024):
    return nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 256)).cuda()


def train(steps, after=lambda model, out: None, model=None, rows=lambda step: 2048,
          make=torch.optim.Adam):
    model = model or mlp()
    optimizer = make(model.parameters())
    for step in range(steps):
        x = torch.randn(rows(step), 256).to("cuda")
        y = torch.randn(rows(step), 256).to("cuda")
        out = model(x)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        after(model, out)


def validation_graph():
    total = []
    x = torch.randn(2048, 256).to("cuda")

    def validate(model, out):
        total.append(F.mse_loss(model(x), x))  # the fault: validation_graph
    train(1000, validate)


def outputs_in_list():
    kept = []

    def keep(model, out):
        kept.append(out.detach().clone())  # the fault: outputs_in_list
    train(2000, keep)


def retained_graph():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for step in range(1000):
        x = torch.randn(2048, 256).to("cuda")
        loss = F.mse_loss(model(x), x)  # the fault: retained_graph
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss)


def growing_buffer():
    history = [torch.zeros(256, device="cuda")]

    def extend(model, out):
        history[0] = torch.cat([history[0], out.detach().mean(0)])  # the fault: growing_buffer
    train(24, extend)


def first_step():
    big = nn.Sequential(*[nn.Linear(8192, 8192) for _ in range(7)]).cuda()
    optimizer = torch.optim.Adam(big.parameters())
    for _ in range(4):
        x = torch.randn(16, 8192).to("cuda")
        big(x).square().mean().backward()
        optimizer.step()  # the fault: first_step


def long_batch():
    def rows(step):
        return 2048 if step != 7 else 400000
    train(12, rows=rows)


def single_request():
    train(4)
    torch.empty(40 << 30, dtype=torch.uint8, device="cuda")  # the fault: single_request


def fragmentation():
    pins = []
    for i in range(20):
        big = torch.empty((200 + i) * MIB, dtype=torch.uint8, device="cuda")
        del big
        pins.append(torch.empty(150 * MIB, dtype=torch.uint8, device="cuda"))  # the fault: fragmentation
        torch.empty((60 + i) * MIB, dtype=torch.uint8, device="cuda")
    torch.empty(3 << 30, dtype=torch.uint8, device="cuda")


def optimizer_twice():
    model = mlp(8192)
    optimizers = []
    for _ in range(12):
        optimizer = torch.optim.Adam(model.parameters())
        optimizers.append(optimizer)
        for _ in range(2):
            x = torch.randn(64, 256).to("cuda")
            model(x).square().mean().backward()
            optimizer.step()  # the fault: optimizer_twice
            optimizer.zero_grad()


def other_process():
    train(6)
    bank = []
    for _ in range(60):
        bank.append(torch.empty(100 * MIB, dtype=torch.uint8, device="cuda"))


def healthy():
    train(14, rows=lambda step: 256 + 64 * (step % 5))


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
