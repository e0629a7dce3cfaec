# SPDX-License-Identifier: MIT
"""What each category of train.py's MLP holds, worked out from its shapes, and the table beside ours."""

WEIGHTS = 4 * (256 * 1024 + 1024 + 2 * (1024 * 1024 + 1024) + 1024 * 256 + 256)
HIDDEN = 64 * 1024 * 4
EDGE = 64 * 256 * 4  # the input, the target, the output, and the storage that mse_loss keeps
ADAM = 2 * WEIGHTS
BATCH = 2 * EDGE
# Under autocast: copies in 2 bytes of the input, of the weights that a gradient passes through, and in
# 4 bytes of the output, for the loss.
CASTS = EDGE // 2 + 2 * 1024 * 1024 * 2 + 1024 * 256 * 2
ROUNDING = 512  # a scalar that Python holds may count as an activation
KEYS = ("weights", "gradients", "optimizer_state", "activations", "inputs")


def expected(optimizer, variant, number, moment, loss):
    """Bytes by category at the end of forward, of backward and of step `number`."""
    state = {"adam": ADAM, "sgd": 0, "momentum": WEIGHTS}[optimizer]
    if variant == "fused":
        state += 8 * 512  # its step counters live on the device, a block each
    has_state = number > 1 or moment == "end"
    saved = {"checkpoint": HIDDEN, "bf16": 3 * HIDDEN // 2 + CASTS + EDGE,
             "bf16-checkpoint": HIDDEN // 2 + EDGE}.get(variant, 3 * HIDDEN)
    output = 0 if variant == "accumulate" or variant.startswith("bf16") else EDGE
    if loss == "sum" and moment != "forward":
        output = EDGE
    grads = moment != "forward" or (number > 1 and variant == "keep-grads") or variant == "accumulate"
    return {
        "weights": WEIGHTS,
        "gradients": WEIGHTS if grads else 0,
        "optimizer_state": state if has_state else 0,
        "activations": output + (saved if moment == "forward" else 0) +
        (EDGE if variant == "accumulate" and moment == "forward" else 0),
        "inputs": BATCH,
    }


# Most in use in step 1 and in later ones, without workspaces; phase. Where the peak is in the optimizer,
# the output and the loss that train.py's names still hold come on top.
PEAKS = {
    ("adam", "fused"): (42131456, "optimizer", 42525184, "backward"),
    ("adam", "no-foreach"): (50520064, "optimizer") * 2,
    ("sgd", "plain"): (21522944, "backward") * 2,
    ("sgd", "checkpoint"): (21522944, "backward") * 2,
    ("sgd", "bf16"): (22565376, "backward") * 2,
    ("sgd", "accumulate"): (26507776 - 2 * EDGE + 512, "backward") * 2,  # its output has no name
    ("sgd", "keep-grads"): (21522944, "backward", 26507776, "backward"),
    ("momentum", "plain"): (31628288, "optimizer", 32022016, "backward"),
}


def peak(optimizer, variant, loss, number):
    """Bytes and phase of the peak of step `number`."""
    row = PEAKS.get((optimizer, variant), (52626432, "optimizer") * 2)
    most, phase = row[:2] if number == 1 else row[2:]
    if phase == "optimizer":
        most += {"accumulate": 512, "bf16": EDGE // 2 + EDGE, "bf16-checkpoint": EDGE // 2 + EDGE}.get(
            variant, 2 * EDGE if loss == "mse" else EDGE + 512)
    return most, phase


def print_table(name, rows):
    """rows: (step, moment, ours, wanted) with dictionaries by category."""
    print("# %s" % name)
    print("#   %-4s %-8s  %s" % ("step", "end of", "  ".join("%21s" % k for k in KEYS)))
    print("#   %-4s %-8s  %s" % ("", "", "  ".join(["%10s %10s" % ("ours", "expected")] * len(KEYS))))
    for number, moment, ours, wanted in rows:
        cells = ["%10d %10d" % (ours[k], wanted[k]) for k in KEYS]
        print("#   %-4d %-8s  %s" % (number, moment, "  ".join(cells)))
