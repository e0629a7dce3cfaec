#!/usr/bin/env python3
"""Places from which a capture must be exactly traceback.extract_stack(): file, function, line.

usage: scenarios.py [NAME...]     environment PYLIB: the capture library. Prints "ok NAME" or
"not ok NAME: why" per scenario, "skip NAME: why" for those that this machine cannot run.
Written for Python 3.8; newer syntax comes in as text.
"""
import asyncio
import collections
import contextlib
import ctypes
import dataclasses
import functools
import gc
import importlib
import importlib.util
import os
import random
import runpy
import signal
import sys
import tempfile
import threading
import types
import weakref
import zipfile
from concurrent.futures import ThreadPoolExecutor

import capture
from capture import lib, held, snap

SCENARIOS = []
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
WORK = tempfile.mkdtemp(prefix="gt-python-")


class Skip(Exception):
    pass


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


# ---- calls ------------------------------------------------------------------------------------------

@scenario
def module_level_function():
    snap()


@scenario
def nested_functions():
    def outer():
        def inner():
            return snap()
        return inner()
    outer()


@scenario
def recursion():
    def down(n):
        return snap() if n == 0 else down(n - 1)
    for depth in 1, 10, 100, 300:
        down(depth)


@scenario
def mutual_recursion_through_c():
    def even(n):
        return snap() if n == 0 else list(map(odd, [n - 1]))

    def odd(n):
        return max([n], key=lambda v: even(v - 1) and 0 or 0)
    even(40)


@scenario
def lambdas():
    (lambda: (lambda x: snap(x))(1))()


@scenario
def closures():
    def make(a):
        def use(b):
            return snap(a + b)
        return use
    make(1)(2)


@scenario
def decorators():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args):
            function(*args)
            return function(*args)
        return wrapper

    @twice
    @twice
    def decorated(n):
        return snap(n)
    decorated(1)


@scenario
def decorator_expression():
    def make(n):
        snap()
        return lambda function: (snap(), function)[1]

    @make(
        snap())
    @make(1)
    def decorated():
        pass
    decorated()


@scenario
def lru_cache():
    @functools.lru_cache(maxsize=None)
    def cached(n):
        return snap(n)
    cached(1)
    cached(2)


@scenario
def partial_and_partialmethod():
    class Thing:
        def call(self, n):
            return snap(n)
        bound = functools.partialmethod(call, 3)
    functools.partial(functools.partial(snap), 1)()
    Thing().bound()


@scenario
def singledispatch():
    @functools.singledispatch
    def of(value):
        return snap()

    @of.register(int)
    def of_int(value):
        return snap()
    of("")
    of(1)


@scenario
def star_arguments():
    def target(*args, **kwargs):
        return snap()
    target(*[1, 2], **{"a": snap()})


@scenario
def default_arguments():
    def function(a=snap(), *, b=snap()):
        return snap()
    function()


# ---- callbacks from C -------------------------------------------------------------------------------

@scenario
def sort_keys():
    sorted([3, 1, 2], key=lambda v: snap() or v)
    [2, 1].sort(key=snap)


@scenario
def map_filter_reduce():
    list(map(snap, [1, 2]))
    list(filter(lambda v: snap(v), [1, 2]))
    functools.reduce(lambda a, b: snap() or a, [1, 2, 3])


@scenario
def compare_functions():
    sorted([2, 1, 3], key=functools.cmp_to_key(lambda a, b: snap() or a - b))


@scenario
def ctypes_callback():
    def called(n):
        return snap(n)
    lib.pylib_call(CALLBACK(called), 1)
    held.pylib_call(CALLBACK(called), 1)
    lib.pylib_call(CALLBACK(lambda n: lib.pylib_call(CALLBACK(called), n)), 1)


@scenario
def qsort_callback():
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    array = (ctypes.c_int * 8)(*random.sample(range(100), 8))
    ctypes.CDLL(None).qsort(array, 8, 4, compare(lambda a, b: snap()))


@scenario
def native_thread_callback():
    def called(n):
        def deeper():
            return snap()
        return deeper()
    check(lib.pylib_native_thread(1, CALLBACK(called)) == 0xffffffff, "no thread")


@scenario
def native_thread_without_python():
    check(lib.pylib_native_thread(0, None) == 0, "a stack in a thread that Python does not know")


@scenario
def native_thread_registered():
    check(lib.pylib_native_thread(2, None) == 0, "a stack in a registered thread that runs no Python")


