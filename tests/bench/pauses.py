# SPDX-License-Identifier: MIT
"""Figures of single calls: how long the longest ones take, on tmpfs, on disk, and on a disk that is busy
writing other files, beside the nop library alone and beside a program that only touches as many pages.
"""
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile

from measure import NOP, OUT, QUICK, ROUNDS, TRACED, Traced, bench, figure, run

# Writes a file again and again and waits for the disk each time.
WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
while True:
    for i in range(16):
        os.pwrite(fd, os.urandom(4 << 20), i << 22)
    os.fsync(fd)
"""


@contextlib.contextmanager
def busy_disk(where):
    with tempfile.TemporaryDirectory(dir=where) as folder:
        writer = subprocess.Popen([sys.executable, "-c", WRITER, os.path.join(folder, "file")])
        try:
            yield
        finally:
            writer.kill()
            writer.wait()


def pauses(where):
    """{variant: one {name: ns} per round}; the variants alternate."""
    command = bench("pause", "200000" if QUICK else "3000000", "1000")
    variants = {"nop": (command, Traced(NOP)), "touch": (command + ["touch"], Traced(NOP)),
                "traced": (command, Traced(TRACED, stacks="none"))}
    runs = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, (words, traced) in variants.items():
            words = run(words, traced, where=where).split()
            runs[name].append(dict(zip(words[::2], map(float, words[1::2]))))
    return {name: {what: statistics.median(r[what] for r in all) for what in all[0]} for name, all in runs.items()}


def show(place, got):
    for name, values in got.items():
        for what, value in values.items():
            unit, scale = ("count", 1) if what == "apart" else ("us", 1000)
            figure("pause.%s.%s.%s" % (place, name, what), value / scale, unit,
                   300 if (name, what) == ("traced", "p99.9") and place != "busy" else None)


def pause_group():
    show("tmpfs", pauses("/dev/shm"))
    quiet = pauses(OUT)
    show("disk", quiet)
    with busy_disk(OUT):
        got = pauses(OUT)
    show("busy", got)
    for what in ("p99.9", "max"):
        figure("pause.busy.traced/touch." + what, got["traced"][what] / got["touch"][what], "ratio", 2)
        figure("pause.traced.busy/disk." + what, got["traced"][what] / quiet["traced"][what], "ratio")
