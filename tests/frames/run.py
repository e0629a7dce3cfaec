#!/usr/bin/env python3
"""make check-frames: stacks as the tool shows them.

usage: run.py BUILD    prints "ok|not ok|skip NAME"
"""
import ctypes.util
import glob
import http.server
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
sys.path.insert(0, HERE)
from harness import ROOT, Bench, Skipped, equal, expect, golden  # noqa: E402

MIB = 1 << 20
COMMANDS = (["summary"], ["peak"], ["peak", "--by", "stack"], ["oom"], ["at", "end", "--by", "function"])


def skip(name, why):
    print("skip %s: %s" % (name, why), flush=True)


# ---- both halves in one ----------------------------------------------------------------------------

PROBE = "import ctypes, sys; ctypes.CDLL('libcuda.so.1'); print('%d.%d' % sys.version_info[:2])"


def interpreters():
    """One of each minor version that is here."""
    found = {}
    for path in [sys.executable, "/usr/bin/python3"] + sorted(
            glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
        if os.access(path, os.X_OK):
            out = subprocess.run([os.path.join(ROOT, "tests/sim/run"), path, "-c", PROBE], capture_output=True,
                                 timeout=60).stdout.decode().strip()
            if out and 8 <= int(out.split(".")[1]) <= 14:
                found.setdefault(out, path)
    return sorted(found.items(), key=lambda item: int(item[0].split(".")[1]))


def chain(frames, half):
    """Functions of the frames of nest.py and nest.so, innermost first."""
    names = []
    for frame in frames:
        if frame["kind"] == "python" and half != "native":
            names.append(frame["function"].split(".")[-1])
        elif (frame["module"] or "").endswith("/nest.so") and half != "python":
            names.append(frame["function"])
    return names


def merged(bench, path, version):
    import nest
    answer = bench.json("peak", path)
    by_size = {h["bytes"]: h["frames"] for h in answer["holders"] if h["level"] == "driver"}
    for number, (_, wanted) in enumerate(nest.STACKS, 1):
        frames = by_size[number * MIB]
        equal(chain(frames, "merged"), wanted.split() + ["<module>"], "stack %d of %s" % (number, version))
        left = [f["function"] for f in frames if "PyEval" in (f["function"] or "")]
        equal(left, [], "frames of the interpreter left in stack %d" % number)


def tree(bench, path):
    golden("tree.txt", bench.screen(100, "peak", "--tree", "--all", path, NO_COLOR="1"))
    # In a pipe paths are whole, so the width of the first column depends on where the tree lies.
    text = bench.text("peak", "--full", "--frames", "python", path)
    golden("tree-python.txt", re.sub(r"(?<=\S) {2,}", "  ", text))
    lines = bench.screen(80, "peak", "--tree", path, NO_COLOR="1").splitlines()
    expect(len(lines) <= 24 and any("smaller calls (--all)" in line for line in lines), "%d lines" % len(lines))


def same_tree(calls, path, wanted):
    """Each call holds what those in it hold, and what it holds itself; a leaf stands for one path of wanted."""
    for call in calls:
        own = call["bytes"] - sum(inside["bytes"] for inside in call["inside"])
        expect(own >= 0 and call["count"] > 0, "%r" % call["call"])
        equal(call["inside"], sorted(call["inside"], key=lambda c: (-c["bytes"], c["call"])), "order")
        here = path + [(call["function"], call["line"])]
        if own:
            equal(wanted.pop(own, None), here, "the path to %d bytes" % own)
        same_tree(call["inside"], here, wanted)


def tree_json(bench, path):
    answer = bench.json("peak", path)
    equal(answer["trees"], [], "trees without --tree")
    wanted = {h["bytes"]: [(f["function"], f["line"]) for f in reversed(h["frames"])] for h in answer["holders"]}
    tree, = bench.json("peak", "--tree", "--full", path)["trees"]
    equal((tree["call"], tree["bytes"], tree["count"]), (None, 45 * MIB, 9), "the device's row")
    same_tree(tree["inside"], [], wanted)
    equal(wanted, {}, "stacks that are not in the tree")
    user, = bench.json("peak", "--tree", path)["trees"]
    equal(sorted(c["line"] for c in user["inside"]), sorted(c["line"] for c in user["inside"] if
          c["file"].endswith("/nest.py") and c["call"].startswith("%s:%d " % (c["file"], c["line"]))), "outermost lines")


def halves(bench, path):
    for half, kinds in ("python", {"python"}), ("native", {"native", "inline"}):
        answer = bench.json("peak", "--frames", half, path)
        for holder in answer["holders"]:
            found = {f["kind"] for f in holder["frames"]}
            expect(found and found <= kinds, "--frames %s has %r" % (half, found))


def python_trace(bench, name, python, script, **environment):
    environment.setdefault("NEST", os.path.join(bench.build, "tests/frames/nest.so"))
    return bench.trace(name, [python, script], PYTHONDONTWRITEBYTECODE="1", **environment)


def split_function(bench):
    """The interpreter's evaluation function is known in the piece that a compiler took out of it, too."""
    library = os.path.join(bench.build, "tests/frames/split.so")
    script = os.path.join(bench.dir, "split.py")
    with open(script, "w") as out:
        out.write("import ctypes, os\nnest = ctypes.CDLL(os.environ['NEST'])\ndriver = ctypes.CDLL('libcuda.so.1')\n"
                  "driver.cuInit(0)\ndriver.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)\n"
                  "split = ctypes.CDLL(%r)\n"
                  "split._PyEval_EvalFrameDefault(nest.nest_alloc, ctypes.c_size_t(1 << 20))\n" % library)
    path = python_trace(bench, "split", sys.executable, script)
    frames = bench.json("peak", "--frames", "native", path)["holders"][0]["frames"]
    names = [f["function"] for f in frames if (f["module"] or "").endswith("/split.so")]
    equal(names, ["_PyEval_EvalFrameDefault.cold"], "frames of a stripped library")


# ---- packed ----------------------------------------------------------------------------------------

def hidden(folders):
    """A command prefix under which the folders are empty; None if that cannot be had here."""
    mounts = " && ".join("mount -t tmpfs none '%s'" % f for f in folders)
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounts + ' && exec "$@"', "sh"]
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0:
        prefix[1:3] = []
    try:
        done = subprocess.run(prefix + ["true"], capture_output=True, timeout=20)
    except OSError:
        return None
    return prefix if done.returncode == 0 else None


