#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers say of real PyTorch trainings whose truth is known.

usage: check.py BUILD [--all] [CASE...]      --all: every row of the tables, not the everyday ones
"""
import json
import os
import subprocess
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import table  # noqa: E402

PYTHON = os.path.join(os.path.dirname(HERE), "torch", "python")
MOMENTS = ("forward", "backward", "end")


class Failed(Exception):
    pass


def expect(condition, why):
    if not condition:
        raise Failed(why)


def equal(got, wanted, what):
    expect(got == wanted, "%s is %r, not %r" % (what, got, wanted))


class Traced:
    """One run of a program, and the tool to ask about it."""

    def __init__(self, build, program, *args, sim=(), fails=False, **environment):
        self.tool = os.path.join(build, "gputrace")
        self.folder = tempfile.TemporaryDirectory(prefix="gputrace-answers-")
        self.program = os.path.join(HERE, program)
        environment = dict(os.environ, GPUTRACE_DIR=self.folder.name, GT_BUILD=build, GPUTRACE_QUIET="1",
                           LD_PRELOAD=os.path.join(build, "libgputrace.so"), **environment)
        self.done = subprocess.run([PYTHON, *sim, self.program, *args], env=environment,
                                   capture_output=True, text=True, timeout=300)
        expect(fails or not self.done.returncode, "the program failed: " + self.done.stderr[-800:])
        files = sorted(f for f in os.listdir(self.folder.name) if f.endswith(".gtrace"))
        expect(files, "no trace: " + self.done.stderr[-800:])
        self.path = os.path.join(self.folder.name, files[0])

    def run(self, *args):
        done = subprocess.run([self.tool, *args, self.path], capture_output=True, timeout=120, text=True)
        equal(done.returncode, 0, "status of gputrace %s (%r)" % (args[0], done.stderr))
        return done.stdout

    def json(self, *args):
        return json.loads(self.run(*args, "--format", "json"))

    def first_line(self, *args):
        return self.run(*args).splitlines()[0]

    def line_of(self, text):
        """Number of the program's line that has the text, which stands there once."""
        with open(self.program, encoding="utf-8") as source:
            found = [n for n, line in enumerate(source, 1) if text in line]
        equal(len(found), 1, "lines with %r" % text)
        return found[0]


# ---- the table of categories -----------------------------------------------------------------------

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


# ---- planted faults -----------------------------------------------------------------------------------

# fault: simulator's options, command, cause (of growth: its rule), text of the line to be named
FAULTS = {
    "validation_graph": (("--capacity", "2G"), "oom", "growth", "the fault: validation_graph"),
    "outputs_in_list": (("--capacity", "2G"), "oom", "growth", "the fault: outputs_in_list"),
    "retained_graph": (("--capacity", "2G"), "oom", "growth", "the fault: retained_graph"),
    "growing_buffer": ((), "growth", "growing-buffer", "the fault: growing_buffer"),
    "first_step": (("--capacity", "8G"), "oom", "first-step-too-large", "the fault: first_step"),
    "single_request": (("--capacity", "8G"), "oom", "single-request", "the fault: single_request"),
    "long_batch": (("--capacity", "8G"), "oom", "activations", None),
    "fragmentation": (("--capacity", "4G"), "oom", "fragmentation", "the fault: fragmentation"),
    "optimizer_twice": (("--capacity", "4G"), "oom", "duplicate-state", "the fault: optimizer_twice"),
    "other_process": (("--capacity", "8G"), "oom", "other-process", None),
}
SAID = {"growth": "by growth", "first-step-too-large": "Too large for this card", "activations": "activations",
        "single-request": "by one request", "fragmentation": "by fragmentation", "growing-buffer": "Grows",
        "duplicate-state": "optimizer state", "other-process": "pid 4711"}
EVERYDAY_FAULTS = {"validation_graph", "fragmentation"}


