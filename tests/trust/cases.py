#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What may happen to a process that records: death, children, starvation, threads, neighbours. Only
what no other suite does; tests/trust/run collects all.

usage: cases.py [CASE...]     O, CC in the environment; FULL=1 tries more of the same
Prints "ok CASE # N tries, N lost", "not ok CASE: why", "skip CASE: why".
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import harness
from harness import LIB, Skip, base, check, equal, folder, library, pause, plain, program, run, starved, tally, victim

FULL = os.environ.get("FULL") == "1"


# ---- death ---------------------------------------------------------------------------------------

def dies(mode, status):
    for _ in range(20 if FULL else 3):
        equal(victim(mode, threads=2)[0], status, "status")


def case_death_segv():
    dies("segv", -signal.SIGSEGV)


def case_death_abort():
    dies("abort", -signal.SIGABRT)


def case_death_kill():
    dies("kill", -signal.SIGKILL)


def case_death__exit():
    dies("_exit", 3)


def case_death_quick_exit():
    dies("quick_exit", 3)


def case_death_exit_while_others_allocate():
    dies("exit", 3)


def case_death_exec_without_fork():
    """The new program records to a file of its own, beside the old one's, under the same pid."""
    dies("exec", 0)


def case_death_cancelled_threads():
    victim("cancel", "40", threads=2)


def case_death_kill_from_outside():
    """With stacks, at moments that nobody has chosen."""
    for n in range(200 if FULL else 12):
        with folder() as (d, env):
            p = subprocess.Popen(harness.command(LIB, program("victim"), "wait"), env=env, stdout=subprocess.PIPE)
            p.stdout.readline()
            time.sleep(0.001 * (n * 7 % 40))    # a moment, nothing is waited for
            p.kill()
            p.wait()
            p.stdout.close()
            tally.tries += 1
            tally.lost += harness.lost(d, 3)
    equal(tally.lost, 0, "committed events lost")


def stepped(library, rounds):
    """Stopped after every instruction; see step.c."""
    if os.uname().machine != "x86_64":
        raise Skip("needs x86-64")
    if not FULL:
        raise Skip("minutes long: with FULL=1")
    library = program(f"step-{library}/libgputrace.so")
    with folder(GPUTRACE_CELLS="64", GPUTRACE_EXTENT="4K", GPUTRACE_RING="24K", STEP_PRELOAD=library) as (_, env):
        # On one processor: the two only wait for each other.
        status, out, err = run(env, "", program("step"), "step", program("victim"), str(rounds), limit=1800,
                               under=["taskset", "-c", str(min(os.sched_getaffinity(0)))])
    if b"ptrace" in err:
        raise Skip("tracing is not permitted")
    return status, out.decode()


def case_death_at_every_instruction_gcc(compiler="gcc"):
    status, said = stepped(compiler, 100)
    check(status == 0 and said.startswith("ok"), f"status {status}: {said}")
    tally.tries = int(said.split()[3])


def case_death_at_every_instruction_clang():
    case_death_at_every_instruction_gcc("clang")


def case_death_at_every_instruction_mutant():
    """A slot's key before its fields: found."""
    status, said = stepped("mutant", 100)
    check(status == 1 and "totals are not those of the calls" in said, f"not found: status {status}: {said}")


# ---- processes -----------------------------------------------------------------------------------

def case_processes_fork():
    victim("fork", "5")


def case_processes_fork_first():
    """The child allocates first, in a process whose parent has recorded nothing."""
    victim("fork-first", "3")


def case_processes_fork_while_others_allocate():
    victim("fork-busy", "20" if FULL else "8", threads=2)


def case_processes_fork_from_thread():
    victim("fork-thread", "5")


def case_processes_fork_nested():
    victim("fork-nested", "5")


def case_processes_daemon():
    victim("daemon", "30")


def case_processes_clone():
    victim("clone", "30")


def case_processes_vfork_exec():
    victim("vfork")


def case_processes_posix_spawn():
    victim("spawn")


