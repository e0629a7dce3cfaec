#!/usr/bin/env python3
"""An interpreter whose layout is not known, or is not what its version says: no stack, and it is said.

usage: refused.py EXPECTED-REASON|-    environment PYLIB, PYLIB_VERSION. "-": the layout must be refused for
some reason. Prints the facts that a trace would have; status 1 when a stack was captured all the same.
"""
import sys

import capture
from capture import lib

lib.pylib_start(512)
nodes = [lib.pylib_capture() for _ in range(3)]
threads = lib.pylib_native_thread(0, None)
infos = dict(line.split("=", 1) for line in lib.pylib_infos().decode().splitlines())
lost = lib.pylib_lost(capture.LOST_PYTHON)
print(nodes, infos, lost)
good = not any(nodes) and not threads and lost == 3 and infos.get("python")
good = good and sys.argv[1] in ("-", infos.get("python.refused"))
sys.exit(0 if good and infos.get("python.refused") else 1)
