# SPDX-License-Identifier: MIT
"""Programs with and without the preload, from outside: what they print, how they end, the traces they leave. Every
program has a time limit, so that a loop is a failure, not a hang. Used by run here and by tests/trust.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.environ.get("O", "build"))
LIB = os.path.join(BUILD, "libgputrace.so")
TOOL = os.path.join(BUILD, "gputrace")
SIM = os.path.join(TOP, "tests", "sim", "run")
LIMIT = 60
sys.path.insert(0, os.path.dirname(HERE))
from judge import equal  # noqa: E402


def unseen(with_us, without):
    """Status, output and errors of two runs: equal to the bit?"""
    if with_us == without:
        return
    equal(with_us[0], without[0], "status with the preload")
    for a, b in zip(with_us[1:], without[1:]):
        lines = list(zip(a.splitlines() + [None], b.splitlines() + [None]))
        equal(*next((x for x in lines if x[0] != x[1]), (len(a), len(b))), "output with the preload")


def run(command, preload=None, directory=None, limit=LIMIT, **env):
    """Status, output and errors of a program; -1 when it had to be stopped."""
    env = {**os.environ, **env, "GT_BUILD": BUILD}
    if preload:
        env["LD_PRELOAD"] = preload
    if directory:
        env["GPUTRACE_DIR"] = "/no/such/folder:" + directory
    try:
        p = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=limit, cwd=directory)
    except subprocess.TimeoutExpired:
        return -1, b"", b"stopped at its time limit"
    return p.returncode, p.stdout, p.stderr


def traces(directory):
    return sorted(glob.glob(os.path.join(directory, "*.gtrace")))


def dump(trace, *what):
    out = subprocess.run([TOOL, "dump", *what, "--format", "json", trace], check=True,
                         capture_output=True, timeout=LIMIT).stdout
    return [json.loads(line) for line in out.splitlines()]


def the_lane(trace, device=0):
    lanes = [x for x in dump(trace, "--lanes") if x["type"] == "lane" and x["device"] == device]
    equal(len(lanes), 1, f"lanes of device {device}")
    return lanes[0]


def same(command, preload=LIB, status=0, **env):
    """Runs with and without; output, errors and status must be equal. Returns output and traces.
    The first trace directory cannot be used, so that the recorder's own calls set errno too."""
    env = {"GPUTRACE_QUIET": "1", **env}
    with tempfile.TemporaryDirectory() as d:
        plain = run(command, directory=d, **env)
        equal(plain[0], status, f"status even without the preload ({plain[2].decode()[-200:]})")
        with_us = run(command, preload=preload, directory=d, **env)
        unseen(with_us, plain)
        kept = []
        for t in traces(d):
            with open(t, "rb") as f:
                kept.append(f.read())
    return plain[1].decode(), kept
