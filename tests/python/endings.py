#!/usr/bin/env python3
"""The end of an interpreter while threads capture. usage: endings.py    environment PYLIB.

Exit status 0, silence and "ends" on stdout is what is expected: atexit functions still have their exact
stack, finalisers that run later have an exact one or none, threads of either kind do no harm, and after
Py_Finalize there is none (the library itself exits with 9 if there is).
"""
import atexit
import sys
import threading

import capture
from capture import lib

lib.pylib_start(512)


def daemon():
    while True:
        lib.pylib_capture()


def exact(what):
    node, stack = capture.capture(), capture.traceback.extract_stack()
    capture.judge(node, capture.expected(stack, sys._getframe()))
    if capture.failures:
        print(what, capture.failures[0], flush=True)


class Last:
    def __del__(self, node=capture.capture, lost=lib.pylib_lost):
        node()


keep = Last()
keep.me = keep
sys.last_one = Last()
atexit.register(lambda: exact("atexit"))
lib.pylib_capture_at_exit()
for _ in range(3):
    threading.Thread(target=daemon, daemon=True).start()
lib.pylib_capture_for_ever()
exact("main")
print("ends", flush=True)
