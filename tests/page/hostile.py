# SPDX-License-Identifier: MIT
"""Asks for memory in functions, files and lines whose names try to act in a page. usage: hostile.py TEXT...

TEXT is part of the command line, as hostile as the rest."""
import ctypes

BAD = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\"'&\u2028\u202egnp.exe\u200b"

cuda = ctypes.CDLL("libcuda.so.1")
context, blocks = ctypes.c_void_p(), []
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0


def take(size):
    block = ctypes.c_uint64()
    assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)) == 0
    blocks.append(block)


def call(file, name, size):
    code = compile("def f(take, size):\n    take(size)\n", file, "exec")
    space = {}
    exec(code, space)
    space["f"].__code__ = space["f"].__code__.replace(co_name=name, co_filename=file)
    space["f"](take, size)


def mark(text):
    try:
        event = ctypes.CDLL(None).gputrace_event
    except AttributeError:
        return
    event(0, text.encode())


for count, (file, name) in enumerate([("/home/secret/" + BAD, "plain"), ("plain.py", BAD), (BAD, BAD),
                                      ("/home/secret/n" + "x" * 1000000 + ".py", "y" * 1000000)]):
    call(file, name, (count + 1) << 20)
    mark(BAD)
