#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the CUDA libraries that a PyTorch wheel needs besides the driver and the runtime.

    mkstubs.py TORCH_DIR OUT_DIR

Reads what the wheel's libraries need (library names, undefined symbols and their versions) and
builds, with the C compiler, one library of that name each: every symbol returns 0, except those
that a file beside this one defines (libcublas.c for libcublas.so.*): a null handle or a count of
0 would stop PyTorch there. Needs readelf, nm and cc; runs again only when told to.
"""

import collections
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = ("libcuda.so", "libcudart.so")
CUDA_LIBRARY = re.compile(r"lib(cu|nv|nccl)[A-Za-z0-9_-]*\.so")
JUMP_TARGET = {"x86_64": "xorl %eax, %eax\\n\\tret", "aarch64": "mov w0, #0\\n\\tret"}
# Libraries whose symbols carry no version, so only the name tells where they live.
BY_PREFIX = {"nccl": "libnccl", "cusparseLt": "libcusparseLt", "cuFile": "libcufile",
             "nvtx": "libnvToolsExt", "curand": "libcurand"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def base_of(soname):
    return soname.split(".so")[0]


def needed_by(path):
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", run("readelf", "-dW", path))


def version_files(path):
    """Version name -> library that must define it."""
    files, current = {}, None
    for line in run("readelf", "-VW", path).splitlines():
        found = re.search(r"File: (\S+)", line)
        if found:
            current = found.group(1)
        found = re.search(r"Name: (\S+)\s+Flags", line)
        if found and current:
            files[found.group(1)] = current
    return files


def undefined(path):
    """(symbol, version or None) of every undefined symbol."""
    for line in run("readelf", "--dyn-syms", "-W", path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] == "UND":
            name, _, version = fields[7].partition("@")
            yield name, version.lstrip("@") or None


def is_wanted(soname, present):
    return (CUDA_LIBRARY.match(soname) and soname not in present
            and not soname.startswith(OURS))


def library_of(name, sonames):
    for prefix, base in BY_PREFIX.items():
        if re.match(prefix + "[A-Z]", name):
            return next((s for s in sonames if base_of(s) == base), None)
    return None


def collect(torch_dir):
    """soname -> {symbol: version or None}."""
    lib_dir = os.path.join(torch_dir, "lib")
    present = set(os.listdir(lib_dir))
    paths = [os.path.join(lib_dir, f) for f in sorted(present) if ".so" in f
             and os.path.isfile(os.path.join(lib_dir, f))]
    wanted = collections.defaultdict(dict)
    for path in paths:
        for soname in needed_by(path):
            if is_wanted(soname, present):
                wanted[soname]
    for path in paths:
        files = version_files(path)
        for name, version in undefined(path):
            soname = files.get(version) if version else library_of(name, wanted)
            if soname in wanted:
                wanted[soname][name] = version
    return wanted


def package_version(torch_dir, package):
    """The exact version of a CUDA package that the wheel asks for, as a list of numbers."""
    site = os.path.dirname(torch_dir)
    for entry in os.listdir(site):
        if re.match(r"torch-.*\.dist-info$", entry):
            with open(os.path.join(site, entry, "METADATA"), encoding="utf-8") as metadata:
                found = re.search(rf"{package}[a-z0-9-]* ?\(?==([0-9.]+)", metadata.read())
            return [int(n) for n in found.group(1).split(".")] if found else None
    return None


def hand_written(soname, out_dir, defines):
    """Object of the file that knows better than 0, and the symbols it defines."""
    source = os.path.join(HERE, base_of(soname) + ".c")
    if not os.path.exists(source):
        return None, set()
    obj = os.path.join(out_dir, base_of(soname) + ".o")
    run(os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-fPIC", "-Wall", "-Wextra",
        "-Wno-unused-parameter", *defines, "-DSO_MAJOR=" + soname.split(".so.")[1].split(".")[0],
        "-c", source, "-o", obj)
    symbols = re.findall(r" T (\S+)", run("nm", "--defined-only", obj))
    return obj, set(symbols)


def write_source(path, symbols):
    body = JUMP_TARGET[os.uname().machine]
    with open(path, "w", encoding="ascii") as out:
        for name in sorted(symbols):
            out.write(f'__asm__(".text\\n.globl {name}\\n.type {name}, %function\\n'
                      f'{name}:\\n\\t{body}\\n.size {name}, . - {name}\\n");\n')


def write_map(path, symbols, written):
    """One version node per version asked for; extra symbols join the first."""
    nodes = collections.defaultdict(set)
    for name, version in symbols.items():
        nodes[version].add(name)
    extra = written - set(symbols)
    if extra:
        nodes[next((v for v in nodes if v), None)] |= extra
    named = [v for v in nodes if v]
    with open(path, "w", encoding="ascii") as out:
        if not named:  # a script cannot mix the anonymous node with named ones
            names = "".join(f"{n}; " for n in sorted(nodes[None]))
            out.write("{ %slocal: *; };\n" % (f"global: {names}" if names else ""))
        for i, version in enumerate(named):
            out.write("%s { global: %s%s};\n" % (
                version, "".join(f"{n}; " for n in sorted(nodes[version])),
                "local: *; " if i == 0 else ""))


def build(soname, symbols, out_dir, defines):
    stem = os.path.join(out_dir, soname)
    obj, written = hand_written(soname, out_dir, defines)
    write_source(stem + ".c", set(symbols) - written)
    write_map(stem + ".map", symbols, written)
    run(os.environ.get("CC", "cc"), "-shared", "-fPIC", stem + ".c", *([obj] if obj else []),
        "-Wl,-soname," + soname, "-Wl,-Bsymbolic", "-Wl,--version-script," + stem + ".map",
        "-o", stem + ".tmp")
    os.replace(stem + ".tmp", stem)
    for leftover in (stem + ".c", stem + ".map", obj):
        if leftover:
            os.unlink(leftover)


def main():
    torch_dir, out_dir = sys.argv[1:]
    os.makedirs(out_dir, exist_ok=True)
    defines = []
    for package in ("cudnn", "nccl"):
        version = package_version(torch_dir, "nvidia-" + package)
        for part, number in zip(("MAJOR", "MINOR", "PATCH"), version or ()):
            defines.append(f"-D{package.upper()}_{part}={number}")
    wanted = collect(torch_dir)
    for soname, symbols in sorted(wanted.items()):
        build(soname, symbols, out_dir, defines)
    if not wanted:
        sys.exit(f"{torch_dir}: this PyTorch needs no CUDA library (a CPU-only build?)")


if __name__ == "__main__":
    main()
