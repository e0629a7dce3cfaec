"""Scenarios: threads, tracing, other interpreters, forks. See scenario.py."""
import contextlib
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import capture
from capture import held, lib, snap
from scenario import Skip, check, scenario, since


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
        (lambda: (lambda x: snap(x))(1))()
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
capture.apart = True
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
def isolated_interpreters():
    """Each with a GIL of its own, from 3.13 on with ctypes; three at once."""
    since(3, 13)
    import _interpreters
    source = SUBINTERPRETER % (os.path.dirname(os.path.abspath(__file__)), True)
    source += "if capture.failures or not capture.captures: raise SystemError(capture.failures)\n"

    def work(n):
        number = _interpreters.create("isolated")
        for _ in range(5):
            problem = _interpreters.exec(number, source)
            check(problem is None, "%s" % (problem,))
        _interpreters.destroy(number)
        snap()
    run_threads(3, work)


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
    capture.apart = True
    workers = [greenlet(work) for _ in range(3)]
    for _ in range(4):
        for n, worker in enumerate(workers):
            worker.switch(n)
            snap()
    greenlet(lambda: greenlet(work, getcurrent()).switch(1)).switch()
    capture.apart = False


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
