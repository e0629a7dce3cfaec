# SPDX-License-Identifier: MIT
"""Leaks of 1 % and 0.1 % of a step's traffic are found, at their line; healthy programs raise no alarm."""
from harness import Traced, equal, expect, record
from programs_check import PROGRAMS, extras

LEAKS = ("fixed", "variable", "pieces", "sometimes", "sometimes-variable")
# Habits that keep memory, and the rule that is suspected.
FAULTS = {"outputs": "kept-tensors", "validation": "kept-graph", "buffer": "growing-buffer"}
HEALTHY = [("fixed", 1), ("buckets", 1), ("larger", 1), ("sum", 1), ("copies", 1), ("metric", 1)]
HEALTHY += [("variable", seed) for seed in range(1, 5)]
HEALTHY += [(kind, seed) for kind in ("cache", "slow_cache", "queue", "evaluation") for seed in (1, 2, 3)]
EVERYDAY = {"growth-variable-0.1", "growth-healthy-slow_cache-1", "healthy"}


def check_leak(build, kind, percent):
    traced = Traced(build, "growing.py", kind, str(percent / 100))
    sites = [s for s in traced.json("growth")["sites"] if s["kind"] != "cache"]
    moved = int(next(line for line in traced.done.stdout.splitlines() if "MOVED" in line).split()[1])
    expect(sites, "nothing grows")
    slope = 100 * sum(s["slope_bytes_per_step"] for s in sites) / moved
    record("leaks", kind, percent, slope, sites[0]["confidence"], len(sites), sites[0]["where"]["line"])
    line = traced.line_of("# the leak: pieces" if kind == "pieces" else "# the leak: one block")
    equal([s["where"]["line"] for s in sites], [line], "lines")
    warnings = traced.json("summary")["processes"][0]["warnings"]
    equal([(w["id"], w["command"]) for w in warnings],
          [("growth", "growth")] if sites[0]["confidence"] == "high" else [], "warnings")
    # a block of more than 1 MiB may be up to 1 MiB larger than what was asked for
    expect(0.7 * percent <= slope <= 1.6 * percent, "slope %.3f %%" % slope)


def print_leaks(rows):
    print("# %-20s %18s %18s  %-10s %5s %5s" % ("leak", "% of the traffic", "found, % per step", "confidence",
                                              "sites", "line"))
    for row in rows:
        print("# %-20s %18s %18.3f  %-10s %5d %5d" % row)


def check_habit(build, kind, seed):
    traced = Traced(build, "growing.py", kind, "0", str(seed))
    sites = [s for s in traced.json("growth")["sites"] if s["kind"] != "cache"]
    expect(sites, "nothing grows")
    print("# %-11s %d sites, rule %s, line %d" % (kind, len(sites), sites[0]["rule"],
                                                  sites[0]["where"]["line"]))
    equal(sites[0]["rule"], FAULTS[kind], "rule")
    line = traced.line_of("# the leak: " + kind)
    # the graph keeps its input, too, which was made a line before
    expect({s["where"]["line"] for s in sites} <= {line, line - 1}, "lines of %r" % sites)
    equal(sites[0]["where"]["line"], line, "line")
    expect("growing.py:%d" % line in traced.first_line("growth"), traced.first_line("growth"))


def judge_healthy(traced, name):
    """No command raises an alarm; a cache that fills is named as one."""
    answer = traced.json("growth")
    alarms = [s for s in answer["sites"] if s["kind"] != "cache"]
    caches = [s for s in answer["sites"] if s["kind"] == "cache"]
    warnings = traced.json("summary")["processes"][0]["warnings"]
    oom = traced.json("oom")["oom"]
    record("healthy", name, len(alarms), len(caches), len(warnings), oom)
    equal(alarms, [], "alarms")
    equal(answer["devices"][0]["enough_steps"], True, "enough steps")
    expect(traced.first_line("growth").startswith("No growth"), traced.first_line("growth"))
    equal(warnings, [], "warnings")
    equal(oom, False, "oom")


def judge_table(rows):
    print("# %-18s %11s %8s %8s  %s" % ("healthy program", "growth says", "caches", "warnings", "oom says"))
    for name, alarms, caches, warnings, oom in rows:
        print("# %-18s %11d %8d %8d  %s" % (name, alarms, caches, warnings, "OOM" if oom else "none"))
    wrong = [row[0] for row in rows if row[1] or row[3] or row[4]]
    print("# %d healthy programs, %d with a false alarm" % (len(rows), len(wrong)))
    equal(wrong, [], "false alarms")


def check_any(build):
    traced = Traced(build, "faults.py", "healthy")
    judge_healthy(traced, "faults.py")
    equal(len(traced.json("steps")["steps"]), 14, "steps")


def check_healthy(build, kind, seed):
    judge_healthy(Traced(build, "growing.py", kind, "0", str(seed)), "%s %d" % (kind, seed))


def check_program(build, name):
    environment = extras(build) if name == "gpt2" else {}
    judge_healthy(Traced(build, "programs.py", name, "24", **environment), name)


CASES = {}
for leak in LEAKS:
    for share in (1, 0.1):
        CASES["growth-%s-%s" % (leak, share)] = (check_leak, leak, share)
CASES.update({"growth-fault-" + kind: (check_habit, kind, 1) for kind in FAULTS})
CASES.update({"growth-fault-validation-%d" % seed: (check_habit, "validation", seed) for seed in (2, 3)})
CASES.update({"growth-healthy-%s-%d" % case: (check_healthy, *case) for case in HEALTHY})
CASES.update({"growth-healthy-" + name: (check_program, name) for name in PROGRAMS})
CASES["healthy"] = (check_any,)
CASES = {name: (name in EVERYDAY, *case) for name, case in CASES.items()}
