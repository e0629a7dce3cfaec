# SPDX-License-Identifier: MIT
"""What a reader does with a page: keys, the pointer, stacks, pickers."""
import re

from harness import equal, expect


def chosen(page):
    return page.js("(({t, total}) => [t, total])(gputrace.state().chosen)")


def keys(pages):
    with pages.open("healthy") as page:
        slider = page.get("timeline")
        slider.focus()
        seen = []
        for key, what in (("e", "end"), ("p", "peak"), ("[", "step"), ("]", "step"), ("ArrowLeft", "exact"),
                          ("Shift+ArrowRight", "exact")):
            page.key(key)
            text = page.text("holders-instant") + page.text("holders-title")
            seen.append(page.js("JSON.stringify([gputrace.state().chosen.letter, gputrace.state().chosen.row])"))
            expect(what in text, "%s shows %r" % (key, text))
            words = slider.get_attribute("aria-valuetext")
            total = re.search(r"(\S+) MiB in use", words).group(1)
            equal(total, page.get("holders-sum").locator("td.n").first.inner_text(), "what is said after " + key)
        expect(len(set(seen)) == len(seen), "two keys choose the same: %r" % seen)
        page.get("flame-search").focus()
        before = chosen(page)
        page.key("e")
        equal(chosen(page), before, "a key in a field")
        page.key("Escape")
        page.key("Control+e")
        equal(chosen(page), before, "a key with Ctrl")
        page.key("?")
        expect("whole run" in page.page.locator("#keylist").inner_text(), "no list of keys")
    with pages.open("leak") as page:
        page.key("p")
        page.key("o")
        expect("out of memory" in page.text("holders-instant"), page.text("holders-instant"))


def pointer(pages):
    with pages.open("healthy") as page:
        before = page.text("holders-instant"), page.rows("holders-sum")
        page.page.mouse.move(*page.at(0.3))
        hovered = page.text("holders-instant")
        expect(hovered != before[0], "hover changes nothing")
        equal(page.js("gputrace.state().hover.total"), page.rows("holders-sum")[0][0], "sum under the pointer")
        page.page.mouse.move(*page.at(0.3, 1.4))
        equal((page.text("holders-instant"), page.rows("holders-sum")), before, "after leaving")
        page.page.mouse.click(*page.at(0.5))
        expect(page.text("holders-instant") != before[0], "a click chooses nothing")


def hover_is_exact(pages):
    """Under every seventh column the rows add up to a recorded instant; where it lies elsewhere, that is said."""
    with pages.open("leak") as page:
        for i in range(0, 100, 7):
            page.page.mouse.move(*page.at(i / 100))
            rows = page.rows("holders-row") + page.rows("holders-rest")
            equal(sum(r[0] for r in rows), page.js("gputrace.state().hover.total"), "rows at %d %%" % i)
            text = page.text("holders-instant")
            expect("exact" in text or "nearest recorded instant" in text, text)


def drag(page, a, b, shift=False):
    if shift:
        page.page.keyboard.down("Shift")
    page.page.mouse.move(*page.at(a))
    page.page.mouse.down()
    page.page.mouse.move(*page.at((a + b) / 2))
    page.page.mouse.move(*page.at(b))
    page.page.mouse.up()
    if shift:
        page.page.keyboard.up("Shift")


def zoom(pages):
    with pages.open("healthy") as page:
        page.key("0")
        whole = page.js("gputrace.state().view")
        drag(page, 0.2, 0.6)
        expect("shown: " in page.text("zoom-range"), "no range is shown")
        view = page.js("gputrace.state().view")
        expect(abs((view[1] - view[0]) / (whole[1] - whole[0]) - 0.4) < 0.02, "zoomed to %r" % view)
        page.key("Escape")
        equal((page.text("zoom-range"), page.js("gputrace.state().view")), ("", whole), "after Escape")
        page.key("+", "+")
        page.get("zoom-reset").click()
        equal(page.js("gputrace.state().view"), whole, "whole run")
        page.page.mouse.move(*page.at(0.5))
        page.page.keyboard.down("Control")
        page.page.mouse.wheel(0, -100)
        page.page.keyboard.up("Control")
        page.until("gputrace.state().view[1] - gputrace.state().view[0] < %r" % (whole[1] - whole[0]))
        page.key("0")
        box = page.get("overview").bounding_box()
        page.page.mouse.move(box["x"] + 200, box["y"] + 10)
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + 400, box["y"] + 10)
        page.page.mouse.up()
        view = page.js("gputrace.state().view")
        expect(view[1] - view[0] < (whole[1] - whole[0]) / 2, "the strip does not zoom")