MULTI = """
import ctypes, multiprocessing, os, sys
def work(n):
    d, p, c = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
    rc = d.cuInit(0) or d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0) or d.cuCtxSetCurrent(c)
    for i in range(n):
        rc = rc or d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512))
    assert not rc
if __name__ == "__main__":
    work(11)
    c = multiprocessing.get_context(sys.argv[1])
    ps = [c.Process(target=work, args=(20 + i,)) for i in range(3)]
    for p in ps: p.start()
    for p in ps: p.join()
    print([p.exitcode for p in ps])
"""


def multiprocessing(way):
    with folder() as (d, env):
        script = os.path.join(d, "multi.py")
        with open(script, "w") as f:
            f.write(MULTI)
        program("victim")   # the simulator is there
        equal(run(env, LIB, sys.executable, script, way), (0, b"[0, 0, 0]\n", b""), "status, output, errors")
        allocs = sorted(a for a, _ in harness.calls_recorded(d).values())
        equal(allocs, [11, 20, 21, 22], "allocations of the processes")
    tally.tries += 4


def case_processes_multiprocessing_fork():
    multiprocessing("fork")


def case_processes_multiprocessing_spawn():
    multiprocessing("spawn")


def case_processes_multiprocessing_forkserver():
    multiprocessing("forkserver")


def case_processes_same_pid_in_two_namespaces():
    """Two containers that share a directory: the names collide, the files do not."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        raise Skip("new pid namespaces are not permitted")
    with folder() as (d, env):
        for n in "3", "4":
            equal(run(env, LIB, program("victim"), "work", n, under=unshare)[0], 0, "status")
        files = [os.path.basename(t) for t in base.traces(d)]
        equal(len(files), 2, f"trace files ({files})")
        equal(harness.calls_recorded(d), harness.calls_returned(d), "calls")
    tally.tries += 2


RANK = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.ones(1 << 20, device="cuda:%d" % (int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count()))
t = torch.ones(3); dist.all_reduce(t)
assert t[0] == dist.get_world_size()
dist.destroy_process_group()
"""


def case_processes_torchrun():
    if not FULL:
        raise Skip("a minute long: with FULL=1")
    python = os.path.join(base.TOP, "tests", "torch", "python")
    with folder(GPUTRACE_CELLS="1024", GPUTRACE_EXTENT="256K") as (d, env):
        script = os.path.join(d, "rank.py")
        with open(script, "w") as f:
            f.write(RANK)
        if subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"],
                          env=env, capture_output=True).returncode:
            raise Skip("no PyTorch with gloo here")
        p = subprocess.run([python, "-m", "torch.distributed.run", "--nproc-per-node", "4", script], capture_output=True,
                           env={**env, "LD_PRELOAD": LIB, "OMP_NUM_THREADS": "1"}, timeout=300)
        equal(p.returncode, 0, f"status ({p.stderr.decode()[-600:]})")
        for t in base.traces(d):
            harness.sound(t)
        ranks = [x for t in base.traces(d) for x in base.dump(t, "--defs") if x.get("key") == "env.RANK"]
        equal(sorted(x["value"] for x in ranks), list("0123"), "ranks with a trace")
    tally.tries += 4


PTX = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry f() { ret; }\n"


def case_processes_ptxas():
    """The compiler that Triton and PyTorch start: the same answer and the same code, and no trace."""
    found = glob.glob(os.path.join(os.environ.get("GT_TORCH_HOME", "/nowhere"), "*/venv/lib/*/site-packages/**/ptxas"),
                      recursive=True)
    if not found:
        raise Skip("no ptxas here (it comes with PyTorch)")
    outcomes = []
    for preload in "", LIB:
        with folder() as (d, env):
            source, code = os.path.join(d, "f.ptx"), os.path.join(d, "f.cubin")
            with open(source, "w") as f:
                f.write(PTX)
            status, out, err = run(env, preload, found[0], "-arch", "sm_75", "-o", "f.cubin", source, under=["env", "-C", d])
            with open(code, "rb") as f:
                outcomes.append((status, out.replace(d.encode(), b""), err.replace(d.encode(), b""), f.read()))
            equal(base.traces(d), [], "traces")
    equal(outcomes[1][:3], outcomes[0][:3], "status, output, errors")
    check(outcomes[1][3] == outcomes[0][3] and outcomes[0][0] == 0, "the code")


# ---- starvation ----------------------------------------------------------------------------------

