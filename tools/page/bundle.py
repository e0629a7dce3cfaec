#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Puts together what the page embeds: bundle.py OUT D3_DIR

OUT gets page.css, page.html, d3.js, page.js and hashes.h, the hashes that the page's policy names.
Of d3 only the modules that are used.
"""
import base64
import hashlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["d3-array", "d3-path", "d3-shape", "d3-selection"]
SCRIPTS = ["data.js", "text.js", "state.js", "plot.js", "overlay.js", "tables.js", "flame.js", "panels.js",
           "keys.js", "main.js"]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as source:
        return source.read()


def main():
    out, d3 = sys.argv[1:]
    parts = {
        "page.css": read(HERE, "page.css"),
        "page.html": read(HERE, "page.html"),
        "d3.js": "".join(read(d3, name, "dist", name + ".min.js") for name in MODULES),
        "page.js": "(function () {\n\"use strict\";\n" +
                   "".join(read(HERE, name) for name in SCRIPTS) + "})();\n",
    }
    hashes = {"GT_PAGE_CSS_HASH": "page.css", "GT_PAGE_D3_HASH": "d3.js", "GT_PAGE_JS_HASH": "page.js"}
    for name, text in parts.items():
        if name.endswith(".js") and ("</script" in text.lower() or "<!--" in text):
            sys.exit(name + " would end its own element")
        with open(os.path.join(out, name), "w", encoding="utf-8") as target:
            target.write(text)
    with open(os.path.join(out, "hashes.h"), "w", encoding="utf-8") as target:
        for macro, name in hashes.items():
            digest = hashlib.sha256(parts[name].encode()).digest()
            target.write('#define %s "sha256-%s"\n' % (macro, base64.b64encode(digest).decode()))


if __name__ == "__main__":
    main()
