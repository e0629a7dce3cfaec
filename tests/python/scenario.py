"""What the scenarios share: their list, how one is run and judged. Written for Python 3.8; newer syntax
comes in as text."""
import contextlib
import ctypes
import importlib
import os
import sys
import tempfile

import capture
from capture import lib, snap

SCENARIOS = []
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
WORK = tempfile.mkdtemp(prefix="gt-python-")


class Skip(Exception):
    """This machine lacks something."""


class OtherLanguage(Exception):
    """The rest of a scenario is about a newer Python."""


def scenario(function):
    SCENARIOS.append(function)
    return function


def since(major, minor):
    if sys.version_info < (major, minor):
        raise OtherLanguage


def check(condition, why):
    if not condition:
        capture.failures.append(why)


def run_text(source, name="<string>", **names):
    names.setdefault("snap", snap)
    exec(compile(source, name, "exec"), names)
    return names


def write(name, text):
    path = os.path.join(WORK, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


@contextlib.contextmanager
def on_path(entry):
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(entry)


def run(function):
    """The line to print for a scenario."""
    del capture.failures[:]
    try:
        function()
    except OtherLanguage:
        pass
    except Skip as why:
        return "skip %s: %s" % (function.__name__, why)
    except Exception as problem:
        capture.failures.append("%s: %s" % (type(problem).__name__, problem))
    if lib.pylib_broken():
        capture.failures.append("definitions out of order")
    if capture.failures:
        return "not ok %s: %d wrong, first: %s" % (function.__name__, len(capture.failures), capture.failures[0])
    return "ok %s" % function.__name__
