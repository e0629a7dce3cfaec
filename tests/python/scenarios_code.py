"""Scenarios: statements, code without a file, names, modules. See scenario.py."""
import contextlib
import importlib
import importlib.util
import os
import random
import runpy
import sys
import threading
import zipfile

import capture
from capture import snap
from scenario import WORK, check, on_path, run_text, scenario, since, write


# ---- statements -------------------------------------------------------------------------------------

@scenario
def statements_over_lines():
    value = (
        snap()
        + snap()
        +
        snap()
    )
    snap(
        snap(
            value))
    [
        snap(),
        snap()
    ]
    x = snap() \
        or snap()
    check(x == 0, "x")
    assert (snap() ==
            0)
    f"""{
        snap()}"""


@scenario
def exceptions():
    try:
        try:
            snap()
            raise ValueError(snap())
        except ValueError:
            snap()
            raise KeyError from None
        finally:
            snap()
    except KeyError as e:
        snap(e)
    else:
        snap()


@scenario
def exception_in_callee():
    def fails(n):
        if n == 0:
            raise ValueError
        try:
            fails(n - 1)
        finally:
            snap()
    with contextlib.suppress(ValueError):
        fails(5)
    snap()


@scenario
def context_managers():
    @contextlib.contextmanager
    def managed():
        snap()
        try:
            yield snap()
        finally:
            snap()

    class Manager:
        def __enter__(self):
            snap()

        def __exit__(self, *what):
            snap()
            return True
    with managed(), Manager():
        snap()
        raise ValueError


@scenario
def loops():
    for _ in range(2):
        if snap():
            continue
    else:
        snap()
    n = 0
    while n < 2:
        n += 1
        snap()
    while True:
        snap(); snap()
        break


@scenario
def new_syntax():
    run_text("if (n := snap()) == 0: snap()")
    since(3, 10)
    run_text("match snap():\n  case 1: pass\n  case _ if snap() == 0:\n    snap()\n")
    since(3, 11)
    run_text("try:\n  raise ExceptionGroup('', [ValueError()])\nexcept* ValueError:\n  snap()\n")
    since(3, 12)
    run_text("def f[T](x: T):\n  type A = int\n  return snap()\nf(1)\nclass C[T]:\n  snap()\n"
             "type B = (snap(), int)[1]\nB.__value__\nf'{f'{snap()}'}'")
    since(3, 14)
    run_text("def f(x: snap()): pass\nf.__annotations__\n")


