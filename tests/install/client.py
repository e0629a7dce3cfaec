"""A program with device memory and Python frames, for the roots that have no PyTorch: allocates
through the driver API, keeps the larger block."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *args):
    status = getattr(cuda, name)(*args)
    if status:
        raise SystemExit(f"{name}: error {status}")


def allocate(mib):
    pointer = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(mib << 20))
    return pointer


def main():
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    small = allocate(16)
    large = allocate(64)  # the holder at the peak
    call("cuMemFree_v2", small)
    return large


main()
