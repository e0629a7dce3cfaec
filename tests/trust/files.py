#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What may happen to the trace's file, and to the signal that tells of it; disks and limits that are not
plain. The rest of starvation is in cases.py.

usage: files.py [CASE...]     O, CC in the environment; FULL=1 tries more of the same
"""
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import harness
from harness import LIB, TOOL, Skip, base, check, equal, folder, library, pause, plain, program, run, starved, tally, victim

FULL = os.environ.get("FULL") == "1"
FINE = (0, b"", b"")
TRUNCATED = 3   # enum gt_stop
SAID = rb"gputrace: recording stopped at \d+\.\d s: somebody cut or overwrote /\S+; the program goes on\n"


# ---- the file ------------------------------------------------------------------------------------

def case_file_deleted_while_mapped():
    equal(pause(lambda trace, pid: os.unlink(trace)), FINE, "status, output, errors")


def case_file_replaced_while_mapped():
    """The new file under the old name is not ours, and stays as it is."""
    content = b"somebody's"

    def replace(trace, pid):
        with open(trace + ".new", "wb") as f:
            f.write(content)
        os.rename(trace + ".new", trace)
        replace.trace = open(trace, "rb")
    equal(pause(replace), FINE, "status, output, errors")
    equal(replace.trace.read(), content, "the other file")
    replace.trace.close()


def case_file_truncated_while_mapped():
    """To nothing, to the header, inside a page, in the middle; the last trace says why it ends."""
    for length in (0, 1, 4096, 5000, 20000, None):
        def cut(trace, pid, length=length):
            cut.file = open(trace, "rb")
            os.truncate(trace, os.path.getsize(trace) // 2 if length is None else length)
        equal(pause(cut), FINE, f"status, output, errors (cut to {length})")
        header = os.pread(cut.file.fileno(), 320, 0)
        cut.file.close()
        if len(header) == 320:
            equal(struct.unpack_from("<I", header, 104)[0], TRUNCATED, f"reason (cut to {length})")


def case_file_truncated_is_said():
    """At the next call, or at the end of a program that makes none."""
    for mode in "pause", "pause-and-end":
        for length in 0, 4096:
            status, out, err = pause(lambda trace, pid: os.truncate(trace, length), mode, GPUTRACE_QUIET="0")
            equal((status, out), (0, b""), f"status, output ({mode}, cut to {length})")
            check(re.fullmatch(SAID, err), f"errors ({mode}, cut to {length}): {err}")


def case_file_overwritten_while_mapped():
    """As cp does, with nothing, with anything, with the trace of another process: it is not followed."""
    with folder() as (d, env):
        equal(run(env, LIB, program("victim"), "work", "3000"), FINE, "status, output, errors")
        with open(base.traces(d)[0], "rb") as f:
            other = f.read()
    for content in bytes(len(other)), b"\xff" * len(other), random.Random(3).randbytes(len(other)), other:
        def overwrite(trace, pid, content=content):
            size = os.path.getsize(trace)
            with open(trace, "wb") as f:
                f.write((content * 2)[:size])
        status, out, err = pause(overwrite, GPUTRACE_QUIET="0")
        equal((status, out), (0, b""), f"status, output ({content[:8]})")
        check(re.fullmatch(SAID, err), f"errors ({content[:8]}): {err}")


def case_file_truncated_without_memory_for_data():
    """Below ulimit -d there is no room for private memory in place of the file."""
    def cut(trace, pid):
        size = os.path.getsize(trace)
        check(size > 1 << 19, f"the file is small: {size}")
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            data = next(int(line.split()[1]) for line in f if line.startswith("VmData")) << 10
        resource.prlimit(pid, resource.RLIMIT_DATA, (data + (1 << 18), resource.RLIM_INFINITY))
        os.truncate(trace, 0)
    equal(pause(cut, GPUTRACE_EXTENT="256K"), FINE, "status, output, errors")


def wait_for_calls(p, d, wanted):
    while (made := sum(map(sum, harness.calls_returned(d).values()))) < wanted:
        check(p.poll() is None, f"it has ended after {made} calls")
        os.sched_yield()


def case_file_truncated_at_random_moments():
    """With stacks, under two threads, to any length: whatever the recorder is doing, the program goes on."""
    chance = random.Random(11)
    for _ in range(300 if FULL else 15):
        with folder(GPUTRACE_QUIET="0") as (d, env):
            p = subprocess.Popen(harness.command(LIB, program("victim"), "until-told"), env=env, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            moment = chance.randrange(1, 5000)
            wait_for_calls(p, d, moment)
            trace, = base.traces(d)
            os.truncate(trace, chance.choice((0, 4096, chance.randrange(os.path.getsize(trace)))))
            wait_for_calls(p, d, moment + 20000)
            out, err = p.communicate(timeout=60)
            equal((p.returncode, out), (0, b""), "status, output")
            check(re.fullmatch(SAID, err), f"errors: {err}")
            tally.tries += 1


def case_file_truncated_below_a_handler():
    """Of the program's own, which was there first or came later: it is asked, as a mapped file's owner is."""
    source = """
