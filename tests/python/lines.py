#!/usr/bin/env python3
"""Every line of every code object of the standard modules that import, against PyCode_Addr2Line.

usage: lines.py [MODULES]      how many modules, all by default. environment PYLIB.
"""
import ctypes
import os
import sys
import types
import warnings

held = ctypes.PyDLL(os.environ["PYLIB"])
held.pylib_lines_differ.argtypes = [ctypes.py_object, ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
AVOID = {"antigravity", "this", "__main__", "idlelib", "turtle", "test", "lib2to3"}


def sources():
    directory = os.path.dirname(os.__file__)
    for name in sorted(os.listdir(directory)):
        if name.endswith(".py") and name[:-3] not in AVOID:
            yield os.path.join(directory, name)
    for package in "asyncio", "email", "json", "unittest":
        for name in sorted(os.listdir(os.path.join(directory, package))):
            if name.endswith(".py"):
                yield os.path.join(directory, package, name)


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def main():
    compared, wrong, objects = ctypes.c_int(0), 0, 0
    files = list(sources())
    files = [path for path in files if os.path.exists(path)]    # Debian has links into /etc
    if sys.argv[1:]:
        files = files[::max(1, len(files) // int(sys.argv[1]))]
    warnings.simplefilter("ignore")
    for path in files:
        with open(path, encoding="utf-8", errors="replace") as file:
            module = compile(file.read(), path, "exec")
        for code in codes(module):
            wrong += held.pylib_lines_differ(code, len(code.co_code), ctypes.byref(compared))
            objects += 1
    print("%d code objects, %d instructions, %d wrong lines" % (objects, compared.value, wrong))
    return 1 if wrong or compared.value < 1000 else 0


sys.exit(main())
