"""Torch work whose allocations have many kinds of stacks: autograd threads, C++ exceptions, Python
threads, callbacks from C, deep recursion, generators, checkpointing, modules loaded and unloaded.

usage: torch_load.py SECONDS-WORTH (a count: rounds of everything)
"""
import ctypes
import functools
import sys
import threading

import torch
import torch.utils.checkpoint

DEVICE = "cuda:0"


class Block(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.inner = Block(width, depth - 1) if depth else None

    def forward(self, x):
        x = torch.relu(self.linear(x))
        return self.inner(x) if self.inner is not None else x


def train(steps, depth=6):
    model = Block(32, depth).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = model(torch.randn(16, 32, device=DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def inference(depth=20):
    with torch.no_grad():
        Block(16, depth).to(DEVICE)(torch.ones(4, 16, device=DEVICE))


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        grad * 3
        raise ValueError("from backward")


def exceptions():
    for make in (
        lambda: torch.ones(2, 3, device=DEVICE) @ torch.ones(2, 3, device=DEVICE),
        lambda: torch.ones(2, device=DEVICE).reshape(5),
        lambda: Fails.apply(torch.ones(8, device=DEVICE, requires_grad=True)).sum().backward(),
        lambda: torch.empty(1 << 50, device=DEVICE),
    ):
        try:
            make()
        except (RuntimeError, ValueError):
            torch.ones(3, device=DEVICE)


def callbacks():
    one = lambda *_: torch.empty(16, device=DEVICE)
    functools.reduce(lambda a, b: one(), range(10), one())
    list(map(one, range(10)))
    sorted(range(10), key=lambda i: (one(), i)[1])
    sum(one().numel() for _ in range(5))
    libc = ctypes.CDLL(None)
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    values = (ctypes.c_int * 12)(*range(12, 0, -1))
    libc.qsort(values, 12, ctypes.sizeof(ctypes.c_int), kind(lambda a, b: (one(), a[0] - b[0])[1]))


def recursion(depth):
    """Through C at every level, so that the native stack grows too."""
    torch.empty(8, device=DEVICE)
    if depth:
        list(map(recursion, [depth - 1]))


def checkpointing():
    model = Block(16, 2).to(DEVICE)
    x = torch.randn(4, 16, device=DEVICE, requires_grad=True)
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True).sum().backward()
    torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()


def load_and_unload():
    torch.empty(8, device=DEVICE)
    handle = ctypes.CDLL("libresolv.so.2")
    ctypes.CDLL(None).dlclose(ctypes.c_void_p(handle._handle))
    torch.empty(8, device=DEVICE)


def main():
    for i in range(int(sys.argv[1])):
        workers = [threading.Thread(target=train, args=(6,)) for _ in range(3)]
        for worker in workers:
            worker.start()
        train(12)
        for worker in workers:
            worker.join()
        inference()
        inference(40)
        for _ in range(5):
            exceptions()
            callbacks()
            checkpointing()
            load_and_unload()
        recursion(12)
        recursion(60)
    print(torch.cuda.memory_allocated() >= 0)


main()
