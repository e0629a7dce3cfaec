# SPDX-License-Identifier: MIT
"""What a program does with one hook, and what a trace then has to hold: run by matrix, in a process
of its own per way to the driver, with and without the preload.

usage: scenes.py WAY LIBRARY HOOK...     prints one JSON line per hook: results of all calls, what to
expect as [op, space, size, device, stream], or why there is nothing to do; with a runtime, whether it was
asked for the function because none of its calls is this one
"""
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
from ctypes import byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p

HERE = os.path.dirname(os.path.abspath(__file__))
CALL = ctypes.CFUNCTYPE(c_int)
MIB = 1 << 20
DEVICE = 1


class Cannot(Exception):
    """Why there is no such cell."""


def table():
    """symbol -> (name for the resolver, version, flags that hand it out)"""
    with open(os.path.join(HERE, "..", "sim", "driver", "driver.def")) as f:
        rows = re.findall(r"^SIM_\w+\((\w+), (\d+), (\w+), (\w+), (\w+)\)", f.read(), re.M)
    found = {}
    for name, since, symbol, twin, _ in rows:
        found[symbol] = (name, int(since), (0, 1) if twin != "none" else (0, 1, 2))
        if twin != "none":
            found[f"{symbol}_{twin}"] = (name, int(since), (2,))
    return found


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


class Extent(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("depth", c_size_t)]


# Driver functions whose call in the runtime has the same arguments: cuda and the rest of the name.
SAME = re.compile(r"cu(MemGetInfo_v2|MemPool\w+|DeviceSetMemPool|StreamSynchronize(_ptsz)?"
                  r"|EventSynchronize|IpcOpenMemHandle_v2|IpcCloseMemHandle|ImportExternalMemory"
                  r"|DestroyExternalMemory|ExternalMemoryGetMappedBuffer|StreamBeginCapture_v2(_ptsz)?"
                  r"|StreamBeginCaptureToGraph(_ptsz)?|StreamEndCapture(_ptsz)?|StreamDestroy_v2"
                  r"|GraphAddMem\w+Node|GraphDestroy|GraphInstantiateWith\w+|GraphExecDestroy"
                  r"|GraphLaunch(_ptsz)?|DeviceGraphMemTrim)")
RENAMED = {
    "cuMemAlloc_v2": "cudaMalloc", "cuMemFree_v2": "cudaFree", "cuMemAllocPitch_v2": "cudaMallocPitch",
    "cuMemAllocAsync": "cudaMallocAsync", "cuMemAllocAsync_ptsz": "cudaMallocAsync_ptsz",
    "cuMemAllocFromPoolAsync": "cudaMallocFromPoolAsync", "cuMemFreeAsync": "cudaFreeAsync",
    "cuMemAllocFromPoolAsync_ptsz": "cudaMallocFromPoolAsync_ptsz",
    "cuMemFreeAsync_ptsz": "cudaFreeAsync_ptsz", "cuMemHostAlloc": "cudaHostAlloc",
    "cuMemFreeHost": "cudaFreeHost", "cuMemHostRegister_v2": "cudaHostRegister",
    "cuMemHostUnregister": "cudaHostUnregister", "cuMemAllocManaged": "cudaMallocManaged",
    "cuCtxSynchronize": "cudaDeviceSynchronize",
    "cuArrayCreate_v2": "cudaMallocArray", "cuArray3DCreate_v2": "cudaMalloc3DArray",
    "cuArrayDestroy": "cudaFreeArray", "cuMipmappedArrayCreate": "cudaMallocMipmappedArray",
    "cuMipmappedArrayDestroy": "cudaFreeMipmappedArray", "cuDevicePrimaryCtxRetain": "cudaSetDevice",
    "cuDevicePrimaryCtxReset": "cudaDeviceReset",
}


