# SPDX-License-Identifier: MIT
"""A real terminal of known size, by tmux: what a person would see, and their keys."""
import os
import subprocess
import time

from harness import expect


class Terminal:
    def __init__(self, bench, command, columns=80, lines=24):
        self.socket = os.path.join(bench.dir, "tmux")
        self.end = os.path.join(bench.dir, "tmux.status")
        if os.path.exists(self.end):
            os.unlink(self.end)
        words = " ".join("'%s'" % w for w in [bench.tool, *command])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  "%s; echo $? > '%s.new'; mv '%s.new' '%s'; sleep 60" % (words, self.end, self.end, self.end))

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], check=True, capture_output=True, text=True,
                              timeout=20).stdout

    def capture(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *names):
        for name in names:
            self.tmux("send-keys", name)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def wait(self, condition, seconds=30):
        """Did it become true in that time?"""
        limit = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > limit:
                return False
            time.sleep(.05)
        return True

    def until(self, wanted, still=True):
        """The first screen that is as wanted and, if still, the same twice: not one that is half drawn."""
        seen = [self.capture()]

        def found():
            seen.append(self.capture())
            return wanted(seen[-1]) and (seen[-1] == seen[-2] or not still)

        expect(self.wait(found), "no such screen in time; the last one: " + seen[-1])
        return seen[-1]

    def status(self):
        """Exit status of the command; None: it goes on."""
        if not self.wait(lambda: os.path.exists(self.end)):
            return None
        with open(self.end, encoding="ascii") as file:
            return int(file.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.keys("q")
        self.status()
        self.tmux("kill-server")
