#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages in a browser, opened from files without a network: numbers, keys, pointer, names that try to act,
no scripts, print, themes, speed, accessibility, two traces.

usage: tests/page/run BUILD [CASE...]      GT_PAGE_TRACES=DIR keeps the traces there and takes them again
"""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(TESTS, "cli"))
sys.path.insert(0, HERE)
from harness import Bench, Skipped, equal, expect, judge  # noqa: E402
from opened import Browser  # noqa: E402
import looks  # noqa: E402
import moves  # noqa: E402
import panels  # noqa: E402

TORCH = os.path.join(TESTS, "torch", "python")
GPT = [os.path.join(TESTS, "torch", "gpt2.py"), "--vary", "--layers", "3", "--width", "384", "--length", "384",
       "--vocabulary", "8000", "--steps", "8"]
FAULTS = os.path.join(TESTS, "answers", "faults.py")
MLP = os.path.join(TESTS, "torch", "mlp.py")

# name: what runs, the environment
TRACES = {
    "healthy": ([TORCH, "--capacity", "8G", *GPT, "--batch", "8"], {}),
    "old": ([TORCH, "--capacity", "8G", *GPT, "--batch", "6"], {}),
    "leak": ([TORCH, "--capacity", "2G", FAULTS, "validation_graph"], {}),
    "frag": ([TORCH, "--capacity", "4G", FAULTS, "fragmentation"], {}),
    **{"rank%d" % r: ([TORCH, "--capacity", "8G", MLP, "--steps", "3", "--batch", str(64 * (r + 1)), "--devices",
                       "1"], {"RANK": str(r), "WORLD_SIZE": "4"}) for r in range(4)},
    "two": (["SIM", "--devices", "2", "PROG/traffic", "--events", "5000", "--live", "200", "--sites", "40", "--devices",
             "2", "--threads", "2"], {}),
    "driver": (["PROG/oom"], {}),
    "lost": (["CHAIN", "400000", "100"], {"GPUTRACE_RING": "256K"}),
    "ten": (["CHAIN", "10000000", "2000"], {}),
    "hostile": ([sys.executable, os.path.join(HERE, "hostile.py"), "<script>alert(3)</script>"], {"RANK": "<b>\u202e"}),
}
PAGES = {
    "healthy": ["healthy"], "leak": ["leak"], "frag": ["frag"], "ranks": ["rank0", "rank1", "rank2", "rank3"],
    "two": ["two"], "driver": ["driver"], "lost": ["lost"], "hostile": ["hostile"], "diff": ["--diff", "old", "healthy"], "ten": ["ten"],
}


class Pages:
    def __init__(self, bench, browser):
        self.bench, self.browser = bench, browser
        self.kept = os.environ.get("GT_PAGE_TRACES") or bench.dir
        self.made, self.why = {}, {}

    def trace(self, name):
        path = os.path.join(self.kept, name + ".gtrace")
        if os.path.exists(path):
            return path
        command, more = TRACES[name]
        places = {"PROG": os.path.join(self.bench.build, "prog"), "SIM": os.path.join(TESTS, "sim", "run"),
                  "CHAIN": os.path.join(self.bench.build, "pagetest", "chain")}
        command = [re.sub("^(PROG|SIM|CHAIN)(?=$|/)", lambda m: places[m.group()], word) for word in command]
        if not os.path.exists(command[0]) and "/" in command[0]:
            raise Skipped("%s was not built (no CUDA headers)" % os.path.basename(command[0]))
        if command[0] not in (TORCH, places["SIM"], places["CHAIN"]):
            command.insert(0, places["SIM"])
        where = os.path.join(self.bench.dir, name + ".d")
        os.mkdir(where)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=900, env=dict(
            os.environ, GPUTRACE_DIR=where, GPUTRACE_QUIET="1",
            LD_PRELOAD=os.path.join(self.bench.build, "libgputrace.so"), **more))
        if done.returncode == 77:
            raise Skipped(done.stderr.decode().strip().splitlines()[-1])
        files = [f for f in os.listdir(where) if f.endswith(".gtrace")]
        equal(len(files), 1, "traces of " + name)
        shutil.move(os.path.join(where, files[0]), path)
        return path

    def path(self, name):
        """The page's file; made when it is first asked for."""
        if name in self.why:
            raise Skipped(self.why[name])
        if name not in self.made:
            try:
                words = [w if w.startswith("--") else self.trace(w) for w in PAGES[name]]
            except Skipped as missing:
                self.why[name] = str(missing)
                raise
            path = os.path.join(self.bench.dir, name + ".html")
            self.bench.text("html", *words, "-o", path) if name != "ten" else subprocess.run(
                [self.bench.tool, "html", *words, "-o", path], check=True, stdout=subprocess.DEVNULL, timeout=900)
            self.made[name] = path
        return self.made[name]

    @staticmethod
    def page_of(name):
        """The trace that a page of one trace is of."""
        return PAGES[name][0]

    def open(self, name, **options):
        return self.browser.open(self.path(name), **options)

    def json(self, name, *args):
        return json.loads(self.bench.text(*args, *[self.trace(w) for w in PAGES[name] if not w.startswith("--")],
                                          "--format", "json"))


