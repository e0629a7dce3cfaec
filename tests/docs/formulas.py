# SPDX-License-Identifier: MIT
"""What each technique's page must show: the category that it changes, and by how much.

The left side is gputrace's: `diff --by category` at the peaks of the page's two runs. The right side is
worked out here from the shapes in programs/train.py; docs/accounting.md has the formulas in words.
"""
import json
import subprocess

LAYERS, WIDTH, ROWS = 12, 1024, 16384
PARAMETERS = LAYERS * 2 * WIDTH * 4 * WIDTH
MATRICES = 2 * LAYERS
ROW = WIDTH * 4  # one row of a layer's input; its inside is four times as wide

# Saved for backward: the input and the inside of each layer. The first input is the batch's own.
SAVED = ROWS * ROW * (5 * LAYERS - 1)
STATE, WEIGHTS = 8 * PARAMETERS, 4 * PARAMETERS
ADAPTERS = MATRICES * 16 * (WIDTH + 4 * WIDTH)

# page: [(runs, category, what B has more than A)]; a number is met within 5 %, a sign as a sign
PAIR, MORE, LESS = ("before", "after"), "+", "-"
EXPECTED = {
    "batch-size": [
        (PAIR, "activations", -SAVED / 2),
        (PAIR, "inputs", -ROWS * ROW / 2),
        (PAIR, "optimizer_state", 0),
        (PAIR, "weights", 0),
    ],
    "accumulation": [
        (PAIR, "activations", -SAVED * 3 / 4),
        (PAIR, "gradients", MORE),  # kept from the passes before
        (PAIR, "optimizer_state", 0),
    ],
    "mixed-precision": [
        (PAIR, "activations", -(SAVED - ROWS * ROW) / 2 + 2 * PARAMETERS),  # and copies of the weights
        (PAIR, "weights", 0),
        (PAIR, "optimizer_state", 0),
    ],
    "checkpointing": [
        # what stays: the inputs of all layers, and what one layer computes again
        (PAIR, "activations", ROWS * ROW * (LAYERS - 1 + 4) - SAVED),
        (PAIR, "weights", 0),
        (PAIR, "optimizer_state", 0),
    ],
    "8-bit-optimizer": [
        (PAIR, "optimizer_state", PARAMETERS * 2 * (1 + 4 / 256) - STATE),
        (PAIR, "activations", 0),
        (PAIR, "weights", 0),
    ],
    "lora": [
        (PAIR, "optimizer_state", 8 * ADAPTERS - STATE),
        (PAIR, "weights", 4 * ADAPTERS),
        (PAIR, "gradients", LESS),
        (("after", "quantized"), "weights", PARAMETERS * (4 + 32 / 64) / 8 - WEIGHTS),
        (("after", "quantized"), "optimizer_state", 0),
    ],
    "offload": [
        (PAIR, "optimizer_state", -STATE),
        (PAIR, "weights", 0),
        (PAIR, "activations", 0),
    ],
    "sharding": [
        (PAIR, "optimizer_state", STATE / 4 - STATE),
        (PAIR, "weights", WEIGHTS / 4 - WEIGHTS),
        (PAIR, "activations", 0),
    ],
    "expandable-segments": [
        (PAIR, "activations", 0),
        (PAIR, "held", LESS),
    ],
}


def differences(tool, folder, runs):
    """category -> bytes that the second run has more, at the peaks; "held": the most that it held"""
    def ask(*args):
        done = subprocess.run([tool, *args, "--format", "json"], cwd=folder, capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout)
    found = {row["category"]: row["delta"] for row in ask("diff", "--by", "category", *runs)["rows"]}
    held = [ask("summary", run)["processes"][0]["devices"][0]["peak_reserved"] for run in runs]
    return dict(found, held=held[1] - held[0])


def wrong(got, wanted):
    if wanted == MORE:
        return got <= 0
    if wanted == LESS:
        return got >= 0
    return abs(got - wanted) > abs(wanted) / 20


def check(page, tool, folder):
    """What is not as expected, and one line of figures per expectation."""
    bad, figures, known = [], [], {}
    for runs, category, wanted in EXPECTED[page]:
        known[runs] = known.get(runs) or differences(tool, folder, runs)
        got = known[runs].get(category, 0)
        shown = wanted if isinstance(wanted, str) else "%d" % wanted
        figures.append("# %s %s to %s: %s %d, formula %s" % (page, *runs, category, got, shown))
        if wrong(got, wanted):
            bad.append("%s changes by %d, not %s" % (category, got, shown))
    return bad, figures