def check_segments(traced, oom):
    """The pieces add up, none is large enough, and the planted line keeps them apart."""
    device = traced.json("segments", "--at", "oom")["devices"][0]
    for key in ("reserved", "allocated", "cached"):
        equal(device[key], oom["device"][key], key)
        equal(sum(s[{"reserved": "size", "allocated": "used"}.get(key, key)] for s in device["segments"]),
              device[key], "sum of " + key)
    equal((device["fits"], device["wanted"] > device["largest_free_block"]), (False, True), "fits")
    equal(traced.json("segments", "--at", "oom", "--for", "1M")["devices"][0]["fits"], True, "1 MiB fits")
    pins = {s["pinned_by"] for s in device["segments"] if s["cached"] and s["pinned_by"]}
    expect(any("fragmentation" in pin for pin in pins), "pins %r" % pins)
    errors = traced.json("errors")["errors"]
    equal(errors[-1]["outcome"], "fatal", "outcome of the last refusal")


def check_fault(build, fault):
    sim, command, cause, text = FAULTS[fault]
    more = {"GT_SIM_OTHERS": "4711:6000"} if fault == "other_process" else {}
    traced = Traced(build, "faults.py", fault, sim=sim, fails=True, **more)
    first, answer = traced.first_line(command), traced.json(command)
    if command == "oom":
        expect(answer["oom"], "no OOM: " + traced.done.stderr[-400:])
        found, where = answer["verdict"]["cause"], answer["verdict"]["where"]
    else:
        expect(answer["sites"], "nothing grows")
        found, where = answer["sites"][0]["rule"], answer["sites"][0]["where"]
    print("# %-18s %-7s %-22s %s" % (fault, command, found, first))
    equal(found, cause, "cause")
    expect(SAID[cause] in first, "the first line is %r" % first)
    if fault == "fragmentation":
        check_segments(traced, answer)
    if text:
        line = traced.line_of("# " + text)
        equal(where["line"], line, "line")
        expect("faults.py:%d" % line in first, "no line %d in %r" % (line, first))


def check_healthy(build):
    traced = Traced(build, "faults.py", "healthy")
    growth = traced.json("growth")
    equal([s for s in growth["sites"] if s["kind"] != "cache"], [], "growing sites")
    equal(growth["devices"][0]["enough_steps"], True, "enough steps")
    expect(traced.first_line("growth").startswith("No growth"), traced.first_line("growth"))
    equal(traced.json("oom")["oom"], False, "oom")
    equal(len(traced.json("steps")["steps"]), 14, "steps")


CASES = {"healthy": (True, check_healthy)}
for fault in FAULTS:
    CASES["fault-" + fault] = (fault in EVERYDAY_FAULTS, check_fault, fault)
for row in ROWS:
    for stacks in (False, True):
        case = "categories-%s-%s-%s%s" % (*row[:3], "-free" if stacks else "")
        CASES[case] = (row[:3] in EVERYDAY and not stacks, check_row, *row, stacks)
CASES["categories-momentum-plain-mse-free"] = (True, *CASES["categories-momentum-plain-mse-free"][1:])


def run_case(name, build):
    try:
        _, test, *args = CASES[name]
        test(build, *args)
        print("ok", name, flush=True)
    except Failed as failed:
        print("not ok %s: %s" % (name, failed), flush=True)
        return False
    except Exception:  # a broken test is a failed test
        print("not ok %s: %s" % (name, traceback.format_exc().replace("\n", "; ")), flush=True)
        return False
    return True


def main():
    build = os.path.abspath(sys.argv[1])
    everything = "--all" in sys.argv
    names = [a for a in sys.argv[2:] if not a.startswith("--")]
    names = names or [n for n, case in CASES.items() if everything or case[0]]
    ready = subprocess.run([PYTHON, "-c", "import torch"], env=dict(os.environ, GT_BUILD=build),
                           capture_output=True, text=True)
    if ready.returncode == 77:
        for name in names:
            print("skip %s: %s" % (name, ready.stderr.strip().replace("\n", "; ")))
        return 0
    return not all([run_case(name, build) for name in names])


if __name__ == "__main__":
    sys.exit(main())
