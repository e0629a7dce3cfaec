# SPDX-License-Identifier: MIT
"""A program that tells gputrace where it is: two epochs of steps, each with an evaluation after it."""
import ctypes
import sys

import torch

trace = ctypes.CDLL(None)


def main():
    kept = []
    for epoch in range(1, 3):
        trace.gputrace_mark(b"epoch %d" % epoch)
        for _ in range(22):
            trace.gputrace_step()
            trace.gputrace_push(b"forward")
            kept.append(torch.empty(1 << 20, device="cuda") + 1)
            trace.gputrace_pop()
        trace.gputrace_window_begin(b"eval")
        torch.empty(8 << 20, device="cuda")
        trace.gputrace_window_end()
    if "--hold" in sys.argv:
        print("ready", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