# ---- 1, 2: every page, and its numbers -----------------------------------------------------------------

def every_page(pages, name):
    for width in (1280, 1024):
        with pages.open(name, width=width) as page:
            equal(page.messages, [], "console of %s" % name)
            equal(len(page.requests), 1, "requests of %s" % name)
            equal(page.js("document.documentElement.scrollWidth <= innerWidth"), True, "%s fits %d px" % (name, width))
            for testid in ("answer", "holders-sum"):
                box = page.get(testid).first.bounding_box()
                expect(box and box["y"] + box["height"] <= 800, "%s of %s at %d px is at %r" % (testid, name, width, box))


def whole(text):
    return 0 if "<" in text else int(text.replace("\u2212", "-").replace("+", ""))


def adds_up(page, what):
    rows, rest, total = page.rows("holders-row"), page.rows("holders-rest"), page.rows("holders-sum")[0]
    parts = rows + rest
    equal(sum(r[0] for r in parts), total[0], "bytes of %s" % what)
    for column in range(2):
        equal(sum(whole(r[1][column]) for r in parts), whole(total[1][column]), "column %d of %s as printed" % (column, what))
    return total[0]


def sums(pages, name, failed):
    with pages.open(name) as page:
        total = adds_up(page, name)
        if failed:
            answer = pages.json(name, "oom")
            equal(total, answer["device"]["allocated"], "in use at the failure of " + name)
            ledger = page.rows("ledger-row")
            equal(sum(r[0] for r in ledger), answer["device"]["total"], "rows of the ledger")
            equal(sum(whole(r[1][0]) for r in ledger), whole(page.rows("ledger-sum")[0][1][0]), "ledger as printed")
            used = page.js("gputrace.state().chosen.total")
            equal(used, total, "chosen instant")
        else:
            equal(total, pages.json(name, "peak")["devices"][0]["bytes"], "in use at the peak of " + name)
        text = pages.bench.text(*(["oom"] if failed else ["summary"]), pages.trace(PAGES[name][0]))
        expect(page.text("answer") == text.splitlines()[0], "the answer is %r, not %r" % (page.text("answer"), text.splitlines()[0]))


VECTORS = """() => {
    const d = gputrace.data(), bad = [];
    const check = (letter, row, wanted, what) => {
        const sum = d.chain(letter).vector(row).reduce((a, b) => a + b, 0);
        if (sum !== wanted)
            bad.push(`${what} ${row}: ${sum}, not ${wanted}`);
    };
    for (let row = 0; row < d.chain("h").count; row += 41)
        check("h", row, d.max[d.chain("h").tag[row]], "row");
    for (const [letter, stored] of [["p", d.steps.peak], ["e", d.steps.end]])
        for (let row = 0; row < d.chain(letter).count; row += 97)
            if (letter === "p" || !d.steps.cut[d.chain(letter).tag[row]])
                check(letter, row, stored[d.chain(letter).tag[row]], letter);
    return bad.slice(0, 3);
}"""


def vectors(pages, name):
    with pages.open(name) as page:
        equal(page.js(VECTORS), [], "vectors of " + name)
        page.key("0")
        whole = page.js("!gputrace.data().head.keptPeak && gputrace.state().view[1] >= gputrace.data().head.t1")
        high = page.js("Math.max(...gputrace.columns().high)")
        expect(not whole or high == page.js("gputrace.data().head.peak"), "no column shows the peak")


# ---- the list --------------------------------------------------------------------------------------------

def cases():
    for name in PAGES:
        if name != "ten":
            yield "every-page-" + name, every_page, name
    for name, failed in (("healthy", False), ("leak", True), ("frag", True), ("driver", True), ("lost", False)):
        yield "sums-" + name, sums, name, failed
    for name in ("healthy", "leak", "lost"):
        yield "vectors-" + name, vectors, name
    yield from moves.CASES
    yield from panels.CASES
    yield from looks.CASES
    yield "every-page-ten-million", every_page, "ten"
    yield "vectors-ten-million", vectors, "ten"
    yield "ten-million", looks.ten_million


def main():
    bench, browser = Bench(sys.argv[1]), Browser()
    pages, bad = Pages(bench, browser), 0
    for name, test, *args in cases():
        if len(sys.argv) < 3 or any(word in name for word in sys.argv[2:]):
            bad += not judge(name, test, pages, *args)
    browser.close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
