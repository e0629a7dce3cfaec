# SPDX-License-Identifier: MIT
"""A page in a browser, and what is asked of it often."""
import os
import time

from playwright.sync_api import sync_playwright

from harness import expect


class Browser:
    def __init__(self):
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--enable-precise-memory-info"])

    def close(self):
        self.browser.close()
        self.playwright.stop()

    def open(self, path, **options):
        return Opened(self.browser, path, **options)


# Counts texts on canvases, which neither axe nor the test of SVG texts would see.
COUNT_TEXTS = """window.canvasTexts = 0;
for (const kind of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D])
    for (const name of ["fillText", "strokeText"]) {
        const real = kind.prototype[name];
        kind.prototype[name] = function(...rest) { window.canvasTexts++; return real.apply(this, rest); };
    }"""


class Opened:
    """Used as: with browser.open(path) as page. Off line; remembers requests, messages and dialogs."""

    def __init__(self, browser, path, width=1280, height=800, dark=False, scripts=True):
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light",
            java_script_enabled=scripts, offline=True)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60000)
        self.page.add_init_script(COUNT_TEXTS)
        self.requests, self.messages, self.dialogs = [], [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.goto("file://" + path)
        if scripts:
            self.page.wait_for_selector('html[data-ready="1"]', state="attached")

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.context.close()

    def get(self, testid):
        return self.page.locator('[data-testid="%s"]' % testid)

    def text(self, testid):
        return self.get(testid).first.inner_text()

    def js(self, code, *args):
        return self.page.evaluate(code, *args)

    def until(self, code, seconds=30):
        """Waits until it is true; the page's policy does not let Playwright look from within the page."""
        limit = time.monotonic() + seconds
        while not self.js(code):
            expect(time.monotonic() < limit, "not in time: " + code)
            self.page.wait_for_timeout(20)

    def key(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def rows(self, testid):
        """[(bytes, last numbers as printed...)] of rows; "<1" counts as nothing."""
        return self.js("""id => [...document.querySelectorAll(`[data-testid="${id}"]`)].map(row =>
            [Number(row.dataset.bytes), [...row.querySelectorAll("td.n")].map(cell => cell.textContent)])""", testid)

    def plot(self):
        return self.get("timeline").bounding_box()

    def at(self, share, y=0.5):
        """A point of the plot area, by its share of the width."""
        box = self.plot()
        return box["x"] + 47 + share * (box["width"] - 47 - 12), box["y"] + y * box["height"]
