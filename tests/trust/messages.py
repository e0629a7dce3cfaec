#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/errors.md against the sources: every message that they can print is a row of it, and every row is
such a message. A variable part is "..." on both sides.

usage: messages.py [--list]     prints "ok|not ok errors-..."; --list: the messages
"""
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LITERALS = r'((?:"(?:\\.|[^"\\])*"\s*)+)'
ARGUMENTS = r'(?:[^;"]|\'"\')*?'
TOOL = [r'\b(?:gt_message|gt_fail|fail|refuse)\(' + ARGUMENTS + LITERALS,
        r'snprintf\(\w+->text,' + ARGUMENTS + LITERALS,
        r'(?:fputs|fprintf)\((?:stderr, )?(?="gputrace: )' + LITERALS]
LIBRARY = r'(?="gputrace: )' + LITERALS
CONVERSION = r"%[-0#+ ]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]"


def plain(literals):
    """The text of adjacent literals, in the way of the document."""
    text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', literals))
    text = text.replace('\\"', '"').replace("\\n", " ").replace("%%", "%").replace("|", "/")
    text = re.sub(r"(?:\.\.\.[-: ]*)?" + CONVERSION, "...", text)
    text = re.sub(r"\s+", " ", re.sub(r"(\.{3} ?){2,}", "... ", text))
    return text.removeprefix("gputrace: ").strip()


def messages():
    found = {}
    for path in sorted(glob.glob("tools/**/*.c", recursive=True, root_dir=TOP) + glob.glob("preload/*.c", root_dir=TOP)):
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        for pattern in TOOL if path.startswith("tools") else [LIBRARY]:
            for m in re.finditer(pattern, text):
                said = plain(m.group(1))
                if len(re.sub(r"[^A-Za-z]", "", said)) > 3:     # more than "%s: %s"
                    found.setdefault(said, path)
    return found


def main():
    wanted = messages()
    if "--list" in sys.argv[1:]:
        for text, path in wanted.items():
            print(path, "|", text)
        return 0
    with open(os.path.join(TOP, "docs", "errors.md"), encoding="utf-8") as f:
        listed = set(re.findall(r"^\| `(.*?)` \| .+? \| .+ \|$", f.read(), re.M))
    missing = [f"{p}: {t}" for t, p in wanted.items() if t not in listed]
    unknown = sorted(listed - set(wanted))
    few = len(wanted) < 100
    print("not ok errors-listed: " + "; ".join(missing or ["too few found"]) if missing or few else
          f"ok errors-listed # {len(wanted)} messages")
    print(f"not ok errors-exist: {'; '.join(unknown)}" if unknown else "ok errors-exist")
    return bool(missing or few or unknown)


if __name__ == "__main__":
    sys.exit(main())
