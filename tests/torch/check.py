#!/usr/bin/env python3
"""Traces of real PyTorch, read while it runs, after it was killed and after it ran out of memory.

usage: check.py BUILD      Runs under the system's python3; PyTorch's is found by tests/torch/python.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "python")
STEPS = 3
sys.path.insert(0, os.path.dirname(HERE))
from judge import equal, expect, judge  # noqa: E402


class Traced:
    """A folder for the traces of one program, and the tool to read them."""

    def __init__(self, build):
        self.tool = os.path.join(build, "gputrace")
        self.folder = tempfile.TemporaryDirectory(prefix="gputrace-torch-")
        self.environment = dict(os.environ, GPUTRACE_DIR=self.folder.name, GT_BUILD=build,
                                LD_PRELOAD=os.path.join(build, "libgputrace.so"))

    def start(self, *args, **environment):
        return subprocess.Popen([PYTHON, *args], env={**self.environment, **environment},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *args, **environment):
        process = self.start(*args, **environment)
        process.output, process.errors = process.communicate(timeout=300)
        return process

    def path(self):
        files = [f for f in os.listdir(self.folder.name) if f.endswith(".gtrace")]
        equal(len(files), 1, "number of traces")
        return os.path.join(self.folder.name, files[0])

    def json(self, *args):
        done = subprocess.run([self.tool, *args, "--format", "json"], capture_output=True,
                              timeout=120)
        equal(done.returncode, 0, "status of gputrace %s (%r)" % (args[0], done.stderr))
        return json.loads(done.stdout)

    def text(self, *args):
        return subprocess.run([self.tool, *args], capture_output=True, timeout=120,
                              text=True).stdout


def compare(step, line, devices):
    """One step's figures, device by device, to the byte."""
    equal(len(devices), len(line["devices"]), "devices in step %d" % step)
    for device, torch in zip(devices, line["devices"]):
        for ours, theirs in (("torch_allocated", "allocated"), ("torch_reserved", "reserved"),
                             ("torch_peak_allocated", "max_allocated")):
            what = "%s of device %d in step %d" % (ours, device["ordinal"], step)
            equal(device[ours], torch[theirs], what)
        expect(device["allocated"] >= device["torch_allocated"] > 0, "in use in step %d" % step)
        equal(device["lost"], 0, "lost events")


def summary(traced):
    process = traced.json("summary", traced.path())["processes"][0]
    return process, process["devices"]


def totals(build, program, *args):
    """After every step, from the file of the running process; again after SIGKILL."""
    traced = Traced(build)
    process = traced.start("--devices", "2", os.path.join(HERE, program), "--steps", str(STEPS),
                           "--hold", *args)
    with process:
        for step in range(1, STEPS + 1):
            line = json.loads(process.stdout.readline())
            about, devices = summary(traced)
            equal(about["state"], "running", "state in step %d" % step)
            compare(step, line, devices)
            if step < STEPS:
                process.stdin.write("\n")
                process.stdin.flush()
        process.kill()
        process.wait()
        about, devices = summary(traced)
        equal(about["state"], "killed", "state after SIGKILL")
        compare(STEPS, line, devices)
        at_peak(traced, devices)


def at_peak(traced, devices):
    """Holders add up to the peak, level by level, and name the program's lines."""
    for level, key in ((None, "peak_allocated"), ("torch", "torch_peak_allocated"),
                       ("driver", "peak_reserved")):
        answer = traced.json("peak", *(("--level", level) if level else ()), traced.path())
        for device in devices:
            held = sum(h["bytes"] for h in answer["holders"] if h["device"] == device["ordinal"])
            equal(held, device[key], "sum of holders at the %s of %d" % (key, device["ordinal"]))
    files = {os.path.basename(f["file"] or "") for h in traced.json("peak", traced.path())["holders"]
             for f in h["frames"] if f["kind"] == "python"}
    expect(files & {"mlp.py", "gpt2.py"}, "no Python line of the program at the peak: %r" % files)


# ---- out of memory -----------------------------------------------------------------------------------

def said(errors):
    return [line for line in errors.splitlines() if line.startswith("gputrace: ")]


def check_failure(failure, outcome, share, free_shares, live_shares):
    part = (8 << 30) // 64
    equal(failure["outcome"], outcome, "outcome")
    equal(failure["device"], 0, "device")
    equal(failure["total"], 8 << 30, "total of the device")
    equal(failure["free"], free_shares * part, "free, %s" % outcome)
    equal(failure["allocated"], live_shares * part, "in use, %s" % outcome)
    equal(failure["reserved"], live_shares * part, "held, its cache given back, %s" % outcome)
    equal(failure["torch_requested"] or failure["requested"], share * part, "asked, %s" % outcome)
    equal(sum(h["bytes"] for h in failure["holders"]), failure["allocated"], "sum of holders")
    equal([h["bytes"] for h in failure["holders"]], [n * part for n in (7, 6, 5, 4, 2)], "holders, largest first")
    lines = set()
    for holder in failure["holders"]:
        functions = [f["function"] for f in holder["frames"]]
        expect(any("CUDACachingAllocator" in f for f in functions), "no torch frame: %r" % functions)
        lines |= {f["line"] for f in holder["frames"]
                  if f["kind"] == "python" and f["function"] == "load_weights" and f["file"].endswith("oom.py")}
    equal(len(lines), 5, "lines of load_weights that hold")


