# SPDX-License-Identifier: MIT
"""Training programs that no rule was fitted to. usage: unseen.py NAME [STEPS]

Each compares at the end of forward, of backward and of step: see labels.py.
"""
import os
import random
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
import labels  # noqa: E402

STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 6


def train(model, optimizer, loss_of, called=None):
    labels.start(called or [model], [optimizer])
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        labels.at("forward")
        loss.backward()
        labels.at("backward")
        optimizer.step()
        labels.at("end")


def mlp():
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                          nn.Linear(1024, 256)).cuda()

    def loss_of(model, step):
        x, y = torch.randn(64, 256).to("cuda"), torch.randn(64, 256).to("cuda")
        return F.mse_loss(model(x), y)
    train(model, torch.optim.Adam(model.parameters()), loss_of)


class Block(nn.Module):
    def __init__(self, before, after, time):
        super().__init__()
        self.norm = nn.GroupNorm(4, before)
        self.first = nn.Linear(before, after)
        self.time = nn.Linear(time, after)
        self.second = nn.Linear(after, after)
        self.skip = nn.Linear(before, after) if before != after else nn.Identity()

    def forward(self, x, t):
        h = self.first(F.silu(self.norm(x.transpose(1, 2)).transpose(1, 2)))
        h = h + self.time(F.silu(t))[:, None]
        return self.skip(x) + self.second(F.silu(h))


class Diffusion(nn.Module):
    """A U-Net over positions: down, middle, up with skips, and an embedding of time."""

    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Linear(16, width)
        self.embed = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.down = nn.ModuleList([Block(width, width, width), Block(width, 2 * width, width)])
        self.middle = Block(2 * width, 2 * width, width)
        self.up = nn.ModuleList([Block(4 * width, width, width), Block(2 * width, width, width)])
        self.leave = nn.Linear(width, 16)
        self.register_buffer("angles", torch.linspace(0, 4, width // 2))

    def forward(self, x, t):
        angles = t[:, None] * self.angles[None]
        t = self.embed(torch.cat([angles.sin(), angles.cos()], 1))
        h, skips = self.enter(x), []
        for block in self.down:
            h = block(h, t)
            skips.append(h)
            h = h.view(h.shape[0], -1, 2, h.shape[-1]).mean(2)
        h = self.middle(h, t)
        for block in self.up:
            h = h.repeat_interleave(2, 1)
            h = block(torch.cat([h, skips.pop()], 2), t)
        return self.leave(h)


def unet():
    model = Diffusion().cuda()
    noise_levels = torch.linspace(0.01, 0.99, 100).to("cuda")

    def loss_of(model, step):
        x = torch.randn(16, 64, 16).to("cuda")
        t = torch.randint(100, (16,)).to("cuda")
        noise = torch.randn_like(x)
        level = noise_levels[t][:, None, None]
        noisy = x * level.sqrt() + noise * (1 - level).sqrt()
        return F.mse_loss(model(noisy, t.float()), noise)
    train(model, torch.optim.AdamW(model.parameters()), loss_of)


class Experts(nn.Module):
    """Each token goes through one of four experts; how many each gets differs from step to step."""

    def __init__(self, width=128, experts=4):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(experts))

    def forward(self, x, order):
        weights = self.gate(x).softmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            mine = order[number]
            out = out.index_add(0, mine, expert(x[mine]) * weights[mine, number, None])
        return out


def mixture():
    model = nn.ModuleList([Experts(), Experts()]).cuda()
    head = nn.Linear(128, 64).cuda()
    both = nn.ModuleList([model, head])

    def loss_of(_, step):
        x = torch.randn(512, 128).to("cuda")
        y = torch.randint(64, (512,)).to("cuda")
        cut = sorted(random.sample(range(1, 512), 3))
        order = [o.to("cuda") for o in torch.randperm(512).tensor_split(cut)]
        for layer in model:
            x = x + layer(x, order)
        return F.cross_entropy(head(x), y)
    train(both, torch.optim.Adam(both.parameters()), loss_of, [*model, head])


def towers():
    left = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128)).cuda()
    right = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 128)).cuda()
    scale = nn.Parameter(torch.ones((), device="cuda"))
    everything = [*left.parameters(), *right.parameters(), scale]

    def loss_of(_, step):
        a, b = torch.randn(256, 128).to("cuda"), torch.randn(256, 64).to("cuda")
        a, b = F.normalize(left(a), dim=-1), F.normalize(right(b), dim=-1)
        scores = scale * a @ b.t()
        which = torch.arange(256, device="cuda")
        return (F.cross_entropy(scores, which) + F.cross_entropy(scores.t(), which)) / 2
    train(None, torch.optim.SGD(everything, lr=0.1, momentum=0.9), loss_of, [left, right])