def channels(form, count):
    """A channel description out of a driver's format and number of channels."""
    bits, kind = {0x01: (8, 1), 0x10: (16, 2), 0x20: (32, 2)}[form]
    return struct.pack("5i", *[bits if i < count else 0 for i in range(4)], 2 if form == 0x10 else kind)


def flat_array(out, shape):
    width, height, form, count = struct.unpack("QQiI", shape)
    return out, channels(form, count), c_size_t(width), c_size_t(height), c_uint32(0)


def whole_array(out, shape, *levels):
    width, height, depth, form, count, flags = struct.unpack("QQQiII", shape)
    return out, channels(form, count), Extent(width, height, depth), *levels, c_uint32(flags)


ARGUMENTS = {
    "cuMemAllocPitch_v2": lambda *args: args[:4], "cuArrayCreate_v2": flat_array,
    "cuArray3DCreate_v2": whole_array, "cuMipmappedArrayCreate": whole_array,
    "cuDevicePrimaryCtxRetain": lambda out, device: (device,), "cuDevicePrimaryCtxReset": lambda device: (),
}


class Runtime:
    """A runtime: one of the shared ones, or the copy inside a library that shows no name of it."""

    def __init__(self, way, hidden):
        self.library = ctypes.CDLL(hidden if way == "static" else f"libcudart.so.{way[6:]}")
        self.hidden, self.major = {}, 12 if way == "cudart12" else 13
        if way == "static":
            names = subprocess.run(["nm", hidden], check=True, capture_output=True, text=True,
                                   env={**os.environ, "LD_PRELOAD": ""}).stdout
            rows = re.findall(r"^(\w+) [tT] (cuda\w+|way_elf)$", names, re.M)
            self.hidden = {name: int(at, 16) for at, name in rows}
            seen = ctypes.cast(self.library.way_elf, c_void_p).value
            self.base = seen - self.hidden["way_elf"]

    def function(self, name):
        if self.hidden:
            return CALL(self.base + self.hidden[name])
        return getattr(self.library, name)

    def name_of(self, hook):
        """The runtime's call that is this one of the driver, if there is one."""
        if hook == ("cuGraphAddNode" if self.major == 12 else "cuGraphAddNode_v2"):
            return "cudaGraphAddNode"
        if SAME.fullmatch(hook):
            return "cuda" + re.sub(r"_v\d", "", hook[2:])
        return RENAMED.get(hook)

    def entry(self, name, version, flags):
        found, status = c_void_p(), c_int()
        ask = self.function("cudaGetDriverEntryPointByVersion")
        rc = ask(name.encode(), byref(found), c_uint32(version), ctypes.c_uint64(flags), byref(status))
        assert rc == 0, f"cudaGetDriverEntryPointByVersion: {rc}"
        return found.value


class Game:
    """The calls of one scene: those of the hook go the way that is tested, others by ctypes."""

    def __init__(self, way, library):
        self.runtime = Runtime(way, library) if way in ("cudart12", "cudart13", "static") else None
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.ways = ctypes.CDLL(library)
        for name in ("elf", "dlsym", "dlvsym", "gpa1", "gpa2"):
            getattr(self.ways, "way_" + name).restype = c_void_p
        self.way, self.symbols, self.size = way, table(), 100000
        self.hook, self.results, self.wanted, self.used = None, [], [], False
        self.files = []

    def address(self, hook):
        way, _, flags = self.way.partition("-")
        name = hook.encode()
        if way == "ctypes":
            return ctypes.cast(getattr(self.driver, hook), c_void_p).value
        if way in ("elf", "dlsym"):
            return getattr(self.ways, "way_" + way)(name)
        if way == "dlvsym":
            found = self.ways.way_dlvsym(name, b"libcuda.so.1")
            if not found:
                raise Cannot("the driver's symbols have no versions")
            return found
        if hook.startswith("cuGetProcAddress"):
            raise Cannot("it is the way")
        base, since, possible = self.symbols[hook]
        if self.runtime:
            self.by = self.runtime.name_of(hook)
            if self.by:
                return ctypes.cast(self.runtime.function(self.by), c_void_p).value
            return self.runtime.entry(base, since, possible[0])
        if int(flags) not in possible:
            raise Cannot("these flags hand out the other twin")
        return getattr(self.ways, "way_" + way)(base.encode(), since, c_uint64(int(flags)))

    def start(self, hook):
        self.hook, self.results, self.wanted, self.used, self.by = hook, [], [], False, None
        self.target = self.address(hook)
        if not self.target:
            raise Cannot("this driver has no such function")

    def call(self, name, *args):
        if name == self.hook:
            self.used = True
            change = ARGUMENTS.get(name) if self.by else None
            rc = CALL(self.target)(*(change(*args) if change else args))
        else:
            rc = getattr(self.driver, name)(*args)
        self.results.append([name, rc])
        if rc == 801:
            raise Cannot("this driver does not support it")
        return rc

    def ok(self, name, *args):
        rc = self.call(name, *args)
        assert rc == 0, f"{name}: {rc}"

    def new(self):
        self.size += 1237
        return self.size

    def want(self, op, space, size, device=DEVICE, stream=0):
        self.wanted.append([op, space, size, device, stream])