@scenario
def a_big_function():
    """Far more lines and bytecode than one byte of a table can say, with jumps forth and back."""
    body = ["def big(n):"]
    for i in range(3000):
        body.append("    n = (n +\n" if i % 100 == 0 else "    n += 1")
        if i % 100 == 0:
            body.append("\n" * (i // 10) + "         1)")
        if i % 250 == 0:
            body.append("    for _ in range(2):\n        snap()")
    body.append("    return (n,\n" + "\n" * 300 + "      snap(),\n      snap())")
    run_text("\n".join(body))["big"](0)


@scenario
def a_function_far_down():
    run_text("\n" * 70000 + "def far():\n    return snap()\n" + "\n" * 70000 + "far()\n")

# ---- code without a file ----------------------------------------------------------------------------

@scenario
def exec_and_eval():
    exec("snap()")
    exec("def f():\n\n  return snap()\nf()", {"snap": snap})
    eval("snap()")
    eval("[snap() for _ in range(2)]", {"snap": snap})
    eval(compile("(lambda: snap())()", "<made here>", "eval"))


@scenario
def code_made_again_and_again():
    """Code objects that are freed: their addresses come back with other names and lines."""
    order = random.Random(7)
    for i in range(3000):
        name, blank = "f%d" % order.randrange(5), order.randrange(6)
        text = "def %s(x):\n%s  return snap()\n%s(1)" % (name, "\n" * blank, name)
        exec(compile(text, "made%d.py" % order.randrange(3), "exec"), {"snap": capture_only})


@scenario
def code_made_alone():
    """One code object at a time: the next one has the address, the instruction and all names of the last,
    only its line is another one."""
    order = random.Random(9)
    names = {"snap": capture_only}
    for i in range(1500):
        exec(compile("x = 1\n%ssnap()" % ("\n" * order.randrange(6)), "alone.py", "exec"), names)
    for i in range(1500):
        eval(compile("[\n%ssnap()]" % ("\n" * order.randrange(6)), "alone.py", "eval"), names)


@scenario
def code_made_in_threads():
    def make(seed):
        order = random.Random(seed)
        for i in range(300):
            name, blank = "f%d" % order.randrange(3), order.randrange(4)
            exec(compile("def %s(x):\n%s  return snap()\n%s(1)" % (name, "\n" * blank, name),
                         "thread%d.py" % seed, "exec"), {"snap": capture_only})
    makers = [threading.Thread(target=make, args=(seed,)) for seed in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()


def capture_only():
    node, frame = capture.capture(), sys._getframe(1)
    got = capture.frames_of(node)
    want = (capture.encoded(frame.f_code.co_filename), capture.encoded(frame.f_code.co_name), frame.f_lineno)
    if (got[-2][0], got[-2][1], got[-2][3]) != want:
        capture.failures.append("%r, expected %r" % (got[-2], want))


@scenario
def code_replaced():
    def function():
        return snap()
    code = function.__code__
    for line in 5, 77777:
        function.__code__ = code.replace(co_name="renamed%d" % line, co_firstlineno=line)
        function()
    function.__code__ = code
    function()


@scenario
def code_replaced_while_it_runs():
    run_text("def other(): return 1\ndef f():\n    f.__code__ = other.__code__\n    snap()\nf()")

# ---- names ------------------------------------------------------------------------------------------

def in_module(file, function, directory=None):
    source = "def %s():\n    return snap()\n%s()\n" % (function, function)
    run_text(source, os.path.join(directory or WORK, file))


@scenario
def names_latin1():
    in_module("caf\xe9.py", "na\xefve")


@scenario
def names_ucs2():
    in_module("\u4f8b\u5b50.py", "\u0444\u0443\u043d\u043a\u0446\u0438\u044f")


@scenario
def names_ucs4():
    in_module("\U0001f525.py", "\U0001d4d0\u4f8b")


@scenario
def names_undecodable():
    in_module(os.fsdecode(b"bad\xff\xfe.py"), "fine")


@scenario
def names_with_newlines():
    code = compile("snap()", "two\nlines\t.py", "exec").replace(co_name="a\nb\x00c\x1b[31m")
    exec(code)


@scenario
def names_very_long():
    in_module("d" * 5000 + ".py", "n" * 5000)
    in_module("\xe9" * 5000 + ".py", "\u4f8b" * 3000)
    in_module("", "short", directory="")

# ---- modules ----------------------------------------------------------------------------------------

@scenario
def imports():
    write("gt_module_a.py", "import capture\ncapture.snap()\nimport gt_module_b\n")
    write("gt_module_b.py", "from capture import snap\n\ndef f():\n    snap()\nf()\n")
    with on_path(WORK):
        import gt_module_a
        importlib.reload(gt_module_a)
    runpy.run_path(os.path.join(WORK, "gt_module_b.py"))


@scenario
def zip_imports():
    path = os.path.join(WORK, "packed.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("gt_zipped.py", "from capture import snap\ndef f():\n    return snap()\nf()\n")
    with on_path(path):
        import gt_zipped
        gt_zipped.f()


@scenario
def frozen_modules():
    since(3, 11)        # before, few modules were frozen; importlib._bootstrap is met in imports()
    spec = importlib.util.find_spec("__hello__")
    check(spec.origin == "frozen", "not frozen")
    import abc

    class Hooked(abc.ABC):
        @classmethod
        def __subclasshook__(cls, other):
            return snap() == 1
    isinstance(1, Hooked)


@scenario
def deleted_sources():
    path = write("gt_deleted.py", "from capture import snap\ndef f():\n    return snap()\n")
    with on_path(WORK):
        import gt_deleted
    os.unlink(path)
    gt_deleted.f()


@scenario
def compiled_without_source():
    import py_compile
    path = write("gt_compiled.py", "from capture import snap\n\n\ndef f():\n    return snap()\n")
    py_compile.compile(path, cfile=os.path.join(WORK, "gt_compiled2.pyc"))
    with on_path(WORK):
        import gt_compiled2
        gt_compiled2.f()
