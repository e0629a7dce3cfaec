#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers say of real PyTorch trainings whose truth is known.

usage: check.py BUILD [--all] [CASE...]      --all: every row of the tables, not the everyday ones
"""
import os
import subprocess
import sys
import traceback

import growing_check
import loops_check
import mlp
import programs_check
from harness import Failed, PYTHON, Skipped, Traced, equal, expect


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
CASES.update(mlp.CASES)
CASES.update(loops_check.CASES)
CASES.update(growing_check.CASES)
CASES.update(programs_check.CASES)


def run_case(name, build):
    try:
        _, test, *args = CASES[name]
        test(build, *args)
        print("ok", name, flush=True)
    except Skipped as why:
        print("skip %s: %s" % (name, why), flush=True)
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