def bare_root(bench):
    """A root folder that holds the tool and what it is linked with, and a command prefix to run in it; or None."""
    root = os.path.join(bench.dir, "root")
    listed = subprocess.run(["ldd", bench.tool], capture_output=True, timeout=20).stdout.decode()
    for path in [bench.tool, *re.findall(r"(/\S+) \(0x", listed)]:
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    prefix = ["chroot", root] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "chroot", root]
    try:
        done = subprocess.run([*prefix, bench.tool, "--version"], capture_output=True, timeout=20)
    except OSError:
        return None, None
    return (root, prefix) if done.returncode == 0 else (None, None)


def packed_bare(bench, path):
    """Packed, and read in a root that holds nothing but the tool and the two traces."""
    root, prefix = bare_root(bench)
    if not prefix:
        raise Skipped("no chroot here")
    other = os.path.join(bench.dir, "again.gtrace")
    shutil.copy(path, other)
    here = outputs(bench, path, others=[other])
    for trace in path, other:
        os.makedirs(root + os.path.dirname(trace), exist_ok=True)
        bench.text("pack", trace, "-o", root + trace)
    equal(outputs(bench, path, prefix, [other]), here, "a packed trace in a bare root")
    shutil.copy(path, root + path)
    expect(outputs(bench, path, prefix, [other]) != here, "unpacked it reads the same: the test proves nothing")
    expect(not os.path.exists(root + ROOT + "/tests"), "the program is in the bare root")


def outputs(bench, path, prefix=(), others=()):
    env = dict(os.environ, GPUTRACE_CACHE="0")
    answers = []
    for command in (*COMMANDS, ["peak", "--format", "json"], ["oom", "--format", "json"]):
        done = subprocess.run([*prefix, bench.tool, *command, path], capture_output=True, timeout=120, env=env)
        equal(done.returncode, 0, "status of %s: %r" % (command, done.stderr[-200:]))
        answers.append(done.stdout.replace(path.encode(), b"TRACE"))
    for other in others:
        done = subprocess.run([*prefix, bench.tool, "diff", path, other], capture_output=True, timeout=120, env=env)
        answers.append(done.stdout.replace(path.encode(), b"TRACE").replace(os.path.basename(path).encode(), b"TRACE"))
    return answers