def case_starvation_disk_full_at_every_extent():
    """From a disk that cannot hold the header to one that holds all."""
    reference = plain("work", "3000")
    with tempfile.TemporaryDirectory() as disk:
        sizes = range(4, 600, 8 if FULL else 40)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", disk], capture_output=True).returncode:
            raise Skip("mounting is not permitted")
        try:
            for kib in sizes:
                subprocess.run(["mount", "-o", f"remount,size={kib}k", disk], check=True, capture_output=True)
                with folder(GPUTRACE_DIR=disk) as (d, env):
                    base.unseen(run(env, LIB, program("victim"), "work", "3000"), reference)
                    for t in base.traces(disk):
                        harness.sound(t)
                        os.unlink(t)
                equal(os.listdir(disk), [], "files left behind")
                tally.tries += 1
        finally:
            subprocess.run(["umount", disk], check=True)


def case_starvation_no_place():
    reference = plain("work", "300")
    with tempfile.TemporaryDirectory() as d:
        file = os.path.join(d, "file")
        open(file, "w").close()
        for place in ("/proc", "/sys/kernel", "/no/such", file, "/dev/full", "/" + "x" * 4000, ":", "/proc/self/fd"):
            with folder(GPUTRACE_DIR=place) as (_, env):
                base.unseen(run(env, LIB, program("victim"), "work", "300"), reference)
            tally.tries += 1
        equal(os.listdir(d), ["file"], "what is left")


def case_starvation_read_only():
    reference = plain("work", "300")
    with tempfile.TemporaryDirectory() as disk:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", disk], capture_output=True).returncode:
            raise Skip("mounting is not permitted")
        try:
            with folder(GPUTRACE_DIR=disk) as (_, env):
                base.unseen(run(env, LIB, program("victim"), "work", "300"), reference)
        finally:
            subprocess.run(["umount", disk], check=True)
    tally.tries += 1


def case_starvation_file_size():
    for pages in range(0, 200, 5 if FULL else 25):
        starved(plain("files", str(pages)), "files", str(pages))


def case_starvation_descriptors():
    """The program's own libraries need some; it must fail at the same number as without us."""
    for n in range(3, 12):
        starved(plain("descriptors", str(n)), "descriptors", str(n))


def case_starvation_address_space():
    """From what the program alone needs, on: the recorder takes only a part of what is left."""
    small = {"GT_SIM_CAPACITY": "64M", "GT_SIM_DEVICES": "1"}
    low, high = 0, 2 << 20
    while high - low > 256:
        kib = (low + high) // 2
        low, high = (low, kib) if plain("space", str(kib), **small)[0] == 0 else (kib, high)
    for more in range(0, 65536, 1024 if FULL else 6144):
        starved((0, b"", b""), "space", str(high + more), **small)
    with folder(**small) as (d, env):
        run(env, LIB, program("victim"), "space", str(high + 65536))
        check(base.traces(d), "64 MiB are left, and nothing is recorded")


def case_starvation_clock_jumps():
    victim("clock")


# ---- threads -------------------------------------------------------------------------------------

def case_threads_1000_short_ones():
    """Each allocates in a destructor of thread-local data too, which comes back three times."""
    victim("threads", "1000")


def case_threads_late():
    """In exit handlers and destructors of the program."""
    victim("late", "10")


def case_threads_driver_waits():
    """No lock of ours is held across a call: others allocate while the driver waits."""
    with folder() as (d, env):
        equal(run(env, LIB, program("blocked")), (0, b"alloc 3000\nfree 3000\n", b""), "status, output, errors")
        equal(harness.calls_recorded(d).popitem()[1], (6001, 6001), "calls")


GIL = """
import ctypes, sys, threading
free, held = ctypes.CDLL("libcuda.so.1"), ctypes.PyDLL("libcuda.so.1")   # without, with the interpreter's lock
p, c = ctypes.c_uint64(), ctypes.c_void_p()
free.cuInit(0), free.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0)
sys.setswitchinterval(1e-5)
def work(d):
    p = ctypes.c_uint64()
    d.cuCtxSetCurrent(c)
    for i in range(500):
        assert not d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512)) and not d.cuMemFree_v2(p)
ts = [threading.Thread(target=work, args=(d,)) for d in (free, held) * 3]
for t in ts: t.start()
for t in ts: t.join()
"""


