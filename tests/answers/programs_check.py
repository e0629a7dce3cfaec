# SPDX-License-Identifier: MIT
"""The programs of programs.py against their bytes by category, worked out from shapes.

Workspaces stand apart: how many there are depends on the libraries below PyTorch.
"""
import os
import subprocess

from harness import HERE, Skipped, Traced, equal, expect

ROUNDING = 512  # a scalar that Python holds may count as an activation
MLP = 10499072
# Of the backward pass in the middle: weights, gradients at its end, optimizer state, activations at its
# start and end, inputs, temporaries at its start; the peak of its step, and in which phase.
TABLE = {
    "adam": (MLP, MLP, 2 * MLP, 851968, 65536, 131072, 65536, 52757504, "optimizer"),
    "sgd": (MLP, MLP, 0, 851968, 65536, 131072, 65536, 21522944, "backward"),
    "momentum": (MLP, MLP, MLP, 851968, 65536, 131072, 65536, 32022016, "backward"),
    "eight_bit": (MLP, MLP, 5336064, 851968, 65536, 131072, 65536, 43373568, "optimizer"),
    "accumulation": (MLP, MLP, 2 * MLP, 851968, 0, 131072, 512, 52626944, "optimizer"),
    "halves": (MLP, MLP, 2 * MLP, 327680, 327680, 131072, 65536, 53019648, "optimizer"),
    "ema": (3 * MLP, MLP, 2 * MLP, 851968, 0, 131072, 65536, 73690112, "optimizer"),
    "flat": (MLP, MLP, 2 * MLP, 851968, 0, 131072, 65536, 52691968, "optimizer"),
    "masters": (15748608, 5249536, 2 * MLP, 425984, 0, 65536, 32768, 57843200, "optimizer"),
    "lora": (17055744, 262144, 524288, 2105344, 0, 262144, 512, 20997120, "backward"),
    "frozen": (8421888, 1071616, 2143232, 529920, 262144, 132096, 512, 13103104, "optimizer"),
    "by_hand": (4194304, 4194304, 4194304, 655360, 131072, 262144, 512, 13108224, "backward"),
    "on_device": (4329472, 4198400, 8396800, 656384, 0, 131072, 512, 21254656, "optimizer"),
    # 2,164,736 of parameters; a causal mask and a scalar for each of two layers
    "gpt2": (2164736 + 2 * (16384 + 512), 2164736, 4329472, 9335808, 524288, 2048, 1024512,
             18902528 + 2 * (16384 + 512), "backward"),
}
# Allocations before each step.
STEPS = {
    "adam": [8, 59, 94, 129, 164, 199],
    "sgd": [8, 35, 62, 89, 116, 143],
    "accumulation": [8, 148, 272, 396, 520],
}
EVERYDAY = {"masters", "by_hand"}
COLUMNS = ("weights", "gradients", "optimizer", "activ. fwd", "activ. bwd", "inputs", "tempor. fwd",
           "peak")


def extras(build):
    done = subprocess.run([os.path.join(HERE, "extras")], env=dict(os.environ, GT_BUILD=build),
                          capture_output=True, text=True)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip())
    equal(done.returncode, 0, "status of extras")
    return {"PYTHONPATH": done.stdout.strip()}


def check_program(build, name, **environment):
    if name == "gpt2":
        environment.update(extras(build))
    traced = Traced(build, "programs.py", name, "5" if name == "gpt2" else "6", **environment)
    lives, steps = traced.lives(), traced.json("steps")["steps"]
    first, last = lives.passes[len(lives.passes) // 2]
    forward, backward = lives.categories(first), lives.categories(last + 1)
    step = steps[len(steps) // 2]
    ours = (forward["weights"], backward.get("gradients", 0), forward.get("optimizer_state", 0),
            forward.get("activations", 0), backward.get("activations", 0), forward["inputs"],
            forward.get("temporaries", 0),
            step["peak_allocated"] - step["categories"]["peak"]["workspaces"])
    wanted = TABLE[name]
    print("# %-13s %s" % (name, " ".join("%12s" % c for c in COLUMNS)))
    print("#   ours        %s" % " ".join("%12d" % n for n in ours))
    print("#   expected    %s" % " ".join("%12d" % n for n in wanted[:8]))
    print("#   rounding %d B; unknown %d B" % (ours[3] - wanted[3], forward.get("unknown", 0)))
    for column, got, expected in zip(COLUMNS, ours, wanted):
        slack = ROUNDING if column.startswith(("activ", "tempor")) else 0
        expect(abs(got - expected) <= slack, "%s: %d, not %d" % (column, got, expected))
    equal(step["peak_phase"], wanted[8], "phase of the peak")
    equal(forward.get("unknown", 0), 0, "unknown")
    if name in STEPS:
        equal(lives.allocations_before_steps()[:len(STEPS[name])], STEPS[name], "steps")


CASES = {"program-" + name: (name in EVERYDAY, check_program, name) for name in TABLE}
