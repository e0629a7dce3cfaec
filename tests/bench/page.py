#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of a training of ten million events: processor time of building it, its size, memory. Prints
figures as tests/bench/run does.

usage: page.py CHAIN [EVENTS]     environment: O, the build folder
"""
import os
import subprocess
import sys
import tempfile

from measure import TOOL, TRACED, figure, used


def main():
    events = sys.argv[2] if len(sys.argv) > 2 else "10000000"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], events, "2000"], check=True, stdout=subprocess.DEVNULL, env=dict(
            os.environ, GPUTRACE_DIR=folder, GPUTRACE_QUIET="1", LD_PRELOAD=TRACED))
        trace, page = os.path.join(folder, os.listdir(folder)[0]), os.path.join(folder, "page.html")
        seconds, memory = used([TOOL, "html", trace, "-o", page])
        figure("page-build-ten-million", seconds, "s-cpu", 10)
        figure("page-size-ten-million", os.path.getsize(page) / 1e6, "MB", 5)
        figure("page-build-memory", memory, "MiB", 1024)
    return 0


if __name__ == "__main__":
    sys.exit(main())