import ctypes, faulthandler, os, sys
d, p, c = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
if sys.argv[1] == "before": faulthandler.enable()
d.cuInit(0), d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0), d.cuCtxSetCurrent(c)
d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512))
if sys.argv[1] == "after": faulthandler.enable()
for f in os.listdir(os.environ["GPUTRACE_DIR"]):
    if f.endswith(".gtrace"): os.truncate(os.path.join(os.environ["GPUTRACE_DIR"], f), 0)
d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512))
print("went on")
"""
    program("victim")
    for when in "never", "before", "after":
        with folder() as (_, env):
            status, out, err = run(env, LIB, sys.executable, "-c", source, when)
        equal((status, out), (0, b"went on\n") if when == "never" else (-signal.SIGBUS, b""), f"status, output ({when})")
        check((b"Fatal Python error: Bus error" in err) == (when != "never"), f"errors ({when}): {err}")
        tally.tries += 1


def case_hostile_truncated_under_a_reader():
    """Of the tool's: it answers or says why it cannot."""
    chance, seen, took, share = random.Random(5), set(), {}, 1.5
    with folder() as (d, env):
        equal(run(env, LIB, program("victim"), "work", "20000"), FINE, "status, output, errors")
        trace, copy = base.traces(d)[0], os.path.join(d, "copy")
        for command in "summary", "peak", "dump":
            began = time.monotonic()
            subprocess.run([TOOL, command, trace], stdout=subprocess.DEVNULL, check=True, timeout=60)
            took[command] = time.monotonic() - began
        for command in list(took) * (60 if FULL else 6):
            shutil.copyfile(trace, copy)
            p = subprocess.Popen([TOOL, command, copy], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(chance.random() * share * took[command])   # a moment, nothing is waited for
            os.truncate(copy, chance.randrange(os.path.getsize(copy)))
            err = p.communicate(timeout=60)[1]
            seen.add(p.returncode)
            share *= 1.5 if p.returncode else 0.6   # both ends are wanted, however fast it was when it was timed
            check(p.returncode in (0, 3) and (p.returncode == 0 or err.startswith(b"gputrace: ")), f"{command}: {p.returncode} {err}")
            tally.tries += 1
    check(len(seen) > 1, f"statuses: {seen}")


EVIL = """
import ctypes
d, p, c = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
d.cuInit(0), d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0), d.cuCtxSetCurrent(c)
def f(): d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512))
f.__code__ = f.__code__.replace(co_name="evil\\x1b]0;title\\x07", co_qualname="evil\\x1b]0;title\\x07")
f()
"""


def case_hostile_escapes_in_names():
    """Of a function and of its file: a terminal never gets them."""
    source = "exec(compile(%r, %r, 'exec'))" % (EVIL, "/tmp/\x1b[2Jevil.py")
    program("victim")
    with folder(GPUTRACE_CELLS="1024") as (d, env):
        equal(run(env, LIB, sys.executable, "-c", source), FINE, "status, output, errors")
        for command in ["summary"], ["peak"], ["dump", "--defs"]:
            p = subprocess.run([TOOL, *command, base.traces(d)[0]], capture_output=True, timeout=60)
            equal(p.returncode, 0, f"status of {command} ({p.stderr[-300:]})")
            bad = [c for c in p.stdout + p.stderr if c < 32 and c not in b"\n\t"]
            equal(bad, [], f"control characters of {command}")
            check(b"evil" in p.stdout, f"the name is not in {command}")
            tally.tries += 1


# ---- SIGBUS of the program -----------------------------------------------------------------------

def case_bus_ends_the_program_as_ever():
    """A fault, raise, kill, sigqueue, and a fault in a child that records nothing, and in one that does."""
    for n in range(6):
        status = victim("bus", str(n), threads=2)[0]
        equal(status, 0 if n > 3 else -signal.SIGBUS, f"status ({n})")


def case_bus_handler_of_the_program():
    for n in "0", "1":
        equal(victim("bus-handled", n), (0, b"my own fault\n", b""), "status, output, errors")


def case_bus_ignored_by_the_program():
    equal(victim("bus-ignored")[0], -signal.SIGBUS, "status")


def bus_in_gdb(preload, d, env):
    """What a debugger, and so a core, shows: place and address of each stop."""
    words = ["gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", f"set environment LD_PRELOAD {preload}"]
    for _ in range(2):
        words += ["-ex", "run" if "run" not in words else "continue", "-ex",
                  "printf \"at %p %p\\n\", $pc, $_siginfo._sifields._sigfault.si_addr"]
    p = subprocess.run([harness.SIM, *words, "--args", program("victim"), "bus", "0"], env=env, capture_output=True, text=True,
                       timeout=120, stdin=subprocess.DEVNULL)
    return re.findall(r"^at (\w+) (\w+)$", p.stdout, re.M)


def case_bus_leaves_the_same_core():
    """The fault comes twice, once for our handler and once for nobody's: same instruction, same address."""
    if not shutil.which("gdb"):
        raise Skip("no gdb here")
    with folder() as (d, env):
        stops = bus_in_gdb(LIB, d, env)
        if not stops:
            raise Skip("tracing is not permitted")
        equal(len(stops), 2, f"stops ({stops})")
        equal(stops[0], stops[1], "instruction and address")


def case_bus_under_a_sanitizer():
    """It has SIGBUS for itself and reports the program's fault."""
    asan = library("libasan.so")
    for mode, words in (("bus", ["0"]), ("work", ["50"])):
        with folder(ASAN_OPTIONS="detect_leaks=0") as (d, env):
            status, _, err = run(env, asan + ":" + LIB, program("victim-asan"), mode, *words)
            check(base.traces(d), "nothing was recorded")
        check((b"AddressSanitizer: BUS" in err) == (mode == "bus") and (status == 0) == (mode == "work"),
              f"{mode}: status {status}, {err[-300:]}")
        tally.tries += 1


# ---- disks and limits ----------------------------------------------------------------------------

def exact(d):
    """Everything that the book has is in the trace."""
    equal(harness.calls_recorded(d), harness.calls_returned(d), "calls")


@contextlib.contextmanager
def fuse(kind):
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    if not os.path.exists("/dev/fuse"):
        raise Skip("no /dev/fuse here")
    if subprocess.run([python, "-c", "import fusepy"], capture_output=True).returncode:
        raise Skip("no python3-fusepy here (make trust-deps)")
    with tempfile.TemporaryDirectory() as disk:
        server = subprocess.Popen([python, os.path.join(harness.HERE, "memory_fs.py"), disk, kind], stderr=subprocess.DEVNULL)
        try:
            while not os.path.ismount(disk):
                if server.poll() is not None:
                    raise Skip("mounting is not permitted")
                time.sleep(0.01)
            yield disk
        finally:
            subprocess.run(["umount", "-l", disk], capture_output=True)
            server.kill()
            server.wait()


def case_disk_that_cannot_be_mapped_shared():
    """The next folder takes the trace, or there is none; nothing is left behind in the first."""
    reference = plain("work", "3000")
    with fuse("direct") as disk:
        with folder() as (d, env):
            env["GPUTRACE_DIR"] = disk + ":" + d
            base.unseen(run(env, LIB, program("victim"), "work", "3000"), reference)
            exact(d)
        with folder(GPUTRACE_DIR=disk) as (d, env):
            base.unseen(run(env, LIB, program("victim"), "work", "3000"), reference)
        equal(os.listdir(disk), [], "left behind")
    tally.tries += 2


def case_disk_without_fallocate():
    """Zeros are written instead, and recording works; a copy of the trace is good."""
    with fuse("cached") as disk, folder() as (d, env):
        env["GPUTRACE_DIR"] = disk
        equal(run(env, LIB, program("victim"), "work", "300"), FINE, "status, output, errors")
        found = base.traces(disk)
        equal(len(found), 1, "traces")
        shutil.copyfile(found[0], os.path.join(d, "copy.gtrace"))
        exact(d)


def case_disk_quota_injected():
    """The same answer from the kernel at any moment, without such a disk."""
    for rounds in range(0, 2000, 40 if FULL else 400):
        starved(plain("quota", str(rounds)), "quota", str(rounds))


def case_disk_quota():
    """Of a user who has used up his own while the disk is nearly empty."""
    missing = [t for t in ("mkfs.ext4", "setquota", "setpriv") if not shutil.which(t)]
    if missing:
        raise Skip(f"no {missing[0]} here (make trust-deps)")
    reference = plain("work", "3000")
    with tempfile.TemporaryDirectory() as place:
        image, disk = os.path.join(place, "image"), os.path.join(place, "disk")
        os.mkdir(disk)
        os.chmod(place, 0o755)
        with open(image, "wb") as f:
            f.truncate(32 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "quota", image], check=True, capture_output=True)
        if subprocess.run(["mount", "-o", "loop,usrquota", image, disk], capture_output=True).returncode:
            raise Skip("mounting is not permitted, or the kernel has no quota for ext4 (CONFIG_QFMT_V2)")
        try:
            os.chmod(disk, 0o777)
            for kib in range(4, 400, 20 if FULL else 60):
                with_quota(disk, str(kib), reference)
        finally:
            subprocess.run(["umount", disk], check=True)


