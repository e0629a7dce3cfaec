# SPDX-License-Identifier: MIT
"""How a page looks: to no script, on paper, in both themes, to axe, to four kinds of sight, and how fast."""
import collections
import io
import os
import re
import shutil
import subprocess
import time

from axe_playwright_python.sync_playwright import Axe
from PIL import Image, ImageChops

from colour import contrast, linear, of_hex
from harness import Skipped, equal, expect


def hostile(pages):
    with pages.open("hostile") as page, pages.open("driver") as other:
        page.key("g", "g", "e", "p")
        page.get("flame-lib").check()
        page.page.mouse.move(*page.at(0.5))
        equal(page.dialogs + page.messages, [], "dialogs and messages")
        equal(page.js("document.images.length"), 0, "images")
        equal(page.js("document.scripts.length"), other.js("document.scripts.length"), "scripts")
        text = page.js("document.body.textContent")
        expect("\\u202egnp.exe" in text and "<img src=x" in text, "names are not shown literally")
        expect(not re.search("[\u202a-\u202e\u2028\u200b]", page.js("document.querySelector('main').innerText")), "hidden characters")
        expect(page.js("document.documentElement.scrollWidth <= innerWidth"), "long names widen the page")
        equal(page.js("fetch('https://example.org/').then(() => 'sent', () => 'blocked')"), "blocked", "fetch")


def without_scripts(pages):
    for name in ("healthy", "leak"):
        with pages.open(name, scripts=False) as page:
            expect(page.get("holders-row").count() > 2, "no holders in " + name)
            expect(page.page.locator("figure.noscript svg").is_visible(), "no picture in " + name)
            for frame in ("timeline", "flame", "steps", "overview"):
                expect(not page.get(frame).first.is_visible(), "an empty frame: " + frame)
            expect(page.get("ledger-row").count() > 2, "no ledger in " + name)
            if name == "leak":
                expect("Enough?" in page.get("oom").inner_text(), "nothing of what would have been enough")