@scenario
def str_subclass_hash():
    class Key(str):
        def __hash__(self):
            return snap() or 1

        def __eq__(self, other):
            snap()
            return True
    {Key("a"): 1}[Key("a")]


# ---- generators -------------------------------------------------------------------------------------

@scenario
def generator_for():
    def numbers():
        for i in range(3):
            snap()
            yield i
    for _ in numbers():
        snap()


@scenario
def yield_from():
    def inner():
        snap()
        got = yield 1
        snap(got)
        return 2

    def outer():
        result = yield from inner()
        snap(result)
    generator = outer()
    next(generator)
    with contextlib.suppress(StopIteration):
        generator.send(5)


@scenario
def generator_in_another_thread():
    def numbers():
        while True:
            snap()
            yield
    generator = numbers()
    next(generator)
    thread = threading.Thread(target=next, args=(generator,))
    thread.start()
    thread.join()
    next(generator)


@scenario
def generator_close_throw_dealloc():
    def guarded():
        try:
            yield 1
        except ValueError:
            snap()
            yield 2
        finally:
            snap()
    one, two, three = guarded(), guarded(), guarded()
    next(one)
    one.close()
    next(two)
    two.throw(ValueError())
    next(three)
    del two, three
    gc.collect()


@scenario
def generator_pipeline():
    def stage(source):
        for value in source:
            snap()
            yield value
    source = range(2)
    for _ in range(12):
        source = stage(source)
    collections.deque(source, maxlen=0)


@scenario
def generator_expressions():
    sum(snap() for _ in range(2))
    any(snap() for x in (snap() for y in range(2)))


@scenario
def comprehensions():
    [snap() for _ in range(2)]
    {snap() for _ in range(2)}
    {snap(): snap() for _ in range(2)}
    [[snap() for _ in range(1)]
     for _ in range(2)]
    [(lambda: snap())() for _ in range(2)]


# ---- coroutines -------------------------------------------------------------------------------------

@scenario
def coroutines():
    async def inner():
        snap()
        await asyncio.sleep(0)
        return snap()

    async def outer():
        await inner()
        await asyncio.gather(inner(), inner())
    asyncio.run(outer())


@scenario
def coroutine_by_hand():
    async def inner():
        return snap()

    async def outer():
        return await inner()
    with contextlib.suppress(StopIteration):
        outer().send(None)


@scenario
def async_generators():
    async def numbers():
        for i in range(3):
            snap()
            yield i
            await asyncio.sleep(0)

    async def use():
        async for _ in numbers():
            snap()
        return [snap() async for _ in numbers()]
    asyncio.run(use())


@scenario
def async_context_managers():
    @contextlib.asynccontextmanager
    async def managed():
        snap()
        yield
        snap()

    async def use():
        async with managed():
            snap()
    asyncio.run(use())


@scenario
def async_callbacks():
    async def use():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_soon(lambda: (snap(), done.set_result(1)))
        await done
        await loop.run_in_executor(None, snap)
    asyncio.run(use())


# ---- classes ----------------------------------------------------------------------------------------

@scenario
def class_bodies():
    class Outer(object):
        snap()

        class Inner:
            value = snap()


@scenario
def metaclasses():
    class Meta(type):
        def __new__(mcs, name, bases, members):
            snap()
            return super().__new__(mcs, name, bases, members)

        def __prepare__(name, bases):
            snap()
            return {}

        def __call__(cls, *args):
            snap()
            return super().__call__(*args)

    class Made(metaclass=Meta):
        def __init__(self):
            snap()
    Made()


@scenario
def methods():
    class Thing:
        def method(self):
            return snap()

        @classmethod
        def of_class(cls):
            return snap()

        @staticmethod
        def static():
            return snap()

        @property
        def value(self):
            return snap()

        @value.setter
        def value(self, new):
            snap()

        @value.deleter
        def value(self):
            snap()
    thing = Thing()
    thing.method()
    Thing.of_class()
    thing.static()
    thing.value
    thing.value = 1
    del thing.value
    Thing.method(thing)


@scenario
def super_calls():
    class A:
        def run(self):
            snap()

    class B(A):
        def run(self):
            super().run()

    class C(B):
        def run(self):
            super(C, self).run()
    C().run()


@scenario
def constructors():
    class Thing:
        def __new__(cls, n):
            snap()
            return object.__new__(cls)

        def __init__(self, n):
            snap()

    class Plain:
        def __init__(self, n):
            self.n = snap()

    def often():
        for n in range(40):     # often enough to be specialised
            Plain(n)
    Thing(1)
    often()


