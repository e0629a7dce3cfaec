#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gputrace mcp by lines of JSON: what a client may say wrong, what a trace may do to it, and what SQL may
not. The real client is in client.py.

usage: talk.py BUILD [CASE...]
"""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from harness import Bench, equal, expect  # noqa: E402

LIMIT = 32768


class Server:
    """One process over many cases: whatever they do to it, the next one finds it alive."""

    def __init__(self, bench, folder):
        self.scratch = os.path.join(bench.dir, "scratch")
        os.makedirs(self.scratch, exist_ok=True)
        self.process = subprocess.Popen([bench.tool, "mcp", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=dict(os.environ, TMPDIR=self.scratch))
        self.number = 0

    def raw(self, line):
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        expect(line.endswith(b"\n"), "the server has ended")
        return json.loads(line)

    def ask(self, method, params=None, **more):
        self.number += 1
        message = dict({"jsonrpc": "2.0", "id": self.number, "method": method}, **more)
        if params is not None:
            message["params"] = params
        self.raw(json.dumps(message).encode())
        reply = self.read()
        equal((reply["jsonrpc"], reply["id"]), ("2.0", message["id"]), "head of the reply")
        return reply

    def call(self, tool, **arguments):
        """(text, is it an error)"""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        content, = result["content"]
        equal(content["type"], "text", "type")
        expect(len(content["text"].encode()) <= LIMIT, "%d bytes in an answer" % len(content["text"].encode()))
        return content["text"], result["isError"]

    def good(self, tool, **arguments):
        text, bad = self.call(tool, **arguments)
        expect(not bad, "%s %s: %s" % (tool, arguments, text))
        return json.loads(text)

    def bad(self, tool, why, **arguments):
        text, bad = self.call(tool, **arguments)
        expect(bad and why in text, "%s %s: not refused for %r: %s" % (tool, arguments, why, text[:200]))

    def end(self):
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def versions(bench, server):
    for asked, wanted in (("2024-11-05", "2024-11-05"), ("2025-03-26", "2025-03-26"), ("2025-06-18", "2025-06-18"),
                          ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25"), (None, "2025-11-25"), (7, "2025-11-25")):
        got = server.ask("initialize", {"protocolVersion": asked, "capabilities": {}})["result"]
        equal(got["protocolVersion"], wanted, "version for %r" % asked)
        equal(got["serverInfo"]["name"], "gputrace", "name")
    equal(server.ask("ping")["result"], {}, "answer to ping")
    equal(server.ask("initialize", id="a text")["id"], "a text", "id")


def broken(bench, server):
    """A code of JSON-RPC for each kind of nonsense; silence for what asks nothing."""
    for line, code in ((b"{", -32700), (b"\xff\xfe", -32700), (b'"' + b"x" * (2 << 20) + b'"', -32700),
                       (b"[" * 100000, -32700), (b'{"a":"\\u0000"}', -32700), (b"7", -32600), (b"{}", -32600),
                       (b"[]", -32600), (b'{"id":1,"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                       (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600)):
        server.raw(line)
        reply = server.read()
        equal(reply["error"]["code"], code, "code for %r" % line[:60])
    for method in ("tools", "resources/list", "", "tools/list\n"):
        equal(server.ask(method)["error"]["code"], -32601, "code for method %r" % method)
    for params in ({}, {"name": 7}, {"name": "nothing"}, {"name": "summary", "arguments": []}, [], 7):
        equal(server.ask("tools/call", params)["error"]["code"], -32602, "code for %r" % params)
    for line in (b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', b"", b"  \r",
                 b'{"jsonrpc":"2.0","method":"nonsense"}', b'{"jsonrpc":"2.0","id":1,"result":{}}',
                 b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]'):
        server.raw(line)
    equal(server.ask("ping")["result"], {}, "answer behind what asks nothing")
    server.raw(b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":2}]')
    equal([r["id"] for r in server.read()], [1, 2], "ids of a batch")


def arguments(bench, server):
    for tool, why, given in (
            ("summary", 'needs "trace"', {}), ("summary", "has to be a string", {"trace": 7}),
            ("summary", "no name", {"trace": ""}), ("summary", "No such file", {"trace": "nothing.gtrace"}),
            ("summary", 'takes no "output"', {"trace": "a.gtrace", "output": "x"}),
            ("summary", "whole number", {"trace": "a.gtrace", "device": "0"}),
            ("summary", "not understood", {"trace": "a.gtrace", "device": 64}),
            ("summary", "not understood", {"trace": "a.gtrace", "device": -1}),
            ("summary", "no memory was asked for", {"trace": "a.gtrace", "device": 7}),
            ("peak", "not understood", {"trace": "a.gtrace", "by": "nothing"}),
            ("peak", "not understood", {"trace": "a.gtrace", "by": "--output=/tmp/x"}),
            ("peak", "too long", {"trace": "a.gtrace", "from": "x" * 5000}),
            ("oom", "true or false", {"trace": "a.gtrace", "remedies": "yes"}),
            ("plan", "list of strings", {"traces": "a.gtrace"}), ("plan", "16 at most", {"traces": ["a.gtrace"] * 17}),
            ("plan", "by a string", {"traces": [1]}),
            ("sql", 'needs "query"', {"trace": "a.gtrace"}), ("sql", "rows: 1 to", {"trace": "a.gtrace", "query": "SELECT 1", "rows": 0}),
            ("diff", "", {"a": "a.gtrace"})):
        server.bad(tool, why, **given)
    equal(server.good("summary", trace="a.gtrace", device=None)["command"], "summary", "null is not given")


def outside(bench, server):
    """Nothing beyond the folder, whatever the name looks like; links within are names like others."""
    for path in ("../out.gtrace", "/etc/passwd", os.path.join(bench.dir, "served", "a.gtrace"), "sub/../../out.gtrace",
                 "leads-out.gtrace", "folder-out", "folder-out/out.gtrace", "./../served/../out.gtrace"):
        for tool, key in (("summary", "trace"), ("diff", "a")):
            server.bad(tool, "outside the folder", **{key: path})
        server.bad("sql", "outside the folder", trace=path, query="SELECT 1")
        server.bad("plan", "outside the folder", traces=["a.gtrace", path])
    server.bad("summary", "leads out of the folder", trace="sub")  # a folder with a link in it
    equal(server.good("summary", trace="within.gtrace")["processes"][0]["file"], "within.gtrace", "file")
    listed = {t["trace"] for t in server.good("traces")["traces"]}
    equal(listed, {"a.gtrace", "large.gtrace", "cut.gtrace", "zeros.gtrace", "odd.gtrace"}, "traces")


def damaged(bench, server):
    for name, why in (("cut.gtrace", "cut at byte"), ("zeros.gtrace", "starts with zeros")):
        for tool in ("summary", "oom", "peak", "steps", "ledger"):
            server.bad(tool, why, trace=name)
        server.bad("sql", why, trace=name, query="SELECT 1")
    with open(os.path.join(bench.dir, "served", "large.gtrace"), "rb") as file:
        whole = file.read()
    for i in range(24):  # some of these read, some do not: none may end the server
        odd = bytearray(whole)
        for j in range(64):
            odd[4096 + (i * 7919 + j * 104729) % (len(odd) - 4096)] ^= 0xff
        with open(os.path.join(bench.dir, "served", "odd.gtrace"), "wb") as file:
            file.write(odd)
        server.call("summary", trace="odd.gtrace")
        server.call("peak", trace="odd.gtrace")
    equal(server.ask("ping")["result"], {}, "answer to ping")


def large(bench, server):
    """A huge answer is made to fit, is JSON still, and says what it leaves out."""
    path = os.path.join(bench.dir, "served", "large.gtrace")
    whole = bench.json("peak", "--by", "stack", path)["holders"]
    expect(len(json.dumps(whole)) > 2 * LIMIT, "not a large answer: no test")
    got = server.good("peak", trace="large.gtrace", by="stack")
    left = got["left_out"]["holders"]
    equal((left["shown"], left["of"]), (len(got["holders"]), len(whole)), "what was left out")
    equal([h["bytes"] for h in got["holders"]], [h["bytes"] for h in whole[:len(got["holders"])]], "the largest")
    expect("left_out" not in server.good("peak", trace="a.gtrace"), "a small answer leaves something out")


def database(bench, server):
    path = os.path.join(bench.dir, "served", "a.gtrace")
    wanted = {d["device"]: d["bytes"] for d in bench.json("peak", path)["devices"]}
    got = server.good("sql", trace="a.gtrace", query="SELECT device, sum(bytes) FROM peak_by_line GROUP BY 1;")
    equal((dict(got["rows"]), got["more_rows"]), (wanted, False), "sums")
    got = server.good("sql", trace="large.gtrace", query="SELECT * FROM block", rows=5000)
    expect(got["more_rows"] and got["row_count"] == len(got["rows"]) > 50, "rows: %d" % got["row_count"])
    got = server.good("sql", trace="large.gtrace", query="SELECT site FROM block", rows=7)
    equal((got["row_count"], got["more_rows"]), (7, True), "rows")
    equal(server.good("sql", trace="a.gtrace", query="PRAGMA table_info(step)")["columns"][1], "name", "a column")
    got = server.good("sql", trace="a.gtrace", query="SELECT NULL, 1.5, x'00ff', 'text', 1e999, 9223372036854775807")
    equal(got["rows"], [[None, 1.5, "(2 bytes)", "text", None, 2 ** 63 - 1]], "values")


def only_reads(bench, server):
    victim = os.path.join(bench.dir, "victim.db")
    before = sorted(os.listdir(os.path.join(bench.dir, "served")))
    for query in ("ATTACH '%s' AS v" % victim, "VACUUM INTO '%s'" % victim, "CREATE TABLE t (a)", "CREATE TEMP TABLE t (a)",
                  "INSERT INTO step VALUES (1)", "DELETE FROM block", "UPDATE block SET bytes = 0", "DROP TABLE block",
                  "PRAGMA journal_mode = DELETE", "PRAGMA writable_schema = 1", "PRAGMA query_only", "SELECT * FROM pragma_database_list", "BEGIN", "REINDEX",
                  "SELECT load_extension('x')", "EXPLAIN DELETE FROM block", "ANALYZE", "DETACH main"):
        server.bad("sql", "only SELECT", trace="a.gtrace", query=query)
    for query, why in (("SELECT 1; SELECT 2", "one statement"), ("", "one statement"), ("-- nothing", "one statement"),
                       ("SELECT FROM", "syntax error"), ("SELECT * FROM absent", "no such table"),
                       ("SELECT readfile('/etc/passwd')", "no such function"), ("SELECT zeroblob(1000000000)", "too big"),
                       ("SELECT group_concat(a.function || b.function || c.function || d.function, hex(zeroblob(99999))) "
                        "FROM frame a, frame b, frame c, frame d", "")):
        server.bad("sql", why, trace="a.gtrace", query=query)
    expect(not os.path.exists(victim), "a file was written")
    equal(sorted(os.listdir(os.path.join(bench.dir, "served"))), before, "files of the folder")


def endless(bench, server):
    server.bad("sql", "stopped after", trace="a.gtrace",
               query="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")


def leaves(bench, server):
    """Databases are made once per trace, few are kept, and none is left behind."""
    for i in range(6):
        shutil.copy(os.path.join(bench.dir, "served", "a.gtrace"), os.path.join(bench.dir, "served", "copy-%d.gtrace" % i))
        for _ in range(2):
            server.good("sql", trace="copy-%d.gtrace" % i, query="SELECT 1")
    folder, = os.listdir(server.scratch)
    equal(oct(os.stat(os.path.join(server.scratch, folder)).st_mode & 0o777), "0o700", "mode of the folder")
    kept = os.listdir(os.path.join(server.scratch, folder))
    equal(len(kept), 4, "databases kept")
    equal(server.end(), 0, "status")
    equal(os.listdir(server.scratch), [], "what is left")


def served(bench):
    """A folder with traces, broken ones, and links that lead out."""
    where = os.path.join(bench.dir, "served")
    os.makedirs(where + "/sub")
    os.mkdir(bench.dir + "/elsewhere")
    program = os.path.join(bench.build, "prog")
    os.rename(bench.trace("a", [os.path.join(program, "oom")]), where + "/a.gtrace")
    os.rename(bench.trace("large", [os.path.join(program, "traffic"), "--live", "3000", "--sites", "1500", "--events", "20000"]),
              where + "/large.gtrace")
    shutil.copy(where + "/a.gtrace", bench.dir + "/out.gtrace")
    shutil.copy(where + "/a.gtrace", bench.dir + "/elsewhere/out.gtrace")
    os.symlink("../out.gtrace", where + "/leads-out.gtrace")
    os.symlink("../../out.gtrace", where + "/sub/leads-out.gtrace")
    os.symlink("../elsewhere", where + "/folder-out")
    os.symlink("a.gtrace", where + "/within.gtrace")
    with open(where + "/a.gtrace", "rb") as file:
        data = file.read()
    for name, content in (("cut", data[:len(data) // 3]), ("zeros", bytes(5000)), ("odd", b"GPUTRACE")):
        with open("%s/%s.gtrace" % (where, name), "wb") as file:
            file.write(content)
    return where


CASES = [versions, broken, arguments, outside, damaged, large, database, only_reads, leaves]


def main():
    bench, wanted = Bench(sys.argv[1]), sys.argv[2:]
    server = Server(bench, served(bench))
    for test in CASES + ([endless] if "endless" in wanted else []):
        name = "mcp-" + test.__name__.replace("_", "-")
        if not wanted or any(part in name for part in wanted):
            bench.case(name, test, server)
    return bench.bad > 0


if __name__ == "__main__":
    sys.exit(main())
