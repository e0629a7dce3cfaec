# SPDX-License-Identifier: MIT
"""Runs out of device memory in the ways that must be told apart; give them in order:

recovered  a request fails in the driver and succeeds after PyTorch has freed its cache
caught     a request fails for good, the program catches the error and goes on with less
fatal      the same, uncaught: the process ends with status 1

Without arguments: caught fatal. Devices of 8 GiB are assumed (sizes are shares of the capacity).
"""

import sys

import torch


def request(share):
    """That many 64ths of the device."""
    total = torch.cuda.mem_get_info()[1]
    return torch.empty(total * share // 64, dtype=torch.uint8, device="cuda")


def load_weights():
    """A line each, so five holders: 24 shares in all."""
    weights = [request(7)]
    weights.append(request(6))
    weights.append(request(5))
    weights.append(request(4))
    weights.append(request(2))
    return weights


def recovered():
    cached = [request(2) for _ in range(16)]
    del cached
    return request(24)


def caught():
    try:
        return request(48)
    except torch.cuda.OutOfMemoryError:
        print("caught one, going on with a smaller batch", flush=True)
        return request(8)


def fatal():
    return request(50)


def main():
    weights = load_weights()
    for name in sys.argv[1:] or ["caught", "fatal"]:
        batch = {"recovered": recovered, "caught": caught, "fatal": fatal}[name]()
        print(name, "holds", len(weights), "weights and", batch.numel(), "bytes", flush=True)
        del batch


if __name__ == "__main__":
    main()