def packed(bench, path, prefix, hides):
    """The trace as it reads here, packed and read where the program and its sources are not."""
    other = os.path.join(bench.dir, "other.gtrace")
    shutil.copy(path, other)
    here = outputs(bench, path, others=[other])
    copy = path + ".packed"
    bench.text("pack", path, "-o", copy)
    bench.text("pack", other, "-o", other)
    bench.text("dump", "--check", copy)
    equal(outputs(bench, copy, prefix, [other]), here, "a packed trace elsewhere")
    if hides:
        expect(outputs(bench, path, prefix, [path]) != here, "nothing was hidden: the test proves nothing")
    equal(os.stat(copy).st_mode & 0o777, 0o600, "mode of a packed trace")
    again = copy + ".again"
    bench.text("pack", copy, "-o", again)
    equal(outputs(bench, again, prefix, [other]), here, "packed twice")


def packed_here(bench):
    """The program and its library gone: nothing but the trace."""
    where = os.path.join(bench.dir, "gone")
    os.mkdir(where)
    for name in ("nest.py",):
        shutil.copy(os.path.join(HERE, name), where)
    shutil.copy(os.path.join(bench.build, "tests/frames/nest.so"), where)
    path = python_trace(bench, "away", sys.executable, os.path.join(where, "nest.py"),
                        NEST=os.path.join(where, "nest.so"))
    here = outputs(bench, path)
    bench.text("pack", path, "-o", path + ".packed")
    shutil.rmtree(where)
    equal(outputs(bench, path + ".packed"), here, "a packed trace without its program")
    expect(outputs(bench, path) != here, "the program's names came from nowhere")


def run_packs(bench):
    where = os.path.join(bench.dir, "runs")
    os.mkdir(where)
    subprocess.run([os.path.join(ROOT, "tests/sim/run"), bench.tool, "run", "--pack", "--dir", where, "--",
                    bench.program("oom")], capture_output=True, timeout=60)
    found = glob.glob(where + "/*")
    equal(len(found), 1, "files of a run with --pack: %r" % found)
    expect(b'"name"' in bench.gputrace("dump", "--defs", found[0]).stdout or
           bench.text("dump", "--check", found[0]), "not sound")


# ---- kept on disk ----------------------------------------------------------------------------------

def cached(bench, path, library):
    """The second look opens no object file: one that has lost its contents, but not its looks, still has names."""
    folder = os.path.join(bench.dir, "names")
    os.environ["XDG_CACHE_HOME"] = folder
    try:
        first = bench.text("peak", "--format", "json", path)
        files = os.listdir(folder + "/gputrace")
        expect(files, "nothing was kept")
        equal(os.stat(folder + "/gputrace").st_mode & 0o777, 0o700, "mode of the folder")
        equal({os.stat(folder + "/gputrace/" + f).st_mode & 0o777 for f in files}, {0o600}, "modes")
        blank(library)
        equal(bench.text("peak", "--format", "json", path), first, "the second look")
        os.environ["GPUTRACE_CACHE"] = "0"
        expect(bench.text("peak", "--format", "json", path) != first, "GPUTRACE_CACHE=0 is not heard")
    finally:
        os.environ["XDG_CACHE_HOME"] = os.path.join(bench.dir, "cache")
        os.environ.pop("GPUTRACE_CACHE", None)


def blank(path):
    info = os.stat(path)
    with open(path, "r+b") as file:
        file.write(b"\0" * info.st_size)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def hostile_cache(bench, path):
    """Whatever lies in the folder, the answer is the same, and nothing outside it is touched."""
    wanted = bench.text("peak", "--format", "json", path)
    folder = os.path.join(bench.dir, "hostile-names")
    os.environ["XDG_CACHE_HOME"] = folder
    try:
        bench.text("peak", path)
        inner = folder + "/gputrace"
        good = {name: open(os.path.join(inner, name), "rb").read() for name in os.listdir(inner)}
        for how, change in DAMAGE:
            for name, content in good.items():
                with open(os.path.join(inner, name), "wb") as file:
                    file.write(change(content))
            equal(bench.text("peak", "--format", "json", path), wanted, "with " + how)
        hostile_files(bench, path, inner, good, wanted)
    finally:
        os.environ["XDG_CACHE_HOME"] = os.path.join(bench.dir, "cache")


