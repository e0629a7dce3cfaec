#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random traffic on four devices for as long as wanted, in rounds: the simulator's books against the trace
(tests/coverage/ledger, another seed each), and a process killed at some moment. Beside them one process
goes round with the same blocks all the time: its memory must stay as it is.

usage: soak.py SECONDS     O in the environment; prints "ok|not ok soak-..."
"""
import os
import random
import subprocess
import sys
import time

import harness
from harness import LIB, base, check, equal, folder, program

LEDGER = os.path.join(base.TOP, "tests", "coverage", "ledger")
SLACK = 512     # KiB: pages touched late, mostly what malloc keeps for each of the program's threads
RING = "1M"     # goes round from the first second on: the list of its extents is memory too


def anonymous(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon"))


def ledger(seed):
    p = subprocess.run([sys.executable, LEDGER, "20000", "2000", str(seed)], capture_output=True, text=True, timeout=600,
                       env={**os.environ, "O": base.BUILD, "GT_SIM_DEVICES": "4"})
    check(p.returncode == 0 and "\nok " in "\n" + p.stdout, f"seed {seed}: {p.stdout[-500:]}{p.stderr[-300:]}")


def killed(chance):
    with folder() as (d, env):
        p = subprocess.Popen(harness.command(LIB, program("victim"), "wait"), env=env, stdout=subprocess.PIPE)
        p.stdout.readline()
        time.sleep(chance.random() / 10)    # a moment, nothing is waited for
        p.kill()
        p.wait()
        p.stdout.close()
        equal(harness.lost(d, 3), 0, "committed events lost")


def main(seconds):
    end, rounds, seed = time.monotonic() + seconds, 0, int(os.environ.get("SEED", "1"))
    chance, memory = random.Random(seed), []
    with folder(GPUTRACE_RING=RING) as (_, env):
        p = subprocess.Popen(harness.command(LIB, program("victim"), "round"), env=env, stdout=subprocess.PIPE)
        p.stdout.readline()
        try:
            while rounds < 2 or time.monotonic() < end:
                ledger(seed + rounds)
                killed(chance)
                rounds += 1
                memory.append(anonymous(p.pid))
            equal(p.poll(), None, "status of the process that goes round")
            check(memory[-1] <= memory[0] + SLACK, f"memory grows: {memory[0]} to {memory[-1]} KiB")
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
    print(f"ok soak # {2 * rounds} tries, 0 lost; memory {memory[0]} to {memory[-1]} KiB")


if __name__ == "__main__":
    try:
        main(float(sys.argv[1]))
    except harness.Skip as e:
        print(f"skip soak: {e}")
    except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as e:
        print(f"not ok soak: {e} # 1 tries, 0 lost")
        sys.exit(1)
