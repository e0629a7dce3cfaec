#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pages as files, without a browser: what they contain adds up, fits its budget and cannot act.

usage: structure.py BUILD [CASE...]
"""
import base64
import hashlib
import html.parser
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
sys.path.insert(0, HERE)
from harness import Bench, equal, expect  # noqa: E402
from pagefile import Page  # noqa: E402


class Tags(html.parser.HTMLParser):
    """Elements and attributes as a browser's parser sees them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.rows = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        attrs = dict(attrs)
        if "data-bytes" in attrs:
            self.rows.append((attrs["data-testid"], int(attrs["data-bytes"])))


def page_of(bench, name, *args):
    path = os.path.join(bench.dir, name + ".html")
    bench.text("html", *args, "-o", path)
    return Page(path)


def sound(page):
    """Rows of every chain add up to what is stored beside them; the peak is in the page."""
    for blob in page.blobs():
        head, c = blob.head, blob.columns
        places = len(head["leaf"])
        most = 0
        for t, tag, now, total in blob.rows("h"):
            equal(total, c["bmax"][tag], "sum of the row of slice %d" % tag)
            expect(min(now.values()) >= 0 and max(now) < places, "a place out of range or below zero")
            most = max(most, total)
        equal(max(c["bmax"]), most if head["group"] == 1 else max(c["bmax"]), "highest row")
        for letter, key in (("p", "s_peak"), ("e", "s_end")):
            for t, tag, now, total in blob.rows(letter):
                if letter == "p" or not c["s_cut"][tag]:
                    equal(total, c[key][tag], "%s of step %d" % (key, tag + 1))
        named = {tag: total for t, tag, now, total in blob.rows("i")}
        kept = sum(bytes for place, bytes in head["keptPeak"] or [])
        equal(named.get(0, kept), head["peak"], "sum at the peak")
        for key in ("sline", "scat", "sowner", "sstream", "near"):
            equal(len(head[key]), places, key)
        for parent, frame in head["nodes"]:
            expect(-1 <= parent < len(head["nodes"]) and frame < len(head["frames"]), "node out of range")


def small_page(bench, path):
    page = page_of(bench, "small", path)
    sound(page)
    peak = bench.json("peak", path)["devices"][0]["bytes"]
    equal(page.blobs()[0].head["peak"], peak, "peak")
    steps = bench.json("steps", path)["steps"]
    peaks = [s["peak_allocated"] for s in steps]
    expect(page.blobs()[0].columns["s_peak"] == peaks, "the peaks of the steps differ from those of gputrace steps")


def spike_kept(bench, path, spike):
    """Slices of several events, and still the spike of microseconds is there with its holder."""
    page = page_of(bench, "spike", path)
    sound(page)
    blob = page.blobs()[0]
    expect(blob.head["events"] > 2 * len(blob.columns["bt"]), "the trace is too small for slices")
    equal(blob.head["peak"], spike, "peak")
    equal(max(blob.columns["bmax"]), spike, "highest slice")
    names = [blob.head["frames"][blob.head["nodes"][blob.head["near"][place]][1]]
             for t, tag, now, total in blob.rows("i") if tag == 0
             for place in [max(now, key=now.get)]]
    expect("spike" in str(names) or "libtorch" in str(names), "who held the spike: %r" % names)


def budgets(bench, path):
    """Smaller pages keep every sum; too small a budget takes stacks, not sums."""
    whole = page_of(bench, "whole", path)
    tight = os.path.join(bench.dir, "tight.html")
    done = bench.gputrace("html", "--budget", "10K", "-o", tight, path)
    said = re.fullmatch(r"gputrace: --budget 10 KiB: the smallest page of this is (\d+) KiB\n", done.stderr.decode())
    expect(done.returncode == 2 and said and not os.path.exists(tight), "said %r" % done.stderr)
    for budget in (1 << 20, 600 << 10, 450 << 10, int(said.group(1)) + 20 << 10, int(said.group(1)) + 1 << 10):
        page = page_of(bench, "budget", "--budget", str(budget), path)
        expect(len(page.text.encode()) <= budget, "%d bytes of %d" % (len(page.text.encode()), budget))
        sound(page)
        blob, other = page.blobs()[0], whole.blobs()[0]
        equal(max(blob.columns["bmax"]), max(other.columns["bmax"]), "highest level")
        lowest = [min(a - b for a, b in zip(x.columns["bmax"], x.columns["bdip"])) for x in (blob, other)]
        equal(*lowest, "lowest level")
        equal(blob.head["peak"], other.head["peak"], "peak")
    expect(blob.head["merged"] or blob.head["group"] > 1, "nothing was left out of 450 KiB")


def lost(bench, path):
    """What the ring forgot: the peak is exact all the same, and the page says what is gone."""
    peak = bench.json("peak", path)["devices"][0]
    page = page_of(bench, "lost", path)
    sound(page)
    blob = page.blobs()[0]
    expect(blob.head["t0"] > 0, "the history is whole")
    equal(blob.head["peak"], peak["bytes"], "peak")
    expect("History starts at" in " ".join(page.meta["places"][0]["loss"]), "loss is not said")
    expect("History starts at" in page.text.split("<script")[0], "loss is not in the markup")