DAMAGE = (
    ("empty files", lambda b: b""),
    ("cut files", lambda b: b[:len(b) // 2]),
    ("a flipped bit", lambda b: b[:-2] + bytes([b[-2] ^ 1]) + b[-1:]),
    ("large counts", lambda b: b[:24] + b"\xff" * 8 + b[32:]),
    ("noise", lambda b: bytes(i * 7 & 255 for i in range(len(b)))),
)


def hostile_files(bench, path, inner, good, wanted):
    victim = os.path.join(bench.dir, "victim")
    with open(victim, "w") as file:
        file.write("mine")
    for name in good:
        os.unlink(os.path.join(inner, name))
        os.symlink(victim, os.path.join(inner, name))
    equal(bench.text("peak", "--format", "json", path), wanted, "with links for files")
    equal(open(victim).read(), "mine", "the file behind a link")
    for name in good:
        os.unlink(os.path.join(inner, name))
        os.mkfifo(os.path.join(inner, name))
    equal(bench.text("peak", "--format", "json", path), wanted, "with pipes for files")
    shutil.rmtree(inner)
    elsewhere = os.path.join(bench.dir, "elsewhere")
    os.mkdir(elsewhere)
    os.symlink(elsewhere, inner)
    equal(bench.text("peak", "--format", "json", path), wanted, "with a link for the folder")
    equal(os.listdir(elsewhere), [], "behind a link to a folder")
    os.unlink(inner)
    os.mkdir(inner)
    os.chmod(inner, 0o777)
    equal(bench.text("peak", "--format", "json", path), wanted, "with a folder open to all")
    equal(os.listdir(inner), [], "in a folder open to all")


# ---- debug information from a server ---------------------------------------------------------------

def debuginfod(bench):
    """Nobody is asked without the option; with it a stripped library has lines."""
    library, folder = os.path.join(bench.dir, "bare-nest.so"), os.path.join(bench.dir, "served")
    shutil.copy(os.path.join(bench.build, "tests/frames/nest.so"), library)
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, timeout=20).stdout.decode()
    build_id = re.search(r"Build ID: (\w+)", notes).group(1)
    os.makedirs(folder + "/buildid/" + build_id)
    subprocess.run(["objcopy", "--only-keep-debug", library, folder + "/buildid/%s/debuginfo" % build_id], check=True)
    subprocess.run(["strip", "-g", library], check=True)
    path = python_trace(bench, "served", sys.executable, os.path.join(HERE, "nest.py"), NEST=library)
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_request(self, *_):
            asked.append(self.path)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ.update(DEBUGINFOD_URLS="http://127.0.0.1:%d" % server.server_port,
                          DEBUGINFOD_CACHE_PATH=os.path.join(bench.dir, "debuginfod"))
        try:
            quiet = [bench.json("peak", path), bench.text("peak", "--tree", "--full", path)][0]
            equal(asked, [], "requests that nobody wished for")
            loud = bench.json("peak", "--debuginfod", path)
        finally:
            server.shutdown()
            os.environ.pop("DEBUGINFOD_URLS")
    lines = [[f["line"] for h in answer["holders"] for f in h["frames"] if f["function"] == "nest_alloc"]
             for answer in (quiet, loud)]
    equal((set(lines[0]), set(lines[1])), ({None}, {21}), "lines without and with the option")
    expect("/buildid/%s/debuginfo" % build_id in asked, "asked for %r" % asked)


# ---- threads ---------------------------------------------------------------------------------------

THREADS = '''
import ctypes, os, threading
nest = ctypes.CDLL(os.environ["NEST"])
driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
driver.cuInit(0)
driver.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
def bound():
    driver.cuCtxSetCurrent(context)
    nest.nest_alloc(ctypes.c_size_t(4096))
def one(hold=None):
    bound()
    if hold:
        hold[0].wait()
        hold[1].wait()
def short(count):
    for _ in range(count):
        thread = threading.Thread(target=one)
        thread.start()
        thread.join()
def mapped():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * 4096
threading.stack_size(256 << 10)
short(50)
begin = mapped()
short(1000)
left = mapped() - begin
hold = [threading.Barrier(201), threading.Event()]
begin = mapped()
threads = [threading.Thread(target=one, args=(hold,)) for _ in range(200)]
for thread in threads:
    thread.start()
hold[0].wait()
each = (mapped() - begin) // 200
hold[1].set()
for thread in threads:
    thread.join()
print(left, each)
'''


def thread_memory(bench):
    """1,000 short threads leave nothing behind; a thread costs what docs/internals.md says."""
    script = os.path.join(bench.dir, "threads.py")
    with open(script, "w") as out:
        out.write(THREADS)
    figures = {}
    for preload in "", bench.build + "/libgputrace.so":
        env = dict(os.environ, LD_PRELOAD=preload, GPUTRACE_DIR=bench.dir, GPUTRACE_QUIET="1", MALLOC_ARENA_MAX="1",
                   NEST=os.path.join(bench.build, "tests/frames/nest.so"))
        done = subprocess.run([os.path.join(ROOT, "tests/sim/run"), sys.executable, script], env=env, timeout=120,
                              capture_output=True)
        figures[bool(preload)] = [int(n) for n in done.stdout.split()]
        equal(len(figures[bool(preload)]), 2, "figures: %r" % done.stderr[-200:])
    # What the live blocks of 1,000 threads take in the recorder is not a thread's: 1 MiB is far below 1,000 stacks.
    expect(figures[True][0] - figures[False][0] < 1 << 20, "left behind: %r" % figures)
    each = figures[True][1] - figures[False][1]
    expect(8 << 10 < each <= 28 << 10, "%d bytes a thread" % each)


# ---- odd names -------------------------------------------------------------------------------------

ODD = '''
import ctypes, os, sys
nest = ctypes.CDLL(os.environ["NEST"])
driver = ctypes.CDLL("libcuda.so.1")
driver.cuInit(0)
driver.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)
allocate = nest.nest_alloc
names = ["plain.py", "gr\\u00fc\\u00df \\u6f22\\u5b57 \\U0001f600.py", "new\\nline\\x1b[31m.py", "x" * 6000 + ".py", "<string>",
         "<frozen importlib._bootstrap>", os.fsdecode(b"latin\\xe9.py"), "\\ud800.py", "bidi\\u202e\\u2028.py", ""]
for number, name in enumerate(names, 1):
    space = {"allocate": allocate, "ctypes": ctypes, "size": number << 20}
    function = ("f%d" % number) if number % 2 else ("\\u51fd\\u6570%d" % number)
    try:
        code = compile("def %s():\\n    allocate(ctypes.c_size_t(size))\\n%s()" % (function, function), name, "exec")
    except UnicodeEncodeError:
        continue
    exec(code, space)
sys.path.insert(0, os.environ["ZIPPED"])
import inside_zip
inside_zip.call(lambda: allocate(ctypes.c_size_t(20 << 20)))
import gone
os.unlink(gone.__file__)
gone.call(lambda: allocate(ctypes.c_size_t(21 << 20)))
'''


def odd_trace(bench):
    where = os.path.join(bench.dir, "odd")
    os.mkdir(where)
    archive = os.path.join(where, "code.zip")
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("inside_zip.py", "def call(f):\n    f()\n")
    with open(os.path.join(where, "gone.py"), "w") as out:
        out.write("def call(f):\n    f()\n")
    script = os.path.join(where, "od\u00f6 d.py")
    with open(script, "w") as out:
        out.write(ODD)
    return python_trace(bench, "odd", sys.executable, script, ZIPPED=archive, PYTHONPATH=where)


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings_of(key)
            yield from strings_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings_of(inner)


def sane(text, lines=False):
    text.encode("utf-8")
    bad = re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]" if lines else "[\0-\x1f\x7f-\x9f\u2028\u2029]", text)
    expect(not bad, "%r in %r" % (bad and bad.group(), text[-60:]))


