# SPDX-License-Identifier: MIT
"""What stands in the panels, against the commands: remedies, reasons, the device, segments, categories, legend, and
that every part of a page has its name."""
import re

from harness import equal, expect

MIB = 1 << 20
NAMES = """answer where picker-process picker-gpu theme keys timeline timeline-canvas group-by overview zoom-range zoom-reset
    legend why oom enough holders holders-title holders-instant holders-row holders-rest holders-sum device-row flame
    flame-search flame-hits flame-lib flame-reset steps segments segment-row ledger ledger-row category-row
    merged-note""".split()


def names(pages):
    """Tests and notes of users find the parts by these names."""
    found = set()
    for name in ("healthy", "leak", "frag"):
        with pages.open(name) as page:
            found |= set(page.js("[...document.querySelectorAll('[data-testid]')].map(node => node.dataset.testid)"))
    equal(sorted(set(NAMES) - found), [], "parts without their name")


def cells(page, selector):
    """Texts of the cells of rows."""
    return page.js("""selector => [...document.querySelectorAll(selector)].map(row =>
        [...row.children].map(cell => cell.textContent))""", selector)


def whole(text):
    return 0 if text in ("", "<1") else int(text.replace("\u2212", "-"))


def remedies(pages):
    """Enough? has the remedies of gputrace oom in their order, with what each gives; Why has its reasons."""
    for name in ("leak", "frag"):
        answer = pages.json(name, "oom")
        text = pages.bench.text("oom", pages.trace(pages.page_of(name)))
        table = re.findall("^  .*", re.split("^[A-Z]", text.split("\nEnough?")[1].split("\n", 1)[1], flags=re.M)[0], re.M)
        with pages.open(name) as page:
            rows = cells(page, '[data-testid="enough"] tbody tr')
            equal(len(rows), len(table), "remedies of " + name)
            for row, line in zip(rows, table):
                expect(row[0].replace("\u25b8 ", "")[:20].strip() in line and row[1] in line.split(), "%r is not %r" % (row, line))
            equal(rows[0][0].startswith("\u25b8 "), "<--" in table[0], "the one to take")
            title = page.text("oom").splitlines()[0]
            expect("short by %d " % round(answer["short_by"] / MIB) in title, "%r says nothing of %d" % (title, answer["short_by"]))
            shown = page.get("why").inner_text()
            for line in re.findall(r"^Why  ?(.*)$", text, re.M):
                expect(line in shown, "%r is not in %r" % (line, shown))
            expect(page.text("where").split(" \u00b7 ")[0] in text, "where: " + page.text("where"))


def device(pages):
    """At a failure what is in use and the rows below it add up to the card, in bytes and as printed; the ledger has
    the same bytes in use."""
    for name in ("leak", "frag"):
        with pages.open(name) as page:
            used, rows = page.rows("holders-sum")[0], page.rows("device-row")
            expect(len(rows) >= 2, "%s: %d rows of the device" % (name, len(rows)))
            equal(used[0] + sum(r[0] for r in rows[:-1]), rows[-1][0], "bytes of the device")
            equal(rows[-1][0], pages.json(name, "oom")["device"]["total"], "the card")
            equal(whole(used[1][0]) + sum(whole(r[1][0]) for r in rows[:-1]), whole(rows[-1][1][0]), "the device as printed")
            in_use = page.js("""() => [...document.querySelectorAll('[data-testid="ledger-row"]')]
                .filter(row => row.firstChild.textContent.startsWith("torch, in use")).map(row => Number(row.dataset.bytes))""")
            equal(in_use, [used[0]], "in use in the ledger of " + name)


def segments(pages):
    """Rows of the map and the rest are the segments of gputrace segments, with their bytes."""
    for name in ("leak", "frag"):
        told = pages.json(name, "segments", "--at", "oom")["devices"][0]
        with pages.open(name) as page:
            facts = page.js("JSON.parse(document.getElementById('gt-meta').textContent).places[0].segments")
            shown = cells(page, '[data-testid="segment-row"]')
            equal(len(shown), len(facts["rows"]), "rows of " + name)
            for cell, row in zip(shown, facts["rows"]):
                number = whole(cell[0].split("\u00d7")[-1].strip())
                equal(number, round(row["size"] / MIB), "size of a segment")
                equal(sum(size for size, _ in row["pieces"]), row["size"], "pieces of a segment")
            count = sum(row["n"] for row in facts["rows"]) + facts["rest"]["n"]
            held = sum(row["n"] * row["size"] for row in facts["rows"]) + facts["rest"]["size"]
            equal((count, held), (len(told["segments"]), told["reserved"]), "segments and their bytes")
            expect("%d segment" % count in page.page.locator("#segments-note").inner_text(), "the note says another number")


def categories(pages):
    """The table has the categories of gputrace peak; both columns add up as printed."""
    wanted = {k.replace("_", " "): v for k, v in pages.json("healthy", "peak")["devices"][0]["categories"].items() if v}
    with pages.open("healthy") as page:
        rows = cells(page, "#categories tbody tr")
        got = {row[0]: size for row, (size, _) in zip(rows, page.rows("category-row")) if size}
        equal(got, wanted, "categories")
        for column in (1, 2):
            equal(sum(whole(row[column]) for row in rows[:-1]), whole(rows[-1][column]), "column %d as printed" % column)
        equal(rows[-1][1], page.rows("holders-sum")[0][1][0], "in use")
        legend = page.get("legend").locator("li").all_inner_texts()
        large = [k for k, v in wanted.items() if v > 50 * MIB]
        expect(set(large) < set(legend), "%r are not all in the legend %r" % (large, legend))
        expect(any(text.startswith("cached") for text in legend), "cached is not in the legend")


def merged(pages):
    """The note says how many events there were and at how many instants holders are exact."""
    for name in ("healthy", "lost"):
        with pages.open(name) as page:
            events, rows = page.js("[gputrace.data().head.events, gputrace.data().chain('h').count]")
            note = page.text("merged-note")
            expect(note.startswith("%d events." % events) and "exact at %d instants" % rows in note, note)


def gpus(pages):
    """The second picker: every device of the process, each with its own peak, holders and timeline."""
    peaks = {d["device"]: d["bytes"] for d in pages.json("two", "peak")["devices"]}
    expect(len(set(peaks.values())) == 2, "devices with equal peaks: no test")
    with pages.open("two") as page:
        picker = page.get("picker-gpu")
        equal(picker.locator("option").all_inner_texts(), ["GPU 0", "GPU 1"], "GPUs")
        expect(not page.get("picker-process").is_visible(), "one process can be picked")
        for number in (1, 0, 1):
            picker.select_option(label="GPU %d" % number)
            page.until("gputrace.data().head.peak === %d" % peaks[number])
            equal(page.rows("holders-sum")[0][0], peaks[number], "peak of GPU %d" % number)
            expect("GPU %d" % number in page.text("answer") + page.text("where"), "the head tells of another GPU")
        equal(page.messages, [], "console")


CASES = [("names", names), ("remedies", remedies), ("device-rows", device), ("segments", segments),
         ("categories", categories), ("merged-note", merged), ("gpus", gpus)]