def fixed_markup(bench, path):
    """Without scripts: the answer, the holders with their sum, what else is on the device, a picture."""
    page = page_of(bench, "fixed", path)
    tags = Tags(page.text)
    rows = [size for name, size in tags.rows if name == "holders-row"]
    total = [size for name, size in tags.rows if name == "holders-sum"]
    equal(total, [sum(rows)], "sum of the holders in the markup")
    answer = bench.json("oom", path)
    equal(total[0], answer["device"]["allocated"], "in use at the failure")
    ledger = [size for name, size in tags.rows if name == "ledger-row"]
    equal(sum(ledger), answer["device"]["total"], "sum of the ledger")
    expect("<h1" in page.text and "Out of memory" in page.text.split("<h1")[1][:200], "the answer")
    expect('<svg viewBox="0 0 768' in page.text, "no picture")


def inert(bench, path):
    """Nothing of the trace became an element, an attribute or the end of a script."""
    page = page_of(bench, "hostile", path)
    clean = page_of(bench, "clean", bench.clean)
    tags, others = Tags(page.text), Tags(clean.text)
    equal(tags.tags.count("img"), 0, "img elements")
    equal(tags.tags.count("script"), others.tags.count("script"), "script elements")
    bad = {name for name in tags.attributes if name.startswith("on") or name == "style"}
    equal(bad, set(), "attributes that act")
    blobs = page.blobs()
    for text in [page.text] + [str(blob.head) for blob in blobs]:
        found = re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", text)
        expect(not found, "a hidden character: %r" % (found and text[found.start() - 40:found.end()]))
    names = str(blobs[0].head["frames"]) + str(blobs[0].head["lines"])
    expect("\\\\u202egnp.exe" in names and "<img src=x" in names, "the names are not told literally: " + names[:300])
    expect(len(page.text) < 500000, "names are not cut: %d bytes" % len(page.text))
    expect("<" not in page.island("application/json", "gt-meta"), "a < in the JSON")
    sound(page)


def policy(bench, path):
    """The hashes of the policy are those of the two scripts and the style; nothing is loaded."""
    page = page_of(bench, "policy", path)
    content = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page.text).group(1)
    style = re.search(r"<style>(.*?)</style>", page.text, re.S).group(1)
    wanted = ["sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
              for part in page.scripts() + [style]]
    equal(sorted(re.findall(r"'(sha256-[^']*)'", content)), sorted(wanted), "hashes")
    expect(content.startswith("default-src 'none'; "), content)
    expect(page.text.index("<meta charset") < page.text.index("Content-Security-Policy") < page.text.index("<title"),
           "the policy is not first")
    markup = re.sub(r"<(script|style)\b.*?</\1>", "", page.text, flags=re.S)
    expect(not re.search(r'\b(src|href)="(?!#)', markup), "something is loaded")


def no_paths(bench, path):
    page = page_of(bench, "stripped", "--strip-paths", path)
    text = page.text + str([blob.head for blob in page.blobs()])
    for word in (os.path.dirname(HERE), "/home/secret"):
        expect(word not in text, "%s is in the page" % word)


def files(bench, path):
    """The file is its owner's, a trace is never replaced, and what cannot be done is one line."""
    out = os.path.join(bench.dir, "mode.html")
    bench.text("html", path, "-o", out)
    equal(os.stat(out).st_mode & 0o777, 0o600, "mode")
    for args, status in (([path, "-o", path], 2), (["--diff", path], 2), (["missing.gtrace"], 3),
                         ([path, "-o", os.path.join(bench.dir, "none", "x.html")], 3)):
        done = bench.gputrace("html", *args)
        equal((done.returncode, len(done.stderr.splitlines())), (status, 1), "html " + args[-1])
    expect(os.path.getsize(path) > 0, "the trace is gone")


def record(bench, name, command, sim, **environment):
    """A trace by the driver that does nothing, or on the simulated device."""
    if sim:
        return bench.trace(name, command, **environment)
    where = os.path.join(bench.dir, name + ".d")
    os.mkdir(where)
    environment = dict(os.environ, GPUTRACE_DIR=where, GPUTRACE_QUIET="1",
                       LD_PRELOAD=os.path.join(bench.build, "libgputrace.so"), **environment)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=300, check=True, text=True)
    path = os.path.join(bench.dir, name + ".gtrace")
    os.rename(os.path.join(where, os.listdir(where)[0]), path)
    return path, int(done.stdout.split()[0])


def main():
    bench = Bench(sys.argv[1])
    chain = os.path.join(bench.build, "pagetest", "chain")
    if not os.path.exists(chain):
        print("skip page-data: no CUDA headers here to build its programs with")
        return 0
    hostile = os.path.join(HERE, "hostile.py")
    small, _ = record(bench, "small", [chain, "20000", "300"], False)
    large, spike = record(bench, "large", [chain, "400000", "1500"], False)
    short, _ = record(bench, "short", [chain, "400000", "100"], False, GPUTRACE_RING="256K")
    oom = bench.trace("oom", [bench.program("oom")])
    bad = bench.trace("bad", [sys.executable, hostile, "<script>alert(3)</script>"], RANK="<b>\u202e")
    bench.clean = oom
    bench.case("rows-add-up", small_page, small)
    bench.case("spike-kept", spike_kept, large, spike)
    bench.case("budgets", budgets, large)
    bench.case("lost-history", lost, short)
    bench.case("without-scripts", fixed_markup, oom)
    bench.case("hostile-names-are-inert", inert, bad)
    bench.case("policy", policy, oom)
    bench.case("strip-paths", no_paths, bad)
    bench.case("files", files, oom)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
