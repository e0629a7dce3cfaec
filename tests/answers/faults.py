# SPDX-License-Identifier: MIT
"""Small trainings, each with one fault planted in it. usage: faults.py FAULT

The line to be named by the answers carries the comment "the fault".
"""
import ctypes
import os
import signal
import subprocess
import sys
import tempfile

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

MIB = 1 << 20


def mlp(width=1024):
    return nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 256)).cuda()


def start_worker(name):
    """A process of its own, waited for until it says that it has begun; it ends with its input."""
    worker = subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker.stdout.readline()
    return worker


def train(steps, after=lambda model, out: None, model=None, rows=lambda step: 2048,
          make=torch.optim.Adam):
    model = model or mlp()
    optimizer = make(model.parameters())
    for step in range(steps):
        x = torch.randn(rows(step), 256).to("cuda")  # the fault: long_batch
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


def evaluation_with_gradients():
    model = mlp()
    train(4, model=model)
    outputs = []
    while True:
        x = torch.randn(2048, 256).to("cuda")
        outputs.append(model(x))  # the fault: evaluation_with_gradients


def evaluation_outputs():
    seen, batch = [], torch.randn(65536, 256).to("cuda")

    def evaluate(model, out):
        seen.append(None)
        if len(seen) % 2 == 0:
            with torch.no_grad():
                seen[-1] = model(batch)  # the fault: evaluation_outputs
    train(1000, evaluate)


def shape_cache():
    masks = {}

    def mask(n):
        if n not in masks:
            masks[n] = torch.ones(n, n, device="cuda")  # the fault: shape_cache
        return masks[n]
    train(1000, lambda model, out: mask(1024 + 64 * len(masks)))


def idle_context():
    worker = start_worker("idle_worker")
    os.dup(worker.stdin.fileno())  # which the kernel closes last: the worker outlives this interpreter
    train(6)


def idle_worker():
    torch.cuda.mem_get_info()  # the fault: idle_context


def idle_workers():
    workers = [start_worker("one_of_idle_workers") for _ in range(4)]
    os.environ["GT_SIM_OTHERS"] = ",".join("%d:1000" % worker.pid for worker in workers)
    bank = []
    while True:
        bank.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))


def one_of_idle_workers():
    torch.cuda.mem_get_info()  # the fault: idle_workers


def pinned_memory():
    kept = torch.zeros(1 << 20).pin_memory()  # the fault: pinned_memory
    torch.cuda.set_device(1)
    train(6)
    del kept


def forked_holder():
    child, ready = fork_holder()
    os.environ["GT_SIM_OTHERS"] = "%d:6000" % child
    os.read(ready, 1)
    bank = []
    while True:
        bank.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))


def fork_holder():
    """A child that holds memory until it is killed with its parent. Its pid, and a pipe."""
    ready, told = os.pipe()
    child = os.fork()
    if child:
        return child, ready
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG
    held = torch.empty(6000 * MIB, dtype=torch.uint8, device="cuda")  # the fault: forked_holder
    os.write(told, b".")
    while held is not None:
        signal.pause()


def graph_pools():
    batch = torch.empty(64 * MIB, device="cuda")
    graphs = []
    for i in range(12):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            half = batch[:(i + 4) * 4 * MIB] * 2  # the fault: graph_pools
            total = half.sum()
            del half
        graphs.append((graph, total))
    bank = []
    while True:
        bank.append(torch.empty(512 * MIB, dtype=torch.uint8, device="cuda"))


def caught_oom():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    errors, rows = [], 300000

    def step(rows):
        x = torch.randn(rows, 256, device="cuda")
        hidden = model(x)  # the fault: caught_oom
        loss = hidden.square().mean()
        loss.backward()
        optimizer.step()
    for _ in range(3):
        step(2048)
    while len(errors) < 3:
        try:
            step(rows)
        except torch.OutOfMemoryError as error:
            errors.append(error)
            rows = rows * 9 // 10
    raise errors[-1]


def traceback_kept():
    errors = []

    def metric(model, out):
        scores = torch.cat([out.detach()] * 4).softmax(1)  # the fault: traceback_kept
        raise ValueError("no labels for %d rows" % len(scores))

    def after(model, out):
        try:
            metric(model, out)
        except ValueError as error:
            errors.append(error)
    train(1000, after)


def load_twice():
    model = nn.Sequential(*[nn.Linear(8192, 8192) for _ in range(9)])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        torch.save(model.state_dict(), path)
        model.cuda()
        state = torch.load(path, map_location="cuda")  # the fault: load_twice
        model.load_state_dict(state)


def few_steps():
    """Dies of its growth before ten steps are over."""
    total = []
    x = torch.randn(32768, 256).to("cuda")

    def validate(model, out):
        total.append(F.mse_loss(model(x), x))  # the fault: few_steps
    train(1000, validate)


def kept_batches():
    """Batches come ahead of their step, from a generator, and one forgotten list has them all."""
    seen = []

    def load():
        batch = torch.randn(2048, 256).to("cuda")  # the fault: kept_batches
        seen.append(batch)
        return batch

    def batches(ahead=4):
        queue = [load() for _ in range(ahead)]
        while True:
            queue.append(load())
            yield queue.pop(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    for batch in batches():
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def healthy():
    train(14, rows=lambda step: 256 + 64 * (step % 5))


def conv_workspace():
    train(4)
    torch.backends.cudnn.enabled = False
    images = torch.empty(1, 64, 1024, 1024, device="cuda")
    F.conv2d(images, torch.empty(8, 64, 11, 11, device="cuda"))  # the fault: conv_workspace


if __name__ == "__main__":
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
    if "worker" in sys.argv[1] and sys.argv[1] != "idle_workers":
        print("ready", flush=True)
        sys.stdin.read()