def on_paper(pages):
    """The mark of the peak stands over its spike, in the layers as they are printed."""
    with pages.open("healthy", width=1400) as page:
        page.page.emulate_media(media="print")
        page.js("window.dispatchEvent(new Event('beforeprint'))")
        places = page.js("""() => {
            const peak = document.querySelector("#overlay .peak").getBBox();
            const tops = [...document.querySelectorAll("#overlay .printed")].filter(p => p.dataset.name !== "cached")
                .map(p => p.getBBox()).filter(b => b.height > 0);
            const paths = [...document.querySelectorAll("#overlay .printed")].filter(p => p.dataset.name !== "cached");
            let best = [0, Infinity];
            for (const path of paths)
                for (const [, x, y] of path.getAttribute("d").matchAll(/([\\d.]+),([\\d.]+)/g))
                    if (Number(y) < best[1])
                        best = [Number(x), Number(y)];
            return [peak.x + peak.width / 2, peak.y + peak.height / 2, best[0], best[1],
                getComputedStyle(document.getElementById("canvas")).display, tops.length];
        }""")
        expect(abs(places[0] - places[2]) <= 2 and abs(places[1] - places[3]) <= 2, "peak at %r" % places)
        equal(places[4], "none", "the canvas is printed")
        equal(page.js("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)", "paper")


LAYERS = "c1 c2 c3 c4 c5 c6 c7".split()
MAGENTA = (255, 0, 255)
PAINT_MARK = """() => new MutationObserver(() => {
    for (const mark of document.querySelectorAll("#overlay .peak"))
        mark.style.fill = mark.style.stroke = "#ff00ff";
}).observe(document.getElementById("overlay"), {childList: true})"""


def of_colour(image, colours, slack):
    """White where a pixel is one of the colours."""
    mask = Image.new("L", image.size)
    for colour in colours:
        away = ImageChops.difference(image, Image.new("RGB", image.size, colour)).split()
        most = ImageChops.lighter(ImageChops.lighter(away[0], away[1]), away[2])
        mask = ImageChops.lighter(mask, most.point(lambda v: 255 if v <= slack else 0))
    return mask


def on_sheets(pages):
    """A PDF of at most two sheets, by poppler; in its pixels the mark of the peak, painted to be known, is where the
    highest pixel of a layer is."""
    if not shutil.which("pdftoppm"):
        raise Skipped("no pdftoppm here: apt-get install poppler-utils")
    path = os.path.join(pages.bench.dir, "sheets.pdf")
    with pages.open("healthy", width=1400) as page:
        fills = page.js("names => names.map(n => getComputedStyle(document.documentElement)"
                        ".getPropertyValue('--' + n).trim())", LAYERS)
        page.js(PAINT_MARK)
        page.page.pdf(path=path, format="A4", landscape=True, print_background=True)
    told = subprocess.run(["pdfinfo", path], check=True, capture_output=True, text=True).stdout
    expect(int(re.search(r"Pages:\s+(\d+)", told).group(1)) in (1, 2), told)
    subprocess.run(["pdftoppm", "-r", "300", "-f", "1", "-singlefile", "-png", path, path[:-4]], check=True)
    image = Image.open(path[:-4] + ".png").convert("RGB")
    left, top, right, bottom = of_colour(image, [MAGENTA], 40).getbbox()
    pixel = 300 / 96 * 1047 / 1400  # of the screen, as A4 less its margins has it
    expect(right - left < 14 * pixel and bottom - top < 14 * pixel, "several marks: %r" % [left, top, right, bottom])
    layers = of_colour(image, [of_hex(f) for f in fills], 12)
    layers = layers.crop((0, 0, int(image.width * 0.6), int(image.height * 0.6)))
    height = layers.getbbox()[1]
    first, _, last, _ = layers.crop((0, height, layers.width, height + 3)).getbbox()
    expect(first - 2 * pixel <= (left + right) / 2 <= last + 2 * pixel and
           -2 * pixel <= height - (top + bottom) / 2 <= 7 * pixel,
           "the mark is at %r, the spike at %r" % ([left, top, right, bottom], [first, last, height]))


def picture(page):
    page.page.mouse.move(1, 1)
    page.page.wait_for_timeout(50)
    return Image.open(io.BytesIO(page.page.screenshot(full_page=True))).convert("RGB")


def theme_twice(pages):
    """Light, dark, light: every panel is as before."""
    for name in ("healthy", "frag"):
        with pages.open(name) as page:
            for wanted in ("light", "dark", "auto", "light"):
                page.get("theme").click()
                equal(page.get("theme").inner_text(), "Theme: " + wanted, "theme")
                if wanted == "light":
                    now = picture(page)
                    first = locals().get("first") or now
                if wanted == "dark":
                    dark = picture(page)
            expect(ImageChops.difference(first, now).getbbox() is None, "%s differs after two changes of theme" % name)
            expect(dark.getpixel((2, 400)) != first.getpixel((2, 400)), "dark is light")
            del first


def findings(page):
    return ["%s: %s" % (v["id"], v["nodes"][0]["html"][:120]) for v in Axe().run(page.page).response["violations"]]


def axe(pages, name, dark):
    with pages.open(name, dark=dark) as page:
        equal(findings(page), [], "axe")


# Every text of an SVG against the pixels behind it: axe does not see them. The ink is what the browser
# computed; what lies behind is seen once the texts are hidden. A halo is behind its own text.
TEXTS = """() => [...document.querySelectorAll("svg text")]
    .filter(text => text.textContent && text.getClientRects().length)
    .map(text => {
        const box = text.getBoundingClientRect(), style = getComputedStyle(text);
        const halo = style.stroke !== "none" && style.paintOrder.startsWith("stroke") && parseFloat(style.strokeWidth) >= 2;
        return [text.textContent, style.fill, halo ? style.stroke : null,
            [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY]];
    })"""
HIDE = "document.styleSheets[0].insertRule('svg text { visibility: hidden !important }')"
SHOW = "document.styleSheets[0].deleteRule(0)"


def rgb(text):
    return tuple(int(float(v)) for v in re.findall(r"[\d.]+", text)[:3])


def behind(image, box):
    """Colours in the part of a box that letters fill, and how often each is there."""
    left, top, right, bottom = box
    fourth = (bottom - top) / 4
    return collections.Counter(
        image.getpixel((x, y)) for x in range(max(0, int(left)), min(image.width, int(right) + 1), 2)
        for y in range(max(0, int(top + fourth)), min(image.height, int(bottom - fourth / 2)))
    ) if right > left else collections.Counter()


def unread(page):
    """How many texts there are, and those of which more than a tenth is on something that it does not stand out from."""
    texts = page.js(TEXTS)
    page.js(HIDE)
    image, bad = Image.open(io.BytesIO(page.page.screenshot())).convert("RGB"), []
    page.js(SHOW)
    for text, ink, halo, box in texts:
        seen = collections.Counter([rgb(halo)]) if halo else behind(image, box)
        expect(seen, "%r is not in the picture" % text)
        weak = sum(n for colour, n in seen.items() if contrast(rgb(ink), colour) < 4.5)
        if weak > sum(seen.values()) / 10:
            worst = min(seen, key=lambda colour: contrast(rgb(ink), colour))
            bad.append("%r in %s on %s: %.2f" % (text, rgb(ink), worst, contrast(rgb(ink), worst)))
    return len(texts), bad


def ink(pages, dark):
    for name in ("healthy", "leak", "frag", "diff", "ranks", "driver", "lost"):
        with pages.open(name, dark=dark, height=2600) as page:  # all of it: a picture of a page scrolled together redraws it
            for key in ("g", "g", "g"):
                count, bad = unread(page)
                expect(count > 10, "%s: only %d texts" % (name, count))
                equal(bad, [], "texts of %s that do not read" % name)
                page.key(key)
            equal(page.js("canvasTexts"), 0, "texts on a canvas")
    equal_to_itself(pages)


def equal_to_itself(pages):
    """The tests above find what they are for: ink that is changed to what lies behind it, a text on a canvas."""
    with pages.open("healthy", height=2600) as page:
        page.js("document.querySelector('#flame text').style.fill = 'rgb(200, 210, 220)'")
        expect(unread(page)[1], "a pale text was not found")
        page.js("document.createElement('canvas').getContext('2d').fillText('x', 0, 0)")
        equal(page.js("canvasTexts"), 1, "texts on a canvas")


# ---- colours for four kinds of sight: CIE76 in Lab, Machado 2009 at full strength -------------------------

SIGHT = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def lab(colour, sight):
    light = linear(of_hex(colour))
    r, g, b = (min(1, max(0, sum(w * v for w, v in zip(row, light)))) for row in SIGHT[sight])
    xyz = ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
           (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def palette(pages):
    """Neighbours in the stack, by category and by line, are told apart in every kind of sight."""
    for dark in (False, True):
        with pages.open("healthy", dark=dark) as page:
            for order in ("c1 c3 c7 c2 c6 c4 c5 c8", "c1 c4 c3 c7 c2 c5 c6 c8"):
                names = order.split()
                fills = page.js("names => names.map(n => getComputedStyle(document.documentElement)"
                                ".getPropertyValue('--' + n).trim())", names)
                for (a, x), (b, y) in zip(zip(names, fills), list(zip(names, fills))[1:]):
                    for sight in SIGHT:
                        distance = sum((p - q) ** 2 for p, q in zip(lab(x, sight), lab(y, sight))) ** 0.5
                        expect(distance >= 12, "%s and %s are %.1f apart, %s, dark %s" % (a, b, distance, sight, dark))


# ---- speed: what is asserted are sizes; times are said -----------------------------------------------------

def median(values):
    return sorted(values)[len(values) // 2] if values else 0


def ninety_fifth(values):
    return sorted(values)[int(len(values) * 0.95)] if values else 0


def bench(name, value, unit, target):
    print("bench %s %.1f %s (target %s)" % (name, value, unit, target), flush=True)


def processor_time(pages):
    """Seconds, by process, of those that run pages."""
    session = pages.browser.browser.new_browser_cdp_session()
    told = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return {p["id"]: p["cpuTime"] for p in told if p["type"] == "renderer"}


def ten_million(pages):
    path = pages.path("ten")
    size = os.path.getsize(path)
    expect(size <= 5 << 20, "the file has %d bytes" % size)
    before, begin = processor_time(pages), time.monotonic()
    with pages.open("ten") as page:
        bench("page-ready", (time.monotonic() - begin) * 1000, "ms", "2000")
        used = sum(seconds - before.get(number, 0) for number, seconds in processor_time(pages).items())
        bench("page-ready-processor", used * 1000, "ms", "2000")  # what a machine that does nothing else would take
        bench("page-ready-script", page.js("gputrace.tm().ready"), "ms", "2000")
        heap = page.js("performance.memory.usedJSHeapSize")
        bench("page-heap", heap / 1e6, "MB", "150")
        expect(heap <= 150e6, "heap of %d bytes" % heap)
        box = page.get("overview").bounding_box()
        page.page.mouse.move(box["x"] + 100, box["y"] + 10)
        page.page.mouse.down()
        before = page.js("[gputrace.frames().length, gputrace.tm().draws.length]")
        for i in range(60):
            page.page.mouse.move(box["x"] + 160 + 8 * i, box["y"] + 10)
        page.page.mouse.up()
        frames = page.js("n => gputrace.frames().slice(n)", before[0])
        draws = page.js("n => gputrace.tm().draws.slice(n)", before[1])
        expect(len(draws) >= 20, "%d draws in 60 moves" % len(draws))
        for i in range(60):
            page.page.mouse.move(*page.at(i / 60))
        hovers = page.js("gputrace.hov()")
        bench("page-frame-median", median(frames), "ms", "17")
        bench("page-draw-median", median(draws), "ms", "10")
        bench("page-hover-p95", ninety_fifth(hovers), "ms", "16")
        events = page.js("gputrace.data().head.events")
        expect(events >= 10000000, "%d events" % events)
        expect(page.js("gputrace.data().head.peak >= 4200 * 1048576"), "the spike is lost")
        equal(page.messages, [], "console")


CASES = [
    ("hostile-names", hostile), ("without-scripts", without_scripts), ("on-paper", on_paper),
    ("on-sheets", on_sheets), ("theme-twice", theme_twice),
    *[("axe-%s-%s" % (name, "dark" if dark else "light"), axe, name, dark)
      for name in ("healthy", "leak", "frag", "diff", "driver", "ranks", "lost", "hostile") for dark in (False, True)],
    ("ink-light", ink, False), ("ink-dark", ink, True), ("palette", palette),
]
