#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every gputrace command line that a document, a manual page or --help shows without its output is
run, on traces by the names that it uses.

usage: examples.py BUILD [WORD...]     only lines that have the words

Names of traces in documents are placeholders: a trace, a folder of ranks, a PyTorch snapshot or a run
out of memory stands under each of them. A line must succeed, with the exit statuses that its command may
have; what a shell would do behind it (a pipe, a redirection) is left out where the other program is not
here. Lines that record are run too, with the demo's program in place of theirs.
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import console  # noqa: E402

# placeholder in a document -> the trace that it stands for
STANDS_FOR = [
    (r"(run|old|new|main|branch|TRACE|FILE|merged)(\.gtrace)?", "marked"),
    (r"(A|a|b4|before|sweep/A)(\.gtrace)?", "small"),
    (r"(b8|B|b|after|sweep/B)(\.gtrace)?", "large"),
    (r"(C|b16)(\.gtrace)?", "largest"),
    (r"gputrace\.[\w.]+\.gtrace", "oom"),
    (r"snapshot\.pickle|SNAPSHOT", "pickle"),
    (r"traces/?|DIR|sweep/?|DIR/|/shared/traces", "folder"),
]
# words that stand for one of several
ONE_OF = {"ANY": "summary", "F": "folded", "peak|oom|end|SECONDS": "peak"}


class Failed(Exception):
    pass


def document_lines():
    """(where, line) of every command in code of the documents, sessions left out: those are compared."""
    pages = ["README.md"] + sorted(glob.glob("docs/**/*.md", root_dir=TOP, recursive=True))
    for page in pages:
        with open(os.path.join(TOP, page), encoding="utf-8") as f:
            text = re.sub(r"```console.*?```", "", f.read(), flags=re.S)
        blocks = re.findall(r"```\w*\n(.*?)```", text, re.S) + re.findall(r"^(?:    .*\n)+", text, re.M)
        code = [line.strip() for block in blocks for line in block.splitlines()]
        # In a sentence a command without a trace is a name, not a command line.
        code += [line for line in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
                 if any(re.fullmatch(p, w) for w in line.split() for p, _ in STANDS_FOR)]
        for line in code:
            line = re.sub(r"^\$ ", "", line).replace("\\|", "|")
            if re.match(r"gputrace [^-|(]", line) and "..." not in line:
                yield page, re.split(r" {3,}| # ", line)[0]


def manual_lines(tool):
    commands = re.findall(r"^  ([a-z]+) ", subprocess.run([tool, "--commands"], capture_output=True, text=True).stdout, re.M)
    for command in commands:
        text = subprocess.run([tool, command, "--help"], capture_output=True, text=True).stdout
        for line in re.findall(r"^  (gputrace .*)$", text, re.M):
            yield command + " --help", line


# ---- the traces -----------------------------------------------------------------------------------

