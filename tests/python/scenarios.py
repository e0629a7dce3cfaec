#!/usr/bin/env python3
"""Places from which a capture must be exactly traceback.extract_stack(): file, function, line.

usage: scenarios.py [NAME...]     environment PYLIB: the capture library. Prints "ok NAME" or
"not ok NAME: why" per scenario, "skip NAME: why" for those that this machine cannot run.
"""
import shutil
import sys

import capture
import scenario
import scenarios_calls
import scenarios_code
import scenarios_process


def main():
    capture.lib.pylib_start(512)
    failed = 0
    for function in scenario.SCENARIOS:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        line = scenario.run(function).replace("\n", " ").encode("ascii", "backslashreplace").decode()
        failed += line.startswith("not ok")
        print(line, flush=True)
    shutil.rmtree(scenario.WORK)
    lost = capture.lib.pylib_lost(capture.LOST_PYTHON)
    print("%d scenarios, %d captures, lost %d" % (len(scenario.SCENARIOS), capture.captures, lost))
    return 1 if failed or lost else 0


if __name__ == "__main__":
    sys.setrecursionlimit(5000)
    sys.exit(main())
