"""Scenarios: calls, callbacks from C, generators, coroutines, classes. See scenario.py."""
import asyncio
import collections
import contextlib
import ctypes
import dataclasses
import functools
import gc
import random
import threading
import weakref

from capture import held, lib, snap
from scenario import CALLBACK, check, scenario


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
