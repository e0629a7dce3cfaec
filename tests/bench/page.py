#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of a training of ten million events: processor time of building it, its size, memory. Prints
figures as tests/bench/run does.

usage: page.py CHAIN [EVENTS]     environment: O, the build folder
"""
import os
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, os.environ.get("O", "build"))


def figure(name, value, unit, target):
    print("%-36s %10.2f %-10s %8g %s" % (name, value, unit, target, "ok" if value <= target else "missed"), flush=True)


def main():
    events = sys.argv[2] if len(sys.argv) > 2 else "10000000"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], events, "2000"], check=True, stdout=subprocess.DEVNULL, env=dict(
            os.environ, GPUTRACE_DIR=folder, GPUTRACE_QUIET="1", LD_PRELOAD=os.path.join(OUT, "libgputrace.so")))
        trace, page = os.path.join(folder, os.listdir(folder)[0]), os.path.join(folder, "page.html")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([os.path.join(OUT, "gputrace"), "html", trace, "-o", page], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        figure("page-build-ten-million", seconds, "s-cpu", 10)
        figure("page-size-ten-million", os.path.getsize(page) / 1e6, "MB", 5)
        figure("page-build-memory", after.ru_maxrss / 1024, "MiB", 1024)
    return 0


if __name__ == "__main__":
    sys.exit(main())
