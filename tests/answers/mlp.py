# SPDX-License-Identifier: MIT
"""The MLP of train.py in every configuration of its table: categories at the ends of forward, backward
and step, peaks and their phases, to the byte."""
import table
from harness import Traced, equal, expect, record

MOMENTS = ("forward", "backward", "end")


# optimizer, variant, loss
ROWS = [
    ("adam", "plain", "mse"),
    ("adam", "plain", "sum"),
    ("adam", "checkpoint", "mse"),
    ("adam", "checkpoint", "sum"),
    ("adam", "bf16", "mse"),
    ("adam", "bf16-checkpoint", "mse"),
    ("adam", "accumulate", "mse"),
    ("adam", "keep-grads", "mse"),
    ("adam", "no-foreach", "mse"),
    ("adam", "fused", "mse"),
    ("sgd", "plain", "mse"),
    ("sgd", "checkpoint", "mse"),
    ("sgd", "bf16", "mse"),
    ("sgd", "accumulate", "mse"),
    ("sgd", "keep-grads", "mse"),
    ("momentum", "plain", "mse"),
]
OLD = "2.6.0"
EVERYDAY = {("adam", "plain", "mse"), ("adam", "bf16", "mse")}


def check_row(build, optimizer, variant, loss, free_stacks, **more):
    more.update({"GPUTRACE_FREE_STACKS": "1"} if free_stacks else {})
    traced = Traced(build, "train.py", "--optimizer", optimizer, "--variant", variant, "--loss", loss,
                    **more)
    answer = traced.json("steps")
    equal((answer["source"], len(answer["steps"])), ("inferred", 4), "steps")
    rows, peaks = [], []
    for step in answer["steps"][:3]:
        for moment in MOMENTS:
            wanted = table.expected(optimizer, variant, step["step"], moment, loss)
            rows.append((step["step"], moment, step["categories"][moment], wanted))
    name = "%s %s %s%s" % (optimizer, variant, loss, " free-stacks" if free_stacks else "")
    table.print_table(name, rows)
    off = [abs(ours["activations"] - wanted["activations"]) for _, _, ours, wanted in rows]
    print("#   rounding, in activations: %d B at most" % max(off))
    for step in answer["steps"][:3]:
        ours = step["peak_allocated"] - step["categories"]["peak"]["workspaces"], step["peak_phase"]
        wanted = table.peak(optimizer, variant, loss, step["step"])
        print("#   %d    peak      %10d %10d in %s, %s" % (step["step"], ours[0], wanted[0], ours[1], wanted[1]))
        peaks.append((step["step"], ours, wanted))
    exact = [sum(ours[key] == wanted[key] for _, _, ours, wanted in rows) for key in table.KEYS]
    record("mlp", name, more.get("TORCH", "2.11.0"), *exact, max(off),
           sum(ours == wanted for _, ours, wanted in peaks))
    for number, moment, ours, wanted in rows:
        for key in table.KEYS:
            # rounding: a loss's scalar that Python holds may stand in the other category
            slack = table.ROUNDING if key == "activations" else 0
            expect(abs(ours[key] - wanted[key]) <= slack, "%s at the end of %s of step %d is %d, not %d" %
                   (key, moment, number, ours[key], wanted[key]))
        equal(ours["unknown"], 0, "unknown at the end of %s of step %d" % (moment, number))
    for number, ours, wanted in peaks:
        equal(ours, wanted, "peak of step %d" % number)


def print_summary(rows):
    """At how many of the nine moments each category is as expected, to the byte, and how many peaks are."""
    print("# %-32s %-7s %s %9s  %s" % ("MLP", "PyTorch", " ".join("%15s" % k for k in table.KEYS), "rounding",
                                     "peaks"))
    for name, version, *exact, rounding, peaks in rows:
        cells = " ".join("%10d of 9" % n for n in exact)
        print("# %-32s %-7s %s %7d B  %d of 3" % (name, version, cells, rounding, peaks))


def check_old(build, *row):
    """Before 2.11 the workspace of cuBLASLt has no name, but it is gone before the forward ends."""
    check_row(build, *row, False, TORCH=OLD)


CASES = {"categories-2.6-%s-%s-%s" % row: (False, check_old, *row) for row in ROWS}
for row in ROWS:
    for stacks in (False, True):
        case = "categories-%s-%s-%s%s" % (*row, "-free" if stacks else "")
        CASES[case] = (row in EVERYDAY and not stacks, check_row, *row, stacks)
CASES["categories-momentum-plain-mse-free"] = (True, *CASES["categories-momentum-plain-mse-free"][1:])
