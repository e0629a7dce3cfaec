"""Every command that `gputrace --commands` lists has a golden text, a golden JSON and a help with an example."""
import glob
import os
import re

from harness import ROOT, expect, golden

# What makes files, goes on, or tells of the machine: the suites that hold its output.
ELSEWHERE = {
    "run": "cli", "doctor": "cli, interpose", "html": "page", "snapshot": "snapshot", "export": "exports",
    "metrics": "exports", "merge": "pickle", "pack": "frames", "live": "live", "mcp": "mcp",
}


def steady(text):
    """Without times, addresses and numbers of threads and processes."""
    text = re.sub(r'("(?:\w*seconds|pid|ppid|\w*starts|\w*_us|us|idle_seconds)": ?)[\d.]+', r"\1N", text)
    text = re.sub(r'("host": )"[^"]*"', r'\1"H"', text)
    text = re.sub(r'("addr":)\d+', r"\1A", text)
    text = re.sub(r'(_us":)\[[\d,]+\]', r"\1[N]", text)
    text = re.sub(r"\b0x[0-9a-f]+", "ADDRESS", text)
    text = re.sub(r"\b\d+\.\d{6}\b", "T", text)
    text = re.sub(r" +(GPU +pid|0 +\d+)$", lambda m: "  GPU  pid" if "GPU" in m.group(1) else "  0  N", text, flags=re.M)
    return re.sub(r"\bborn at \d+ us", "born at N us", text)


def goldens(bench, path):
    """Those that no other case keeps, of a program with a few events."""
    for name, *command in (("summary", "summary"), ("at", "at", "end"), ("peak", "peak"),
                           ("timeline", "timeline", "--all"), ("dump", "dump", "--lanes")):
        golden(name + ".json", steady(bench.text(*command, "--format", "json", path)))
        if name not in ("summary", "peak"):
            golden(name + ".txt", steady(bench.text(*command, path)))


def complete(bench, _):
    """A command without them fails, and so does an entry above of one that is no more."""
    names = re.findall(r"^  (\w+) ", bench.text("--commands"), re.M)
    missing = []
    for name in names:
        helped = bench.text(name, "--help")
        if not re.search(r"^Examples?:\n? *\S", helped, re.M):
            missing.append(name + " --help has no example")
        for kind in () if name in ELSEWHERE else ("txt", "json"):
            if not glob.glob(os.path.join(ROOT, "tests/*/golden/%s*.%s" % (name, kind))):
                missing.append("%s has no golden %s" % (name, kind))
    expect(not missing, "; ".join(missing))
    gone = set(ELSEWHERE) - set(names)
    expect(not gone, "no command: %s" % sorted(gone))
