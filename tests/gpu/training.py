# SPDX-License-Identifier: MIT
"""PyTorch programs for the check on a GPU.

usage: training.py state|speed HISTORY|nccl
"""
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "torch"))
import report  # noqa: E402  (first: it sets what PyTorch reads at its import)
import gpt2  # noqa: E402

import torch  # noqa: E402


def state():
    """Trains a little; then the allocator's segments and counters as PyTorch sees them."""
    model = gpt2.GPT(1000, 128, 256, 4, 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(6):
        gpt2.train_step(model, optimizer, 8, 128, 1000)
    torch.cuda.synchronize()
    segments = torch.cuda.memory._snapshot()["segments"]
    blocks = [b for s in segments for b in s["blocks"] if b["state"] == "active_allocated"]
    print(json.dumps({
        **report.figures(0), "segments": sorted((s["address"], s["total_size"]) for s in segments),
        "blocks": sorted((b["address"], b["size"]) for b in blocks), "free": torch.cuda.mem_get_info()[0]}))
    sys.stdout.flush()
    os._exit(0)


def speed():
    """Milliseconds of a step, median of 40, on a model that keeps a GPU busy."""
    history = sys.argv[2]
    if history != "none":
        torch.cuda.memory._record_memory_history("all", context="alloc", stacks=history, max_entries=100000)
    small = os.environ.get("GPUTRACE_GPU_CHECK") == "sim"
    width, layers, batch, length = (128, 2, 2, 64) if small else (1024, 12, 16, 512)
    model = gpt2.GPT(8000, length, width, layers, 8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    times = []
    for _ in range(15 if small else 50):
        begin = time.perf_counter()
        gpt2.train_step(model, optimizer, batch, length, 8000)
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - begin))
    print(json.dumps({"ms": statistics.median(times[10:])}))


def nccl():
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    dist.init_process_group("nccl", rank=0, world_size=1)
    x = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(x)
    torch.cuda.synchronize()
    print(json.dumps({"sum": x.sum().item()}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    {"state": state, "speed": speed, "nccl": nccl}[sys.argv[1]]()