def case_threads_interpreter_lock():
    """Calls that hold it and calls that do not, while threads take it from each other all the time."""
    program("victim")
    with folder() as (d, env):
        equal(run(env, LIB, sys.executable, "-c", GIL), (0, b"", b""), "status, output, errors")
        equal(list(harness.calls_recorded(d).values()), [(3000, 3000)], "calls")


def races(library, *words, options=""):
    """Status, and the reports of the race detector that name a file of ours."""
    with folder(GPUTRACE_RING="256K", TSAN_OPTIONS=f"exitcode=66 die_after_fork=0 {options}") as (d, env):
        status, _, err = run(env, library, *words)
        check(base.traces(d), "nothing was recorded")
    reports = err.decode(errors="replace").split("WARNING: ThreadSanitizer")[1:]
    return status, [r for r in reports if re.search(r"[ /]preload/\w+\.[ch]:", r)]


def case_threads_race_detector():
    """Real traffic on a library built with it: no report names a file of ours."""
    traffic = program("tsan/traffic")
    runs = [[traffic, "--events", "3000", "--threads", "4", "--devices", "2"]] * (5 if FULL else 1) + \
        [[program("tsan/victim"), *words.split()] for words in ("threads 100", "cancel 20", "late 50", "fork-busy 3")]
    for words in runs:
        status, reports = races(program("tsan/libgputrace.so"), *words)
        equal(reports[:1], [], f"reports of {os.path.basename(words[0])} {words[1]}")
        equal(status, 0, "status")
        tally.tries += 1


def case_threads_race_detector_finds_races():
    """In a library without the locks of its lanes."""
    status, reports = races(program("tsan/unlocked/libgputrace.so"), program("tsan/traffic"), "--events", "3000",
                            "--threads", "4", "--devices", "1", options="halt_on_error=1")
    equal((status, len(reports)), (66, 1), "status, reports")


# ---- neighbours ----------------------------------------------------------------------------------

def beside(*names):
    other = library(*names)
    for preload in other + ":" + LIB, LIB + ":" + other:
        victim("fork-busy", "4", threads=2, preload=preload)
        victim("threads", "100", preload=preload)


def case_neighbours_jemalloc():
    beside("libjemalloc.so.2")


def case_neighbours_tcmalloc():
    beside("libtcmalloc_minimal.so.4", "libtcmalloc.so.4")


def case_neighbours_mimalloc():
    beside("libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so")


def case_neighbours_heaptrack():
    found = glob.glob("/usr/lib/heaptrack/libheaptrack_preload.so") + \
        glob.glob("/usr/lib*/*/heaptrack/libheaptrack_preload.so")
    if not found:
        raise Skip("no heaptrack here")
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "heap")
        for preload in found[0] + ":" + LIB, LIB + ":" + found[0]:
            victim("work", "500", preload=preload, DUMP_HEAPTRACK_OUTPUT=out)
            check(max(os.path.getsize(f) for f in glob.glob(out + "*")) > 1000, "nothing from heaptrack")


def case_neighbours_undefined_behaviour_sanitizer():
    victim("cancel", "10", threads=2, name="victim-ubsan")


def case_neighbours_debugger():
    """Stops a program that records, looks around, and lets go."""
    if not shutil.which("gdb"):
        raise Skip("no gdb here")

    def look(trace, pid):
        p = subprocess.run(["gdb", "-q", "-nx", "-batch", "-p", str(pid), "-ex", "bt", "-ex", "info threads", "-ex", "detach"],
                           capture_output=True, text=True, timeout=60)
        if "not permitted" in p.stderr:
            raise Skip("tracing is not permitted")
        check("getchar" in p.stdout or "read" in p.stdout, "the debugger saw nothing")
    equal(pause(look), (0, b"", b""), "status, output, errors")


def case_neighbours_sandbox():
    """A filter of system calls that fails one that the recorder needs."""
    for n in range(10):
        reference = plain("sandbox", str(n))
        if reference[0] == 0:
            starved(reference, "sandbox", str(n))


