#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A file system in memory, in user space, without fallocate, as network file systems are: for files.py.

usage: memory_fs.py DIRECTORY direct|cached     direct: files cannot be mapped shared. Ends when unmounted.
"""
import errno
import stat
import sys

import fusepy as fuse


class Memory(fuse.Operations):
    def __init__(self):
        self.files = {}

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o777, "st_nlink": 2}
        if path not in self.files:
            raise fuse.FuseOSError(errno.ENOENT)
        return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": len(self.files[path])}

    def readdir(self, path, fh):
        return [".", "..", *(p[1:] for p in self.files)]

    def create(self, path, mode, fi=None):
        self.files[path] = bytearray()
        return 0

    def read(self, path, size, offset, fh):
        return bytes(self.files[path][offset:offset + size])

    def write(self, path, data, offset, fh):
        f = self.files[path]
        f.extend(bytes(max(0, offset - len(f))))
        f[offset:offset + len(data)] = data
        return len(data)

    def truncate(self, path, length, fh=None):
        f = self.files[path]
        del f[length:]
        f.extend(bytes(length - len(f)))

    def unlink(self, path):
        del self.files[path]


if __name__ == "__main__":
    fuse.FUSE(Memory(), sys.argv[1], foreground=True, nothreads=True, use_ino=False, direct_io=sys.argv[2] == "direct")