@scenario
def operators():
    class Number:
        def __add__(self, other):
            return snap()

        def __radd__(self, other):
            return snap()

        def __getitem__(self, key):
            return snap()

        def __setitem__(self, key, value):
            snap()

        def __call__(self):
            return snap()

        def __len__(self):
            return snap()

        def __bool__(self):
            return bool(snap())

        def __lt__(self, other):
            return snap()

        def __repr__(self):
            return str(snap())

        def __iter__(self):
            snap()
            return iter(())

        def __contains__(self, value):
            return snap()
    n = Number()
    n + 1, 1 + n, n[0], n(), len(n), bool(n), n < 1, repr(n), list(n), 1 in n
    n[1] = 2
    "%s" % n
    f"{n!r}"


@scenario
def attribute_hooks():
    class Lazy:
        def __getattr__(self, name):
            return snap()

        def __setattr__(self, name, value):
            snap()

    class Descriptor:
        def __set_name__(self, owner, name):
            snap()

        def __get__(self, instance, owner):
            return snap()

    class Owner:
        member = Descriptor()

        def __init_subclass__(cls):
            snap()

    class Child(Owner):
        pass
    for _ in range(20):
        Lazy().missing
        Owner().member
    Lazy().x = 1
    getattr(Lazy(), "other")


@scenario
def finalizers():
    class Thing:
        def __del__(self):
            snap()
    Thing()
    thing = Thing()
    del thing
    cycle = Thing()
    cycle.me = cycle
    del cycle
    gc.collect()


@scenario
def finalizers_at_every_allocation():
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            snap()

    def work():
        def closing(n):
            return lambda: n
        for n in range(20):
            Cycle()
            closing(n)()
    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        work()
    finally:
        gc.set_threshold(*old)


@scenario
def weak_references():
    class Thing:
        pass
    thing = Thing()
    reference = weakref.ref(thing, snap)
    weakref.finalize(thing, snap)
    del thing
    gc.collect()
    check(reference() is None, "still alive")


@scenario
def generated_classes():
    @dataclasses.dataclass
    class Point:
        x: int = dataclasses.field(default_factory=snap)

        def __post_init__(self):
            snap()
    Point()
    collections.namedtuple("Pair", "a b")(snap(), 2)._replace(a=snap())


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


# ---- threads ----------------------------------------------------------------------------------------

def spin(stop):
    while not stop.is_set():
        sum(i for i in range(50))


@contextlib.contextmanager
def busy_interpreter():
    """Another thread holds the GIL most of the time."""
    stop = threading.Event()
    thread = threading.Thread(target=spin, args=(stop,))
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(old)


def run_threads(count, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@scenario
def threads():
    def deeper(n):
        return snap() if n == 0 else deeper(n - 1)

    def work(n):
        for i in range(12):
            deeper(i % 5 + n)
    with busy_interpreter():
        run_threads(8, work)


@scenario
def threads_on_one_function():
    def shared(n):
        for _ in range(15):
            if n % 2:
                snap()
            else:
                snap()
    run_threads(6, shared)


@scenario
def executors():
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(snap, range(6)))
        pool.submit(lambda: snap()).result()


@scenario
def many_short_threads():
    for _ in range(60):
        run_threads(1, snap)


@scenario
def frames_looked_at_by_others():
    stop = threading.Event()

    def poke():
        while not stop.is_set():
            for frame in sys._current_frames().values():
                while frame is not None:
                    frame.f_lineno, frame.f_locals
                    frame = frame.f_back
    thread = threading.Thread(target=poke)
    thread.start()
    try:
        for _ in range(30):
            snap()
    finally:
        stop.set()
        thread.join()


@scenario
def context_variables():
    import contextvars
    contextvars.copy_context().run(lambda: contextvars.copy_context().run(snap))


@scenario
def signal_handlers_in_python():
    old = signal.signal(signal.SIGUSR1, lambda number, frame: snap())
    try:
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGUSR1)
            sum(range(10))
    finally:
        signal.signal(signal.SIGUSR1, old)


# ---- tracing ----------------------------------------------------------------------------------------

def traced_work():
    for _ in range(3):
        snap()
    [snap() for _ in range(2)]


@scenario
def trace_function():
    def trace(frame, event, argument):
        return trace
    old = sys.gettrace()
    sys.settrace(trace)
    try:
        traced_work()
    finally:
        sys.settrace(old)


@scenario
def profile_function():
    sys.setprofile(lambda frame, event, argument: None)
    try:
        traced_work()
    finally:
        sys.setprofile(None)


