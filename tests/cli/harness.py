"""What the command line tests share: cases, runs of programs and of the tool, masked screens."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
from judge import Failed, Skipped, equal, expect, judge, same_as_file  # noqa: E402, F401  (for those who import this)


class Bench:
    """The build under test, a folder for traces, and the score."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.tool = os.path.join(self.build, "gputrace")
        self.folder = tempfile.TemporaryDirectory(prefix="gputrace-cli-")
        self.dir = self.folder.name
        self.bad = 0
        os.environ["GT_BUILD"] = self.build
        for name in ("LD_PRELOAD", "GPUTRACE_DIR", "GPUTRACE_RING", "COLUMNS", "LC_ALL",
                     "NO_COLOR"):
            os.environ.pop(name, None)
        os.environ.update(LANG="C.UTF-8", TERM="xterm", XDG_CACHE_HOME=os.path.join(self.dir, "cache"))

    def case(self, name, test, *args):
        self.bad += not judge(name, test, self, *args)

    def cases(self, cases, wanted=()):
        """(name, test, arguments...) each; with wanted only those whose names have one of these in them."""
        for name, test, *args in cases:
            if not wanted or any(part in name for part in wanted):
                self.case(name, test, *args)
        return self.bad > 0

    def program(self, name):
        return os.path.join(self.build, "prog", name)

    def trace(self, name, command, sim=(), **environment):
        """Runs a program traced on the simulated device; its one trace becomes NAME.gtrace."""
        where = os.path.join(self.dir, name + ".d")
        os.mkdir(where)
        environment = dict(os.environ, GPUTRACE_DIR=where, GPUTRACE_QUIET="1",
                           LD_PRELOAD=os.path.join(self.build, "libgputrace.so"), **environment)
        subprocess.run([os.path.join(ROOT, "tests/sim/run"), *sim, *command], env=environment,
                       stdout=subprocess.DEVNULL, timeout=300)
        files = [f for f in os.listdir(where) if f.endswith(".gtrace")]
        equal(len(files), 1, "number of traces of " + name)
        path = os.path.join(self.dir, name + ".gtrace")
        os.rename(os.path.join(where, files[0]), path)
        os.rmdir(where)
        return path

    def gputrace(self, *args, **more):
        return subprocess.run([self.tool, *args], capture_output=True, timeout=120, **more)

    def text(self, *args):
        done = self.gputrace(*args)
        equal(done.returncode, 0, "status of gputrace " + " ".join(args) + " " + repr(done.stderr))
        return done.stdout.decode()

    def json(self, *args):
        return json.loads(self.text(*args, "--format", "json"))

    def screen(self, columns, *args, **environment):
        done = subprocess.run([os.path.join(HERE, "screen"), str(columns), self.tool, *args],
                              capture_output=True, timeout=120, env=dict(os.environ, **environment))
        equal(done.returncode, 0, "status of gputrace " + " ".join(args))
        return done.stdout.decode()


def mask(text):
    """What differs from run to run: times, process numbers, folders."""
    text = re.sub(r"(?<![\w.])(\./)?[\w./-]*/(tests/(prog|cli|frames)|gputrace-cli-\w+|prog)/", "", text)
    text = re.sub(r"\bpid +\d+", "pid N", text)
    text = re.sub(r"(,0,|\| 0 \| )\d+", r"\1N", text)
    text = re.sub(r"\b\d+\.\d\d\d s\b", "T s", text)
    return re.sub(r"\b\d+\.\d\d s\b", "T s", text)


def golden(name, got):
    """got, masked, is the text of golden/NAME; run.py --write rewrites it."""
    same_as_file(os.path.join(HERE, "golden", name), mask(got))


def keys(value, prefix=""):
    """All keys of a JSON value, as paths: processes[].devices[].ordinal."""
    found = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found.add(prefix + key)
            found |= keys(inner, prefix + key + ".")
    elif isinstance(value, list):
        for inner in value:
            found |= keys(inner, prefix[:-1] + "[].")
    return found
