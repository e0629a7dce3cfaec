#!/usr/bin/env python3
"""Documents cannot rot: every variable, command, option, link and make target that they name is
there, and every one that there is, is named. Prints "ok CASE" or "not ok CASE: why"."""
import glob
import os
import re
import shlex
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
O = os.environ.get("O", "build")
TOOL = os.path.join(TOP, O, "gputrace")
PAGES = ["README.md"] + sorted(glob.glob("docs/**/*.md", root_dir=TOP, recursive=True))


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def output(*command, allowed=(0,)):
    p = subprocess.run(command, cwd=TOP, capture_output=True, text=True)
    if p.returncode not in allowed:
        raise RuntimeError(f"{command[0]}: status {p.returncode}: {p.stderr}")
    return p.stdout


def blocks(text):
    """Lines of code: fenced, or indented by four."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip()


def spans(text):
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def differences(what, got, wanted):
    return [f"{what}: {name} is missing" for name in sorted(wanted - got)] + \
           [f"{what}: {name} does not exist" for name in sorted(got - wanted)]


# ---- variables ------------------------------------------------------------------------------------

def option_table():
    """name -> default, from the table of the recorder."""
    rows = re.findall(r'^\t\{"(\w*)", [A-Z]+, FIELD\(\w+\), "([^"]*)"', read("preload/options.c"), re.M)
    return {"GPUTRACE" + name: default for name, default in rows}


def case_variables_of_the_manual():
    page = read("docs/man/libgputrace.7")
    found = dict(re.findall(r'(GPUTRACE\w*) " \(default ([^)]*)\)', page))
    wanted = option_table()
    return differences("libgputrace.7", set(found.items()), set(wanted.items()))


def case_variables_of_the_readme():
    rows = re.findall(r"^\| `(GPUTRACE\w*)` \| .* \| (.*) \|$", read("README.md"), re.M)
    tested = {"GPUTRACE_EXTENT", "GPUTRACE_CELLS", "GPUTRACE_SAMPLE_US"}  # not for everybody's eyes
    wanted = {name for name in option_table()} - tested
    return differences("README.md", {name for name, _ in rows}, wanted)


def case_variables_exist():
    source = "".join(read(p) for pattern in ("preload/*.[ch]", "tools/**/*.[ch]", "tests/**/*")
                     for p in glob.glob(pattern, root_dir=TOP, recursive=True)
                     if os.path.isfile(os.path.join(TOP, p)) and not p.endswith((".gtrace", ".png", ".pickle"))
                     and b"\0" not in open(os.path.join(TOP, p), "rb").read(4096))
    known = set(option_table()) | set(re.findall(r"GPUTRACE_[A-Z_]+", source))
    return [f"{page}: {name} does not exist" for page in PAGES
            for name in sorted(set(re.findall(r"\bGPUTRACE_[A-Z_]+\b(?!\*)", read(page))) - known)
            if not name.endswith("_")]


# ---- commands -------------------------------------------------------------------------------------

def options_of(command):
    return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", output(TOOL, command, "--help"))) | {"--help"}


def commands():
    """command -> its options"""
    return {n: options_of(n) for n in re.findall(r"^  ([a-z]+) ", output(TOOL, "--commands"), re.M)}


def is_synonym(name):
    p = subprocess.run([TOOL, name, "--help"], cwd=TOP, capture_output=True, text=True)
    return p.returncode == 0 and p.stdout.startswith("gputrace ")


def command_lines(page):
    for line in list(blocks(read(page))) + spans(read(page)):
        line = re.sub(r"^[$#] ", "", line).replace("\\|", "|")
        if re.match(r"gputrace( |$)", line):
            yield line


def wrong_with(line, known):
    line = re.split(r" [|>&;] | # |  +", line)[0]
    try:
        words = shlex.split(line)[1:]
    except ValueError:
        return None
    if not words or words[0].startswith("-") or not re.fullmatch(r"[a-z]+", words[0]):
        return None
    if words[0] not in known and is_synonym(words[0]):
        known[words[0]] = options_of(words[0])
    if words[0] not in known:
        return f"no command {words[0]}"
    rest = words[1:words.index("--")] if "--" in words else words[1:]
    for word in rest:
        option = word.split("=")[0].split("|")[0]
        if option.startswith("-") and len(option) > 1 and option not in known[words[0]]:
            return f"no option {option}"
    return None


def case_command_lines():
    known = commands()
    bad = []
    for page in PAGES:
        for line in command_lines(page):
            why = wrong_with(line, known)
            if why:
                bad.append(f"{page}: {line}: {why}")
    return bad


def case_commands_in_the_readme():
    text = " ".join(spans(read("README.md")))
    return [f"README.md: {c} is not mentioned" for c in commands() if not re.search(rf"\b{c}\b", text)]


def case_examples_of_help():
    known = commands()
    lines = [line.strip() for c in known for line in output(TOOL, c, "--help").splitlines()
             if line.startswith("  gputrace ")]
    if len(lines) < len(known):
        return [f"only {len(lines)} examples for {len(known)} commands"]
    return [f"--help: {line}: {why}" for line in lines for why in [wrong_with(line, known)] if why]


# ---- the option table, --help and the manual --------------------------------------------------------

def plain(roff):
    """The words of a page, without its macros and fonts."""
    text = re.sub(r"\\f[A-Z]|\\&", "", roff).replace("\\-", "-").replace("\\e", "\\").replace("\\(aq", "'")
    return re.sub(r"^\.(\w\w?) ?", "", text, flags=re.M)


def case_option_table():
    """Each row of the table is an option of some command, and none has options from elsewhere."""
    rows = set(re.findall(r"^\t\{GT_OPT_\w+, (?:0|'\w'), \"([a-z-]+)\"", read("tools/cmd/options.c"), re.M))
    own = {"doctor", "mcp"}  # read their own command lines
    named = {o[2:] for c, options in commands().items() if c not in own for o in options if o.startswith("--")}
    if len(rows) < 20:
        return [f"only {len(rows)} rows found"]
    return differences("--help", named - {"help"}, rows - {"help"})


def page_of(command):
    return os.path.join(O, "man", f"gputrace-{command}.1")


def case_manual_pages():
    """Each command's page has the options, the usage and the examples of its --help, and the same summary."""
    known = commands()
    if not os.path.exists(os.path.join(TOP, page_of("oom"))):
        print("skip manual-pages: help2man or lowdown is not installed")
        return []
    summaries = dict(re.findall(r"^  ([a-z]+) +(.*)$", output(TOOL, "--commands"), re.M))
    bad = []
    for command, options in known.items():
        page, text = plain(read(page_of(command))), output(TOOL, command, "--help")
        flat = re.sub(r"\s+", " ", page)
        found = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", page)) | {"--help"}
        bad += differences(f"gputrace-{command}.1", {o for o in found if o.startswith("--")},
                           {o for o in options if o.startswith("--")} | {"--help"})
        wanted = re.findall(r"^  (gputrace .*)$", text, re.M) + [f"gputrace-{command} - {summaries[command]}"]
        bad += [f"gputrace-{command}.1: {line!r} is missing" for line in wanted if re.sub(r"\s+", " ", line) not in flat]
    return bad


