# SPDX-License-Identifier: MIT
"""Runs a PyTorch program under the recorder, and asks the tool about its trace."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(os.path.dirname(HERE), "torch", "python")
sys.path.insert(0, os.path.dirname(HERE))
from judge import Failed, Skipped, equal, expect, judge, same_as_file  # noqa: E402, F401  (for those who import this)

RECORDS = []  # of this case: (table, row), for the tables that are printed when all cases have run


def record(table, *row):
    RECORDS.append((table, row))


class Life:
    """A block of torch's; died is None if it was never freed."""

    def __init__(self, device, born, died, size, address, category, rule):
        self.device, self.born, self.size = int(device), int(born), int(size)
        self.died = int(died) if int(died) >= 0 else None
        self.address, self.category, self.rule = int(address, 16), category, rule

    def at(self, position):
        """Whether it is alive before the event at the position."""
        return self.born < position and (self.died is None or self.died >= position)


class Lives:
    def __init__(self, text):
        lines = [line.split() for line in text.splitlines()]
        self.source = next(words[1] for words in lines if words[0] == "source")
        self.steps = [[int(w) for w in words[1:]] for words in lines if words[0] == "step"]
        self.passes = [[int(w) for w in words[1:]] for words in lines if words[0] == "pass"]
        self.lives = [Life(*words[1:]) for words in lines if words[0] == "life"]

    def categories(self, position):
        """Bytes by category before the event at the position."""
        sums = {}
        for life in self.lives:
            if life.at(position):
                sums[life.category] = sums.get(life.category, 0) + life.size
        return sums

    def allocations_before_steps(self):
        """For each step, how many blocks came before it; workspaces depend on the libraries."""
        births = [life.born for life in self.lives if life.category != "workspaces"]
        return [sum(born < step[0] for born in births) for step in self.steps]


class Traced:
    """One run of a program, and the tool to ask about it."""

    def __init__(self, build, program, *args, sim=(), fails=False, **environment):
        self.build = build
        self.tool = os.path.join(build, "gputrace")
        self.folder = tempfile.TemporaryDirectory(prefix="gputrace-answers-")
        self.program = os.path.join(HERE, program)
        environment = dict(os.environ, GPUTRACE_DIR=self.folder.name, GT_BUILD=build,
                           LD_PRELOAD=os.path.join(build, "libgputrace.so"), **environment)
        self.done = subprocess.run([PYTHON, *sim, self.program, *args], env=environment,
                                   capture_output=True, text=True, timeout=300)
        if self.done.returncode == 77:
            raise Skipped(self.done.stderr.strip().splitlines()[-1])
        expect(fails or not self.done.returncode, "the program failed: " + self.done.stderr[-800:])
        files = sorted(f for f in os.listdir(self.folder.name) if f.endswith(".gtrace"))
        expect(files, "no trace: " + self.done.stderr[-800:])
        self.path = os.path.join(self.folder.name, files[0])

    def run(self, *args):
        done = subprocess.run([self.tool, *args, self.path], capture_output=True, timeout=120, text=True)
        equal(done.returncode, 0, "status of gputrace %s (%r)" % (args[0], done.stderr))
        return done.stdout

    def json(self, *args):
        return json.loads(self.run(*args, "--format", "json"))

    def lives(self):
        """What the model makes of each block: see lives.c."""
        done = subprocess.run([os.path.join(self.build, "tests", "answers", "lives"), self.path],
                              capture_output=True, text=True, timeout=120)
        equal(done.returncode, 0, "status of lives (%s)" % done.stderr)
        return Lives(done.stdout)

    def first_line(self, *args):
        return self.run(*args).splitlines()[0]

    def line_of(self, text):
        """Number of the program's line that has the text, which stands there once."""
        with open(self.program, encoding="utf-8") as source:
            found = [n for n, line in enumerate(source, 1) if text in line]
        equal(len(found), 1, "lines with %r" % text)
        return found[0]
