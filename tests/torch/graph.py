#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures a small model into a CUDA graph and replays it: its memory is in a private pool.

Prints one line of JSON: reserved bytes before, after the capture, after three replays and after
the graph is gone; with backend:cudaMallocAsync the blocks are memory nodes of the graph instead.
"""

import json

import torch


def reserved():
    return torch.cuda.memory_reserved()


def main():
    device = torch.device("cuda", 0)
    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, device=device) for _ in range(4)])
    batch = torch.zeros(64, 1024, device=device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            model(batch).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    figures = {"before": reserved()}
    graph = torch.cuda.CUDAGraph()
    model.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = model(batch).sum()
        loss.backward()
    figures["captured"] = reserved()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    figures["replayed"] = reserved()
    model.zero_grad(set_to_none=True)
    del loss, graph
    torch.cuda.empty_cache()
    figures["gone"] = reserved()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
