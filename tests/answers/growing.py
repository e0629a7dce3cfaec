# SPDX-License-Identifier: MIT
"""An MLP that leaks, or does not although it looks so. usage: growing.py KIND [SHARE [SEED]]

SHARE is what a leak keeps per step, of what the step allocates.
"""
import os
import random
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

KIND = sys.argv[1]
SHARE = float(sys.argv[2]) if len(sys.argv) > 2 else 0
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
KEPT = []
CACHE = {}


def rows(step):
    if KIND in ("variable", "sometimes-variable"):
        return random.randint(16, 256)
    if KIND == "buckets":
        return random.choice([64, 128, 192, 256])
    return 64 + 8 * step if KIND == "larger" else 64


def leak(size):
    if not SHARE:
        return
    if KIND == "pieces":
        for _ in range(64):
            KEPT.append(torch.empty(size // 64, dtype=torch.uint8, device="cuda"))  # the leak: pieces
    elif not KIND.startswith("sometimes") or len(KEPT) * 4 < leak.steps:
        times = 4 if KIND.startswith("sometimes") else 1
        KEPT.append(torch.empty(times * size, dtype=torch.uint8, device="cuda"))  # the leak: one block
    leak.steps += 1


leak.steps = 0


class Habits:
    """What a program does after each step, by kind; most of it is healthy."""

    def __init__(self, model):
        self.model = model
        self.total = 0
        self.history = torch.zeros(256, device="cuda")
        self.best = None

    def outputs(self, step, out, loss):
        KEPT.append(out.detach().clone())  # the leak: outputs

    def validation(self, step, out, loss):
        if step % 4 == 3:
            x = torch.randn(64, 256).to("cuda")
            self.total = self.total + F.mse_loss(self.model(x), x)  # the leak: validation

    def buffer(self, step, out, loss):
        self.history = torch.cat([self.history, torch.zeros(256, device="cuda")])  # the leak: buffer

    def cache(self, step, out, loss):
        shape = random.randint(1, 7)
        if shape not in CACHE:
            CACHE[shape] = torch.zeros(shape * 1000, device="cuda")

    def slow_cache(self, step, out, loss):
        shape = random.randint(1, 30)
        if shape not in CACHE:
            CACHE[shape] = torch.zeros(shape * 1000, device="cuda")

    def queue(self, step, out, loss):
        KEPT.append(out.detach().clone())
        del KEPT[:-8]

    def sum(self, step, out, loss):
        self.total += loss

    def copies(self, step, out, loss):
        if random.random() < 0.3:
            self.best = [p.detach().clone() for p in self.model.parameters()]

    def metric(self, step, out, loss):
        KEPT.append(loss.item())

    def evaluation(self, step, out, loss):
        if step % 6 == 5:
            with torch.no_grad():
                for _ in range(3):
                    self.model(torch.randn(96, 256).to("cuda"))


def main():
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    habits = Habits(model)
    habit = getattr(habits, KIND, lambda *args: None)
    before = 0
    for step in range(24):
        x, y = torch.randn(rows(step), 256).to("cuda"), torch.randn(256).to("cuda")
        out = model(x)
        loss = F.mse_loss(out, y.expand_as(out))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        habit(step, out, loss)
        leak(int(SHARE * 27e6))
        before = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
    print("MOVED", before // 24)


if __name__ == "__main__":
    torch.manual_seed(SEED)
    random.seed(SEED)
    main()