def case_neighbours_setuid():
    """The loader drops us: it runs as ever, and leaves nothing."""
    with folder() as (d, env), tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        copy = os.path.join(place, "id")
        shutil.copy(shutil.which("id"), copy)
        if os.getuid():
            raise Skip("needs root to make a setuid program of another user")
        os.chmod(place, 0o755)
        os.chown(copy, 65534, -1)
        os.chmod(copy, 0o4755)
        equal(run(env, LIB, copy)[:2], run(env, "", copy)[:2], "status, output")
        check(b"65534" in run(env, LIB, copy)[1], "it did not change the user (nosuid?)")
        equal(base.traces(d), [], "traces")


def foreign(compiler, *flags, said=b""):
    """A program of another libc or machine: the loader says that it ignores us, or nothing."""
    if not shutil.which(compiler):
        raise Skip(f"no {compiler} here")
    with folder() as (d, env):
        exe, source = os.path.join(d, "exe"), os.path.join(d, "exe.c")
        with open(source, "w") as f:
            f.write('#include <stdio.h>\nint main(void) { puts("foreign"); return 7; }\n')
        if subprocess.run([compiler, *flags, "-o", exe, source], capture_output=True).returncode:
            raise Skip(f"{compiler} {' '.join(flags)} does not work here")
        # The shell in front has us; what it says of its own is nothing.
        status, out, err = run(env, LIB, exe)
        equal((status, out), (7, b"foreign\n"), "status, output")
        check(said in err and all(b"ignored" in line for line in err.splitlines()), f"errors: {err}")
        equal(base.traces(d), [], "traces")


def case_neighbours_static_program():
    foreign(os.environ.get("CC", "cc"), "-static")


def case_neighbours_32_bit_program():
    foreign(os.environ.get("CC", "cc"), "-m32", said=b"wrong ELF class")


def case_neighbours_musl_program():
    foreign("musl-gcc")


# ---- privacy -------------------------------------------------------------------------------------

SECRET = "a-secret-word"
PRIVATE = """
import ctypes, json.decoder, sys
d, p, c = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
def allocate_here(*_):
    assert not d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(512))
d.cuInit(0), d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0), d.cuCtxSetCurrent(c)
allocate_here()
json.loads("{}", object_pairs_hook=allocate_here)
d.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(1 << 50))
"""


def private_trace(**env):
    """The bytes of a trace, and its definitions, of a script with a secret wherever there is room."""
    with tempfile.TemporaryDirectory(prefix=SECRET) as place, folder(GPUTRACE_CELLS="1024", **env) as (d, full):
        full.update({"RANK": SECRET, "SLURM_JOB_ID": SECRET, "PYTORCH_CUDA_ALLOC_CONF": SECRET, "HOME": place})
        script = os.path.join(place, "mine.py")
        with open(script, "w") as f:
            f.write(PRIVATE)
        program("victim")
        equal(run(full, LIB, sys.executable, script, SECRET), (0, b"", b""), "status, output, errors")
        with open(base.traces(d)[0], "rb") as f:
            return f.read(), base.dump(base.traces(d)[0], "--defs")


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for x in value.values() if isinstance(value, dict) else value:
            yield from texts(x)


def case_privacy_redacted():
    """No folder, no argument, no variable is in any string; the lines are still told apart."""
    content, defs = private_trace(GPUTRACE_REDACT="1")
    check(SECRET.encode() not in content, "the secret is in the file")
    equal([t for d in defs for t in texts(d) if "/" in t], [], "strings with a folder")
    keys = {d["key"] for d in defs if "key" in d}
    equal({k for k in keys if k in ("cmdline", "cwd") or k.startswith("env.")}, set(), "facts")
    strings = {t for d in defs for t in texts(d)}
    check({"mine.py", "allocate_here", "<python>decoder.py"} <= strings, "names that should be there")


def case_privacy_as_the_readme_says():
    """Without it the same strings are there: the other case can fail."""
    content, defs = private_trace()
    check(content.count(SECRET.encode()) >= 5, "the secret is not in the file")
    keys = {d["key"] for d in defs if "key" in d}
    check({"cmdline", "cwd", "env.RANK", "env.SLURM_JOB_ID"} <= keys, f"facts: {keys}")


if __name__ == "__main__":
    found = {n[5:].replace("_", "-"): f for n, f in globals().items() if n.startswith("case_")}
    sys.exit(harness.main(found, sys.argv[1:]))
