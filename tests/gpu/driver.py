# SPDX-License-Identifier: MIT
"""Programs for the check on a GPU that need no PyTorch: the driver and NVML by ctypes.

usage: driver.py present|totals
"""
import ctypes
import json
import os
import sys

MIB = 1 << 20


class NoDriver(Exception):
    pass


def load(name):
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise NoDriver(str(error)) from error


def must(result, what):
    if result:
        raise NoDriver("%s: %d" % (what, result))


def with_context():
    cuda = load("libcuda.so.1")
    context, count = ctypes.c_void_p(), ctypes.c_int()
    must(cuda.cuInit(0), "cuInit")
    must(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    if not count.value:
        raise NoDriver("no device")
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    return cuda


def free_bytes(cuda):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    return free.value


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]


def nvml_bytes():
    """What NVML says that this process has; None where it does not say."""
    nvml, device, count = load("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_uint(256)
    found = (Process * 256)()
    must(nvml.nvmlInit_v2(), "nvmlInit")
    must(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)), "nvmlDeviceGetHandleByIndex")
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), found):
        return None
    for process in found[:count.value]:
        if process.pid == os.getpid() and process.used < 1 << 60:
            return process.used
    return None


def present():
    load("libnvidia-ml.so.1")
    with_context()


def allocate(cuda, sizes):
    blocks = []
    for size in sizes:
        block = ctypes.c_ulonglong()
        must(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)), "cuMemAlloc")
        blocks.append(block)
    return blocks


def totals():
    """Allocates whole granules, and says what the driver and NVML say."""
    cuda = with_context()
    sizes = [2 * MIB * n for n in (1, 3, 7, 20, 64, 256)]
    before = free_bytes(cuda)
    allocate(cuda, sizes)
    try:
        nvml = nvml_bytes()
    except NoDriver:
        nvml = None
    print(json.dumps({"asked": sum(sizes), "free_before": before, "free_after": free_bytes(cuda), "nvml": nvml}))
    sys.stdout.flush()
    os._exit(0)  # as it stands: all of it is still there


if __name__ == "__main__":
    try:
        {"present": present, "totals": totals}[sys.argv[1]]()
    except NoDriver as error:
        print(error, file=sys.stderr)
        sys.exit(1)
