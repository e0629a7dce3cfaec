# SPDX-License-Identifier: MIT
"""Runs a PyTorch program under the recorder, and asks the tool about its trace."""
import json
import os
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(os.path.dirname(HERE), "torch", "python")


class Failed(Exception):
    pass


def expect(condition, why):
    if not condition:
        raise Failed(why)


def equal(got, wanted, what):
    expect(got == wanted, "%s is %r, not %r" % (what, got, wanted))


class Traced:
    """One run of a program, and the tool to ask about it."""

    def __init__(self, build, program, *args, sim=(), fails=False, **environment):
        self.tool = os.path.join(build, "gputrace")
        self.folder = tempfile.TemporaryDirectory(prefix="gputrace-answers-")
        self.program = os.path.join(HERE, program)
        environment = dict(os.environ, GPUTRACE_DIR=self.folder.name, GT_BUILD=build, GPUTRACE_QUIET="1",
                           LD_PRELOAD=os.path.join(build, "libgputrace.so"), **environment)
        self.done = subprocess.run([PYTHON, *sim, self.program, *args], env=environment,
                                   capture_output=True, text=True, timeout=300)
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

    def first_line(self, *args):
        return self.run(*args).splitlines()[0]

    def line_of(self, text):
        """Number of the program's line that has the text, which stands there once."""
        with open(self.program, encoding="utf-8") as source:
            found = [n for n, line in enumerate(source, 1) if text in line]
        equal(len(found), 1, "lines with %r" % text)
        return found[0]
