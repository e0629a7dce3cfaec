# SPDX-License-Identifier: MIT
"""Figures beside heaptrack and memray: each records the same pattern on the memory that it is made for, ours
on the driver's, theirs on malloc's; what each adds to a pair is compared, and the bytes that it keeps.

heaptrack's library writes through a pipe to its own interpreter, as under the heaptrack command; only its part
in the program counts. memray runs with --native.
"""
import contextlib
import glob
import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile

from measure import DRIVER, NOP, OUT, QUICK, ROOT, ROUNDS, TRACED, figure

HEAPTRACK = glob.glob("/usr/lib*/heaptrack/libheaptrack_preload.so") + \
    glob.glob("/usr/lib*/*/heaptrack/libheaptrack_preload.so")
INTERPRET = "libexec/heaptrack_interpret"   # beside it
PAIRS = 20000 if QUICK else 100000
SCRIPT = "tests/bench/pattern.py"


def memray_python():
    """A Python that has memray, from PyPI on first use."""
    home = os.path.join(os.environ.get("GT_TORCH_HOME", OUT), "memray")
    python = os.path.join(home, "bin/python")
    if not os.path.exists(os.path.join(home, "complete")):
        for command in ([sys.executable, "-m", "venv", home],
                        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "memray==1.19.1"]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        open(os.path.join(home, "complete"), "w", encoding="ascii").close()
    return python


def once(python, before, arguments, env, threads):
    """{"cpu", "wall"} of one run, ns per pair."""
    pin = ["taskset", "-c", "0"] if threads == 1 else []
    settings = ["env", *(f"{name}={value}" for name, value in env.items())]     # of that program, not of taskset
    done = subprocess.run([*pin, *settings, python, *before, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)
    found = re.search(r"^pair ([\d.]+) ([\d.]+)$", done.stdout, re.M)
    if done.returncode or not found:
        raise RuntimeError("%s: exit %d: %s" % (" ".join(before + arguments), done.returncode, done.stderr[-300:]))
    return dict(zip(("cpu", "wall"), map(float, found.groups())))


class Recorder:
    """A recorder and the runs with and without it."""

    def __init__(self, library, python, base, **env):
        self.library = os.path.join(OUT, "bench", library)
        self.python, self.base, self.env = python, base, env
        self.rounds, self.bytes = [], None

    def environment(self, where):
        return {}

    def beside(self, where):
        return contextlib.nullcontext()

    def kept(self, where, events):
        """Bytes per event."""
        return sum(os.path.getsize(f) for f in glob.glob(where + "/*")) / events

    def before(self, where):
        return []

    def round(self, python_depth, depth, threads):
        """With it and without, one after the other; keeps what it added."""
        with tempfile.TemporaryDirectory(dir="/dev/shm") as where:
            arguments = [SCRIPT, self.library, str(PAIRS), str(python_depth), str(depth), str(threads)]
            clean = {"LD_LIBRARY_PATH": DRIVER}
            bare = once(self.python, [], arguments, {**clean, **self.base}, threads)
            with self.beside(where):
                with_it = once(self.python, self.before(where), arguments,
                               {**clean, **self.environment(where)}, threads)
            self.rounds.append({what: with_it[what] - bare[what] for what in bare})
            self.bytes = self.bytes or self.kept(where, 2 * PAIRS * threads)

    def added(self, what):
        return statistics.median(r[what] for r in self.rounds)


class Ours(Recorder):
    def environment(self, where):
        return {"LD_PRELOAD": TRACED, "GPUTRACE_DIR": where, "GPUTRACE_QUIET": "1", "GPUTRACE_STACKS": self.env["stacks"]}

    def kept(self, where, events):
        trace, = glob.glob(where + "/*.gtrace")
        return float(subprocess.run([sys.executable, "tests/bench/bytes.py", trace], cwd=ROOT, check=True, text=True,
                                    stdout=subprocess.PIPE).stdout)


class Heaptrack(Recorder):
    def environment(self, where):
        return {"LD_PRELOAD": HEAPTRACK[0], "DUMP_HEAPTRACK_OUTPUT": where + "/pipe"}

    @contextlib.contextmanager
    def beside(self, where):
        os.mkfifo(where + "/pipe")
        with open(where + "/out", "wb") as out:
            reader = subprocess.Popen(f"exec {os.path.join(os.path.dirname(HEAPTRACK[0]), INTERPRET)} <{where}/pipe",
                                      shell=True, stdout=out, stderr=subprocess.DEVNULL)
        try:
            yield
            reader.wait(timeout=60)
        finally:
            reader.kill()

    def kept(self, where, events):
        with open(where + "/out", "rb") as out:
            return len(gzip.compress(out.read(), 6)) / events


class Memray(Recorder):
    def before(self, where):
        return ["-m", "memray", "run", "-q", "--native", "-o", os.path.join(where, "out.bin")]


def compare(name, python_depth, depth, threads, python, stacks):
    recorders = {"ours": Ours("pattern-cuda.so", python, {"LD_PRELOAD": NOP}, stacks=stacks),
                 "memray": Memray("pattern-heap.so", python, {})}
    if HEAPTRACK:
        recorders["heaptrack"] = Heaptrack("pattern-heap.so", python, {})
    for _ in range(ROUNDS):
        for recorder in recorders.values():
            recorder.round(python_depth, depth, threads)
    for who, recorder in recorders.items():
        figure("%s.%s.adds" % (name, who), recorder.added("cpu"), "ns/pair")
        figure("%s.%s.bytes" % (name, who), recorder.bytes, "B/event")
    return recorders


def times(name, recorders, who, what, target):
    """How many times smaller ours is."""
    ratio = recorders[who].added(what) / recorders["ours"].added(what)
    figure("%s.%s/ours" % (name, who), ratio, "times", target, lambda value, wanted: value >= wanted)
    return ratio


def neighbour_group():
    python = memray_python()
    targets = {"heaptrack": 6, "memray": 4}
    one = compare("native60", 1, 46, 1, python, "native")
    two = compare("native60.threads2", 1, 46, 2, python, "native")
    compare("python20", 20, 0, 1, python, "both")
    for who, target in targets.items():
        if who in one:
            times("native60", one, who, "cpu", target)
            alone = times("native60.wall", one, who, "wall", None)
            figure("native60.threads2.%s/ours" % who, two[who].added("wall") / two["ours"].added("wall"), "times", alone,
                   lambda value, wanted: value >= wanted)
        else:
            print("native60.%s: not taken: it is not installed" % who, file=sys.stderr)