def odd_names(bench, path):
    for command in (*COMMANDS, ["peak", "--tree"], ["peak", "--tree", "--full"]):
        sane(bench.text(*command, path), lines=True)
    answer = bench.json("peak", path)
    for text in strings_of(answer):
        sane(text)
    by_size = {h["bytes"] >> 20: h["frames"] for h in answer["holders"]}
    files = {size: [f["file"] for f in frames if f["kind"] == "python"] for size, frames in by_size.items()}
    expect("gr\u00fc\u00df \u6f22\u5b57 \U0001f600.py" in files[2], "a name in Unicode: %r" % files[2][:2])
    expect("\u51fd\u65702" in [f["function"] for f in by_size[2]], "a function in Unicode")
    expect(any(f and len(f) == 4096 for f in files[4]), "a long name is not kept to its limit")
    expect("<string>" in files[5], "<string>")
    expect(any(f.endswith("code.zip/inside_zip.py") for f in files[20]), "a module in an archive")
    expect(any(f.endswith("/gone.py") for f in files[21]), "a deleted file")


def odd_snapshot(bench, path):
    out = os.path.join(bench.dir, "odd.pickle")
    bench.text("snapshot", path, "-o", out)
    with open(out, "rb") as file:
        for text in strings_of(pickle.load(file)):
            sane(text)