def oom_outcomes(build):
    """Survived, caught and fatal ones are told apart; the fatal one is the headline."""
    traced = Traced(build)
    process = traced.run("--devices", "1", os.path.join(HERE, "oom.py"), "recovered", "caught", "fatal")
    equal(process.returncode, 1, "status of the program")
    expect("OutOfMemoryError" in process.errors, process.errors)
    equal(len(said(process.errors)), 1, "lines of ours: %r" % said(process.errors))
    expect(traced.path() in said(process.errors)[0], "the line does not name the file")
    answer = traced.json("oom", traced.path())
    outcomes = [f["outcome"] for f in answer["failures"]]
    equal(outcomes, ["recovered", "caught", "fatal"], "outcomes")
    caught, fatal = answer["failures"][1:]
    check_failure(caught, "caught", 48, 40, 24)
    check_failure(fatal, "fatal", 50, 40, 24)
    equal((answer["oom"], answer["outcome"], answer["level"]), (True, "fatal", "torch"), "headline")
    equal(answer["request"]["torch_bytes"], fatal["torch_requested"], "request of the headline")
    equal(answer["request"]["where"]["function"], "request", "line of the headline")
    equal(answer["short_by"], answer["request"]["bytes"] - fatal["free"], "short by")
    text = traced.text("oom", traced.path())
    for words in ("6400 MiB", "GPU 0", "load_weights", "oom.py", "5120 free", "fatal"):
        expect(words in text, "%r is not on the screen: %s" % (words, text))
    rows = dict(re.findall(r"^  (in use|free|device) +(\d+)", text, re.M))
    equal(rows, {"in use": "3072", "free": "5120", "device": "8192"}, "rows in MiB")
    held = [int(row) for row in re.findall(r"^  \S*oom\.py:.*> :\d+ load_weights > .*? {2,}(\d+) ", text, re.M)]
    equal(held, [896, 768, 640, 512, 256], "rows of the holders in MiB")
    expect(traced.text(traced.path()) == text, "the bare name does not print the same")


def oom_caught(build):
    """A run that survives is no failure."""
    traced = Traced(build)
    process = traced.run("--devices", "1", os.path.join(HERE, "oom.py"), "recovered", "caught")
    equal(process.returncode, 0, "status of the program: " + process.errors)
    equal(len(said(process.errors)), 1, "lines of ours: %r" % said(process.errors))
    answer = traced.json("oom", traced.path())
    equal((answer["oom"], answer["request"]), (False, None), "headline")
    equal([f["outcome"] for f in answer["failures"]], ["recovered", "caught"], "outcomes")
    expect(traced.text(traced.path()).startswith("No failure."), "the summary says failure")


def oom_open(build):
    """SIGKILL in the middle of the retry: nobody knows how it would have ended."""
    traced = Traced(build)
    process = traced.run("--devices", "1", os.path.join(HERE, "oom.py"), "fatal", GT_SIM_KILL_REFUSED="2")
    equal(process.returncode, -9, "status of the program")
    answer = traced.json("oom", traced.path())
    equal([f["outcome"] for f in answer["failures"]], ["open"], "outcomes")
    equal((answer["oom"], answer["outcome"]), (True, "open"), "headline")
    check_failure(answer["failures"][0], "open", 50, 40, 24)
    expect("open" in traced.text("oom", traced.path()), "the screen does not say open")


# ---- two runs ----------------------------------------------------------------------------------------

def two_batches(build, program, devices, limit):
    """Rows by site add up to the difference of the peaks; a peak that grows by more than the limit is said."""
    runs = []
    for batch in ("64", "256"):
        traced = Traced(build)
        process = traced.run(os.path.join(HERE, program), "--steps", "2", "--batch", batch)
        equal(process.returncode, 0, "status of the program: " + process.errors)
        runs.append(traced)
    a, b = (traced.path() for traced in runs)
    for by in ("site", "line", "function", "stack", "owner"):
        answer = runs[0].json("diff", "--by", by, a, b)
        equal(len(answer["devices"]), devices, "devices")
        for device in answer["devices"]:
            expect(device["peak_b"] > device["peak_a"] > 0, "peaks")
            equal(sum(row["delta"] for row in device["rows"]), device["peak_b"] - device["peak_a"],
                  "sum of the rows by " + by)
    grown = [d["peak_b"] / d["peak_a"] - 1 for d in answer["devices"]]
    status = [subprocess.run([runs[0].tool, "diff", "--fail-if-peak-grows", limit, *files],
                             capture_output=True, timeout=120).returncode
              for limit, files in ((limit, (a, b)), ("%f%%" % (max(grown) * 101), (a, b)), (limit, (b, a)))]
    equal(status, [1, 0, 0], "statuses of --fail-if-peak-grows")


CASES = {
    "totals-mlp": (totals, "mlp.py"),
    "totals-gpt2": (totals, "gpt2.py", "--vary"),
    "oom-outcomes": (oom_outcomes,),
    "oom-caught": (oom_caught,),
    "oom-open": (oom_open,),
    "diff-two-batches": (two_batches, "gpt2.py", 1, "5%"),
    "diff-two-devices": (two_batches, "mlp.py", 2, "0.5%"),
}


def run_case(name, build):
    test, *args = CASES[name]
    return judge(name, test, build, *args)


def main():
    build = os.path.abspath(sys.argv[1])
    ready = subprocess.run([PYTHON, "-c", "import torch"], env=dict(os.environ, GT_BUILD=build),
                           capture_output=True, text=True)
    if ready.returncode == 77:
        for name in CASES:
            print("skip %s: %s" % (name, ready.stderr.strip().replace("\n", "; ")))
        return 0
    return not all([run_case(name, build) for name in sys.argv[2:] or CASES])


sys.exit(main())