def with_quota(disk, kib, reference):
    subprocess.run(["setquota", "-u", "65534", kib, kib, "0", "0", disk], check=True, capture_output=True)
    with folder() as (d, env):
        env["GPUTRACE_DIR"] = disk
        os.chmod(d, 0o777)
        os.chmod(os.path.join(d, "book"), 0o666)
        got = run(env, LIB, program("victim"), "work", "3000", under=["setpriv", "--reuid=65534", "--clear-groups"])
        base.unseen(got, reference)
        for trace in base.traces(disk):
            harness.sound(trace)
            recorded = sum(x["allocs"] for x in base.dump(trace, "--lanes") if x["type"] == "lane")
            check(harness.stop_of(trace) or recorded == 6000, f"{recorded} allocations and nobody says that there were more")
            os.unlink(trace)
    tally.tries += 1


def groups():
    """A new control group of memory: directory, name of the limit, of the peak; v2 or v1."""
    for root, limit, peak in (("/sys/fs/cgroup", "memory.max", "memory.peak"),
                              ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes")):
        group = os.path.join(root, f"gputrace-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        if os.path.exists(os.path.join(group, limit)) and os.path.exists(os.path.join(group, peak)):
            return group, os.path.join(group, limit), os.path.join(group, peak)
        os.rmdir(group)
    raise Skip("no writable control group of memory with a limit and a peak here")


def case_limit_of_a_memory_group():
    """A trace on a disk is page cache: it grows far beyond the limit, and nobody is killed for it."""
    group, limit, peak = groups()
    under = ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    try:
        with folder() as (d, env):
            reference = run(env, "", program("victim"), "work", "60000", under=under)
        equal(reference, FINE, "without us")
        with open(peak) as f:
            alone = int(f.read())
        with open(limit, "w") as f:
            f.write(str(alone + (24 << 20)))
        with tempfile.TemporaryDirectory(dir="/var/tmp") as disk, folder(GPUTRACE_RING="96M") as (d, env):
            env.update({"GPUTRACE_DIR": disk, "GPUTRACE_CELLS": "1024", "GPUTRACE_EXTENT": "8M", "GPUTRACE_STACKS": "none"})
            base.unseen(run(env, LIB, program("victim"), "threads", "400", under=under), reference)
            base.unseen(run(env, LIB, program("victim"), "work", "60000", under=under), reference)
            for trace in base.traces(disk):
                harness.sound(trace)
            size = sum(os.path.getsize(t) for t in base.traces(disk))
            check(size > 24 << 20, f"the traces are smaller than the limit: {size}")
    finally:
        os.rmdir(group)
    tally.tries += 2


if __name__ == "__main__":
    found = {n[5:].replace("_", "-"): f for n, f in globals().items() if n.startswith("case_")}
    sys.exit(harness.main(found, sys.argv[1:]))
