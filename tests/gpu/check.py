#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of tests/gpu/check.sh, which sets the environment. usage: check.py OUTDIR

Each runs one program under the recorder and compares what the trace says with what the driver, NVML or PyTorch
said of itself. Programs have little time each, so that a hanging one costs one check.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
BUILD, PYTHON = os.environ["GT_BUILD"], os.environ["PYTHON"]
TOOL = os.path.join(BUILD, "gputrace")
SIM = os.environ.get("GPUTRACE_GPU_CHECK") == "sim"
MIB = 1 << 20
LIMIT = 90  # seconds for one program
LARGEST = 16 * MIB  # of a trace that is kept

sys.path.insert(0, os.path.join(TESTS, "answers"))
from harness import Failed, Skipped, expect  # noqa: E402


class Run:
    """One program under the recorder."""

    def __init__(self, name, *command, traced=True, wrap=(), status=0, **environment):
        self.folder = os.path.join(WORK, name)
        os.makedirs(self.folder, exist_ok=True)
        env = dict(os.environ, GPUTRACE_DIR=self.folder, GPUTRACE_RING="8M", GPUTRACE_QUIET="1", **environment)
        if traced:
            env["LD_PRELOAD"] = os.path.join(BUILD, "libgputrace.so")
        if SIM:
            env.setdefault("GT_SIM_CONTEXT_COST", "412M")
        try:
            self.done = subprocess.run([*wrap, *command], env=env, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired as error:
            raise Failed("%s: longer than %d s" % (name, LIMIT)) from error
        if status is not None:
            expect(self.done.returncode == status, "%s: status %d: %s" % (name, self.done.returncode, self.done.stderr[-400:]))
        found = [os.path.join(self.folder, f) for f in sorted(os.listdir(self.folder)) if f.endswith(".gtrace")]
        self.path = max(found, key=os.path.getsize, default=None)
        expect(self.path or not traced, "%s: no trace" % name)
        if self.path and os.path.getsize(self.path) <= LARGEST:
            shutil.copy(self.path, os.path.join(OUT, name + ".gtrace"))

    def said(self):
        return json.loads(self.done.stdout.splitlines()[-1])

    def ask(self, *words):
        done = subprocess.run([TOOL, *words, "--format", "json", self.path], capture_output=True, text=True, timeout=LIMIT)
        expect(done.returncode == 0, "gputrace %s: %s" % (words[0], done.stderr[-300:]))
        return json.loads(done.stdout)

    def device(self):
        return self.ask("summary")["processes"][0]["devices"][0]


def training(name, *words, **more):
    return Run(name, PYTHON, os.path.join(HERE, "training.py"), *words, **more)


def torch_program(name, program, *words, **more):
    return Run(name, PYTHON, os.path.join(TESTS, "torch", program), *words, **more)


def kept(name, make):
    """A run that several checks look at."""
    if name not in RUNS:
        RUNS[name] = make()
    return RUNS[name]


def state_run():
    return kept("state", lambda: training("state", "state"))


# ---- the driver -----------------------------------------------------------------------------------

def resolution():
    """How a PyTorch process comes to the driver's functions, and that none which allocates is unknown."""
    done = subprocess.run([TOOL, "doctor", "--format", "json", "--", PYTHON, "-c", "import torch; torch.zeros(9).cuda()"],
                          capture_output=True, text=True, timeout=LIMIT)
    expect(done.returncode in (0, 1), done.stderr[-300:])
    answer = json.loads(done.stdout)
    with open(os.path.join(OUT, "doctor.json"), "w", encoding="utf-8") as out:
        json.dump(answer, out, indent=1)
    seen = [e for e in answer["entry_points"] if e["seen_via"]]
    ways = sorted({way for e in seen for way in e["seen_via"]})
    expect(seen, "no function of the driver was asked for")
    not_hooked = [e["name"] for e in seen if not e["hooked"]]
    expect(not answer["unknown"] and not not_hooked, "unknown %r, not hooked %r" % (answer["unknown"], not_hooked))
    return "driver %s, %d functions by %s" % (answer["driver_version"] or "of unknown version", len(seen), ", ".join(ways))


def driver_run():
    program = os.path.join(HERE, "driver.py")
    return kept("totals", lambda: Run("totals", PYTHON, program, "totals"))


def mem_get_info():
    run = driver_run()
    said, device = run.said(), run.device()
    gone = said["free_before"] - said["free_after"]
    expect(device["reserved"] == said["asked"], "held %d, asked %d" % (device["reserved"], said["asked"]))
    expect(abs(gone - device["reserved"]) <= 2 * MIB, "the driver's free memory fell by %d" % gone)
    return "held %d, free fell by %d" % (device["reserved"], gone)


def nvml():
    run = driver_run()
    said = run.said()
    if said["nvml"] is None:
        raise Skipped("NVML does not tell a process's memory here")
    ledger = run.ask("ledger", "--at", "end")["devices"][0]
    ours = sum(s["bytes"] for s in ledger["nvidia_smi"])
    expect(abs(ours - said["nvml"]) <= max(64 * MIB, said["nvml"] // 20), "%d here, %d there" % (ours, said["nvml"]))
    return "ledger %d MiB, NVML %d MiB" % (ours // MIB, said["nvml"] // MIB)


def context_cost():
    ledger = state_run().ask("ledger", "--at", "end")
    rows = {kind: sum(r["bytes"] for r in ledger["rows"] if r["kind"] == kind) for kind in ("context", "modules", "unexplained")}
    expect(sum(r["bytes"] for r in ledger["rows"]) == ledger["device_total"], "rows do not add up")
    expect(rows["context"] > 0, "no context: %r" % rows)
    return ", ".join("%s %d MiB" % (kind, size // MIB) for kind, size in rows.items())


# ---- PyTorch --------------------------------------------------------------------------------------

def counters_equal(run):
    said, device = run.said(), run.device()
    for ours, theirs in (("torch_allocated", "allocated"), ("torch_reserved", "reserved"),
                         ("torch_peak_allocated", "max_allocated")):
        expect(device[ours] == said[theirs], "%s %d, torch's %s %d" % (ours, device[ours], theirs, said[theirs]))
    expect(device["lost"] == 0, "%d events lost" % device["lost"])
    return "peak %d, held %d, as torch" % (device["torch_peak_allocated"], device["torch_reserved"])


def counters():
    return counters_equal(state_run())


def snapshot():
    """Segments and live blocks, address by address."""
    run = state_run()
    path = os.path.join(OUT, "state.pickle")
    done = subprocess.run([TOOL, "snapshot", "-o", path, run.path], timeout=LIMIT, capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    reader = ("import pickle, json, sys; s = pickle.load(open(sys.argv[1], 'rb'))['segments']; print(json.dumps([sorted("
              "(x['address'], x['total_size']) for x in s), sorted((b['address'], b['size']) for x in s for b in x['blocks'] "
              "if b['state'] == 'active_allocated')]))")
    done = subprocess.run([sys.executable, "-c", reader, path], capture_output=True, text=True, timeout=LIMIT)
    segments, blocks = json.loads(done.stdout)
    said = run.said()
    missing = [s for s in said["segments"] if s not in segments]
    expect(not missing, "%d of torch's %d segments are missing" % (len(missing), len(said["segments"])))
    lacking = [b for b in said["blocks"] if b not in blocks]
    expect(not lacking, "%d of torch's %d blocks are missing" % (len(lacking), len(said["blocks"])))
    return "%d segments, %d blocks" % (len(said["segments"]), len(said["blocks"]))


def expandable():
    run = training("expandable", "state", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    return counters_equal(run)


def async_backend():
    """torch has no blocks then; what the driver's pool gave out must be what torch counts."""
    run = torch_program("async", "gpt2.py", "--steps", "4", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    said, device = run.said()["devices"][0], run.device()
    off = abs(device["peak_allocated"] - said["max_allocated"])
    expect(off <= said["max_allocated"] // 20, "%d here, %d there" % (device["peak_allocated"], said["max_allocated"]))
    return "peak %d, torch's %d" % (device["peak_allocated"], said["max_allocated"])


def graphs():
    run = torch_program("graphs", "graph.py")
    said, device = run.said(), run.device()
    expect(said["captured"] > said["before"], "the capture took nothing: %r" % said)
    expect(device["torch_reserved"] == said["gone"], "held %d, torch's %d" % (device["torch_reserved"], said["gone"]))
    return "private pool %d MiB, held in the end %d MiB" % ((said["captured"] - said["before"]) // MIB, said["gone"] // MIB)


def out_of_memory():
    run = torch_program("oom", "leak.py", "--batch", "4096" if SIM else "524288", status=1)
    answer = run.ask("oom")
    verdict = answer["verdict"]
    expect(answer["oom"] and answer["outcome"] == "fatal", "no refusal: %s" % run.done.stderr[-300:])
    expect(verdict["cause"] == "growth", "cause %s" % verdict["cause"])
    expect("leak.py" in (verdict["where"]["file"] or ""), "line %r" % verdict["where"])
    return "growth at leak.py:%d, %d MiB asked, %d MiB free" % (
        verdict["where"]["line"], answer["request"]["bytes"] // MIB, answer["device"]["free"] // MIB)


def nccl():
    if SIM:
        raise Skipped("a stub on the simulated GPU")
    try:
        run = training("nccl", "nccl", status=None)
    except Failed as why:
        raise Skipped(str(why)) from why
    if run.done.returncode:
        raise Skipped("no NCCL here: " + (run.done.stderr.strip().splitlines() or ["?"])[-1][:100])
    owners = {h["owner"]: 0 for h in run.ask("peak", "--level", "driver")["holders"]}
    expect(any("nccl" in (o or "") for o in owners), "owners %r" % sorted(map(str, owners)))
    return "owners " + ", ".join(sorted(map(str, owners)))


# ---- cost and neighbours --------------------------------------------------------------------------

def overhead():
    """A step with nothing, with the recorder, with torch's own history: medians of 3 interleaved rounds."""
    times = {"plain": [], "traced": [], "history": []}
    for number in range(1 if SIM else 3):
        for kind, found in times.items():
            run = training("speed-%s-%d" % (kind, number), "speed", "all" if kind == "history" else "none",
                           traced=kind == "traced")
            found.append(run.said()["ms"])
    middle = {kind: sorted(found)[len(found) // 2] for kind, found in times.items()}
    figure = "%.2f ms plain, %+.1f %% traced, %+.1f %% with torch's history" % (
        middle["plain"], *(100 * (middle[k] / middle["plain"] - 1) for k in ("traced", "history")))
    if SIM:
        raise Skipped("not judged on a simulated GPU: " + figure)
    expect(middle["traced"] <= 1.02 * middle["plain"] or middle["traced"] <= middle["history"], figure)
    return figure


def profiler():
    """Under nsys both record."""
    if not shutil.which("nsys"):
        raise Skipped("no nsys here")
    report = os.path.join(WORK, "profile")
    run = training("nsys", "state", wrap=("nsys", "profile", "-t", "cuda,nvtx", "-o", report))
    expect(os.path.exists(report + ".nsys-rep"), "nsys wrote no report")
    return "%d allocations recorded" % run.device()["allocs"]


CHECKS = [resolution, mem_get_info, nvml, context_cost, counters, snapshot, expandable, async_backend, graphs, out_of_memory,
          nccl, overhead, profiler]
RUNS = {}


def check(function):
    try:
        word, figure = "PASS", function()
    except Skipped as why:
        word, figure = "SKIP", str(why)
    except Exception as why:  # a check that breaks has failed, and the others go on
        word, figure = "FAIL", "%s: %s" % (type(why).__name__, why)
    print(word, function.__name__.replace("_", "-"), figure.replace("\n", "; "), flush=True)
    return word == "FAIL"


def main():
    return any([check(function) for function in CHECKS])


if __name__ == "__main__":
    OUT = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gputrace-gpu-") as WORK:
        sys.exit(main())
