# SPDX-License-Identifier: MIT
"""Trainings whose bytes by category can be worked out on paper. usage: programs.py NAME [STEPS]

All have fixed shapes, whole multiples of the allocator's sizes where that is possible, and no data but
what they make up on the CPU. They tell who is who at the begin of each step, and at the ends of forward,
of backward and of the step: see labels.py.
"""
import copy
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
import labels  # noqa: E402

STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 6


def mlp():
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256))


def batch(rows=64, width=256):
    return torch.randn(rows, width).to("cuda"), torch.randn(rows, width).to("cuda")


def train(model, optimizer, after=lambda: None):
    labels.start([model], [optimizer])
    for _ in range(STEPS):
        labels.at("begin")
        x, y = batch()
        optimizer.zero_grad()
        out = model(x)
        loss = F.mse_loss(out, y)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")
        after()


def adam():
    model = mlp().cuda()
    train(model, torch.optim.Adam(model.parameters()))


def sgd():
    model = mlp().cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))


def momentum():
    model = mlp().cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


class EightBit(torch.optim.Optimizer):
    """Two moments of a byte per element, replaced in each step, and a scale for each 256 of them."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state = self.state[p]
            if not state:
                scales = (p.numel() + 255) // 256
                state["scale1"] = torch.zeros(scales, device=p.device)
                state["scale2"] = torch.zeros(scales, device=p.device)
                state["m1"] = torch.zeros_like(p, dtype=torch.uint8)
                state["m2"] = torch.zeros_like(p, dtype=torch.uint8)
            self.update(p, state)

    @staticmethod
    def update(p, state):
        first = state["m1"].float().mul_(0.9).add_(p.grad, alpha=0.1)
        second = state["m2"].float().mul_(0.99).addcmul_(p.grad, p.grad)
        scale = second.sqrt() + 1e-8
        p.sub_(first / scale)
        state["m1"], state["m2"] = first.to(torch.uint8), second.to(torch.uint8)


def eight_bit():
    model = mlp().cuda()
    train(model, EightBit(model.parameters()))


def accumulation():
    model = mlp().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    labels.start([model], [optimizer])
    for _ in range(STEPS):
        labels.at("begin")
        optimizer.zero_grad()
        for _ in range(4):
            x, y = batch()
            loss = F.mse_loss(model(x), y) / 4
            labels.at("forward")
            loss.backward()
            labels.at("backward")
        optimizer.step()
        labels.at("end")


def halves():
    model = mlp().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    labels.start([model], [optimizer], called=[model[0]])
    for _ in range(STEPS):
        labels.at("begin")
        x, y = batch()
        optimizer.zero_grad()
        middle = checkpoint(model[:4], x, use_reentrant=False)
        out = checkpoint(model[4:], middle, use_reentrant=False)
        loss = F.mse_loss(out, y)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")


def ema():
    model = mlp().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    average = copy.deepcopy(model)
    start = [p.detach().clone() for p in model.parameters()]
    labels.start([model, average], [optimizer], start)
    for _ in range(STEPS):
        labels.at("begin")
        x, y = batch()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")
        with torch.no_grad():
            for mean, p in zip(average.parameters(), model.parameters()):
                mean.mul_(0.9).add_(p, alpha=0.1)
    return start


def flat():
    model = mlp().cuda()
    parameters = list(model.parameters())
    buffer = torch.zeros(sum(p.numel() for p in parameters), device="cuda")
    at = 0
    for p in parameters:
        p.grad = buffer[at:at + p.numel()].view_as(p)
        at += p.numel()
    optimizer = torch.optim.Adam(parameters)
    labels.start([model], [optimizer])
    for _ in range(STEPS):
        labels.at("begin")
        x, y = batch()
        buffer.zero_()
        loss = F.mse_loss(model(x), y)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")


def masters():
    model = mlp().cuda().bfloat16()
    parameters = list(model.parameters())
    full = [p.detach().float() for p in parameters]
    optimizer = torch.optim.Adam(full)
    labels.start([model], [optimizer], full)
    for _ in range(STEPS):
        labels.at("begin")
        x, y = batch()
        x, y = x.bfloat16(), y.bfloat16()
        loss = F.mse_loss(model(x), y)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        for p, master in zip(parameters, full):
            master.grad = p.grad.float()
            p.grad = None
        labels.at("copied")
        optimizer.step()
        labels.at("end")
        with torch.no_grad():
            for p, master in zip(parameters, full):
                p.copy_(master)
                master.grad = None


class Adapted(nn.Module):
    """A frozen layer with a low-rank addition of its own."""

    def __init__(self):
        super().__init__()
        self.base = nn.Linear(1024, 1024)
        self.base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(8, 1024))
        self.b = nn.Parameter(torch.zeros(1024, 8))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b)


def lora():
    model = nn.Sequential(*[m for _ in range(4) for m in (Adapted(), nn.GELU())]).cuda()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    labels.start([model], [optimizer])
    for _ in range(STEPS):
        labels.at("begin")
        x = torch.randn(64, 1024).to("cuda")
        loss = model(x).square().mean()
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")
        optimizer.zero_grad()


def frozen():
    body = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 512)).cuda().requires_grad_(False)
    head = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.AdamW(head.parameters())
    labels.start([body, head], [optimizer], called=[body])
    for _ in range(STEPS):
        labels.at("begin")
        x, y = torch.randn(128, 256).to("cuda"), torch.randint(10, (128,)).to("cuda")
        optimizer.zero_grad()
        with torch.no_grad():
            features = body(x)
        loss = F.cross_entropy(head(features), y)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")


def by_hand():
    weights = [torch.randn(512, 512, device="cuda", requires_grad=True) for _ in range(4)]
    speed = [torch.zeros_like(w) for w in weights]
    labels.start([], [], weights, speed)
    for _ in range(STEPS):
        labels.at("begin")
        x, y = batch(64, 512)
        labels.tell_inputs([x, y])
        h = x
        for w in weights:
            h = torch.tanh(h @ w)
        loss = (h - y).square().mean()
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        with torch.no_grad():
            for w, v in zip(weights, speed):
                v.mul_(0.9).add_(w.grad)
                w.sub_(v, alpha=0.1)
                w.grad = None
        labels.at("end")


class OnDevice(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter(torch.randn(512, 1024, device="cuda"))
        self.down = nn.Parameter(torch.randn(1024, 512, device="cuda"))
        self.register_buffer("shift", torch.randn(64, 512, device="cuda"))
        self.norm = nn.LayerNorm(512, device="cuda")

    def forward(self, x):
        return self.norm(torch.relu((x + self.shift) @ self.up) @ self.down)


def on_device():
    model = OnDevice()
    optimizer = torch.optim.AdamW(model.parameters())
    labels.start([model], [optimizer])
    for _ in range(STEPS):
        labels.at("begin")
        x = torch.randn(64, 512).to("cuda")
        optimizer.zero_grad()
        loss = model(x).square().mean()
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")


def gan():
    generator = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    critic = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    optimizer_g = torch.optim.Adam(generator.parameters())
    optimizer_c = torch.optim.Adam(critic.parameters())
    labels.start([generator, critic], [optimizer_g, optimizer_c], called=[generator])
    for _ in range(STEPS):
        labels.at("begin")
        real, noise = torch.randn(64, 256).to("cuda"), torch.randn(64, 64).to("cuda")
        labels.tell_inputs([real])
        fake = generator(noise)
        optimizer_c.zero_grad()
        loss_real = F.softplus(-critic(real)).mean()
        labels.at("forward")
        loss_real.backward()
        labels.at("backward")
        loss_fake = F.softplus(critic(fake.detach())).mean()
        labels.at("forward")
        loss_fake.backward()
        labels.at("backward")
        optimizer_c.step()
        labels.at("end")
        optimizer_g.zero_grad()
        loss_g = F.softplus(-critic(fake)).mean()
        labels.at("forward")
        loss_g.backward()
        labels.at("backward")
        optimizer_g.step()
        labels.at("end")


def gpt2():
    sys.modules["torchvision"] = None  # transformers would load it, which works with one PyTorch only
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=1000, n_embd=128, n_layer=2, n_head=4, n_positions=128)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    labels.start([model], [optimizer])
    for _ in range(STEPS):
        labels.at("begin")
        ids = torch.randint(1000, (4, 64)).to("cuda")
        out = model(ids, labels=ids)
        labels.at("forward")
        out.loss.backward()
        labels.at("backward")
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        labels.at("end")
        optimizer.zero_grad()


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    labels.finish()
