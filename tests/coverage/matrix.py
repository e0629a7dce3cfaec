#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every hook through every way to the driver: each call's result must be that of a run without the
preload, and the trace must hold exactly what was done: once, with its size, device and stream. The
hooks are the rows of hooks.def, what is done with each stands in scenes.py.

usage: matrix     O in the environment; prints the table, then ok / not ok / skip
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("O", "build"))
SIM = os.path.join(TOP, "tests", "sim", "run")
RUNTIMES = {"cudart12": "libcudart.so.12", "cudart13": "libcudart.so.13", "static": "libcudart_static.a"}
WAYS = ["elf", "dlsym", "dlvsym", "ctypes"] + [f"gpa{v}-{f}" for v in (1, 2) for f in (0, 1, 2)]


def hooks():
    with open(os.path.join(TOP, "preload", "hooks.def")) as f:
        return re.findall(r"^GT_(?!CALL|RUNTIME|TORCH|LOADER)\w+\(\w+, (cu\w+),", f.read(), re.M)


def play(way, names, preload):
    """What each scene says, and the events of the trace."""
    with tempfile.TemporaryDirectory() as d:
        env = {**os.environ, "GT_BUILD": BUILD, "GPUTRACE_DIR": d, "GPUTRACE_QUIET": "1",
               "GPUTRACE_SAMPLE_US": "0", "GPUTRACE_STACKS": "none", "GT_SIM_MODULE_COST": "3M",
               "CUDA_MODULE_LOADING": "EAGER"}
        library = "libways-static.so" if way == "static" else "libways.so"
        if preload:
            env["LD_PRELOAD"] = os.path.join(BUILD, "libgputrace.so")
        p = subprocess.run([SIM, sys.executable, os.path.join(HERE, "scenes.py"), way,
                            os.path.join(BUILD, "tests", "coverage", library), *names], env=env,
                           capture_output=True, timeout=120)
        if p.returncode or p.stderr:
            raise AssertionError(f"{way}: status {p.returncode}: {p.stderr.decode()[-300:]}")
        scenes = [json.loads(line) for line in p.stdout.splitlines()]
        return scenes, events(d) if preload else []


def events(directory):
    traces = glob.glob(os.path.join(directory, "*.gtrace"))
    if len(traces) != 1:
        raise AssertionError(f"{len(traces)} trace files")
    tool = os.path.join(BUILD, "gputrace")
    streams, device, found = {0: 0}, {}, []
    for what in ("--defs", "--lanes", None):
        out = subprocess.run([tool, "dump", *([what] if what else []), "--format", "json", traces[0]],
                             check=True, capture_output=True, timeout=60).stdout
        for x in map(json.loads, out.splitlines()):
            if x["type"] == "stream":
                streams[x["id"]] = x["handle"]
            elif x["type"] == "lane":
                device[x["lane"]] = x["device"]
            elif x["type"] == "event" and what is None and x["op"] != "exit":
                found.append([x["op"], x["space"], x["size"], device[x["lane"]],
                              min(streams[x["stream"]], 3)])
    return found


def aside(event):
    """Series that are sampled: looked at only where a scene says so."""
    return event[1] in ("pool", "graph") or event[0] == "sample"


def judge(scenes, got):
    """hook -> None, or what is wrong. Scenes and trace go on in step; one that fails is left behind
    up to the first event of the next one that has any."""
    at, wrong = 0, {}
    for i, scene in enumerate(scenes):
        for want in scene["wanted"] or ():
            while at < len(got) and aside(got[at]) and got[at] != want:
                at += 1
            if at < len(got) and got[at] == want:
                at += 1
                continue
            wrong[scene["hook"]] = f"{got[at] if at < len(got) else 'nothing'} instead of {want}"
            following = [s["wanted"][0] for s in scenes[i + 1:] if s["wanted"]]
            while following and at < len(got) and got[at] != following[0]:
                at += 1
            break
        extra = [e for e in got[at:at + 1] if not aside(e)]
        following = [s["wanted"][0] for s in scenes[i + 1:] if s["wanted"]]
        if extra and scene["hook"] not in wrong and extra[0] not in following[:1]:
            wrong[scene["hook"]] = f"{extra[0]} too much"
    return wrong


def column(way, names):
    """hook -> "ok" or "ok*", the reason why there is no such cell, or [what is wrong]"""
    scenes, got = play(way, names, True)
    plain, _ = play(way, names, False)
    wrong, cells = judge(scenes, got), {}
    for ours, theirs in zip(scenes, plain):
        hook = ours["hook"]
        if ours["wanted"] is None:
            cells[hook] = [ours["cannot"]]
        elif ours["results"] != theirs["results"]:
            cells[hook] = [f"results differ: {ours['results']} {theirs['results']}"]
        elif hook in wrong:
            cells[hook] = [wrong[hook]]
        else:
            cells[hook] = ours["cannot"] or ("ok*" if ours["asked"] else "ok")
    return cells


def main():
    names, ways = hooks(), list(WAYS)
    for way, file in RUNTIMES.items():
        if os.path.exists(os.path.join(BUILD, "sim", file)):
            ways.append(way)
        else:
            print(f"skip matrix-{way}: not built, no CUDA headers of that version (make deps gets them)")
    table = {way: column(way, names) for way in ways}
    reasons, failed = [], []
    print(f"{'':36}" + "".join(f"{w:>9}" for w in ways))
    for hook in names:
        cells = []
        for way in ways:
            cell = table[way][hook]
            if isinstance(cell, list):
                failed.append(f"{hook} by {way}: {cell[0]}")
                cells.append("FAILED")
            elif cell in ("ok", "ok*"):
                cells.append(cell)
            else:
                if cell not in reasons:
                    reasons.append(cell)
                cells.append("(" + chr(ord("a") + reasons.index(cell)) + ")")
        print(f"{hook:36}" + "".join(f"{c:>9}" for c in cells))
    for i, reason in enumerate(reasons):
        print(f"  ({chr(ord('a') + i)}) {reason}")
    print("  *   no call of the runtime is this one: asked of it with cudaGetDriverEntryPointByVersion")
    for line in failed[:20]:
        print(f"not ok matrix: {line}")
    passed = sum(cell in ("ok", "ok*") for cells in table.values() for cell in cells.values())
    if not failed:
        print(f"ok matrix: {passed} cells of {len(names)} hooks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
