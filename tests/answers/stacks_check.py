# SPDX-License-Identifier: MIT
"""Categories of traces with fewer stacks, beside those of the same program with both kinds."""
from harness import Traced, expect

PROGRAMS = ("adam", "momentum", "accumulation", "halves", "lora")
# stacks: percent that may be wrong, and may be unknown, summed over the programs
MODES = {"python": (0.2, 3), "native": (6.6, 1), "none": (8.6, 5)}


def judge(lives, truth, position):
    sums = {"wrong": 0, "unknown": 0, "all": 0}
    for life, other in zip(lives, truth):
        if life.at(position):
            sums["all"] += life.size
            sums["unknown"] += life.size * (life.category == "unknown")
            sums["wrong"] += life.size * (life.category not in ("unknown", other.category))
    return sums


def lives_of(build, program, stacks):
    return Traced(build, "programs.py", program, GPUTRACE_STACKS=stacks).lives()


def check_stacks(build, *modes):
    sums = {}
    for program in PROGRAMS:
        both = lives_of(build, program, "both")
        truth = sorted(both.lives, key=lambda life: life.born)
        for mode in modes:
            mine = lives_of(build, program, mode)
            lives = sorted(mine.lives, key=lambda life: life.born)
            expect([x.size for x in lives] == [x.size for x in truth], "other allocations")
            first, last = both.passes[len(both.passes) // 2]
            for moment, position in (("forward", first), ("backward", last + 1)):
                got = judge(lives, truth, position)
                print("# %-6s %-13s %-8s wrong %5.2f %%  unknown %5.2f %%  steps %d of %d" %
                      (mode, program, moment, 100 * got["wrong"] / got["all"],
                       100 * got["unknown"] / got["all"], len(mine.steps), len(both.steps)))
                for key, value in got.items():
                    sums[mode, key] = sums.get((mode, key), 0) + value
            expect(len(mine.steps) == len(both.steps), "%s: %d steps" % (program, len(mine.steps)))
    for mode in modes:
        for key, limit in zip(("wrong", "unknown"), MODES[mode]):
            percent = 100 * sums[mode, key] / sums[mode, "all"]
            expect(percent <= limit, "%s: %.2f %% %s" % (mode, percent, key))


CASES = {"stacks-few": (False, check_stacks, *MODES)}
