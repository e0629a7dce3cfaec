# SPDX-License-Identifier: MIT
"""A training of transformer-like layers in which one technique at a time can be switched on.

The pages of docs/cookbook compare two runs of it. Widths are whole multiples of what PyTorch's
allocator hands out, so that each block is as large as its tensor and the formulas can be checked.
"""
import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import techniques  # noqa: E402

WIDTH = 1024


class Layer(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.up = linear(WIDTH, 4 * WIDTH)
        self.down = linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(F.relu(self.up(x)))


class Model(nn.Module):
    def __init__(self, layers, linear, checkpointed):
        super().__init__()
        self.layers = nn.ModuleList(Layer(linear) for _ in range(layers))
        self.checkpointed = checkpointed

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.checkpointed else layer(x)
        return x


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=16384, help="rows in one pass")
    parser.add_argument("--accumulate", type=int, default=1, help="passes in one step")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--longer", type=int, default=0, help="more rows with each step, as longer texts would be")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--checkpoint", action="store_true")
    parser.add_argument("--adam", choices=("fp32", "8bit", "offload"), default="fp32")
    parser.add_argument("--lora", type=int, default=0, metavar="RANK")
    parser.add_argument("--quantize", action="store_true", help="with --lora: weights of 4 bits")
    parser.add_argument("--shard", type=int, default=1, metavar="GPUS")
    return parser.parse_args()


def build(args):
    linear = techniques.linear(args.lora, args.quantize)
    model = Model(args.layers, linear, args.checkpoint).cuda()
    if args.shard > 1:
        techniques.shard(model, args.shard)
    parameters = [p for p in model.parameters() if p.requires_grad]
    return model, techniques.ADAM[args.adam](parameters)


def step(model, optimizer, rows, args):
    for _ in range(args.accumulate):
        x = torch.zeros(rows, WIDTH).to("cuda")
        with torch.autocast("cuda", torch.bfloat16, enabled=args.autocast):
            loss = model(x).square().mean() / args.accumulate
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    args = arguments()
    torch.manual_seed(0)
    model, optimizer = build(args)
    for number in range(args.steps):
        step(model, optimizer, args.batch + number * args.longer, args)


if __name__ == "__main__":
    main()
