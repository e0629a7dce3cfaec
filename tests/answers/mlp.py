# SPDX-License-Identifier: MIT
"""The MLP of train.py in every configuration of its table: categories at the ends of forward, backward
and step, peaks and their phases, to the byte."""
import table
from harness import Traced, equal, expect

MOMENTS = ("forward", "backward", "end")


# optimizer, variant, loss, phase of the peak in steps 2 and 3
ROWS = [
    ("adam", "plain", "mse", "optimizer"),
    ("adam", "plain", "sum", "optimizer"),
    ("adam", "checkpoint", "mse", "optimizer"),
    ("adam", "accumulate", "mse", "optimizer"),
    ("adam", "keep-grads", "mse", "optimizer"),
    ("adam", "no-foreach", "mse", "optimizer"),
    ("adam", "fused", "mse", "backward"),
    ("sgd", "plain", "mse", "backward"),
    ("sgd", "checkpoint", "mse", "backward"),
    ("sgd", "accumulate", "mse", "backward"),
    ("sgd", "keep-grads", "mse", "backward"),
    ("momentum", "plain", "mse", "backward"),
]
EVERYDAY = {("adam", "plain", "mse"), ("adam", "checkpoint", "mse")}


def check_row(build, optimizer, variant, loss, phase, free_stacks):
    more = {"GPUTRACE_FREE_STACKS": "1"} if free_stacks else {}
    traced = Traced(build, "train.py", "--optimizer", optimizer, "--variant", variant, "--loss", loss,
                    **more)
    answer = traced.json("steps")
    equal((answer["source"], len(answer["steps"])), ("inferred", 4), "steps")
    rows = []
    for step in answer["steps"][:3]:
        for moment in MOMENTS:
            wanted = table.expected(optimizer, variant, step["step"], moment, loss,
                                    free_stacks)
            rows.append((step["step"], moment, step["categories"][moment], wanted))
    name = "%s %s %s%s" % (optimizer, variant, loss, " free-stacks" if free_stacks else "")
    table.print_table(name, rows)
    print("#   peaks %s, in %s" % ([s["peak_allocated"] for s in answer["steps"]],
                                   [s["peak_phase"] for s in answer["steps"]]))
    for number, moment, ours, wanted in rows:
        for key in table.KEYS:
            # rounding: a loss's scalar that Python holds may stand in the other category
            slack = table.ROUNDING if key == "activations" else 0
            expect(abs(ours[key] - wanted[key]) <= slack, "%s at the end of %s of step %d is %d, not %d" %
                   (key, moment, number, ours[key], wanted[key]))
        equal(ours["unknown"], 0, "unknown at the end of %s of step %d" % (moment, number))
    for step in answer["steps"][1:3]:
        equal(step["peak_phase"], phase, "phase of the peak of step %d" % step["step"])


CASES = {}
for row in ROWS:
    for stacks in (False, True):
        case = "categories-%s-%s-%s%s" % (*row[:3], "-free" if stacks else "")
        CASES[case] = (row[:3] in EVERYDAY and not stacks, check_row, *row, stacks)
CASES["categories-momentum-plain-mse-free"] = (True, *CASES["categories-momentum-plain-mse-free"][1:])
