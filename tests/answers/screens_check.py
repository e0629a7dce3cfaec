# SPDX-License-Identifier: MIT
"""The screens of steps, growth and at --why of one training, as people see them and as JSON.

What differs from run to run is masked: times, process numbers, folders, and so the width of columns.
check.py --write takes the texts of golden/ from this run.
"""
import json
import os
import re
import subprocess

from harness import HERE, Traced, equal, expect, same_as_file

SCREEN = os.path.join(os.path.dirname(HERE), "cli", "screen")
MS = {80: 7, 120: 13}  # word of a row of steps that is its time


def words(text):
    """Lines with single blanks, so that a time's number of digits does not matter."""
    return [re.sub(r" +", " ", line).strip() for line in text.splitlines()]


def without_folder(text):
    return re.sub(r"[\w/.-]*/tests/answers/", "", text)


def without_times(lines, columns):
    for line in lines:
        row = line.split(" ")
        if re.match(r"[\d-]+ \d+ ", line) and len(row) > MS[columns]:
            row[MS[columns]] = "T"
        line = re.sub(r"[\d.]+ steps/s", "N steps/s", " ".join(row))
        yield re.sub(r"pid \d+", "pid N", without_folder(line))


def masked(value):
    """JSON without what differs: frames name PyTorch's own lines."""
    if isinstance(value, dict):
        return {k: masked(v) for k, v in value.items()
                if k not in ("pid", "seconds", "starts", "frames")}
    if isinstance(value, list):
        return [masked(v) for v in value]
    return without_folder(value) if isinstance(value, str) else value


def golden(name, lines):
    same_as_file(os.path.join(HERE, "golden", name), "\n".join(lines) + "\n")


def screen(traced, columns, *args):
    done = subprocess.run([SCREEN, str(columns), traced.tool, *args, traced.path], capture_output=True,
                          text=True, timeout=120, env=dict(os.environ, NO_COLOR="1", TERM="xterm"))
    equal(done.returncode, 0, "status of %r" % (args,))
    lines = done.stdout.splitlines()
    expect(len(lines) <= 24, "%d lines for %r" % (len(lines), args))
    return without_times(words(done.stdout), columns)


def check_screens(build):
    traced = Traced(build, "growing.py", "validation")
    line = "growing.py:%d" % traced.line_of("# the leak: validation")
    why = ("at", "step:20", "--why", line)
    for columns in (80, 120):
        golden("steps-%d.txt" % columns, screen(traced, columns, "steps"))
        golden("growth-%d.txt" % columns, screen(traced, columns, "growth"))
        golden("why-%d.txt" % columns, screen(traced, columns, *why))
    for name, args in (("steps", ("steps",)), ("growth", ("growth",)), ("why", why)):
        answer = traced.json(*args)
        answer = {"why": answer["why"]} if name == "why" else answer
        if name == "steps":
            answer = dict(answer, steps=answer["steps"][3:5], devices=len(answer["devices"]))
        golden(name + ".json", json.dumps(masked(answer), indent=1, sort_keys=True).splitlines())
    expect("growing.py" not in traced.run("growth", "--mine", "/nowhere/*"), "--mine changes nothing")
    expect("growing.py" in traced.run("growth", "--mine", "answers/*"), "--mine answers/* hides it")


CASES = {"screens": (True, check_screens)}