def twin(name):
    return 2 if name.endswith("_ptsz") else 0


def variant(hook, base, otherwise):
    """The hook itself if it is a version of base, else the usual one."""
    return hook if re.fullmatch(base + r"(_v\d)?(_ptsz)?", hook) else otherwise


def plain(g, hook):
    alloc, free = variant(hook, "cuMemAlloc", "cuMemAlloc_v2"), variant(hook, "cuMemFree", "cuMemFree_v2")
    p, n = c_uint64(), g.new()
    if alloc == "cuMemAlloc":  # addresses of 32 bits: there is no such memory
        assert g.call(alloc, byref(p), c_uint32(n)) == 2
        return g.want("failed", "driver", n)
    g.ok(alloc, byref(p), c_size_t(n))
    g.want("alloc", "driver", n)
    if free == "cuMemFree":
        assert g.call(free, c_uint32(0x1230000)) != 0
        g.want("unknown_free", "driver", 0)
        free = "cuMemFree_v2"
    g.ok(free, p)
    g.want("free", "driver", n)


def pitched(g, hook):
    p, pitch, n = c_uint64(), c_size_t(), g.new()
    if hook == "cuMemAllocPitch":
        if g.call(hook, byref(p), byref(pitch), c_uint32(n), c_uint32(3), c_uint32(4)):
            return g.want("failed", "driver", n * 3)
    g.ok("cuMemAllocPitch_v2", byref(p), byref(pitch), c_size_t(n), c_size_t(3), c_uint32(4))
    g.want("alloc", "driver", pitch.value * 3)
    g.ok("cuMemFree_v2", p)
    g.want("free", "driver", pitch.value * 3)


def managed(g, hook):
    p, n = c_uint64(), g.new()
    g.ok("cuMemAllocManaged", byref(p), c_size_t(n), c_uint32(1))
    g.want("alloc", "driver", n)
    g.ok("cuMemFree_v2", p)
    g.want("free", "driver", n)


def info(g, hook):
    free, total = c_size_t(), c_size_t()
    g.ok("cuMemGetInfo_v2", byref(free), byref(total))
    g.want("sample", "none", total.value)


def pool_of(g):
    pool = c_void_p()
    g.ok("cuMemPoolCreate", byref(pool), struct.pack("iiii72x", 1, 1, 1, DEVICE))
    return pool


def stream_ordered(g, hook):
    alloc = variant(hook, "cuMemAllocAsync", None) or variant(hook, "cuMemAllocFromPoolAsync", None)
    free = variant(hook, "cuMemFreeAsync", "cuMemFreeAsync")
    p, n, alloc = c_uint64(), g.new(), alloc or "cuMemAllocAsync"
    pool = pool_of(g)
    more = (pool,) if "FromPool" in alloc else ()
    g.ok(alloc, byref(p), c_size_t(n), *more, None)
    g.want("alloc", "driver", n, stream=twin(alloc))
    g.ok(free, p, None)
    g.want("free", "driver", n, stream=twin(alloc))
    g.ok("cuMemPoolDestroy", pool)


