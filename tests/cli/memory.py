# SPDX-License-Identifier: MIT
"""Golden screens of oom, errors, segments and ledger: text at 80 and 120 columns, JSON, --help."""
import re

from harness import equal, expect, golden
from plain import plain

COMMANDS = {"oom": ["oom"], "errors": ["errors"], "segments": ["segments", "--at", "oom"],
            "ledger": ["ledger", "--at", "oom"]}


def screens(bench, name, path):
    command = COMMANDS[name]
    for columns in (80, 120):
        text = bench.screen(columns, *command, path, NO_COLOR="1")
        equal([line for line in text.splitlines() if len(line) > columns], [], "lines wider than the screen")
        golden("%s-%d.txt" % (name, columns), plain(text))
    golden("%s.json" % name, plain(bench.text(*command, "--format", "json", path)))


def helps(bench, name, _path):
    text = bench.text(name, "--help")
    expect(re.search(r"^Examples:\n  gputrace %s " % name, text, re.M), "no example: " + text)
    golden("%s-help.txt" % name, text)


def ledger_of_words(bench, path):
    """smi is ledger; the rows add up in text, csv and JSON; what nvidia-smi shows is said in words."""
    equal(bench.text("smi", path), bench.text("ledger", path), "smi")
    answer = bench.json("ledger", path)
    total = answer["device_total"]
    equal(sum(row["bytes"] for row in answer["rows"]), total, "sum of the rows")
    csv = [line.split(",") for line in bench.text("ledger", "--format", "csv", path).splitlines()]
    at = csv[0].index("bytes") - len(csv[0])
    equal(sum(int(row[at]) for row in csv[1:]), sum(d["device_total"] for d in answer["devices"]), "csv")
    shown = answer["devices"][0]["nvidia_smi"][0]
    expect("nvidia-smi shows %d" % round(shown["bytes"] / (1 << 20)) in bench.text("ledger", path), "no words")
    numbers = [int(n) for n in re.findall(r"^  \S.*?  +(-?\d+)(?:  |$)", bench.text("ledger", path), re.M)]
    equal(numbers[-1], sum(numbers[numbers.index(sum_of(numbers)):-1]), "sum as printed")


def sum_of(numbers):
    """The row that the first ones add up to: what is traced here."""
    for count in range(1, len(numbers)):
        if sum(numbers[:count]) == numbers[count]:
            return numbers[count]
    return None


def free_since_the_sample(bench, path):
    """What was taken since free memory was asked for is not free any more: alone on a device, nothing is unexplained."""
    for at in ("peak", "end"):
        answer = bench.json("ledger", "--at", at, path)
        rows = {row["kind"]: row["bytes"] for row in answer["rows"]}
        expect(rows["library"] > 0, "nothing was taken: no test")
        equal((rows["unexplained"], rows["free"]), (0, answer["device_total"] - rows["library"]), "rest and free at " + at)


def cases(bench, failed, crowded, small):
    """failed: of prog/oom; crowded: a run beside another process, with a context that costs something; small: one alone."""
    for name in COMMANDS:
        bench.case("golden-%s-screens" % name, screens, name, failed)
        bench.case("golden-%s-help" % name, helps, name, failed)
    bench.case("ledger-adds-up", ledger_of_words, crowded)
    bench.case("ledger-free", free_since_the_sample, small)
