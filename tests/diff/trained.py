# SPDX-License-Identifier: MIT
"""Traces of real PyTorch trainings on the simulated GPU, and what every run prints otherwise."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "cli"))
from harness import Failed, Skipped, expect  # noqa: E402


def checkout(bench, name, lines_before=0):
    """A copy of the program in a folder of its own, perhaps with lines added at its top."""
    folder = os.path.join(bench.dir, name)
    os.mkdir(folder)
    for program in ("gpt2.py", "report.py"):
        shutil.copy(os.path.join(TESTS, "torch", program), folder)
    path = os.path.join(folder, "gpt2.py")
    with open(path, encoding="utf-8") as source:
        text = source.read()
    with open(path, "w", encoding="utf-8") as source:
        source.write("#\n" * lines_before + text)
    return path


def train(bench, name, program, *args, sim=(), fails=False, **environment):
    where = os.path.join(bench.dir, name + ".d")
    os.mkdir(where)
    environment = dict(os.environ, GPUTRACE_DIR=where, GPUTRACE_QUIET="1",
                       LD_PRELOAD=os.path.join(bench.build, "libgputrace.so"), **environment)
    done = subprocess.run([os.path.join(TESTS, "torch", "python"), *sim, program, *args],
                          env=environment, capture_output=True, timeout=300, text=True)
    if done.returncode == 77:
        raise Skipped(done.stderr.strip().splitlines()[-1])
    expect(fails or not done.returncode, "%s failed: %s" % (name, done.stderr[-600:]))
    files = [f for f in os.listdir(where) if f.endswith(".gtrace")]
    if len(files) != 1:
        raise Failed("%d traces of %s: %s" % (len(files), name, done.stderr[-600:]))
    path = os.path.join(bench.dir, name + ".gtrace")
    os.rename(os.path.join(where, files[0]), path)
    os.rmdir(where)
    return path


def neutral(value, key=""):
    """A JSON answer without what differs from run to run."""
    if key in ("pid", "steps_per_second"):
        return None
    if isinstance(value, dict):
        return {k: neutral(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [neutral(v, key) for v in value]
    if isinstance(value, str):
        value = re.sub(r"[^ \[\],()]*/", "", value)
        return re.sub(r"python3\.\d+|python3?\b", "python", value)
    return value


def without_options(text):
    """A --help without the lines of its options, which many commands share."""
    return re.sub(r"^ {2,}(-|    ).*\n", "", text, flags=re.M)


def speed(text):
    """A screen without steps per second, which stands before how a run ended."""
    text = re.sub(r"python3\.\d+|python3?\b", "python", text)
    return re.sub(r" [\d.e+-]+ +(ok|oom|killed)\b", r" N \1", text)


def made(bench, test, *args):
    """The test, once there are the values that are made when they are first asked for."""
    test(bench, *[a() if callable(a) else a for a in args])


def cases(bench, listed):
    """Runs (name, test, arguments); one that lacks its PyTorch is skipped by name."""
    wanted = [word for word in sys.argv[2:] if not word.startswith("-")]
    for name, test, *args in listed:
        if wanted and name not in wanted:
            continue
        bench.case(name, made, test, *args)


class Once:
    """A value that is made when it is first asked for."""

    def __init__(self, make, *args, **more):
        self.make = lambda: make(*args, **more)
        self.value = None
        self.error = None

    def __call__(self):
        if self.error:
            raise self.error
        if self.value is None:
            try:
                self.value = self.make()
            except (Skipped, Failed) as error:
                self.error = error
                raise
        return self.value
