#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs what the documents show, on the simulated GPU.

usage: console.py BUILD [--write] [--quick] [PAGE...]

A block fenced as ```console is a session: its lines beginning with "$ " are run in a folder of the
page's own, where programs/ lies, and what they print must be what stands below them. "..." stands
for any lines. What differs from run to run (process numbers, times, speeds) is left out of the
comparison, and so are blanks, because such numbers shift columns. A block is preceded by
<!-- capacity 2G --> where the simulated card matters.

A block of another kind, or an example of --help, shows commands without output: each that begins
with gputrace is run as it stands on traces by the names that it uses, and must succeed.

--write puts the output of this run into the pages; --quick runs only pages that need no training.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import formulas

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = [os.path.join(HERE, "programs", "*.py")] + [os.path.join(TOP, "tests", p) for p in (
    "answers/faults.py", "torch/leak.py", "torch/gpt2.py", "torch/report.py")]
SCREEN = os.path.join(TOP, "tests", "cli", "screen")
WIDTH = "100"


class Session:
    """One ```console block: [(command, lines of output)], and the settings that stand before it."""

    def __init__(self, first, last, settings, lines):
        self.first, self.last, self.settings = first, last, settings
        self.entries = []
        for line in lines:
            if line.startswith("$ "):
                self.entries.append((line[2:], []))
            else:
                self.entries[-1][1].append(line)


def sessions(text):
    lines = text.splitlines()
    settings, start, found = {}, None, []
    for number, line in enumerate(lines):
        setting = re.fullmatch(r"<!-- (.*) -->", line)
        if start is not None:
            if line == "```":
                found.append(Session(start, number, settings, lines[start:number]))
                settings, start = {}, None
        elif setting:
            words = setting.group(1).split()
            settings = dict(zip(words[::2], words[1::2]))
        elif line == "```console":
            start = number + 1
    return found


# ---- running --------------------------------------------------------------------------------------

def write_script(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def folder_of_page(root, build):
    """A folder with the programs."""
    folder = tempfile.mkdtemp(dir=root)
    for pattern in PROGRAMS:
        for path in glob.glob(pattern):
            shutil.copy(path, folder)
    write_script(os.path.join(folder, "leak"), 'exec "%s/tests/sim/run" "%s/tests/answers/leak"\n' % (TOP, build))
    return folder


def make_commands(root, build):
    """Commands by the names that a reader types."""
    folder = os.path.join(root, "bin")
    os.mkdir(folder)
    os.symlink(os.path.join(build, "gputrace"), os.path.join(folder, "gputrace"))
    write_script(os.path.join(folder, "python"), 'exec "%s/tests/torch/python" "$@"\n' % TOP)


def environment(root, build, settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUTRACE", "PYTORCH", "LD_PRELOAD"))}
    simulated = {"GT_SIM_" + k.upper(): v for k, v in settings.items()}
    env.update(GT_BUILD=build, PATH=os.path.join(root, "bin") + ":" + env["PATH"], LANG="C.UTF-8", TERM="dumb",
               NO_COLOR="1", XDG_CACHE_HOME=os.path.join(root, "cache"), GT_SIM_CAPACITY="24G",
               PYTHONWARNINGS="ignore", LD_LIBRARY_PATH=build, CUBLAS_WORKSPACE_CONFIG=":16:8")
    env.update(simulated)
    return env


def with_trace(command, folder):
    """The command, with the trace that is here in place of the one that was there when the page was written."""
    def here(match):
        found = glob.glob(os.path.join(folder, "*.gtrace"))
        return os.path.basename(max(found, key=os.path.getmtime)) if found else match.group()
    return re.sub(r"\bgputrace\.python3[\d.]*\.\d+\.gtrace", here, command)


def run(command, folder, env):
    command = with_trace(command, folder)
    done = subprocess.run([SCREEN, WIDTH, "bash", "-c", command], cwd=folder, env=env, timeout=300,
                          stdin=subprocess.DEVNULL, capture_output=True)
    return done.returncode, done.stdout.decode("utf-8", "replace")


# ---- comparing ------------------------------------------------------------------------------------

MASKS = [
    (r"gputrace\.python3[\d.]*\.\d+", "gputrace.python.N"),
    (r"gputrace\.(\w+)\.\d+(?=\.gtrace)", r"gputrace.\1.N"),
    (r"\bpid +\d+( python3[\d.]*)?", "pid N"),
    (r"\bpython3\.\d+", "python"),
    (r"^( *[\d-]+ +\d+ +)\d+( .*(exited|killed|running|out of memory)\b)", r"\1N\2"),  # a row per rank
    (r"\bother process: \d+", "other process: N"),
    (r"(?<=\w)\.{2,}", ".."),  # how much of a long name fits
    (r"^( *)\d+ (?=torch|context|modules|library|pools)", r"\1N "),  # a row of the ledger
    (r"^(\s*\d+(?:-\d+)? +\d+ +\w+(?: +[\d-]+){4}) +\d+", r"\1 MS"),  # a row of steps
    (r"\b\d+(\.\d+)?(e[-+]\d+)? (steps/s|us|ms|s)\b", r"T \3"),
    (r"\b\d\d\d\d-\d\d-\d\d.\d\d:\d\d:\d\d\S*", "DATE"),
    (r"0x[0-9a-f]{6,}", "ADDRESS"),
    (r" [\d.e+-]+ +(ok|oom|killed|running)\b", r" N \1"),
    (r", (killed|running)$", ", END"),  # what dies with its parent may not be dead yet when that is said
]


def masked(line, root):
    line = line.replace(root, "")
    for pattern, by in MASKS:
        line = re.sub(pattern, by, line)
    return re.sub(r" {2,}", " ", line).strip()


def same(wanted, got):
    """A line that ends in " ..." says only how it begins."""
    return got.startswith(wanted[:-4]) if wanted.endswith(" ...") else got == wanted


def first_difference(wanted, got):
    """None, or what differs; a wanted line "..." stands for any number of lines."""
    at = 0
    for number, line in enumerate(wanted):
        if line == "...":
            rest = wanted[number + 1:]
            if not rest:
                return None
            later = [i for i in range(at, len(got)) if same(rest[0], got[i])]
            if not later:
                return "no line %r" % rest[0]
            at = later[0]
            continue
        if at >= len(got) or not same(line, got[at]):
            return "%r, shown as %r" % (got[at] if at < len(got) else "nothing", line)
        at += 1
    return "%r is not shown" % got[at] if at < len(got) else None


def shortened(shown, output):
    """The output for the page, with the page's "..." kept at a beginning."""
    return shown if "..." in shown else output


