"""The capture library through ctypes, and the comparison with traceback.extract_stack()."""
import ctypes
import os
import sys
import threading
import traceback

LIBRARY = os.environ["PYLIB"]
lib = ctypes.CDLL(LIBRARY)      # releases the GIL during a call
held = ctypes.PyDLL(LIBRARY)    # keeps it
lib.pylib_string.restype = ctypes.c_void_p
lib.pylib_infos.restype = ctypes.c_char_p
lib.pylib_lost.restype = ctypes.c_uint64
lib.pylib_bench.restype = ctypes.c_double
for name in "pylib_capture", "pylib_node", "pylib_nodes", "pylib_native_thread", "pylib_kept":
    getattr(lib, name).restype = ctypes.c_uint32
    getattr(held, name).restype = ctypes.c_uint32
for function in (lib.pylib_node, held.pylib_node):
    function.argtypes = [ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_int32)]

TEXT_MAX = 4096     # bytes that are kept of a name
LOST_TRUNCATED, LOST_PYTHON = 3, 7
capture, capture_held = lib.pylib_capture, held.pylib_capture
failures = []       # of the running scenario
apart = False       # outer frames of the native stack belong to another Python stack
captures = 0
_lock = threading.Lock()


def text(number):
    length = ctypes.c_size_t()
    address = lib.pylib_string(number, ctypes.byref(length))
    return ctypes.string_at(address, length.value)


def code_of(number):
    file, name, qualname = ctypes.c_uint32(), ctypes.c_uint32(), ctypes.c_uint32()
    first = lib.pylib_code(number, ctypes.byref(file), ctypes.byref(name), ctypes.byref(qualname))
    return text(file.value), text(name.value), text(qualname.value) if qualname.value else None, first


def frames_of(node):
    """[(file, function, qualified name, line)], outermost first; None for a cut."""
    found = []
    while node:
        code, line = ctypes.c_uint32(), ctypes.c_int32()
        parent = held.pylib_node(node, ctypes.byref(code), ctypes.byref(line))
        if code.value:
            file, name, qualname, _ = code_of(code.value)
            found.append((file, name, qualname, line.value))
        else:
            found.append(None)
        node = parent
    found.reverse()
    return found


def encoded(s):
    """As the recorder writes a str: UTF-8, undecodable bytes as they were, cut at a whole character."""
    s = s.encode("utf-8", "surrogateescape")[:TEXT_MAX + 4]
    while len(s) > TEXT_MAX:
        s = s[:-1]
    while s and len(s) > TEXT_MAX - 4 and s[-1] >= 0x80:
        try:
            s.decode("utf-8")
            break
        except UnicodeDecodeError:
            s = s[:-1]
    return s


def expected(stack, frame):
    """extract_stack()'s entries, with the qualified names and first lines from the frames themselves."""
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    if len(frames) != len(stack):
        raise AssertionError("extract_stack has %d entries for %d frames" % (len(stack), len(frames)))
    wanted = []
    for entry, frame in zip(stack, frames):
        code = frame.f_code
        qualname = encoded(code.co_qualname) if hasattr(code, "co_qualname") else None
        line = code.co_firstlineno if entry.lineno is None else entry.lineno
        wanted.append((encoded(entry.filename), encoded(entry.name), qualname, line))
    return wanted


def judge(node, wanted):
    global captures
    got = frames_of(node)
    with _lock:
        captures += 1
        if got != wanted:
            pairs = [(g, w) for g, w in zip(got, wanted) if g != w]
            failures.append("%d frames, expected %d; first difference %r" % (
                len(got), len(wanted), pairs[0] if pairs else None))


def snap(_=None):
    """Captures here with the GIL released and held; both must be what Python says of this frame."""
    first, second, stack = capture(), capture_held(), traceback.extract_stack()
    if first != second:
        failures.append("two captures on one line: nodes %d and %d" % (first, second))
    unmatched = held.pylib_unmatched()
    if unmatched < 0 or (unmatched and not apart):
        failures.append("%d calls of the evaluation function more in the native stack" % unmatched)
    judge(first, expected(stack, sys._getframe()))
    return 0
