# SPDX-License-Identifier: MIT
"""Figures of real PyTorch: pairs and steps beside its own memory history; bytes per event."""
import subprocess
import sys
import tempfile

from measure import QUICK, RING, ROOT, ROUNDS, TRACED, Traced, added, at_least, bench, figure, ratio, run, side_by_side


def torch_group():
    """torch.empty pairs at 20 Python frames, beside torch's own memory history."""
    def pair(*arguments):
        return ["tests/torch/python", "tests/bench/pair.py", "20", *arguments]

    for depth in () if QUICK else ("5", "60"):
        command = ["tests/torch/python", "tests/bench/pair.py", depth]
        got = side_by_side({"bare": (command, Traced()), "traced": (command, Traced(TRACED)),
                            "all": (command + ["all"], Traced())})
        ratio("torch.pair.depth%s" % depth, got, "all", None)
    got = side_by_side({
        "bare": (pair(), Traced()),
        "traced": (pair(), Traced(TRACED)),
        "native": (pair(), Traced(TRACED, stacks="native")),
        "python": (pair("python"), Traced()),
        "all": (pair("all"), Traced()),
    })
    figure("torch.pair.untraced", got.median("bare"), "ns/pair")
    for what, name in (("traced", "traced"), ("native", "native"), ("python", "history_python"),
                       ("all", "history_all")):
        added("torch.pair.%s.adds" % name, got, what, "bare", "ns/pair")
    ratio("torch.pair", got, "all", 0.25)
    ratio("torch.pair", got, "python", 0.4)


def step_group():
    """A training step of a small GPT-2, where the program's own cache misses dominate. What is added is small
    beside what two processes of the same program differ by, so there are more rounds than elsewhere.
    """
    def step(*arguments):
        return ["tests/torch/python", "tests/bench/step.py", "12" if QUICK else "40", *arguments]

    got = side_by_side({
        "bare": (step(), Traced()),
        "traced": (step(), Traced(TRACED)),
        "python": (step("python"), Traced()),
        "all": (step("all"), Traced()),
    }, ROUNDS if QUICK else 2 * ROUNDS)
    name = "torch.step.gpt2"
    figure(name + ".untraced", got.median("bare"), "us/step")
    for what in ("traced", "python", "all"):
        added("%s.%s.adds" % (name, what), got, what, "bare", "us/step")
    ratio(name, got, "all", 0.4)
    ratio(name, got, "python", 0.7)


def bytes_group():
    """Bytes per event, all columns, on equal and on varying training steps and on random traffic."""
    steps = "10" if QUICK else "30"
    for kind, vary, target in (("equal", [], 2.0), ("varying", ["--vary"], 3.5)):
        with tempfile.NamedTemporaryFile(suffix=".gtrace") as kept:
            run(["tests/torch/python", "tests/torch/gpt2.py", "--steps", steps, *vary],
                Traced(TRACED), keep=kept.name)
            value = subprocess.run([sys.executable, "tests/bench/bytes.py", kept.name], cwd=ROOT, check=True,
                                   text=True, stdout=subprocess.PIPE).stdout
            figure("file.gpt2.%s" % kind, float(value), "B/event", target)
            at_least("ring.default.%s" % kind, RING / float(value) / 20000 / 3600, "hours", 1)
    with tempfile.NamedTemporaryFile(suffix=".gtrace") as kept:
        run(bench("hook", "500000", "0", "1000", "1"), Traced(TRACED, stacks="none"), keep=kept.name)
        value = subprocess.run([sys.executable, "tests/bench/bytes.py", kept.name], cwd=ROOT, check=True,
                               text=True, stdout=subprocess.PIPE).stdout
        figure("file.random.1e3", float(value), "B/event", 8.5)
