#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures as files: numbers in them are those of the commands, text can be read on what lies behind it,
each kind of file is one that other programs open, and the same trace gives the same bytes.

usage: run.py BUILD [CASE...]
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "page"))
from colour import contrast, of_hex  # noqa: E402
from harness import Bench, equal, expect  # noqa: E402
from structure import record  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
MIB = 1 << 20
GAP = 3  # between two texts, or they read as one word
COLORS = {"temporaries": "#d55e00", "weights": "#0072b2", "in use": "#0072b2", "activations": "#e69f00"}


class Picture:
    """An SVG by what it shows: texts with their place and colour, shapes with their name."""

    def __init__(self, bench, *args):
        self.path = os.path.join(bench.dir, "picture.svg")
        bench.text(*args, "-o", self.path)
        with open(self.path, encoding="utf-8") as file:
            self.source = file.read()
        self.root = ElementTree.fromstring(self.source)
        self.width, self.height = float(self.root.get("width")), float(self.root.get("height"))
        self.texts = [(t.text, float(t.get("x")), float(t.get("y")), t) for t in self.root.iter(SVG + "text")]
        self.shapes = {p.find(SVG + "title").text: p for p in self.root.iter(SVG + "path")
                       if p.find(SVG + "title") is not None}
        self.rectangles = [[float(r.get(k)) for k in ("x", "y", "width", "height")] + [r.get("fill")]
                           for r in self.root.iter(SVG + "rect")]

    def said(self, pattern):
        return [m for text, *_ in self.texts for m in [re.fullmatch(pattern, text)] if m]

    def axis(self):
        """Bytes at a height, from two numbers of the axis and its unit."""
        unit = MIB if self.said("MiB") else 1024
        ticks = [(float(text) * unit, y - 4) for text, x, y, t in self.texts
                 if x == 58 and re.fullmatch(r"\d+", text)]
        (low, bottom), (high, top) = ticks[0], ticks[-1]
        return lambda y: low + (bottom - y) / (bottom - top) * (high - low)

    def corners(self, name):
        x = y = 0.0
        for command, rest in re.findall(r"([MLHV])([^MLHVZ]*)", self.shapes[name].get("d")):
            numbers = [float(n) for n in rest.split()]
            x = numbers[0] if command in "MLH" else x
            y = numbers[-1] if command in "MLV" else y
            yield x, y


def near(got, wanted, what, share=0.005):
    expect(abs(got - wanted) <= share * wanted + 1, "%s is %d, not %d" % (what, got, wanted))


# ---- timeline ------------------------------------------------------------------------------------------

def timeline(bench, path):
    """The highest layer reaches the peak; the legend adds up to it; step numbers are in order."""
    picture = Picture(bench, "timeline", path)
    peak = bench.json("peak", path)["devices"][0]["bytes"]
    y = min(y for name in picture.shapes if name != "cached" for _, y in picture.corners(name))
    near(picture.axis()(y), peak, "the highest layer")
    legend = [int(n) for m in picture.said(r"(?:%s) (\d+)" % "|".join(COLORS)) for n in m.groups()]
    equal(sum(legend), round(peak / MIB), "sum of the legend")
    equal(len(picture.said(r"peak .*B")), 1, "names of the peak")
    steps = [(x, int(text)) for text, x, y, t in picture.texts if re.fullmatch(r"\d+", text) and
             t.get("text-anchor") is None]
    equal(steps, sorted(steps), "numbers of steps")
    expect(len(steps) > 1 and steps[0][1] == 1, "steps have no numbers: %r" % steps)


def layers_are_apart(bench, path):
    """A layer lies on the one below it, nowhere across."""
    picture = Picture(bench, "timeline", path)

    def at(name, x):
        inside = [y for (x0, y), (x1, y1) in zip(list(picture.corners(name)), list(picture.corners(name))[1:])
                  if y == y1 and min(x0, x1) <= x <= max(x0, x1)]
        return (min(inside), max(inside)) if inside else None

    for x in range(70, 940, 7):
        low, high = at("weights", x + 0.35), at("temporaries", x + 0.35)
        expect(not low or not high or high[1] <= low[0] + 0.01, "layers cross at %d: %r %r" % (x, low, high))


