# SPDX-License-Identifier: MIT
"""Planted faults: a command, and what its first line must say. Programs: faults.py, leak.c, async.c, pinned.c.

A row is one fault. `line`: the text of the planted line, which its answer must name; None: the cause
has no line of its own (another program's memory). `traces`: the command gets the folder of all
processes. The table of all rows is printed at the end of the last one.
"""
import os
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

from harness import HERE, Skipped, Traced, equal, expect, record, same_as_file

CLI = os.path.join(os.path.dirname(HERE), "cli")
SIM = os.path.join(os.path.dirname(HERE), "sim", "run")


class Fault(NamedTuple):
    command: str
    cause: str  # the oom command's; of growth its rule, of ledger the kind of row
    says: str  # in the first line
    sim: tuple = ()
    line: bool = True  # is named in the first line and in the answer's where
    everyday: bool = False
    source: str = "faults.py"
    traces: bool = False
    more: dict = {}


def oom(cause, says, capacity, **more):
    return Fault("oom", cause, says, ("--capacity", capacity), **more)


CONTEXTS = {"GT_SIM_CONTEXT_COST": "412M"}
FAULTS = {
    "validation_graph": oom("growth", "by growth", "2G", everyday=True),
    "retained_graph": oom("growth", "by growth", "2G"),
    "outputs_in_list": oom("growth", "by growth", "2G"),
    "evaluation_with_gradients": oom("growth", "more per call", "2G"),
    "optimizer_twice": oom("duplicate-state", "optimizer state is there more than once", "4G"),
    "shape_cache": oom("growth", "by growth", "4G"),
    "growing_buffer": Fault("growth", "growing-buffer", "Grows"),
    "fragmentation": oom("fragmentation", "by fragmentation", "4G", everyday=True),
    "single_request": oom("single-request", "by one request", "8G"),
    "conv_workspace": oom("single-request", "by one request", "8G"),
    "first_step": oom("first-step-too-large", "Too large for this card: step 1", "8G"),
    "long_batch": oom("activations", "activations hold", "8G"),
    "idle_context": Fault("ledger", "context", "context", traces=True, more=CONTEXTS),
    "idle_workers": oom("idle-contexts", "4 idle contexts hold 4000 MiB", "8G", traces=True,
                        more={"GT_SIM_CONTEXT_COST": "1000M"}),
    "pinned_memory": Fault("ledger", "context", "context is idle", ("--devices", "2"), more=CONTEXTS),
    "other_process": oom("other-process", "pid 4711 holds 6000 MiB", "8G", line=False,
                         more={"GT_SIM_OTHERS": "4711:6000"}),
    "library_leak": Fault("oom", "growth", "24 MiB more per call", everyday=True, source="leak.c"),
    "pinned_buffers": Fault("oom", "host-memory", "Out of host memory: 64 MiB could not be pinned", everyday=True,
                            source="pinned.c", more={"GT_SIM_HOST_CAPACITY": "1G"}),
    "async_pool": Fault("oom", "pool-cache", "the driver's pools keep", everyday=True, source="async.c"),
    "graph_pools": oom("pool-cache", "pools of CUDA graphs keep", "8G"),
    "caught_oom": oom("held-after-oom", "still held since the one that was caught", "6G"),
    "evaluation_outputs": oom("growth", "by growth", "2G"),
    "load_twice": oom("load-peak", "in loading", "4G"),
    "forked_holder": oom("other-process", "holds 6000 MiB of this card", "8G", traces=True),
    "traceback_kept": oom("growth", "by growth", "2G"),
    # with cuBLAS's own workspace, which is larger than all gradients
    "few_steps": oom("growth", "by growth", "2G", everyday=True, more={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    "kept_batches": oom("growth", "by growth", "512M", more={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
}


def traced_program(build, name, fault):
    """A run of a C program, with the tool to ask about it."""
    program = os.path.join(build, "tests", "answers", fault.source[:-2])
    if not os.path.exists(program):
        raise Skipped("no CUDA headers here")
    run = Traced.__new__(Traced)
    run.tool, run.program = os.path.join(build, "gputrace"), os.path.join(HERE, fault.source)
    run.folder = tempfile.TemporaryDirectory(prefix="gputrace-answers-")
    environment = dict(os.environ, GPUTRACE_DIR=run.folder.name, GT_BUILD=build,
                       LD_PRELOAD=os.path.join(build, "libgputrace.so"), **fault.more)
    run.done = subprocess.run([SIM, program], env=environment, capture_output=True, text=True, timeout=60)
    equal(run.done.returncode, 1, "status of " + name)
    files = [f for f in os.listdir(run.folder.name) if f.endswith(".gtrace")]
    equal(len(files), 1, "traces of " + name)
    run.path = os.path.join(run.folder.name, files[0])
    # as torch's own, although nothing in the program says that this refusal was the last
    equal([line.split(" refused; see: ")[1] for line in run.done.stderr.splitlines() if "refused" in line],
          ["gputrace oom " + run.path], "line on standard error")
    return run


def planted(build, name, fault):
    if fault.source != "faults.py":
        return traced_program(build, name, fault)
    return Traced(build, "faults.py", name, sim=fault.sim, fails=True, **fault.more)


def answer_of(run, fault):
    """(cause, where as file:line) of the JSON answer."""
    answer = run.json(fault.command)
    if fault.command == "oom":
        expect(answer["oom"], "no OOM: " + run.done.stderr[-400:])
        verdict = answer["verdict"]
        return verdict["cause"], verdict["where"] and verdict["where"]["line"], answer
    if fault.command == "growth":
        expect(answer["sites"], "nothing grows")
        return answer["sites"][0]["rule"], answer["sites"][0]["where"]["line"], answer
    row = answer["rows"][0]
    equal(sum(r["bytes"] for r in answer["rows"]), answer["device_total"], "sum of the ledger")
    expect(row["idle"], "the first row is no idle context: %r" % row)
    return row["kind"], int(row["key"].split(" ")[0].rsplit(":", 1)[1]), answer


def check_calls(run, answer):
    """Without steps growth says what oom says: by calls."""
    calls = run.json("growth")["devices"][0]["calls"]
    evidence, = [e for e in answer["verdict"]["evidence"] if e.get("rule") == "kept-by-call"]
    equal([calls[k] for k in ("bytes_per_call", "calls", "freed")],
          [evidence[k] for k in ("bytes_per_call", "calls", "freed")], "calls")
    expect(run.first_line("growth").startswith("Grows 24 MiB per call of leak.c:"), run.first_line("growth"))
    equal(run.first_line("growth").split(" call of ")[1], run.first_line("oom").split(" call of ")[1], "the line")


def check_message(run, answer):
    """What was asked is what torch's own message says that it asked for, to its two digits; at once, too."""
    said = re.findall(r"Tried to allocate ([\d.]+) ([KMG]iB)", run.done.stderr)
    at_once = re.findall(r"out of memory on GPU \d+: ([\d.]+) ([KMG]iB) refused", run.done.stderr)
    expect(not said or len(at_once) == 1, "said at once: %r" % at_once)
    if said and answer["verdict"]["cause"] != "held-after-oom":  # there an earlier one was the first
        equal(at_once, said[-1:], "what is said at once")
    if said:
        unit = 1 << {"KiB": 10, "MiB": 20, "GiB": 30}[said[-1][1]]
        equal("%.2f" % (answer["request"]["bytes"] / unit), said[-1][0], "what torch's message says was asked")


def check_kept(run, answer):
    """What is kept is what each step but the last has added, and no workspace."""
    growth, = run.json("growth")["devices"]
    expect(growth["sites"][0]["of_steps"] < 8, "not few steps: %r" % growth)
    added = growth["slope_bytes_per_step"] * (growth["sites"][0]["of_steps"] + 1)
    expect(abs(growth["bytes"] - added) * 100 < added, "%d kept, %d added" % (growth["bytes"], added))


def check_segments(run, answer):
    """The pieces add up, none is large enough, and the planted line keeps them apart."""
    device = run.json("segments", "--at", "oom")["devices"][0]
    for key in ("reserved", "allocated", "cached"):
        equal(device[key], answer["device"][key], key)
        equal(sum(s[{"reserved": "size", "allocated": "used"}.get(key, key)] for s in device["segments"]),
              device[key], "sum of " + key)
    equal((device["fits"], device["wanted"] > device["largest_free_block"]), (False, True), "fits")
    equal(run.json("segments", "--at", "oom", "--for", "1M")["devices"][0]["fits"], True, "1 MiB fits")
    pins = {s["pinned_by"] for s in device["segments"] if s["cached"] and s["pinned_by"]}
    expect(any("fragmentation" in pin for pin in pins), "pins %r" % pins)
    equal(run.json("errors")["errors"][-1]["outcome"], "fatal", "outcome of the last refusal")


def needed(answer):
    """What is missing: of the whole step where it is known what was to come, else of the request."""
    device, to_come = answer["device"], answer["to_come"] or 0
    others = sum(other["bytes"] for other in device["others"])
    over = device["allocated"] + to_come - (device["total"] - others) if to_come else 0
    return over if over > 0 else answer["short_by"]


def check_formulas(answer):
    """Of the remedies of a first step, whose bytes nothing in the trace was tried on."""
    remedies = {r["id"]: r["bytes"] for r in answer["remedies"]}
    weights, gradients, state = (answer["categories"][k] for k in ("weights", "gradients", "optimizer_state"))
    state += answer["to_come"] - remedies["no-foreach"]
    expect(weights and gradients and state, "categories %r" % answer["categories"])
    for name, wanted in (("optimizer-on-cpu", state + gradients), ("eight-bit-state", state // 4 * 3),
                         ("shard-two", (weights + 2 * gradients + state) // 2)):
        equal(remedies[name], wanted, "bytes of " + name)


def check_remedies(run, answer):
    """Every remedy has a formula; one that was not tried on the blocks is enough if its bytes are."""
    for remedy in answer["remedies"]:
        expect(remedy["formula"], "no formula: %r" % remedy)
        if not remedy["checked"]:
            equal(remedy["enough"], remedy["bytes"] >= needed(answer), "enough of %r" % remedy)
    if answer["verdict"]["cause"] == "first-step-too-large":
        check_formulas(answer)
    everything = run.run("oom", "--remedies")
    for remedy in answer["remedies"]:
        expect(remedy["formula"] in everything, "--remedies leaves out %r" % remedy)


# The screens of a terminal of 80 columns, to the letter but for times and process numbers.
SCREENS = {
    "validation_graph": (("oom",),),
    "fragmentation": (("oom",), ("segments", "--at", "oom", "--for", "200M")),
    "caught_oom": (("oom",), ("errors",)),
    "pinned_memory": (("ledger",),),
    "first_step": (("oom",),),
}


def check_screens(run, name):
    sys.path.insert(0, CLI)
    from plain import plain  # pylint: disable=import-outside-toplevel
    for command in SCREENS.get(name, ()):
        shown = subprocess.run([os.path.join(CLI, "screen"), "80", run.tool, *command, run.path],
                               env=dict(os.environ, NO_COLOR="1", TERM="xterm"), capture_output=True, text=True,
                               timeout=120, check=True).stdout
        expect(len(shown.splitlines()) <= 24, "%d lines: %s" % (len(shown.splitlines()), shown))
        same_as_file(os.path.join(HERE, "golden", "%s-%s.txt" % (name, command[0])), plain(shown))


def check_fault(build, name):
    fault = FAULTS[name]
    run = planted(build, name, fault)
    if fault.traces:
        run.path = run.folder.name
    first = run.first_line(fault.command)
    cause, where, answer = answer_of(run, fault)
    line = run.line_of("the fault: " + name) if fault.line else None
    named = bool(line) and where == line and (":%d" % line) in first
    record("faults", name, fault.command, fault.cause, cause if fault.says in first else "-",
           "%s:%d" % (fault.source, line) if line else "none: not its own", named)
    print("# %-25s %-7s %-20s %s" % (name, fault.command, cause, first))
    equal(cause, fault.cause, "cause")
    expect(fault.says in first, "the first line is %r" % first)
    if fault.line:
        expect(named, "line %d is not named: %r, where %r" % (line, first, where))
    if name == "fragmentation":
        check_segments(run, answer)
    if name == "few_steps":
        check_kept(run, answer)
    if name == "library_leak":
        check_calls(run, answer)
    if fault.command == "oom":
        check_remedies(run, answer)
        check_message(run, answer)
    check_screens(run, name)


ORDER = list(FAULTS)


def judge_table(rows):
    """The causes, ours beside the planted ones; of all faults that ran, all but two have their line named."""
    print("# %-25s %-7s %-21s %-21s %-26s %s" % ("fault", "command", "cause planted", "cause in first line",
                                               "line planted", "in first line"))
    for name, command, wanted, cause, line, named in sorted(rows, key=lambda row: ORDER.index(row[0])):
        print("# %-25s %-7s %-21s %-21s %-26s %s" % (name, command, wanted, cause, line, "yes" if named else "no"))
    named = sum(row[-1] for row in rows)
    print("# %d faults, %d causes in the first line, %d lines named" %
          (len(rows), sum(row[2] == row[3] for row in rows), named))
    equal([row[0] for row in rows if row[2] != row[3]], [], "faults without their cause")
    expect(named >= len(rows) - 2, "lines not named: %r" % [row[0] for row in rows if not row[-1]])


CASES = {"fault-" + name: (fault.everyday, check_fault, name) for name, fault in FAULTS.items()}