def compare(pages):
    with pages.open("healthy") as page:
        drag(page, 0.3, 0.7, shift=True)
        equal(page.text("holders-title"), "Change between two instants", "title")
        rows, total = page.rows("holders-row") + page.rows("holders-rest"), page.rows("holders-sum")[0]
        equal(sum(r[0] for r in rows), total[0], "sum of the changes")
        number = lambda text: 0 if "<" in text else int(text.replace("\u2212", "-"))
        for column in range(3):
            equal(sum(number(r[1][column]) for r in rows), number(total[1][column]), "column %d as printed" % column)
        state = page.js("(({a, b}) => b.total - a.total)(gputrace.state())")
        equal(total[0], state, "change of the instants")
        expect("width = the larger" in page.page.locator("#flame-note").inner_text(), "stacks are not compared")
        page.key("Escape")
        equal(page.text("holders-title"), "In use at the peak", "after Escape")


def stacks(pages):
    with pages.open("healthy") as page:
        page.get("flame-search").fill("linear")
        found = re.match(r"(\d+) found, (\d+) MiB", page.text("flame-hits"))
        expect(found and int(found.group(1)) > 0, "hits: " + page.text("flame-hits"))
        total = page.js("gputrace.state().chosen.total") / 1048576
        expect(0 < int(found.group(2)) <= total, "hits of %s of %d MiB" % (found.group(2), total))
        page.get("flame-search").fill("")
        boxes = page.get("flame").locator("g")
        count = boxes.count()
        boxes.nth(1).click()
        expect(page.get("flame-reset").is_visible(), "no way back")
        page.get("flame-reset").click()
        page.get("flame-lib").check()
        expect(boxes.count() > count, "library frames add nothing")
        page.get("flame-lib").uncheck()
        boxes.nth(0).focus()
        page.key("ArrowDown")
        equal(page.js("document.activeElement.tagName"), "g", "focus after ArrowDown")
        equal(page.js("document.activeElement.getAttribute('aria-level')"), "2", "level after ArrowDown")
        page.key("Tab")
        equal(page.js("document.activeElement.closest('#flame') === null"), True, "Tab leaves the tree")


def groupings(pages):
    """Each way to colour sums up to the same heights; owners and streams are those of the command line."""
    with pages.open("healthy") as page:
        buttons = page.get("group-by").locator("button")
        equal(buttons.all_inner_texts(), ["category", "your line", "owner", "stream"], "ways to colour")
        for i, by in enumerate(("category", "line", "owner", "stream")):
            buttons.nth(i).click()
            equal(page.js("gputrace.state().group"), by, "group")
            sums = page.js("""by => {
                const d = gputrace.data(), g = d.groups[by], n = g.names.length, row = d.chain("h").total.indexOf(d.head.peak);
                return [Object.fromEntries(g.names.map((name, i) => [name, g.sums[row * n + i]])), d.head.peak];
            }""", by)
            equal(sum(sums[0].values()), sums[1], "sum by " + by)
            if by in ("owner", "stream"):
                rows = pages.json("healthy", "peak", "--by", by)["holders"]
                wanted = {row["key"]: row["bytes"] for row in rows}
                equal({k: v for k, v in sums[0].items() if v}, wanted, "by " + by)
        page.key("g")
        equal(page.js("gputrace.state().group"), "category", "G comes round")


def ranks(pages):
    with pages.open("ranks") as page:
        picker = page.get("picker-process")
        texts = picker.locator("option").all_inner_texts()
        equal([re.match(r"rank (\d) ", text).group(1) for text in texts], ["0", "1", "2", "3"], "processes")
        peaks = [device["peak_allocated"] for p in pages.json("ranks", "summary")["processes"] for device in p["devices"]]
        tightest = peaks.index(max(peaks))
        equal(picker.input_value(), str(tightest), "the page opens on the tightest")
        for i in range(4):
            picker.select_option(str(i))
            page.until("gputrace.state().open === %d" % i)
            page.until("gputrace.data().head.peak === %d" % peaks[i])
            equal(page.rows("holders-sum")[0][0], peaks[i], "peak of rank %d" % i)
        equal(page.messages, [], "console")


