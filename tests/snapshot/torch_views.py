# SPDX-License-Identifier: MIT
"""Shows snapshots through PyTorch's own torch/cuda/_memory_viz.py: stats, trace and segments.

usage: torch_views.py FILE...     prints FILE and the lines of each view; an exception ends it
"""
import pickle
import sys

from torch.cuda import _memory_viz as viz

for path in sys.argv[1:]:
    with open(path, "rb") as f:
        snapshot = pickle.load(f)
    # the drawing of a flame graph needs a download; its input does not
    lines = viz.segments(snapshot, format_flamegraph=lambda text: text).splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in lines) == sum(
        s["total_size"] for s in snapshot["segments"]), "segments do not add up"
    print(path, len(viz.segsum(snapshot).splitlines()), len(viz.trace(snapshot).splitlines()), len(lines))
