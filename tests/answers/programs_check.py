# SPDX-License-Identifier: MIT
"""The programs of programs.py: bytes by category at the peak and at the ends of forward, backward and step
of the pass in the middle, steps, and the phase of the peak.

Ours stand beside what the program's tensors say in a run with labels, whichever the version of PyTorch,
and that beside figures worked out from shapes. Workspaces stand apart: how many there are depends on the
libraries below PyTorch.
"""
import os
import subprocess
from collections import Counter

from harness import HERE, Skipped, equal, expect, record
from truth import births_of, peak_of, run_both, truth_of

ROUNDING = 512  # a loss's scalar that Python holds may count as an activation, or as unknown
SCALARS = {"gan": 3}  # more than one
MLP = 10499072
CATEGORIES = ("weights", "gradients", "optimizer_state", "activations", "inputs", "temporaries", "workspaces",
              "unknown")
# Of the backward pass in the middle: weights, gradients at its end, optimizer state, activations at its
# start and end, inputs, temporaries at its start; the peak of the run, and in which phase.
FIGURES = {
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
PROGRAMS = (*FIGURES, "gan")
# Allocations before each step, without workspaces, with PyTorch 2.11.
STEPS = {
    "adam": [8, 59, 94, 129, 164, 199],
    "sgd": [8, 35, 62, 89, 116, 143],
    "accumulation": [8, 148, 272, 396, 520],
}
WORKED_OUT = ("2.6.0", "2.11.0")  # for these versions
PHASES = {"begin": "none", "forward": "forward", "backward": "backward", "copied": "none", "end": "optimizer"}
EVERYDAY = {"masters", "by_hand"}


def extras(build):
    done = subprocess.run([os.path.join(HERE, "extras")], env=dict(os.environ, GT_BUILD=build),
                          capture_output=True, text=True)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip())
    equal(done.returncode, 0, "status of extras")
    return {"PYTHONPATH": done.stdout.strip()}


def sums_at(blocks, position, labels):
    """Bytes by category before the event at the position: ours, the truth, and of the blocks that differ."""
    ours, truth, differ = Counter(), Counter(), Counter()
    for number, life in enumerate(blocks):
        if life.at(position):
            true = truth_of(life, number, labels)
            ours[life.category] += life.size
            truth[true] += life.size
            differ[true, life.category] += life.size * (true != life.category)
    return ours, truth, +differ


def births_before(blocks, position):
    return sum(life.born < position for life in blocks)


def check_moments(lives, blocks, moments):
    """Steps and passes lie where the program was, to the allocation."""
    def told(name):
        return [count for moment, count in moments if moment == name]
    equal([births_before(blocks, step[0]) for step in lives.steps], told("begin"), "allocations before steps")
    equal([births_before(blocks, first) for first, _ in lives.passes], told("forward"),
          "allocations before backward passes")
    equal([births_before(blocks, last + 1) for _, last in lives.passes], told("backward"),
          "allocations before ends of backward passes")


def phase_of(blocks, position, moments):
    """In which part of the program the block was made that was born just before the position."""
    number = births_before(blocks, position)
    return PHASES[next(moment for moment, count in moments if count >= number)]


def figures_of(points):
    """Those sums of (peak, forward, backward, step) that stand in FIGURES."""
    peak, forward, backward, _ = points
    return (forward["weights"], backward["gradients"], forward["optimizer_state"], forward["activations"],
            backward["activations"], forward["inputs"], forward["temporaries"],
            sum(peak.values()) - peak["workspaces"])


def print_points(title, points):
    print("# %-28s %s" % (title, " ".join("%15s" % c for c in CATEGORIES)))
    for moment, (ours, truth, _) in points.items():
        print("#   %-14s ours     %s" % (moment, " ".join("%12d" % ours[c] for c in CATEGORIES)))
        print("#   %-14s tensors  %s" % ("", " ".join("%12d" % truth[c] for c in CATEGORIES)))


def check_program(build, name, version):
    more = dict(extras(build) if name == "gpt2" else {}, TORCH=version)
    steps = "5" if name == "gpt2" else "6"
    lives, labels, moments, traced = run_both(build, "programs.py", name, steps, **more)
    blocks = births_of(lives, 0)
    first, last = lives.passes[len(lives.passes) // 2]
    end = next(step[3] for step in lives.steps if step[3] > last)
    positions = {"peak": peak_of(blocks), "end of forward": first, "end of backward": last + 1,
                 "end of step": end}
    points = {moment: sums_at(blocks, position, labels) for moment, position in positions.items()}
    print_points("%s, PyTorch %s" % (name, version), points)
    answer = traced.json("steps")["steps"]
    highest = max(answer, key=lambda step: step["peak_allocated"])
    phase = phase_of(blocks, positions["peak"], moments)
    rounding = max(sum(differ.values()) for _, _, differ in points.values())
    record("programs", name, version, rounding, max(ours["unknown"] for ours, _, _ in points.values()),
           len(lives.steps), sum(moment == "begin" for moment, _ in moments),
           highest["peak_allocated"], highest["peak_phase"])
    allowed = {("temporaries", "unknown" if name in SCALARS else "activations")}
    for moment, (_, _, differ) in points.items():
        expect(set(differ) <= allowed and sum(differ.values()) <= ROUNDING * SCALARS.get(name, 1),
               "%s: %r" % (moment, dict(differ)))
    check_moments(lives, blocks, moments)
    equal(highest["peak_allocated"], sum(points["peak"][0].values()), "peak")
    equal(highest["peak_phase"], phase, "phase of the peak")
    if version in WORKED_OUT and name in FIGURES:
        equal(figures_of([truth for _, truth, _ in points.values()]), FIGURES[name][:-1], "what tensors say")
        equal(phase, FIGURES[name][-1], "phase of the peak")
    if version == "2.11.0" and name in STEPS:
        equal(lives.allocations_before_steps()[:len(STEPS[name])], STEPS[name], "steps")


def print_table(rows):
    """One line for each program and version: most bytes that are not what the tensors say, and steps."""
    print("# %-13s %-7s %15s %9s %12s %11s %12s  %s" % ("program", "PyTorch", "not as tensors", "unknown",
                                                      "steps found", "there are", "peak", "in phase"))
    for name, version, *cells in rows:
        print("# %-13s %-7s %13d B %7d B %12d %11d %12d  %s" % (name, version, *cells))


CASES = {"program-" + name: (name in EVERYDAY, check_program, name, "2.11.0") for name in PROGRAMS}
# Before 2.11 the workspace of cuBLASLt has no name; nor is it there at any of the moments.
CASES.update({"program-%s-%s" % (version[:-2], name): (False, check_program, name, version)
              for version in ("2.6.0", "2.15.0") for name in PROGRAMS})