def pools(g, hook):
    """What the pool holds is the pool's own series, up to date after each of these calls."""
    pool, default, n, held, keep = pool_of(g), c_void_p(), g.new(), c_uint64(), c_uint64(1 << 40)
    p, stream = c_uint64(), c_void_p()
    g.ok("cuDeviceGetDefaultMemPool", byref(default), DEVICE)
    g.ok("cuMemPoolSetAttribute", pool, 4, byref(keep))
    g.ok("cuDeviceSetMemPool", DEVICE, pool)
    g.ok("cuMemAllocAsync", byref(p), c_size_t(n), None)
    g.want("alloc", "driver", n)
    g.ok("cuMemPoolGetAttribute", pool, 5, byref(held))
    g.want("alloc", "pool", held.value)
    g.ok("cuMemFreeAsync", p, None)
    g.want("free", "driver", n)
    if "Synchronize" in hook:
        g.ok("cuMemPoolSetAttribute", pool, 4, byref(c_uint64(0)))
        event = c_void_p()
        g.ok("cuEventCreate", byref(event), 0)
        g.ok("cuEventRecord", event, None)
        args = {"cuCtxSynchronize": (), "cuCtxSynchronize_v2": (g.context,), "cuEventSynchronize": (event,)}
        g.ok(hook, *args.get(hook, (None,)))
    else:
        g.ok("cuMemPoolTrimTo", pool, c_size_t(0))
    g.want("free", "pool", held.value)
    g.ok("cuDeviceSetMemPool", DEVICE, default)
    g.ok("cuMemPoolDestroy", pool)


def prop(where=1, number=DEVICE):
    return struct.pack("iiii48x", 1, 1, where, number)


def physical(g, hook):
    h, other, at, n = c_uint64(), c_uint64(), c_uint64(), g.new() // 1237 * 2 * MIB
    g.ok("cuMemCreate", byref(h), c_size_t(n), prop(), c_uint64(0))
    g.want("alloc", "handle", n)
    g.ok("cuMemAddressReserve", byref(at), c_size_t(n), c_size_t(0), c_uint64(0), c_uint64(0))
    g.want("alloc", "range", n)
    g.ok("cuMemMap", at, c_size_t(n), c_size_t(0), h, c_uint64(0))
    g.want("alloc", "mapping", n)
    g.ok("cuMemRetainAllocationHandle", byref(other), at)
    g.ok("cuMemRelease", h)
    g.ok("cuMemUnmap", at, c_size_t(n))
    g.want("free", "mapping", n)
    g.ok("cuMemAddressFree", at, c_size_t(n))
    g.want("free", "range", n)
    g.ok("cuMemRelease", other)  # the last that held it
    g.want("free", "handle", n)
    g.ok("cuMemCreate", byref(h), c_size_t(n), prop(3, 0), c_uint64(0))
    g.want("alloc", "handle", n, -1)
    fd = c_int(-1)
    g.ok("cuMemExportToShareableHandle", byref(fd), h, 1, c_uint64(0))
    g.ok("cuMemImportFromShareableHandle", byref(other), c_void_p(fd.value), 1)
    os.close(fd.value)
    g.ok("cuMemRelease", other)
    g.ok("cuMemRelease", h)
    g.want("free", "handle", n, -1)