def case_commands_of_the_manual():
    """gputrace(1) names the commands that the tool has."""
    path = os.path.join(O, "man", "gputrace.1")
    if not os.path.exists(os.path.join(TOP, path)):
        return []
    page = plain(read(path))
    main = re.findall(r"^  ([a-z]+) ", output(TOOL, "--help"), re.M)
    return [f"gputrace.1: {c} is missing" for c in main if not re.search(rf"(?<![\w-]){c}\b", page)]


def case_format_page():
    """Every heading of docs/format.md is one of gputrace-format(5)."""
    path = os.path.join(O, "man", "gputrace-format.5")
    if not os.path.exists(os.path.join(TOP, path)):
        return []
    page = re.sub(r"\s+", " ", plain(read(path))).lower()
    titles = re.findall(r"^##+ (.*)$", re.sub(r"```.*?```", "", read("docs/format.md"), flags=re.S), re.M)
    return [f"gputrace-format.5: {t!r} is missing" for t in titles
            if re.sub(r"[`*]", "", t).lower() not in page and t != "Contents"]


# ---- links and targets ----------------------------------------------------------------------------

def anchors(page):
    found = set()
    for title in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", read(page), flags=re.S), re.M):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower())
        found.add(slug.strip().replace(" ", "-"))
    return found


def case_links():
    bad = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", read(page), flags=re.S)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(TOP, path)):
                bad.append(f"{page}: {target}: no such file")
            elif anchor and path.endswith(".md") and anchor not in anchors(path):
                bad.append(f"{page}: {target}: no such heading")
    return bad


def case_make_targets():
    rules = output(os.environ.get("MAKE", "make"), "-npq", "--no-print-directory", f"O={O}", "man", allowed=(0, 1))
    targets = set(re.findall(r"^([a-z][\w-]*):", rules, re.M))
    if "check" not in targets:
        return ["no targets found"]
    bad = []
    for page in PAGES:
        code = list(blocks(read(page))) + spans(read(page))
        named = {w for c in code for w in re.findall(r"(?:^|&& |sudo )make ((?:[a-z][\w-]*[ ,]?)+)", c)}
        words = {w for n in named for w in re.split(r"[ ,]+", n) if w and w == w.lower()}
        words |= {c for c in code if re.fullmatch(r"(check|fuzz)-[a-z-]+", c)}
        bad += [f"{page}: make {w}: no such target" for w in sorted(words - targets)]
    return bad


def main():
    cases = {n[5:].replace("_", "-"): f for n, f in globals().items() if n.startswith("case_")}
    failed = 0
    for name in sys.argv[1:] or cases:
        bad = cases[name]()
        failed += bool(bad)
        print(f"not ok {name}: {'; '.join(bad)}" if bad else f"ok {name}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
