# SPDX-License-Identifier: MIT
"""What the training programs here say about memory: PyTorch's own figures, one JSON line each.

Import it before torch: it asks for small cuBLAS workspaces, whose default of 32 MiB per handle would
hide everything else in models of this size.
"""

import json
import os
import pickle
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":16:8")
os.environ.setdefault("CUBLASLT_WORKSPACE_SIZE", "128")

import torch  # noqa: E402


def figures(device):
    return {
        "allocated": torch.cuda.memory_allocated(device),
        "reserved": torch.cuda.memory_reserved(device),
        "max_allocated": torch.cuda.max_memory_allocated(device),
        "max_reserved": torch.cuda.max_memory_reserved(device),
    }


def report(step, devices, hold=False, **more):
    """Prints the line; with hold, goes on only after a line has come on standard input."""
    line = {"step": step, **more, "devices": [figures(d) for d in range(devices)]}
    print(json.dumps(line), flush=True)
    if hold and not sys.stdin.readline():
        sys.exit("standard input ended before the program did")


def write_snapshot(path):
    with open(path, "wb") as out:
        pickle.dump(torch.cuda.memory._snapshot(), out)