class Translator(nn.Module):
    """Encoder, and a decoder that keeps the keys and values of what it has said."""

    def __init__(self, width=128, words=512):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.encoder = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        memory = self.encoder(self.words(source))
        keys, values = [self.key(memory)], [self.value(memory)]
        said = []
        for at in range(target.shape[1]):
            x = self.words(target[:, at:at + 1])
            keys.append(self.key(x))
            values.append(self.value(x))
            k, v = torch.cat(keys, 1), torch.cat(values, 1)
            scores = (self.query(x) @ k.transpose(1, 2)) / k.shape[-1] ** 0.5
            said.append(self.out(self.mix(x + scores.softmax(-1) @ v)))
        return torch.cat(said, 1)


def translation():
    model = Translator().cuda()

    def loss_of(model, step):
        source, target = (torch.randint(512, (16, n)).to("cuda") for n in (32, 8))
        said = model(source, target)
        return F.cross_entropy(said.flatten(0, 1), target.flatten())
    train(model, torch.optim.AdamW(model.parameters()), loss_of)


def reinforcement():
    """Actor and critic: steps of an environment without gradients, then epochs over what was seen."""
    actor = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 8)).cuda()
    critic = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1)).cuda()
    both = nn.ModuleList([actor, critic])
    optimizer = torch.optim.Adam(both.parameters())
    labels.start([actor, critic], [optimizer])
    for _ in range(STEPS):
        states, actions = [], []
        with torch.no_grad():
            for _ in range(12):
                state = torch.randn(64, 64).to("cuda")
                states.append(state)
                actions.append(actor(state).softmax(-1).argmax(-1))
        states, actions = torch.cat(states), torch.cat(actions)
        rewards = torch.randn(states.shape[0]).to("cuda")
        old = None
        for _ in range(3):
            odds = actor(states).log_softmax(-1)[torch.arange(len(actions), device="cuda"), actions]
            values = critic(states)[:, 0]
            old = odds.detach() if old is None else old
            ratio = (odds - old).exp()
            gain = (rewards - values).detach()
            loss = F.mse_loss(values, rewards) - torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            optimizer.zero_grad()
            labels.at("forward")
            loss.backward()
            labels.at("backward")
            optimizer.step()
            labels.at("end")


class Replicated(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                    nn.Linear(512, 64))

    def forward(self, x):
        labels.hooks()
        for module in self.modules():  # a replica has tensors for parameters
            labels.tell_all([getattr(module, "weight", None), getattr(module, "bias", None)], "weights")
        labels.tell_all(x, "inputs")
        return self.layers(x)


def two_devices():
    model = nn.DataParallel(Replicated().cuda(), device_ids=[0, 1])
    optimizer = torch.optim.Adam(model.parameters())

    def loss_of(model, step):
        x, y = torch.randn(256, 128).to("cuda"), torch.randint(64, (256,)).to("cuda")
        return F.cross_entropy(model(x), y)
    train(model, optimizer, loss_of)


def gpt2():
    import transformers
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=2000, n_embd=256, n_layer=4, n_head=4, n_positions=128)).cuda()

    def loss_of(model, step):
        ids = torch.randint(2000, (4, 96)).to("cuda")
        return model(ids, labels=ids).loss
    train(model, torch.optim.AdamW(model.parameters()), loss_of)


def resnet18():
    import torchvision
    torch.backends.cudnn.enabled = False
    model = torchvision.models.resnet18(num_classes=10).cuda()

    def loss_of(model, step):
        x, y = torch.randn(8, 3, 64, 64).to("cuda"), torch.randint(10, (8,)).to("cuda")
        return F.cross_entropy(model(x), y)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), loss_of)


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    globals()[sys.argv[1]]()
    labels.finish()
