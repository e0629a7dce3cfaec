# SPDX-License-Identifier: MIT
"""Loops of many shapes, which say how many allocations came before each step. usage: loops.py NAME"""
import os
import random
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

TRUTH = []


def begins():
    TRUTH.append(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def net(width=256):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 64)).cuda()


def batch(rows=32):
    return torch.randn(rows, 64).to("cuda")


class Parts:
    def __init__(self, make=torch.optim.Adam):
        self.model = net()
        self.optimizer = make(self.model.parameters())

    def backward(self, rows=32):
        x = batch(rows)
        loss = F.mse_loss(self.model(x), x)
        loss.backward()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self, rows=32):
        self.backward(rows)
        self.update()


def nested():
    parts = Parts()
    for _ in range(6):
        begins()
        for _ in range(3):
            x = batch()
            loss = F.mse_loss(parts.model(x), x)
            loss.backward()
        parts.optimizer.step()
        parts.optimizer.zero_grad()


def modulo():
    parts = Parts()
    for number in range(18):
        if number % 3 == 0:
            begins()
        x = batch()
        loss = F.mse_loss(parts.model(x), x)
        loss.backward()
        if number % 3 == 2:
            parts.optimizer.step()
            parts.optimizer.zero_grad()


def sizes():
    parts = Parts()
    for _ in range(20):
        begins()
        parts.step(random.randint(16, 256))


def epochs(grad=False):
    parts = Parts()
    for _ in range(3):
        for _ in range(4):
            begins()
            x = batch()
            parts.optimizer.zero_grad()
            loss = F.mse_loss(parts.model(x), x)
            loss.backward()
            parts.optimizer.step()
        with torch.set_grad_enabled(grad):
            for _ in range(5):
                x = batch()
                F.mse_loss(parts.model(x), x).item()


def epochs_with_grad():
    epochs(True)


def evaluation_inside(grad=False):
    parts = Parts()
    for number in range(9):
        begins()
        x = batch()
        parts.optimizer.zero_grad()
        loss = F.mse_loss(parts.model(x), x)
        loss.backward()
        parts.optimizer.step()
        if number % 3 == 2:
            with torch.set_grad_enabled(grad):
                for _ in range(3):
                    parts.model(batch())


def evaluation_inside_with_grad():
    evaluation_inside(True)


def gan():
    generator, critic = Parts(), Parts()
    for _ in range(6):
        begins()
        real = batch()
        fake = generator.model(batch())
        critic.optimizer.zero_grad()
        loss = critic.model(real).square().mean()
        loss.backward()
        loss = critic.model(fake.detach()).square().mean()
        loss.backward()
        critic.optimizer.step()
        generator.optimizer.zero_grad()
        loss = critic.model(fake).square().mean()
        loss.backward()
        generator.optimizer.step()


def critics():
    generator, critic = Parts(), Parts()
    for number in range(16):
        if number % 4 == 0:
            begins()
        real = batch()
        if number % 4 < 3:
            fake = generator.model(batch()).detach()
            critic.optimizer.zero_grad()
            (critic.model(fake).mean() - critic.model(real).mean()).backward()
            critic.optimizer.step()
        else:
            generator.optimizer.zero_grad()
            critic.model(generator.model(batch())).mean().backward()
            generator.optimizer.step()


def penalty():
    """A critic whose gradient of its inputs is part of its loss, and so has a graph of its own."""
    critic = Parts()
    for _ in range(6):
        begins()
        mixed = batch().requires_grad_()
        critic.optimizer.zero_grad()
        score = critic.model(mixed).mean()
        slope, = torch.autograd.grad(score, mixed, create_graph=True)
        loss = score + (slope.norm(2, 1) - 1).square().mean()
        loss.backward()
        critic.optimizer.step()


def trainer():
    class Trainer(Parts):
        def batches(self):
            for _ in range(6):
                begins()
                yield batch()

        def fit(self):
            for x in self.batches():
                self.train_step(x)

        def train_step(self, x):
            self.optimizer.zero_grad()
            loss = self.loss(x)
            loss.backward()
            self.optimizer.step()

        def loss(self, x):
            return F.mse_loss(self.model(x), x)
    Trainer().fit()


def dataset():
    """Of calls that a newer interpreter makes through C the first time, and later without."""
    class Sample:
        def __init__(self):
            self.x = batch()

        @property
        def twice(self):
            return torch.cat((self.x, batch()))

    class Samples:
        def __getitem__(self, number):
            return Sample().twice

    parts, samples = Parts(), Samples()
    for number in range(6):
        begins()
        x = samples[number]
        loss = F.mse_loss(parts.model(x), x)
        loss.backward()
        parts.update()