def multicast(g, hook):
    """The object is no memory; what is bound to it counts once, as it did before."""
    n = 2 * MIB
    m, h, at = c_uint64(), c_uint64(), c_uint64()
    g.ok("cuMemCreate", byref(h), c_size_t(n), prop(), c_uint64(0))
    g.want("alloc", "handle", n)
    g.ok("cuMulticastCreate", byref(m), struct.pack("I4xQQQ", 1, n, 0, 0))
    g.ok("cuMulticastAddDevice", m, DEVICE)
    g.ok("cuMulticastBindMem", m, c_size_t(0), h, c_size_t(0), c_size_t(n), c_uint64(0))
    g.ok("cuMemAddressReserve", byref(at), c_size_t(n), c_size_t(0), c_uint64(0), c_uint64(0))
    g.want("alloc", "range", n)
    g.ok("cuMemMap", at, c_size_t(n), c_size_t(0), m, c_uint64(0))
    g.want("alloc", "mapping", n)
    g.ok("cuMemUnmap", at, c_size_t(n))
    g.want("free", "mapping", n)
    g.ok("cuMemAddressFree", at, c_size_t(n))
    g.want("free", "range", n)
    g.ok("cuMulticastUnbind", m, DEVICE, c_size_t(0), c_size_t(n))
    g.ok("cuMemRelease", m)
    g.ok("cuMemRelease", h)
    g.want("free", "handle", n)


def host(g, hook):
    p, n = c_void_p(), g.new()
    alloc = hook if hook.startswith("cuMemAllocHost") else "cuMemHostAlloc"
    more = (c_uint32(0),) if alloc == "cuMemHostAlloc" else ()
    g.ok(alloc, byref(p), c_size_t(n), *more)
    g.want("alloc", "host", n, -1)
    g.ok("cuMemFreeHost", p)
    g.want("free", "host", n, -1)
    page = ctypes.create_string_buffer(8192)
    n = g.new() % 4000 + 1
    register = variant(hook, "cuMemHostRegister", "cuMemHostRegister_v2")
    g.ok(register, page, c_size_t(n), c_uint32(0))
    g.want("alloc", "host", n, -1)
    assert g.call(register, page, c_size_t(n), c_uint32(0)) != 0  # it is already
    g.want("failed", "host", n, -1)
    g.ok("cuMemHostUnregister", page)
    g.want("free", "host", n, -1)


