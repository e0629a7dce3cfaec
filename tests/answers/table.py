# SPDX-License-Identifier: MIT
"""What each category of train.py's MLP holds, worked out from its shapes, and the table beside ours."""

WEIGHTS = 4 * (256 * 1024 + 1024 + 2 * (1024 * 1024 + 1024) + 1024 * 256 + 256)
HIDDEN = 64 * 1024 * 4
EDGE = 64 * 256 * 4  # the input, the target, the output, and the storage that mse_loss keeps
ADAM = 2 * WEIGHTS
BATCH = 2 * EDGE
ROUNDING = 512  # a scalar that Python holds may count as an activation
KEYS = ("weights", "gradients", "optimizer_state", "activations", "inputs")


def expected(optimizer, variant, number, moment, loss, free_stacks):
    """Bytes by category at the end of forward, of backward and of step `number`."""
    state = {"adam": ADAM, "sgd": 0, "momentum": WEIGHTS}[optimizer]
    if variant == "fused":
        state += 8 * 512  # its step counters live on the device, a block each
    has_state = number > 1 or moment == "end"
    saved = {"checkpoint": HIDDEN}.get(variant, 3 * HIDDEN)
    output = 0 if variant == "accumulate" else EDGE
    if loss == "sum" and moment != "forward":
        output = EDGE
    grads = moment != "forward" or (number > 1 and variant == "keep-grads") or variant == "accumulate"
    if variant == "accumulate" and moment == "end" and not free_stacks:
        # zero_grad() comes first in the loop. Without a stack its frees belong to the step before,
        # which ends with the next allocation.
        grads = False
    return {
        "weights": WEIGHTS,
        "gradients": WEIGHTS if grads else 0,
        "optimizer_state": state if has_state else 0,
        "activations": output + (saved if moment == "forward" else 0) +
        (EDGE if variant == "accumulate" and moment == "forward" else 0),
        "inputs": BATCH,
    }


def print_table(name, rows):
    """rows: (step, moment, ours, wanted) with dictionaries by category."""
    print("# %s" % name)
    print("#   %-4s %-8s  %s" % ("step", "end of", "  ".join("%21s" % k for k in KEYS)))
    for number, moment, ours, wanted in rows:
        cells = ["%10d %10d" % (ours[k], wanted[k]) for k in KEYS]
        print("#   %-4d %-8s  %s" % (number, moment, "  ".join(cells)))