def closure():
    parts = Parts(lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    for _ in range(6):
        begins()
        x = batch()

        def closure():
            parts.optimizer.zero_grad()
            loss = F.mse_loss(parts.model(x), x)
            loss.backward()
            return loss
        parts.optimizer.step(closure)


def closure_on_one_line():
    parts = Parts(lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    for _ in range(6):
        begins()
        x = batch()
        parts.optimizer.zero_grad()
        parts.optimizer.step(lambda: F.mse_loss(parts.model(x), x).backward())


def in_hooks():
    model = net()
    optimizers = {p: torch.optim.Adam([p]) for p in model.parameters()}

    def update(p):
        optimizers[p].step()
        optimizers[p].zero_grad()
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    for _ in range(6):
        begins()
        x = batch()
        loss = F.mse_loss(model(x), x)
        loss.backward()


def two_loops():
    parts = Parts()
    for _ in range(4):
        begins()
        x = batch()
        parts.optimizer.zero_grad()
        loss = F.mse_loss(parts.model(x), x)
        loss.backward()
        parts.optimizer.step()
    for _ in range(4):
        begins()
        x = batch()
        parts.optimizer.zero_grad()
        loss = F.l1_loss(parts.model(x), x)
        loss.backward()
        parts.optimizer.step()


def prefetch():
    parts = Parts()
    following = batch()
    for _ in range(6):
        begins()
        x, following = following, batch()
        parts.optimizer.zero_grad()
        loss = F.mse_loss(parts.model(x), x)
        loss.backward()
        parts.optimizer.step()


def while_true():
    parts = Parts()
    number = 0
    while True:
        begins()
        parts.step()
        number += 1
        if number == 6:
            break


def four():
    parts = Parts()
    for _ in range(4):
        begins()
        parts.step()


def cut_short(micro_batches=1):
    """The last backward pass fails at its first layer: it has made hardly a gradient."""
    parts = Parts(lambda parameters: torch.optim.SGD(parameters, lr=0.1))

    def fail(grad):
        raise MemoryError

    try:
        for step in range(6):
            begins()
            for _ in range(micro_batches):
                x = batch()
                out = parts.model(x)
                if step == 5:
                    out.register_hook(fail)
                F.mse_loss(out, x).backward()
            parts.update()
    except MemoryError:
        pass


def cut_short_in_accumulation():
    """The same in the first of several micro-batches, which is like those that add to gradients."""
    cut_short(3)


def hidden():
    """Nothing is allocated or freed between micro-batches that would tell them from steps."""
    parts = Parts(lambda parameters: torch.optim.SGD(parameters, lr=0.1))
    for _ in range(4):
        begins()
        for _ in range(3):
            x = batch()
            loss = F.mse_loss(parts.model(x), x)
            loss.backward()
        parts.optimizer.step()
        parts.optimizer.zero_grad(set_to_none=False)


def generation():
    model = net()
    with torch.no_grad():
        for _ in range(3):
            x = batch(1)
            for _ in range(10):
                begins()
                noise = torch.randn(1, 64, device="cuda")
                x = model(x + noise)


def inference():
    model = net()
    with torch.no_grad():
        for _ in range(8):
            begins()
            x = batch()
            model(x).argmax(1)


def one_line():
    model = net()
    with torch.no_grad():
        for _ in range(12): begins(); model(batch()).square().softmax(1).argmax(1)  # noqa: E701,E702


def single():
    Parts().step()


def comparison():
    model = net()
    x = batch().requires_grad_()
    model(x).sum().backward()
    kept = [p.grad.clone() for p in model.parameters()]
    checkpoint(model, x, use_reentrant=False).sum().backward()
    return kept


def at_random():
    blocks = []

    def grow():
        blocks.append(torch.empty(random.randint(1, 4096), device="cuda"))

    def twice():
        blocks.append(torch.empty(random.randint(1, 4096), device="cuda"))
        blocks.append(torch.zeros(random.randint(1, 4096), device="cuda"))

    def shrink():
        while blocks and random.random() < 0.7:
            blocks.pop(random.randrange(len(blocks)))

    def other():
        blocks.extend(torch.ones(8, device="cuda") for _ in range(random.randint(0, 3)))
    for _ in range(700):
        random.choice([grow, twice, shrink, other])()


def nvtx():
    parts = Parts()
    for number in range(6):
        torch.cuda.nvtx.range_push("iteration %d" % number)
        begins()
        torch.cuda.nvtx.range_push("forward")
        x = batch()
        loss = F.mse_loss(parts.model(x), x)
        torch.cuda.nvtx.range_pop()
        loss.backward()
        torch.cuda.nvtx.range_push("optimizer step")
        parts.update()
        torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_pop()


def marks():
    import ctypes
    tracer = ctypes.CDLL(None)
    parts = Parts()
    for _ in range(6):
        begins()
        tracer.gputrace_step()
        for _ in range(2):
            parts.backward()
        parts.update()


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    globals()[sys.argv[1]]()
    print("TRUTH", *TRUTH)