def failed(bench, path):
    picture = Picture(bench, "timeline", path)
    failure = bench.json("oom", path)
    title = picture.texts[0]
    equal(title[0], bench.text("oom", path).splitlines()[0], "the answer")
    equal(title[3].get("fill"), "#b3261e", "its colour")
    equal(len(picture.said(r"out of memory: .* asked")), 1, "names of the failure")
    equal(len(picture.said(r"card %d" % (failure["device"]["total"] // MIB))), 1, "the card's limit")
    dashed = [p for p in picture.root.iter(SVG + "path") if p.get("stroke-dasharray") == "6.0 3.0"]
    y = float(re.search(r"M[\d.]+ ([\d.]+)", dashed[0].get("d")).group(1))
    near(picture.axis()(y), failure["device"]["total"], "height of the limit")


def part(bench, path):
    """A part of the run fills the picture."""
    whole, half = Picture(bench, "timeline", path), Picture(bench, "timeline", path, "--from", "step:3", "--to", "step:5")
    first, all_steps = ([int(text) for text, x, y, t in picture.texts if re.fullmatch(r"\d+", text) and
                         t.get("text-anchor") is None] for picture in (half, whole))
    inside = set(range(2, 7))
    expect(first and inside >= set(first) and not inside >= set(all_steps), "steps %r of %r" % (first, all_steps))
    expect(whole.source != half.source, "the same as of the whole run")


# ---- steps and diff ------------------------------------------------------------------------------------

def steps(bench, path):
    """Each step has its bar, as high as its peak."""
    picture = Picture(bench, "steps", path)
    wanted = [s["peak_allocated"] for s in bench.json("steps", path)["steps"]]
    columns = {}
    for x, y, width, height, fill in picture.rectangles:
        if fill in COLORS.values() and width > 9 and y < picture.height - 80:
            columns[x] = min(y, columns.get(x, y))
    axis = picture.axis()
    equal(len(columns), len(wanted), "bars")
    for (x, y), peak in zip(sorted(columns.items()), wanted):
        near(axis(y), peak, "the bar at %g" % x)


def diff(bench, a, b):
    """Rows add up as printed; a bar's length is its change, its side and its colour the sign's."""
    picture = Picture(bench, "diff", a, b)
    answer = bench.json("diff", a, b)
    unit = MIB if "MiB" in picture.texts[0][0] else 1024
    columns = {430.0: [], 505.0: []}
    for text, x, y, t in picture.texts:
        if x in columns and re.fullmatch(r"<?\d+", text):
            columns[x].append(0 if "<" in text else int(text))
    for values, key in zip(columns.values(), ("bytes_a", "bytes_b")):
        equal(sum(values[:-1]), values[-1], "sum of " + key)
        equal(values[-1], round(answer["devices"][0][key] / unit), key)
    bars = [r for r in picture.rectangles if r[4] in ("#d6604d", "#4393c3")]
    changes = sorted((abs(r["delta"]) for r in answer["rows"] if r["delta"]), reverse=True)
    expect(bars and len(changes) >= len(bars), "%d bars of %d changes" % (len(bars), len(changes)))
    near(max(r[2] for r in bars) / min(r[2] for r in bars), changes[0] / changes[len(bars) - 1], "lengths", 0.05)
    for x, y, width, height, fill in bars:
        sign = [text for text, tx, ty, t in picture.texts if abs(ty - y - 12) < 0.1 and text[0] in "+-" and tx > 505]
        equal(sign[0][0], "+" if fill == "#d6604d" else "-", "sign at %g" % y)


# ---- what is true of all -------------------------------------------------------------------------------

def legible(bench, commands):
    """No text is outside of the picture, none on another, each 4.5 to 1 against what is behind it."""
    for args in commands:
        picture, boxes = Picture(bench, *args), []
        for text, x, y, t in picture.texts:
            size = float(t.get("font-size"))
            width = 0.6 * size * len(text)
            x -= {"end": width, "middle": width / 2}.get(t.get("text-anchor"), 0)
            expect(x > -12 and x + 0.9 * width < picture.width + 12 and 0 < y < picture.height, "%r is outside" % text)
            behind = [name for name in picture.shapes if covers(picture, name, x + width / 2, y - 4)]
            fill = picture.shapes[behind[-1]].get("fill") if behind and not t.get("stroke") else "#ffffff"
            ratio = contrast(of_hex(t.get("fill")), of_hex(fill))
            expect(ratio >= 4.5, "%r in %s on %s: %.2f" % (text, t.get("fill"), fill, ratio))
            for other, x0, x1, y1 in boxes:
                expect(abs(y - y1) > 8 or x > x1 + GAP or x + 0.85 * width + GAP < x0, "%r lies on %r" % (text, other))
            boxes.append((text, x, x + 0.85 * width, y))


def covers(picture, name, x, y):
    """Even-odd rule."""
    points, inside = list(picture.corners(name)), False
    for (x0, y0), (x1, y1) in zip(points, points[1:] + points[:1]):
        if (y0 > y) != (y1 > y) and x < x0 + (y - y0) / (y1 - y0) * (x1 - x0):
            inside = not inside
    return inside


def words(text):
    return sorted(re.findall(r"[\w.:+-]+", text))


def kinds(bench, commands):
    """The three kinds of file say the same; two of one trace are the same."""
    for args in commands:
        picture = Picture(bench, *args)
        for end in ("svg", "png", "pdf"):
            paths = [os.path.join(bench.dir, "kind%d.%s" % (i, end)) for i in (0, 1)]
            data = []
            for path in paths:
                bench.text(*args, "-o", path)
                with open(path, "rb") as file:
                    data.append(file.read())
            expect(data[0] == data[1], "two files differ: %s" % end)
            if end == "png":
                png(data[0], picture)
        if not shutil.which("pdftotext"):
            print("skip pdf of %s: no pdftotext here" % args[0])
            continue
        text = subprocess.run(["pdftotext", "-layout", paths[0], "-"], check=True, capture_output=True).stdout.decode()
        missing = set(words(" ".join(t[0] for t in picture.texts))) - set(words(text))
        expect(not missing, "not in the pdf: %r" % sorted(missing)[:8])


def png(data, picture):
    """By the format's description: twice the size, whole, with the colours of its layers."""
    equal(data[:8], b"\x89PNG\r\n\x1a\n", "begin of a png")
    at, raw = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        equal(struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0], zlib.crc32(kind + body), "crc of a chunk")
        if kind == b"IHDR":
            equal(struct.unpack(">II", body[:8]), (int(2 * picture.width), int(2 * picture.height)), "size")
        raw += body if kind == b"IDAT" else b""
        at += 12 + length
    equal(kind, b"IEND", "end of a png")
    expect(len(zlib.decompress(raw)) > 3 * picture.width * picture.height, "too few pixels")


def text_is_text(bench, path):
    """Found, copied and read aloud: no letter of the svg is an outline; names of its trace are inert."""
    picture = Picture(bench, "timeline", path)
    equal([e.tag for e in picture.root.iter() if e.tag.replace(SVG, "") not in ("svg", "title", "path", "rect", "text")],
          [], "other elements")
    equal(picture.root.find(SVG + "title").text, picture.texts[0][0], "title for who cannot see it")
    expect("script" not in picture.source.replace("alert", "").lower() or "&lt;script" in picture.source, "a script")
    expect(not re.search("[\u202a-\u202e\u200b-\u200f\u2028]", picture.source), "hidden characters")


def files(bench, path):
    """The file is its owner's, links are not followed, and what cannot be drawn is one line."""
    out = os.path.join(bench.dir, "mode.svg")
    bench.text("timeline", path, "-o", out)
    equal(os.stat(out).st_mode & 0o777, 0o600, "mode")
    link, target = os.path.join(bench.dir, "link.svg"), os.path.join(bench.dir, "target")
    with open(target, "w", encoding="utf-8") as file:
        file.write("kept")
    os.symlink(target, link)
    for args in (["timeline", path, "-o", link], ["timeline", path, "-o", os.path.join(bench.dir, "none", "x.png")],
                 ["steps", path, "-o", out]):
        done = bench.gputrace(*args)
        equal((done.returncode, len(done.stderr.splitlines())), (2, 1), " ".join(args))
    with open(target, encoding="utf-8") as file:
        equal(file.read(), "kept", "what the link names")
    csv = os.path.join(bench.dir, "table.svg")
    bench.text("timeline", path, "--format", "csv", "-o", csv)
    with open(csv, encoding="utf-8") as file:
        expect(file.read().startswith("seconds,"), "--format csv does not decide")


def nothing_drawn(bench, path):
    """Where nothing can be drawn, what had that name before is still there, and no empty file is made."""
    where = os.path.join(bench.dir, "no-cairo")
    os.mkdir(where)
    with open(os.path.join(where, "libcairo.so.2"), "w", encoding="ascii") as file:
        file.write("not a library")
    without = dict(os.environ, LD_LIBRARY_PATH=where)
    old, new = os.path.join(where, "old."), os.path.join(where, "new.")
    for args, end, status, why, environment in (
            (["timeline", path], "png", 3, "svg needs nothing", without),
            (["timeline", path], "pdf", 3, "svg needs nothing", without),
            (["steps", path], "svg", 2, "none were found", None)):
        with open(old + end, "w", encoding="ascii") as file:
            file.write("kept")
        for out in (old + end, new + end):
            done = bench.gputrace(*args, "-o", out, env=environment)
            said = done.stderr.decode()
            expect(done.returncode == status and said.count("\n") == 1 and why in said, "%s: %r" % (" ".join(args), said))
        with open(old + end, encoding="ascii") as file:
            equal(file.read(), "kept", "the old " + end)
        expect(not os.path.exists(new + end), "an empty %s was made" % end)
    done = bench.gputrace("timeline", path, "-o", new + "svg", env=without)
    equal((done.returncode, done.stderr), (0, b""), "svg without cairo")


def main():
    bench = Bench(sys.argv[1])
    chain = os.path.join(bench.build, "pagetest", "chain")
    if not os.path.exists(chain):
        print("skip chart: no CUDA headers here to build its programs with")
        return 0
    small, _ = record(bench, "small", [chain, "20000", "30"], False)
    large, _ = record(bench, "large", [chain, "30000", "50"], False)
    oom = bench.trace("oom", [bench.program("oom")])
    bad = bench.trace("bad", [sys.executable, os.path.join(os.path.dirname(HERE), "page", "hostile.py"),
                              "<script>alert(3)</script>"], RANK="<b>\u202e")
    all_kinds = [["timeline", small], ["timeline", oom], ["steps", small], ["diff", small, large]]
    cases = [("timeline", timeline, small), ("layers", layers_are_apart, small), ("failed", failed, oom),
             ("part", part, small), ("steps", steps, small), ("diff", diff, small, large),
             ("diff-back", diff, large, small), ("legible", legible, all_kinds), ("kinds", kinds, all_kinds),
             ("text-is-text", text_is_text, bad), ("files", files, oom), ("nothing-drawn", nothing_drawn, oom)]
    for name, *test in cases:
        if len(sys.argv) < 3 or name in sys.argv[2:]:
            bench.case("chart-" + name, *test)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