def arrays(g, hook):
    a, n = c_void_p(), g.new()
    if hook.startswith("cuMipmapped"):
        g.ok("cuMipmappedArrayCreate", byref(a), struct.pack("QQQiII", n, 6, 0, 0x20, 2, 0), c_uint32(3))
        size = 8 * (n * 6 + n // 2 * 3 + n // 4)
    elif hook.startswith("cuArray3D"):
        g.ok(hook, byref(a), struct.pack("QQQiII" if "_v2" in hook else "IIIiII", n, 3, 2, 0x10, 4, 0))
        size = n * 3 * 2 * 2 * 4
    else:
        create = variant(hook, "cuArrayCreate", "cuArrayCreate_v2")
        g.ok(create, byref(a), struct.pack("QQiI" if "_v2" in create else "IIiI", n, 5, 0x01, 1))
        size = n * 5
    g.want("alloc", "array", size)
    g.ok("cuMipmappedArrayDestroy" if hook.startswith("cuMipmapped") else "cuArrayDestroy", a)
    g.want("free", "array", size)


def external(g, hook):
    fd, m, p, n = os.memfd_create("external"), c_void_p(), c_uint64(), 4096 * (g.new() // 1237)
    os.ftruncate(fd, n)
    g.ok("cuImportExternalMemory", byref(m), struct.pack("iixxxxQQI68x", 1, fd, 0, n, 0)[:96] + bytes(16))
    g.want("alloc", "ipc", n)
    g.ok("cuExternalMemoryGetMappedBuffer", byref(p), m, struct.pack("QQI68x", 0, n, 0))
    g.want("alloc", "mapping", n)
    g.ok("cuMemFree_v2", p)
    g.want("free", "mapping", n)
    g.ok("cuDestroyExternalMemory", m)
    g.want("free", "ipc", n)


def start_other(what, n):
    """In a forked child, which may not use the driver: become another process that may."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    os.execve(sys.executable, [sys.executable, __file__, what, str(n)], env)


def shared(g, hook):
    """Memory of another process, opened twice and closed twice: one block."""
    from_there, to_there, n = os.pipe(), os.pipe(), g.new()
    child = os.fork()
    if not child:
        os.dup2(from_there[1], 1), os.dup2(to_there[0], 0)
        start_other("export", n)
    os.close(from_there[1])
    handle = Handle.from_buffer_copy(os.read(from_there[0], 64))
    p, q = c_uint64(), c_uint64()
    name = variant(hook, "cuIpcOpenMemHandle", "cuIpcOpenMemHandle_v2")
    g.ok(name, byref(p), handle, c_uint32(1))
    g.want("alloc", "ipc", n)
    g.ok(name, byref(q), handle, c_uint32(1))
    g.ok("cuIpcCloseMemHandle", p)
    g.ok("cuIpcCloseMemHandle", p)
    g.want("free", "ipc", n)
    os.write(to_there[1], b".")
    os.waitpid(child, 0)


def contexts(g, hook):
    c, p, n = c_void_p(), c_uint64(), g.new()
    if hook == "cuGreenCtxCreate":
        resource, desc = ctypes.create_string_buffer(256), c_void_p()
        g.ok("cuDeviceGetDevResource", DEVICE, resource, 1)
        g.ok("cuDevResourceGenerateDesc", byref(desc), resource, 1)
        g.ok(hook, byref(c), desc, DEVICE, 1)
        return g.ok("cuGreenCtxDestroy", c)
    if "Primary" in hook:
        device = 0
        g.ok("cuCtxSetCurrent", None)
        g.ok("cuDevicePrimaryCtxRetain", byref(c), device)
        if g.by == "cudaSetDevice":
            g.ok("cuCtxGetCurrent", byref(c))
        g.ok("cuCtxSetCurrent", c)
        if g.by == "cudaDeviceReset":
            g.runtime.function("cudaSetDevice")(device)
        end = (hook if "Re" in hook and "Retain" not in hook else "cuDevicePrimaryCtxRelease_v2", device)
    else:
        device = DEVICE
        create = variant(hook, "cuCtxCreate", "cuCtxCreate_v2")
        first = {"cuCtxCreate_v3": (None, 0), "cuCtxCreate_v4": (None,)}.get(create, ())
        g.ok(create, byref(c), *first, 0, device)
        end = (variant(hook, "cuCtxDestroy", "cuCtxDestroy_v2"), c)
    g.ok("cuMemAlloc_v2", byref(p), c_size_t(n))
    g.want("alloc", "driver", n, device)
    g.ok(*end)
    g.want("free", "driver", n, device)
    if g.runtime:
        g.runtime.function("cudaSetDevice")(DEVICE)
    g.ok("cuCtxSetCurrent", g.context)


def modules(g, hook):
    m, image = c_void_p(), ctypes.create_string_buffer(b".version 8.0\n.target sm_90\n")
    path = os.path.join(os.environ.get("GPUTRACE_DIR", "/tmp").split(":")[-1], "module.ptx")
    with open(path, "wb") as f:
        f.write(image.value)
    library = hook.startswith("cuLibrary")
    load = "cuLibraryLoadData" if hook == "cuLibraryUnload" else "cuModuleLoadData" if "Unload" in hook else hook
    what = path.encode() if load in ("cuModuleLoad", "cuLibraryLoadFromFile") else image
    more = (None, None, 0, None, None, 0) if library else (0, None, None) if load.endswith("Ex") else ()
    g.ok(load, byref(m), what, *more)
    if library:  # takes nothing before it is used, so there is nothing to see
        return g.ok("cuLibraryUnload", m)
    g.want("alloc", "module", 3 * MIB)
    g.want("sample", "none", 8 << 30)
    g.ok("cuModuleUnload", m)
    g.want("free", "module", 3 * MIB)


def graphs(g, hook):
    """Nothing is in use before the launch; what the graph leaves is freed like any memory."""
    s, graph, run, p, n = c_void_p(), c_void_p(), c_void_p(), c_uint64(), g.new()
    pick = lambda base, otherwise: variant(hook, base, otherwise)
    g.ok("cuStreamCreate", byref(s), 1)
    if "Node" in hook:
        g.ok("cuGraphCreate", byref(graph), 0)
        q, m = by_hand(g, hook, graph)
        g.wanted = []
    else:
        begin = pick("cuStreamBeginCapture", None) or pick("cuStreamBeginCaptureToGraph", None)
        begin = begin or "cuStreamBeginCapture_v2"
        if "ToGraph" in begin:
            g.ok("cuGraphCreate", byref(graph), 0)
            g.ok(begin, s, graph, None, None, c_size_t(0), 2)
        else:
            g.ok(begin, s, *(() if begin in ("cuStreamBeginCapture", "cuStreamBeginCapture_ptsz") else (2,)))
        g.ok("cuMemAllocAsync", byref(p), c_size_t(n), s)
        g.ok(pick("cuStreamEndCapture", "cuStreamEndCapture"), s, byref(graph))
        q, m = p.value, n
    make = next((x for x in (pick("cuGraphInstantiate", None), pick("cuGraphInstantiateWithFlags", None),
                             pick("cuGraphInstantiateWithParams", None)) if x), "cuGraphInstantiateWithFlags")
    args = (None, None, c_size_t(0))
    if "Flags" in make:
        args = (c_uint64(0),)
    elif "Params" in make:
        args = (ctypes.create_string_buffer(64),)
    g.ok(make, byref(run), graph, *args)
    launch = pick("cuGraphLaunch", "cuGraphLaunch")
    for _ in range(2):
        g.ok(launch, run, s)
        g.want("alloc", "driver", m)
        if "Free" in hook and "Node" in hook:
            g.want("free", "driver", m)
        else:
            g.ok("cuMemFree_v2", c_uint64(q))
            g.want("free", "driver", m)
    g.ok("cuGraphExecDestroy", run)
    g.ok("cuGraphDestroy", graph)
    g.ok("cuDeviceGraphMemTrim", DEVICE)
    g.ok(pick("cuStreamDestroy", "cuStreamDestroy_v2"), s)


def by_hand(g, hook, graph):
    n, node = g.new(), c_void_p()
    alloc = struct.pack("iiii72xQQQQ", 1, 0, 1, DEVICE, 0, 0, n, 0)
    if hook.startswith("cuGraphAddNode"):
        params = ctypes.create_string_buffer(struct.pack("i12x", 10) + alloc.ljust(240, b"\0"), 256)
        edges = (None,) if hook.endswith("_v2") else ()
        g.ok(hook, byref(node), graph, None, *edges, c_size_t(0), params)
        return struct.unpack_from("Q", params, 16 + 112)[0], n
    params = ctypes.create_string_buffer(alloc, len(alloc))
    g.ok("cuGraphAddMemAllocNode", byref(node), graph, None, c_size_t(0), params)
    p = struct.unpack_from("Q", params, 112)[0]
    if "Free" in hook:
        last = c_void_p()
        g.ok("cuGraphAddMemFreeNode", byref(last), graph, byref(node), c_size_t(1), c_uint64(p))
    return p, n


def imported_pool(g, hook):
    """A block of a pool of another process: its owner is charged, here it is only shown."""
    (ours, theirs), n = socket.socketpair(), g.new()
    child = os.fork()
    if not child:
        os.dup2(theirs.fileno(), 0)
        start_other("export-pool", n)
    theirs.close()
    data, fds, _, _ = socket.recv_fds(ours, 64, 1)
    pool, p = c_void_p(), c_uint64()
    g.ok("cuMemPoolImportFromShareableHandle", byref(pool), c_void_p(fds[0]), 1, c_uint64(0))
    g.ok("cuMemPoolImportPointer", byref(p), pool, data)
    g.want("alloc", "ipc", n)
    g.ok("cuMemFreeAsync", p, None)
    g.want("free", "ipc", n)
    g.ok("cuMemPoolDestroy", pool)
    os.close(fds[0])
    ours.send(b".")
    os.waitpid(child, 0)


SCENES = (
    (r"cuMem(Alloc|Free)(_v2)?", plain), (r"cuMemAllocPitch.*", pitched), (r"cuMemAllocManaged", managed),
    (r"cuMemGetInfo_v2", info), (r"cuMem(AllocAsync|AllocFromPoolAsync|FreeAsync)(_ptsz)?", stream_ordered),
    (r"cuMemPoolImportPointer", imported_pool), (r"cuMemPool.*|cuDeviceSetMemPool|cu\w+Synchronize.*", pools),
    (r"cuMem(Create|Release|Map|Unmap|Retain.*|Import.*|Address.*)", physical), (r"cuMulticast.*", multicast),
    (r"cuMem(AllocHost|HostAlloc|FreeHost|Host(Un)?[rR]egister).*", host), (r"cu(Mipmapped)?Array.*", arrays),
    (r"cuIpc.*", shared), (r"cu(Import|Destroy)External.*|cuExternal.*", external),
    (r"cuCtx.*|cuDevicePrimary.*|cuGreen.*", contexts), (r"cu(Module|Library).*", modules),
    (r"cu(Stream|Graph|DeviceGraph).*", graphs),
)


def scene(g, hook):
    if hook.startswith("cuGetProcAddress"):
        raise Cannot("columns of their own")
    for pattern, play in SCENES:
        if re.fullmatch(pattern, hook):
            return play(g, hook)
    raise AssertionError(f"no scene for {hook}")


def other_process():
    d, c = ctypes.CDLL("libcuda.so.1"), c_void_p()
    assert not d.cuInit(0) and not d.cuDevicePrimaryCtxRetain(byref(c), DEVICE) and not d.cuCtxSetCurrent(c)
    return d


def export(size):
    d, p, handle = other_process(), c_uint64(), Handle()
    assert not d.cuMemAlloc_v2(byref(p), c_size_t(size)) and not d.cuIpcGetMemHandle(byref(handle), p)
    os.write(1, bytes(handle))
    os.read(0, 1)


def export_pool(size):
    d, p, pool, fd, data = other_process(), c_uint64(), c_void_p(), c_int(), Handle()
    assert not d.cuMemPoolCreate(byref(pool), struct.pack("iiii72x", 1, 1, 1, DEVICE))
    assert not d.cuMemAllocFromPoolAsync(byref(p), c_size_t(size), pool, None)
    assert not d.cuMemPoolExportToShareableHandle(byref(fd), pool, 1, c_uint64(0))
    assert not d.cuMemPoolExportPointer(byref(data), p)
    out = socket.socket(fileno=0)
    socket.send_fds(out, [bytes(data)], [fd.value])
    out.recv(1)


def main():
    if sys.argv[1].startswith("export"):
        return (export if sys.argv[1] == "export" else export_pool)(int(sys.argv[2]))
    g = Game(sys.argv[1], sys.argv[2])
    g.ok("cuInit", 0)
    if g.runtime:
        assert g.runtime.function("cudaSetDevice")(DEVICE) == 0
    g.context = c_void_p()
    g.ok("cuDevicePrimaryCtxRetain", byref(g.context), DEVICE)
    g.ok("cuCtxSetCurrent", g.context)
    for hook in sys.argv[3:]:
        why = None
        try:
            g.start(hook)
            scene(g, hook)
            assert g.used, "the scene does not call it"
        except Cannot as e:
            why = str(e)
        except AssertionError as e:
            g.wanted = None
            why = "scene: " + str(e)
        print(json.dumps({"hook": hook, "results": g.results, "wanted": g.wanted, "cannot": why,
                          "asked": bool(g.runtime and not g.by)}))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