def check_page(page, root, build, write):
    path = os.path.join(TOP, page)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    folder, bad, new = folder_of_page(root, build), [], text.splitlines()
    shift = 0
    for session in sessions(text):
        lines = []
        env = environment(root, build, session.settings)
        for command, shown in session.entries:
            status, output = run(command, folder, env)
            got = [line.rstrip() for line in output.replace(folder + "/", "").splitlines()]
            if status == 77 and "no PyTorch" in output:
                return "skip", ["no PyTorch here"]
            why = first_difference([masked(x, root) for x in shown], [masked(x, root) for x in got])
            if why:
                bad.append("%s: %s" % (command, why))
            lines += ["$ " + command] + shortened(shown, got)
        new[session.first + shift:session.last + shift] = lines
        shift += len(lines) - (session.last - session.first)
    if write and bad:
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(new) + "\n")
    check_formulas(page, folder, build)
    return ("not ok", bad) if bad else ("ok", bad)


def check_formulas(page, folder, build):
    """A technique's page also shows what the technique is known to change."""
    name = os.path.basename(page).removesuffix(".md")
    if name not in formulas.EXPECTED:
        return
    bad, figures = formulas.check(name, os.path.join(build, "gputrace"), folder)
    print("\n".join(figures))
    report("changes-" + name, "not ok" if bad else "ok", bad)


failures = []


def report(name, result, why):
    if result == "not ok":
        failures.append(name)
    print("%s %s%s" % (result, name, ": " + "; ".join(why) if why else ""), flush=True)


def main():
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    build, wanted = os.path.abspath(words[0]), words[1:]
    pages = wanted or [p for p in ["README.md"] + sorted(glob.glob("docs/**/*.md", root_dir=TOP, recursive=True))]
    with tempfile.TemporaryDirectory(prefix="gputrace-docs-") as root:
        make_commands(root, build)
        for page in pages:
            with open(os.path.join(TOP, page), encoding="utf-8") as f:
                if "```console" not in f.read():
                    continue
            result, why = check_page(page, root, build, "--write" in sys.argv)
            report("shown-" + re.sub(r"\W+", "-", page.removeprefix("docs/").removesuffix(".md")), result, why)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
