#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the answers say of real PyTorch trainings whose truth is known.

usage: check.py BUILD [--all] [--write] [CASE...]

--all: every row of the tables, not the everyday ones; --write: golden texts are taken from this run.
Two cases run at a time, each in a process of its own; what they record makes the tables at the end.
"""
import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import subprocess
import sys

import growing_check
import loops_check
import mlp
import planted
import programs_check
import screens_check
import stacks_check
import unseen_check
from harness import PYTHON, RECORDS, judge


CASES = dict(planted.CASES)
CASES.update(mlp.CASES)
CASES.update(loops_check.CASES)
CASES.update(growing_check.CASES)
CASES.update(unseen_check.CASES)
CASES.update(stacks_check.CASES)
CASES.update(screens_check.CASES)
CASES.update(programs_check.CASES)


# Of what the cases recorded under the name: tables that are printed only, since each case has judged
# its own row, and tables that are judged as a whole.
TABLES = {"mlp": mlp.print_summary, "programs": programs_check.print_table, "loops": loops_check.print_table,
          "leaks": growing_check.print_leaks}
JUDGED = {"unseen": unseen_check.judge_table, "healthy": growing_check.judge_table,
          "faults": planted.judge_table}


def cpu():
    """Seconds of processor time of this process and of all its programs that have ended."""
    return sum(os.times()[:4])


def run_case(name, build):
    """In a worker: (whether it is good, what it printed, what it recorded, seconds of processor time)."""
    _, test, *args = CASES[name]
    before = cpu()
    RECORDS.clear()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        good = judge(name, test, build, *args)
        print("# %s: %.1f s of CPU" % (name, cpu() - before))
    return good, printed.getvalue(), list(RECORDS), cpu() - before


def run_cases(names, build):
    """How many are good, and the records and the processor time of all."""
    good, records, seconds = 0, [], 0
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(2, fork) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_case, n, build) for n in names]):
            fine, text, rows, spent = done.result()
            print(text, end="", flush=True)
            good, records, seconds = good + fine, records + rows, seconds + spent
    return good, records, seconds


def print_tables(records):
    """Tables that have rows; (how many of those that are cases of their own are good, how many there are)."""
    def rows_of(name):
        return sorted(row for table, row in records if table == name)
    for name, show in TABLES.items():
        if rows_of(name):
            show(rows_of(name))
    good = [judge(name + "-table", test, rows_of(name)) for name, test in JUDGED.items() if rows_of(name)]
    return sum(good), len(good)


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
    good, records, seconds = run_cases(names, build)
    fine, tables = print_tables(records)
    print("# %d of %d cases without fault, %.0f s of CPU" % (good + fine, len(names) + tables, seconds))
    return good + fine != len(names) + tables


if __name__ == "__main__":
    sys.exit(main())