def odd_snapshot_opens(bench):
    check = os.environ["VIZCHECK"]
    done = subprocess.run([sys.executable, check, os.path.join(bench.dir, "odd.pickle")], capture_output=True,
                          timeout=120)
    equal(done.returncode, 0, "vizcheck: %r" % (done.stdout + done.stderr)[-300:])


# ---- PyTorch ---------------------------------------------------------------------------------------

ENGINE_STEPS = r"^torch::autograd::(InputBuffer::|validate_outputs)"


def node_of(frames):
    """The autograd node whose gradient is computed, else the engine's own step between two nodes."""
    for frame in frames:
        match = re.search(r"::(\w+Backward\d*|AccumulateGrad)::apply$", frame["name"])
        if match or re.match(ENGINE_STEPS, frame["name"]):
            return match.group(1) if match else "engine"
    return None


def torch_lines(bench, path, script):
    """Every allocation of forward and optimizer has the user's line, every one of backward its node and a line."""
    out = os.path.join(bench.dir, "torch.pickle")
    bench.text("snapshot", path, "-o", out)
    with open(out, "rb") as file:
        allocs = [e for e in pickle.load(file)["device_traces"][0] if e["action"] == "alloc"]
    backward = [e for e in allocs if any("Engine::thread_main" in f["name"] for f in e["frames"])]
    forward = [e for e in allocs if e not in backward]
    expect(len(backward) > 100 and len(forward) > 100, "%d and %d" % (len(backward), len(forward)))
    without = [e for e in forward if not any(f["filename"] == script for f in e["frames"])]
    equal(len(without), 0, "allocations outside backward without the user's line, of %d" % len(forward))
    nodes = [node_of(e["frames"]) for e in backward]
    equal(nodes.count(None), 0, "allocations of backward without a node, of %d" % len(backward))
    expect({"AddmmBackward0", "NativeLayerNormBackward0"} <= set(nodes), "nodes %r" % set(nodes))
    expect(nodes.count("engine") < len(nodes) / 3, "%d of the engine's own, of %d" % (nodes.count("engine"), len(nodes)))
    untied = [e for e in backward if not any(f["filename"] == script for f in e["frames"])]
    equal(len(untied), 0, "allocations of backward not tied to a line, of %d" % len(backward))


def torch_holders(bench, path):
    """Every holder's row begins with the user's file and line; the screens are as kept for this version."""
    for holder in bench.json("peak", "--by", "line", path)["holders"]:
        expect(re.match(r"gpt2\.py:\d+ ", holder["key"]), "a holder is called %r" % holder["key"])
    version = subprocess.run([os.path.join(ROOT, "tests/torch/python"), "-c", "import torch; print(torch.__version__)"],
                             capture_output=True, timeout=100).stdout.decode()
    if not version.startswith("2.11.0"):
        skip("torch-screens", "kept for PyTorch 2.11.0, this is " + version.strip())
        return
    golden("transformer.txt", bench.screen(100, "peak", path, NO_COLOR="1"))
    golden("transformer-tree.txt", bench.screen(120, "peak", "--tree", "--all", path, NO_COLOR="1"))


