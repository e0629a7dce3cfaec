# SPDX-License-Identifier: MIT
"""Steps of loops of every shape: no allocation lies between the step that is found and the true one."""
from harness import Traced, equal, expect, record

# loop: source, or with None: no steps are found. Steps found where not all can be known.
LOOPS = {
    "nested": "inferred", "modulo": "inferred", "sizes": "inferred", "epochs": "inferred",
    "epochs_with_grad": "inferred", "evaluation_inside": "inferred", "gan": "inferred",
    "evaluation_inside_with_grad": "inferred", "critics": "inferred", "penalty": "inferred",
    "trainer": "inferred", "dataset": "inferred", "closure": "inferred", "closure_on_one_line": "inferred",
    "in_hooks": "inferred",
    "two_loops": "inferred", "prefetch": "inferred", "while_true": "inferred", "four": "inferred",
    "hidden": "inferred", "cut_short": "inferred", "cut_short_in_accumulation": "inferred",
    "inference": "loop", "generation": "loop", "one_line": "period", "nvtx": "nvtx", "marks": "marks",
    "single": None, "comparison": None, "at_random": None,
}
FOUND = {"hidden": 12}
EVERYDAY = {"critics", "dataset", "generation", "nvtx"}


def check_loop(build, name):
    traced = Traced(build, "loops.py", name)
    truth = next(line for line in traced.done.stdout.splitlines() if line.startswith("TRUTH"))
    truth = [int(n) for n in truth.split()[1:]]
    lives, answer = traced.lives(), traced.json("steps")
    births = [life.born for life in lives.lives]
    found = [sum(born < step[0] for born in births) for step in lives.steps]
    print("# %-18s %-8s confidence %.2f  true %s found %s" %
          (name, answer["source"], answer["confidence"] or 0, truth, found))
    record("loops", name, answer["source"], answer["confidence"] or 0, len(found), len(truth),
           len(set(found) & set(truth)))
    if not LOOPS[name]:
        equal((answer["source"], answer["steps"]), ("none", []), "steps")
        expect(traced.first_line("steps").startswith("No steps found"), traced.first_line("steps"))
        return
    equal(answer["source"], LOOPS[name], "source")
    if name in FOUND:
        equal(len(found), FOUND[name], "steps")
    elif name == "generation":  # the first token of a request begins where the request does
        equal(len(found), len(truth), "steps")
        expect(sum(a == b for a, b in zip(found, truth)) >= 27, "fewer than 27 exact")
    elif name == "one_line":  # a period tells how long a step is, not where it begins
        per_step = {b - a for a, b in zip(found, found[1:])}
        equal(per_step, {truth[-1] - truth[-2]}, "allocations per step")
        expect(len(truth) - len(found) <= 2, "%d of %d steps" % (len(found), len(truth)))
    else:
        equal(found, truth, "allocations before each step")
    equal(" (few) steps" in traced.run("steps"), len(found) < 5, "few steps")


def print_table(rows):
    """How many of the boundaries that were found are the true ones, to the allocation."""
    print("# %-28s %-9s %10s %6s %6s %6s" % ("loop", "source", "confidence", "found", "true", "exact"))
    for row in rows:
        print("# %-28s %-9s %10.2f %6d %6d %6d" % row)


CASES = {"loop-" + name: (name in EVERYDAY, check_loop, name) for name in LOOPS}
