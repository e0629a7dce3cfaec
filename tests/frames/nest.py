"""Allocates under stacks in which C and Python alternate: called by run.py on the simulated driver.

Each size stands for one stack; STACKS says its frames, innermost first: functions of this file, and of nest.so.
"""
import ctypes
import os
import sys

if "NEST" in os.environ:    # not where run.py only reads STACKS
    nest = ctypes.CDLL(os.environ["NEST"])
    driver = ctypes.CDLL("libcuda.so.1")
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
MIB = 1 << 20


def allocate(size):
    if nest.nest_alloc(ctypes.c_size_t(size)):
        sys.exit("no memory")


def plain(size):
    inner(size)


def inner(size):
    allocate(size)


def from_c(size):
    @CALLBACK
    def callback(n):
        plain(n)
        return 0
    nest.nest_call(callback, size)


def twice(size):
    @CALLBACK
    def outer(n):
        from_c(n)
        return 0
    nest.nest_call(outer, size)


def generator(size):
    yield 1
    inner(size)
    yield 2


def drive(size):
    for _ in generator(size):
        pass


def delegate(size):
    yield from generator(size)


def by_key(size):
    sorted([1], key=lambda _: inner(size))


class Closing:
    def __init__(self, size):
        self.size = size

    def __del__(self):
        inner(self.size)


def closing(size):
    Closing(size)


def made(size):
    class Body:
        inner(size)
    return Body


STACKS = [
    (plain, "nest_alloc allocate inner plain"),
    (from_c, "nest_alloc allocate inner plain callback nest_call from_c"),
    (twice, "nest_alloc allocate inner plain callback nest_call from_c outer nest_call twice"),
    (drive, "nest_alloc allocate inner generator drive"),
    (lambda size: list(delegate(size)), "nest_alloc allocate inner generator delegate <lambda>"),
    (by_key, "nest_alloc allocate inner <lambda> by_key"),
    (closing, "nest_alloc allocate inner __del__ closing"),
    (made, "nest_alloc allocate inner Body made"),
    (lambda size: exec(compile("inner(size)", "<string>", "exec"), dict(globals(), size=size)),
     "nest_alloc allocate inner <module> <lambda>"),
]

if __name__ == "__main__":
    context = ctypes.c_void_p()
    driver.cuInit(0)
    if driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0):
        sys.exit("no context")
    for number, (function, _) in enumerate(STACKS, 1):
        function(number * MIB)