def leads(calls, names):
    """Is there a way inwards that passes all these, in order?"""
    return not names or any(leads(c["inside"], names[names[0] in c["call"]:]) for c in calls)


def torch_tree(bench, path):
    """With --full the merged frames: the user's line, torch's Python, its C++, the allocator."""
    tree, = bench.json("peak", "--tree", "--full", path)["trees"]
    expect(leads(tree["inside"], ["gpt2.py:97 main", "gpt2.py:70 train_step", "Module._call_impl", "gpt2.py:64 GPT.forward",
                                  "Attention.forward", "functional.py", "libtorch_python.so", "at::native::softmax",
                                  "libc10_cuda.so"]), "no such way")
    expect(leads(tree["inside"], ["Engine::thread_main", "LogSoftmaxBackward0::apply", "libc10_cuda.so"]),
           "no way into backward")
    expect(not leads(tree["inside"], ["libc10_cuda.so", "gpt2.py"]), "a user's line inside the allocator")


def torch_cases(bench):
    script = os.path.join(ROOT, "tests/torch/gpt2.py")
    python = os.path.join(ROOT, "tests/torch/python")
    ready = subprocess.run([python, "-c", "import torch"], capture_output=True, timeout=900)
    if ready.returncode:
        skip("torch-lines", "no PyTorch here: " + ready.stderr.decode()[-100:].strip().replace("\n", " "))
        return
    where = os.path.join(bench.dir, "torch.d")
    os.mkdir(where)
    subprocess.run([python, script, "--steps", "3"], capture_output=True, timeout=300,
                   env=dict(os.environ, GPUTRACE_DIR=where, LD_PRELOAD=bench.build + "/libgputrace.so"))
    path = glob.glob(where + "/*.gtrace")[0]
    bench.case("torch-lines", torch_lines, path, script)
    bench.case("torch-holders", torch_holders, path)
    bench.case("torch-tree", torch_tree, path)
    bench.case("packed-in-a-bare-root", packed_bare, path)
    modules = {f["module"] for h in bench.json("peak", path)["holders"] for f in h["frames"] if f["module"]}
    torch = {os.path.dirname(m) for m in modules if "/torch/lib/" in m}
    prefix = hidden(sorted(torch) + [os.path.join(ROOT, "tests/torch")])
    if prefix:
        bench.case("packed-torch", packed, path, prefix, True)
    else:
        skip("packed-torch", "no mount namespace to hide PyTorch in")


def main():
    os.environ["GT_BUILD"] = os.path.abspath(sys.argv[1])
    found = interpreters()
    bench = Bench(sys.argv[1])
    paths = {}
    for version, python in found:
        paths[version] = python_trace(bench, "nest-" + version, python, os.path.join(HERE, "nest.py"))
        bench.case("merged-" + version, merged, paths[version], version)
    named = [v for v in paths if int(v.split(".")[1]) >= 11]
    if named:
        bench.case("tree", tree, paths[named[0]])
        bench.case("tree-json", tree_json, paths[named[0]])
    else:
        skip("tree", "no Python here that knows qualified names, from 3.11 on")
    path = paths[sorted(paths)[0]]
    bench.case("halves", halves, path)
    bench.case("split-function", split_function)
    bench.case("packed", packed, path, (), False)
    bench.case("packed-away", packed_here)
    bench.case("run-packs", run_packs)
    bench.case("hostile-cache", hostile_cache, path)
    library = os.path.join(bench.dir, "nest.so")
    shutil.copy(os.path.join(bench.build, "tests/frames/nest.so"), library)
    bench.case("cached", cached, python_trace(bench, "cached", sys.executable, os.path.join(HERE, "nest.py"),
                                               NEST=library), library)
    if ctypes.util.find_library("debuginfod"):
        bench.case("debuginfod", debuginfod)
    else:
        skip("debuginfod", "no libdebuginfod here, which asks the servers")
    bench.case("thread-memory", thread_memory)
    odd = odd_trace(bench)
    bench.case("odd-names", odd_names, odd)
    bench.case("odd-names-in-a-snapshot", odd_snapshot, odd)
    if os.environ.get("VIZCHECK"):
        bench.case("odd-names-vizcheck", odd_snapshot_opens)
    else:
        skip("odd-names-vizcheck", "VIZCHECK is not set")
    torch_cases(bench)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
