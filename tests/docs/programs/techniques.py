# SPDX-License-Identifier: MIT
"""What train.py switches on: small versions, by hand, of what libraries do.

They need no kernels of their own, so they run where those libraries do not. They hold what the
libraries hold and at the same time; they are not fast.
"""
import torch
from torch import nn
from torch.nn import functional as F

BLOCK = 256  # values that share a scale, in 8-bit state
FOUR_BIT_BLOCK = 64


class Adam8bit(torch.optim.Optimizer):
    """Adam whose two moments are a byte per value and a 32-bit scale per block."""

    def __init__(self, parameters, lr=1e-3):
        super().__init__(parameters, {"lr": lr})

    @staticmethod
    def _new_state(p):
        blocks = -(-p.numel() // BLOCK)
        state = {}
        for moment in ("first", "second"):
            state[moment] = torch.zeros(blocks, BLOCK, dtype=torch.int8, device=p.device)
            state[moment + "_scale"] = torch.zeros(blocks, 1, device=p.device)
        return state

    @staticmethod
    def _update(state, moment, new, decay):
        """Unpacks the moment, mixes the new value in and packs it again."""
        codes, scale = state[moment], state[moment + "_scale"]
        values = codes.float().mul_(scale).view(-1)[:new.numel()].view_as(new)
        values.mul_(decay).add_(new, alpha=1 - decay)
        blocks = F.pad(values.reshape(-1), (0, codes.numel() - new.numel())).view_as(codes)
        scale.copy_(blocks.abs().amax(1, keepdim=True).div_(127))
        codes.copy_(blocks / scale.clamp(min=1e-12))
        return values

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not self.state[p]:
                    self.state[p] = self._new_state(p)
                first = self._update(self.state[p], "first", p.grad, 0.9)
                second = self._update(self.state[p], "second", p.grad.square(), 0.999)
                p.addcdiv_(first, second.sqrt_().add_(1e-8), value=-group["lr"])


class OffloadedAdam(torch.optim.Adam):
    """Adam that lives on the CPU: gradients go down, new weights come up, tensor by tensor."""

    def __init__(self, parameters):
        self.on_device = list(parameters)
        self.on_host = [torch.zeros(p.shape) for p in self.on_device]
        super().__init__(self.on_host)

    @torch.no_grad()
    def step(self):
        for host, p in zip(self.on_host, self.on_device):
            host.grad = p.grad.cpu()
            p.grad = None
        super().step()
        for host, p in zip(self.on_host, self.on_device):
            p.copy_(host)


ADAM = {"fp32": torch.optim.Adam, "8bit": Adam8bit, "offload": OffloadedAdam}


class LoraLinear(nn.Module):
    """A frozen weight, and two thin ones that learn."""

    def __init__(self, rank, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs, device="cuda"), requires_grad=False)
        self.a = nn.Parameter(torch.zeros(rank, inputs, device="cuda"))
        self.b = nn.Parameter(torch.zeros(outputs, rank, device="cuda"))

    def frozen(self):
        return self.weight

    def forward(self, x):
        return F.linear(x, self.frozen()) + F.linear(F.linear(x, self.a), self.b)


class Unpacked(torch.autograd.Function):
    """x W', with W unpacked from four bits for the product and again for the gradient, kept by neither."""

    @staticmethod
    def forward(ctx, x, module):
        ctx.module = module
        return F.linear(x, module.frozen())

    @staticmethod
    def backward(ctx, grad):
        return grad @ ctx.module.frozen(), None


class QloraLinear(LoraLinear):
    """The same, with the frozen weight in four bits and a scale per block."""

    def __init__(self, rank, inputs, outputs):
        super().__init__(rank, inputs, outputs)
        self.shape = self.weight.shape
        count = self.weight.numel()
        del self.weight
        self.codes = nn.Buffer(torch.zeros(count // 2, dtype=torch.uint8, device="cuda"))
        self.scales = nn.Buffer(torch.ones(count // FOUR_BIT_BLOCK, 1, device="cuda"))

    def frozen(self):
        low, high = self.codes & 15, self.codes >> 4
        values = torch.stack((low, high), 1).view(-1, FOUR_BIT_BLOCK)
        return values.sub(8.0).mul_(self.scales).view(self.shape)

    def forward(self, x):
        return Unpacked.apply(x, self) + F.linear(F.linear(x, self.a), self.b)


def linear(rank, quantized):
    """The class of the layers' matrices."""
    if not rank:
        return lambda inputs, outputs: nn.Linear(inputs, outputs, bias=False, device="cuda")
    kind = QloraLinear if quantized else LoraLinear
    return lambda inputs, outputs: kind(rank, inputs, outputs)


def shard(model, gpus):
    """PyTorch's FSDP, as on the first of several GPUs; the others are not there to answer."""
    from torch.distributed import init_process_group
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.testing._internal.distributed.fake_pg import FakeStore

    init_process_group("fake", store=FakeStore(), rank=0, world_size=gpus)
    mesh = init_device_mesh("cuda", (gpus,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
