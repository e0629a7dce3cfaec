#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The progress bar: on a terminal and after a second only, with a percentage, and gone at the end.

usage: progress.py BUILD CLOCK     CLOCK: the preload whose clock is fast
"""
import os
import pty
import re
import select
import subprocess
import sys

from harness import Bench, equal, expect

BAR = re.compile(r"\r\[([#.]{24})\] +(\d+) %  reading (\S+?)(, pass (\d+))?\033\[K")


def read_all(fd, process):
    """What comes out of the terminal until its program has ended."""
    parts = []
    while select.select([fd], [], [], 60)[0]:
        try:
            part = os.read(fd, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    process.wait(60)
    return b"".join(parts).decode()


def on_terminal(bench, *args, clock=None, piped=False, **environment):
    """(what the terminal got, what the pipe got, status)"""
    ours, theirs = pty.openpty()
    env = dict(os.environ, **environment)
    if clock:
        env["LD_PRELOAD"] = clock
    with subprocess.Popen([bench.tool, *args], stdin=theirs, stderr=theirs, env=env,
                          stdout=subprocess.PIPE if piped else theirs) as process:
        os.close(theirs)
        seen = read_all(ours, process)
        out = process.stdout.read().decode() if piped else ""
    os.close(ours)
    return seen, out, process.returncode


def screen_of(text):
    """Lines that are left after carriage returns and erasures, as a terminal shows them."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        lines.append(re.split(r"\r\033\[K|\r", line)[-1].replace("\033[K", ""))
    return "\n".join(re.sub(r"\033\[[\d;]*m", "", line) for line in lines)


def shown(bench, big, clock):
    """It rises while the history is read, says the file, and leaves the screen as it would be without it."""
    seen, _, status = on_terminal(bench, "timeline", big, clock=clock)
    equal(status, 0, "status")
    bars = BAR.findall(seen)
    expect(len(bars) >= 3, "bars: %r" % bars)
    equal({bar[2] for bar in bars}, {os.path.basename(big)}, "files named")
    first = [int(bar[1]) for bar in bars if not bar[3]]
    equal(first, sorted(first), "percentages of the first time")
    expect(first[-1] - first[0] >= 20, "they hardly rise: %r" % first)
    for bar in bars:
        equal(bar[0].count("#"), int(bar[1]) * 24 // 100, "marks of %r" % (bar,))
    plain, _, _ = on_terminal(bench, "timeline", big)
    expect(not BAR.search(plain), "a bar where the clock had not gone on: %r" % plain[:200])
    equal(screen_of(seen), screen_of(plain), "screen with a bar and without")


def again(bench, big, clock):
    """More than one walk over the history says so, and percentages stay below 100."""
    seen, _, status = on_terminal(bench, "html", "-o", os.path.join(bench.dir, "big.html"), big, clock=clock)
    equal(status, 0, "status")
    passes = [int(bar[4] or 1) for bar in BAR.findall(seen)]
    expect(passes[0] == 1 and passes[-1] >= 2, "passes %r" % passes)
    equal(passes, sorted(passes), "passes")
    expect(max(int(bar[1]) for bar in BAR.findall(seen)) < 100, "a percentage of 100: %r" % seen)


def beside_a_pipe(bench, big, clock):
    """Standard output is a pipe: it is as ever, the bar is on the terminal and gone at the end."""
    seen, out, status = on_terminal(bench, "at", "0.1s", big, "--format", "json", clock=clock, piped=True)
    equal((status, out), (0, bench.text("at", "0.1s", big, "--format", "json")), "what the pipe gets")
    expect(BAR.search(seen), "no bar: %r" % seen)
    equal(screen_of(seen), "", "what is left on the terminal")


def nowhere_else(bench, big, clock):
    """Standard error is no terminal: not a byte."""
    done = bench.gputrace("timeline", big, env=dict(os.environ, LD_PRELOAD=clock))
    equal((done.returncode, done.stderr), (0, b""), "status and standard error")


def before_a_message(bench, big, clock):
    """A message has a line of its own."""
    seen, _, status = on_terminal(bench, "peak", "--range", "nothing", big, clock=clock)
    expect(BAR.search(seen), "no bar: %r" % seen)
    expect(status != 0 and "gputrace: " in screen_of(seen), "screen %r" % screen_of(seen))
    for line in screen_of(seen).splitlines():
        expect("%" not in line, "a bar was left: %r" % line)


def main():
    bench = Bench(sys.argv[1])
    clock = os.path.abspath(sys.argv[2])
    big = bench.trace("big", [bench.program("traffic"), "--events", "500000", "--live", "1000", "--sites", "50"],
                      GPUTRACE_STACKS="none")
    bench.case("progress-rises-and-goes", shown, big, clock)
    bench.case("progress-read-again", again, big, clock)
    bench.case("progress-beside-a-pipe", beside_a_pipe, big, clock)
    bench.case("progress-nowhere-else", nowhere_else, big, clock)
    bench.case("progress-before-a-message", before_a_message, big, clock)
    return 1 if bench.bad else 0


if __name__ == "__main__":
    sys.exit(main())
