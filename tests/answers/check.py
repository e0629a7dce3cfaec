#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers say of real PyTorch trainings whose truth is known.

usage: check.py BUILD [--all] [--write] [CASE...]

--all: every row of the tables, not the everyday ones; --write: golden texts are taken from this run
"""
import os
import subprocess
import sys
import traceback

import growing_check
import loops_check
import mlp
import planted
import programs_check
import screens_check
import stacks_check
import unseen_check
from harness import Failed, PYTHON, Skipped, Traced, equal, expect


def check_healthy(build):
    traced = Traced(build, "faults.py", "healthy")
    growth = traced.json("growth")
    equal([s for s in growth["sites"] if s["kind"] != "cache"], [], "growing sites")
    equal(growth["devices"][0]["enough_steps"], True, "enough steps")
    expect(traced.first_line("growth").startswith("No growth"), traced.first_line("growth"))
    equal(traced.json("oom")["oom"], False, "oom")
    equal(len(traced.json("steps")["steps"]), 14, "steps")


CASES = {"healthy": (True, check_healthy)}
CASES.update(planted.CASES)
CASES.update(mlp.CASES)
CASES.update(loops_check.CASES)
CASES.update(growing_check.CASES)
CASES.update(unseen_check.CASES)
CASES.update(stacks_check.CASES)
CASES.update(screens_check.CASES)
CASES.update(programs_check.CASES)


def cpu():
    """Seconds of processor time of all programs that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def run_case(name, build):
    before = cpu()
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
    finally:
        print("# %s: %.1f s of CPU" % (name, cpu() - before), flush=True)
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
    good = [run_case(name, build) for name in names]
    print("# %d of %d cases without fault, %.0f s of CPU" % (sum(good), len(good), cpu()), flush=True)
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