def lost_history(pages):
    with pages.open("lost") as page:
        banner = page.page.locator("#loss").inner_text()
        expect("History starts at" in banner, "banner: " + banner)
        answer, where = page.get("answer").bounding_box(), page.page.locator("#loss").bounding_box()
        expect(where["y"] > answer["y"] and where["y"] < 200, "the banner is not under the answer")
        expect(page.js("gputrace.state().view[0] >= gputrace.data().head.t0 && gputrace.data().head.t0 > 0"), "the plot begins early")
        page.key("p")
        equal(page.rows("holders-sum")[0][0], pages.json("lost", "peak")["devices"][0]["bytes"], "the peak, whose history is gone or not")


def driver_only(pages):
    with pages.open("driver") as page:
        equal(page.get("group-by").locator("button").all_inner_texts(), ["your line", "owner", "stream"], "ways to colour")
        expect(page.text("holders-instant").endswith("driver"), "level: " + page.text("holders-instant"))
        expect(not page.page.locator("#category-panel").is_visible(), "categories of nothing")
        expect(not page.page.locator("#segments-panel").is_visible(), "segments of no pool")


def two_traces(pages):
    with pages.open("diff") as page:
        rows, total = page.rows("holders-row") + page.rows("holders-rest"), page.rows("holders-sum")[0]
        equal(sum(r[0] for r in rows), total[0], "sum of the rows")
        delta = pages.json("diff", "diff")["devices"][0]["delta"]
        equal(total[0], delta, "change")
        printed = int(total[1][2].replace("\u2212", "-").replace("+", ""))
        expect("peak %+d MiB" % printed in page.text("answer"), "%r has no %+d" % (page.text("answer"), printed))
        for size, cells in page.rows("holders-row"):
            expect(cells[2].startswith("+" if size > 0 else "\u2212"), "sign of %r is %r" % (size, cells[2]))
        kinds = page.js("""() => [...document.querySelectorAll('[data-testid="holders-row"]')].map(row =>
            [Math.sign(row.dataset.bytes), row.lastChild.className])""")
        expect(all(("more" in name) == (sign > 0) for sign, name in kinds), "colours: %r" % kinds)
        line = page.page.locator('[data-testid="line-a"]')
        dashes = line.evaluate("node => getComputedStyle(node).strokeDasharray")
        expect(dashes != "none", "A is not dashed")
        name = page.page.locator("#process option:checked").inner_text()
        equal(name, "B healthy.gtrace", "the trace that is drawn")
        page.get("picker-process").select_option(label="A old.gtrace")
        page.until("gputrace.state().open === 0")
        equal(page.messages, [], "console")


def refused(pages):
    """Each refused request has its mark; R goes from one to the next, a click on a mark chooses it, exactly."""
    errors = pages.json("frag", "errors")["errors"]
    survived = [e for e in errors if e["outcome"] != "fatal"]
    with pages.open("frag") as page:
        expect(len(survived) > 1, "only %d requests were refused and granted" % len(survived))
        equal(page.get("refused").count(), len(survived), "marks")
        times = [round(e["seconds"] * 1e6) for e in survived]
        page.key("p", "r")
        page.get("timeline").focus()
        seen = []
        for _ in times:
            page.key("r")
            seen.append(page.js("gputrace.state().chosen.t"))
            expect("then granted" in page.text("holders-instant"), page.text("holders-instant"))
            total = page.js("gputrace.state().chosen.total")
            rows = page.rows("holders-row") + page.rows("holders-rest")
            equal(sum(r[0] for r in rows), total, "sum at the refused request")
        equal(sorted(seen), times, "instants")
        page.key("p")
        box = page.get("refused").first.bounding_box()
        page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        equal(page.js("gputrace.state().chosen.t"), times[0], "the instant of the mark that was clicked")


CASES = [
    ("keys", keys), ("pointer", pointer), ("hover-is-exact", hover_is_exact), ("zoom", zoom),
    ("compare-instants", compare), ("stacks", stacks), ("groupings", groupings), ("ranks", ranks),
    ("lost-history", lost_history), ("driver-only", driver_only), ("refused", refused), ("two-traces", two_traces),
]