@scenario
def inside_trace_function():
    def work():
        x = 1
        return x

    def trace(frame, event, argument):
        if frame.f_code is work.__code__:
            sys.settrace(None)
            snap()
            sys.settrace(trace)
        return trace
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)


@scenario
def inside_profile_function():
    seen = []

    def profile(frame, event, argument):
        sys.setprofile(None)
        seen.append(snap())
    sys.setprofile(profile)
    try:
        len("")
    finally:
        sys.setprofile(None)
    check(seen, "never called")


@scenario
def monitoring():
    since(3, 12)
    m = sys.monitoring
    m.use_tool_id(3, "test")
    try:
        for event in m.events.LINE, m.events.INSTRUCTION, m.events.PY_START:
            m.register_callback(3, event, lambda *a: None)
        m.set_events(3, m.events.LINE | m.events.INSTRUCTION | m.events.PY_START)
        traced_work()
        m.register_callback(3, m.events.PY_START, lambda code, offset: snap())
        m.set_events(3, m.events.PY_START)
        lambdas()
    finally:
        m.set_events(3, 0)
        m.free_tool_id(3)


@scenario
def debugger():
    import bdb

    class Debugger(bdb.Bdb):
        def user_line(self, frame):
            self.set_step()
    Debugger().runcall(traced_work)


# ---- the process ------------------------------------------------------------------------------------

@scenario
def forked_child():
    nodes = lib.pylib_nodes()
    child = os.fork()
    if child == 0:
        lib.pylib_fork_child()
        capture.failures.clear()
        snap()
        run_threads(2, snap)
        bad = capture.failures or lib.pylib_broken() or lib.pylib_nodes() >= nodes
        bad = bad or not lib.pylib_infos().startswith(b"python=")
        os._exit(1 if bad else 0)
    check(os.waitpid(child, 0)[1] == 0, "wrong stacks in the child")
    snap()


SUBINTERPRETER = """
import sys
sys.path.insert(0, %r)
import capture
def f():
    if %r:
        capture.snap()
        capture.lib.pylib_keep(len(capture.failures))
    else:
        capture.lib.pylib_keep(capture.capture())
f()
"""


@scenario
def subinterpreter():
    """To 3.11 a thread's state is its first interpreter's: the stack ends at the call into the other."""
    own = sys.version_info >= (3, 12)
    source = SUBINTERPRETER % (os.path.dirname(os.path.abspath(__file__)), own)
    status = held.pylib_subinterpreter(source.encode()); here = capture.traceback.extract_stack()
    check(status == 0, "status %d" % status)
    if own:
        check(lib.pylib_kept() == 0, "wrong stack inside")
    else:
        capture.judge(lib.pylib_kept(), capture.expected(here, sys._getframe()))
    snap()


@scenario
def greenlets():
    try:
        from greenlet import greenlet, getcurrent
    except ImportError:
        raise Skip("greenlet is not installed") from None

    def work(n):
        for _ in range(3):
            snap()
            getcurrent().parent.switch(n)
        return snap()
    workers = [greenlet(work) for _ in range(3)]
    for _ in range(4):
        for n, worker in enumerate(workers):
            worker.switch(n)
            snap()
    greenlet(lambda: greenlet(work, getcurrent()).switch(1)).switch()


@scenario
def depth_limit():
    """The innermost frames are kept, below a root that says that there were more."""
    def down(n):
        if n:
            return down(n - 1)
        node, stack = capture.capture(), capture.traceback.extract_stack()
        return node, capture.expected(stack, sys._getframe())
    lost = lib.pylib_lost(capture.LOST_TRUNCATED)
    node, wanted = down(600)
    got = capture.frames_of(node)
    check(got[0] is None, "not marked")
    check(got[1:] == wanted[-len(got) + 1:], "not the innermost frames")
    check(len(got) == 513, "%d frames" % (len(got) - 1))
    check(lib.pylib_lost(capture.LOST_TRUNCATED) == lost + 1, "not counted")


def run(function):
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


def main():
    lib.pylib_start(512)
    failed = 0
    for function in SCENARIOS:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        line = run(function).replace("\n", " ").encode("ascii", "backslashreplace").decode()
        failed += line.startswith("not ok")
        print(line, flush=True)
    print("%d scenarios, %d captures, lost %d" % (
        len(SCENARIOS), capture.captures, lib.pylib_lost(capture.LOST_PYTHON)))
    return 1 if failed or lib.pylib_lost(capture.LOST_PYTHON) else 0


if __name__ == "__main__":
    sys.setrecursionlimit(5000)
    sys.exit(main())
