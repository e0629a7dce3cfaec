# SPDX-License-Identifier: MIT
"""What a case is, for every test in Python: it holds, fails or is skipped, and prints one line that says so."""
import itertools
import os
import re
import sys
import traceback


class Failed(AssertionError):
    pass


class Skipped(Exception):
    """What a case needs is not here."""


def expect(condition, why, *args):
    if not condition:
        raise Failed(why % args if args else why)


def equal(got, wanted, what):
    expect(got == wanted, "%s is %r, not %r", what, got, wanted)


def same_as_file(path, text):
    """The text, line by line, is that of the file; --write on the command line takes it from this run."""
    if "--write" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        lines = itertools.zip_longest(text.splitlines(), file.read().splitlines())
    for number, (got, wanted) in enumerate(lines, 1):
        equal(got, wanted, "line %d of %s" % (number, os.path.basename(path)))


def one_line(text, most=1500):
    """Both ends of what is too long: what it was, and where."""
    text = re.sub(r"\s*\n\s*", "; ", str(text).strip())
    return text if len(text) <= most else text[:most // 2] + " ... " + text[-most // 2:]


def judge(name, test, *args):
    """Runs the test and prints its line, with what it returns if that is text; False if it failed."""
    try:
        said = test(*args)
    except Skipped as why:
        print("skip %s: %s" % (name, one_line(why)), flush=True)
    except AssertionError as why:
        print("not ok %s: %s" % (name, one_line(why)), flush=True)
        return False
    except Exception:  # a broken test is a failed test
        print("not ok %s: %s" % (name, one_line(traceback.format_exc())), flush=True)
        return False
    else:
        print("ok %s: %s" % (name, said) if isinstance(said, str) else "ok " + name, flush=True)
    return True


class Cases:
    """A decorator that runs each test at its definition; with `wanted` those whose names have one of these in them."""

    def __init__(self, wanted=()):
        self.wanted, self.failed = wanted, False

    def __call__(self, test):
        name = test.__name__.replace("_", "-")
        if not self.wanted or any(part in name for part in self.wanted):
            self.failed |= not judge(name, test)
