#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One folder with a trace of each of 1,000 ranks: read as one job.

usage: run.py BUILD [RANKS]

Ranks are real processes with recorded traffic; files have names that say nothing of the rank, so it can
only come from their headers. One rank holds more than the others, one less, one is killed. The summary's
limit is processor time, which other work on the machine does not change.
"""
import concurrent.futures
import os
import random
import re
import resource
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "cli"))
from harness import Bench, equal, expect  # noqa: E402

LARGE, SMALL, KILLED = 617, 50, 288
MOST_SECONDS = 10


def record(bench, folder, rank, ranks):
    live = {LARGE % ranks: 400, SMALL % ranks: 10}.get(rank, 100)
    environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank % 8), WORLD_SIZE=str(ranks), GPUTRACE_DIR=folder,
                       GPUTRACE_QUIET="1", LD_PRELOAD=os.path.join(bench.build, "libgputrace.so"))
    if rank == KILLED % ranks:
        environment.update(GT_SIM_FAIL_NTH="900", GT_SIM_KILL_REFUSED="1")
    subprocess.run([os.path.join(TESTS, "sim", "run"), bench.program("traffic"), "--events", "2000", "--live", str(live),
                    "--seed", str(rank + 1), "--max", "1048576"], env=environment, stdout=subprocess.DEVNULL, timeout=120)


def make_folder(bench, ranks):
    folder = os.path.join(bench.dir, "traces")
    os.mkdir(folder)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda rank: record(bench, folder, rank, ranks), range(ranks)))
    names = sorted(os.listdir(folder))
    equal(len(names), ranks, "traces")
    order = list(range(ranks))
    random.Random(1).shuffle(order)
    for name, number in zip(names, order):
        os.rename(os.path.join(folder, name), os.path.join(folder, "%04d.gtrace" % number))
    return folder


def processor_seconds(work):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def summary_in_time(bench, folder, ranks):
    seconds, text = processor_seconds(lambda: bench.text("summary", folder))
    print("# summary of %d traces: %.2f s of processor time" % (ranks, seconds))
    expect(seconds <= MOST_SECONDS, "%.2f s of processor time" % seconds)
    found = [int(row) for row in re.findall(r"^ +(\d+) +0 +\d+ ", text, re.M)]
    equal((len(found), found[:3]), (ranks, [KILLED % ranks, LARGE % ranks, SMALL % ranks]), "rows, first ranks")
    odd = found[:-1].index(min(set(found) - set(found[:3])))
    equal(found[odd:], sorted(found[odd:]), "ranks that are like the others")
    expect(re.search(r"^Unlike the others, first: %d of %d;" % (odd, ranks), text, re.M), text[:300])


def ranks_as_rows(bench, folder, ranks):
    answer = bench.json("summary", folder)
    equal(sorted(int(p["rank"]) for p in answer["processes"]), list(range(ranks)), "ranks")


def one_rank(bench, folder, ranks):
    answer = bench.json("summary", "--rank", "7", folder)
    equal([p["rank"] for p in answer["processes"]], ["7"], "ranks of --rank 7")


def metrics_of_all(bench, folder, ranks):
    text = bench.text("metrics", folder)
    found = set(re.findall(r'^gputrace_peak\w*\{[^}]*rank="(\d+)"', text, re.M))
    equal(len(found), ranks, "ranks with a peak in the metrics")


def sql_of_all(bench, folder, ranks):
    out = os.path.join(bench.dir, "ranks.db")
    bench.text("export", "--format", "sqlite", folder, "-o", out)
    with sqlite3.connect(out) as db:
        rows = db.execute("SELECT rank, peak_allocated FROM device JOIN process USING (process) "
                          "ORDER BY peak_allocated DESC").fetchall()
    equal(sorted(int(r) for r, _ in rows), list(range(ranks)), "ranks in SQL")
    equal(int(rows[0][0]), LARGE % ranks, "the largest")


def main():
    bench = Bench(sys.argv[1])
    ranks = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    folder = make_folder(bench, ranks)
    for test in (summary_in_time, ranks_as_rows, one_rank, metrics_of_all, sql_of_all):
        bench.case("%s-%d" % (test.__name__.replace("_", "-"), ranks), test, folder, ranks)
    return bench.bad > 0


if __name__ == "__main__":
    sys.exit(main())