class Traces:
    """What the placeholders stand for, made once."""

    def __init__(self, root, build):
        self.root, self.build = root, build
        self.tool = os.path.join(build, "gputrace")
        self.programs = console.folder_of_page(root, build)
        self.env = console.environment(root, build, {})
        self.paths = {}
        train = ["python", "train.py", "--steps", "12", "--layers", "2", "--batch"]
        for name, words in (("small", train + ["1024"]), ("large", train + ["2048"]), ("largest", train + ["4096"]),
                            ("marked", ["python", "marked.py"]), ("oom", ["python", "leak.py"])):
            self.paths[name] = self.record(name, words)
        self.paths["pickle"] = os.path.join(root, "made.pickle")
        self.must(["snapshot", "-o", self.paths["pickle"], self.paths["marked"]])

    def must(self, words):
        done = subprocess.run([self.tool, *words], capture_output=True, text=True, env=self.env, cwd=self.root)
        if done.returncode:
            raise Failed("%r: %s" % (words, done.stderr))

    def record(self, name, words):
        folder = os.path.join(self.root, "recorded-" + name)
        os.mkdir(folder)
        more = {"GT_SIM_CAPACITY": "1G", "RANK": "3"} if name == "oom" else {}
        subprocess.run([self.tool, "run", "--dir", folder, "--", *words], cwd=self.programs, timeout=300,
                       env=dict(self.env, **more), capture_output=True)
        found = glob.glob(folder + "/*.gtrace")
        if len(found) != 1:
            raise Failed("%d traces of %s" % (len(found), name))
        return found[0]

    def start_live(self):
        """A program that is recorded now, until end_live; its trace's folder and its process number."""
        folder = os.path.join(self.root, "live")
        os.mkdir(folder)
        self.live = subprocess.Popen([self.tool, "run", "--dir", folder, "--", "python", "marked.py", "--hold"], text=True,
                                     cwd=self.programs, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.live.stdout.readline()
        path, = glob.glob(folder + "/*.gtrace")
        return folder, path.split(".")[-2]

    def end_live(self):
        self.live.communicate("\n")

    def place(self, word, folder, failed):
        """Puts what the word stands for under its name into the folder; of a line about a failure, one that did."""
        for pattern, name in STANDS_FOR:
            if not re.fullmatch(pattern, word):
                continue
            name = "oom" if failed and name == "marked" else name
            path = os.path.join(folder, word.lstrip("/"))
            os.makedirs(path if name == "folder" else os.path.dirname(path) or ".", exist_ok=True)
            if name == "folder":
                for rank in ("small", "large"):
                    shutil.copy(self.paths[rank], os.path.join(path, rank + ".gtrace"))
                shutil.copy(self.paths["oom"], os.path.join(path, "oom.gtrace"))
            else:
                shutil.copy(self.paths[name], path)
            return


# ---- a line ---------------------------------------------------------------------------------------

def words_of(line):
    """The words of the tool's own part: comments, pipes and redirections are the shell's."""
    line = re.sub(r"\[[^]]*\]", "", re.split(r" [|>&;]| >> |;$", line)[0])  # [what may be left out]
    return [ONE_OF.get(word, word) for word in shlex.split(line)[1:]]


def prepared(words, folder, traces):
    """Words that can be run in the folder."""
    if words[0] in ("live", "top"):
        running, pid = traces.running
        return [running if re.fullmatch(r"traces/?|DIR", w) else pid if w.isdigit() else w for w in words]
    if any(re.match(r"step:\d+:", w) for w in words):  # phases are inferred, so from a training
        shutil.copy(traces.paths["small"], os.path.join(folder, words[-1]))
        return words
    for word in words:
        traces.place(word, folder, "oom" in words)
    if "--" in words:
        return words[:words.index("--") + 1] + ["python", "train.py", "--steps", "1", "--layers", "1", "--batch", "64"]
    return [os.path.relpath(w, "/") if w.startswith("/") else w for w in words]


def try_line(line, traces):
    folder = tempfile.mkdtemp(dir=traces.root)
    words = prepared(words_of(line), folder, traces)
    for path in glob.glob(os.path.join(traces.programs, "*.py")):
        shutil.copy(path, folder)
    for word, after in zip(words, words[1:]):
        if word in ("-o", "--output"):
            os.makedirs(os.path.join(folder, os.path.dirname(after)), exist_ok=True)
    endless = "--watch" in words or words[0] in ("live", "top") and "--once" not in words
    try:
        done = subprocess.run([traces.tool, *words], cwd=folder, env=traces.env, capture_output=True,
                              timeout=10 if endless else 120, stdin=subprocess.DEVNULL, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        made = words[0] != "metrics" or os.path.exists(os.path.join(folder, words[-1]))
        return None if endless and made else "it does not end"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if endless and words[0] == "metrics":
        return "it ended: " + done.stderr
    if done.returncode == 1 and "--fail-if-peak-grows" in words:
        return None
    if done.returncode:
        return "status %d: %s" % (done.returncode, done.stderr.strip()[-300:])
    return None


def main():
    build = os.path.abspath(sys.argv[1])
    tool = os.path.join(build, "gputrace")
    lines = {}
    for where, line in [*document_lines(), *manual_lines(tool)]:
        if all(word in line for word in sys.argv[2:]):
            lines.setdefault(line, where)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="gputrace-docs-") as root:
        console.make_commands(root, build)
        traces = Traces(root, build)
        traces.running = traces.start_live()
        for line, where in lines.items():
            why = try_line(line, traces)
            bad += bool(why)
            print("%s example %s (%s)%s" % ("not ok" if why else "ok", line, where, ": " + why if why else ""), flush=True)
        traces.end_live()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
