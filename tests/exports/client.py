#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gputrace mcp as the protocol's own client package sees it: every tool's answer is that of its command.

usage: tests/exports/python client client.py BUILD [CASE...]
"""
import asyncio
import json
import os
import sys

import mcp
from mcp.client.stdio import stdio_client

from talk import LIMIT, served  # noqa: I001, it makes the harness known
from harness import Bench, equal, expect

OMITTED = ("left_out", "notes")


def text(result):
    content, = result.content
    equal(content.type, "text", "type of content")
    expect(len(content.text.encode()) <= LIMIT, "%d bytes" % len(content.text.encode()))
    return content.text


async def good(session, tool, **arguments):
    result = await session.call_tool(tool, arguments)
    expect(not result.isError, "%s: %s" % (tool, text(result)))
    return json.loads(text(result))


async def bad(session, tool, why, **arguments):
    result = await session.call_tool(tool, arguments)
    expect(result.isError and why in text(result), "%s %s: not refused for %r: %s" % (tool, arguments, why, text(result)))


def relative(value):
    """A command that is given the whole path tells it; the server knows the name alone."""
    if isinstance(value, dict):
        return {k: relative(v) for k, v in value.items() if k not in OMITTED}
    if isinstance(value, list):
        return [relative(v) for v in value]
    return os.path.basename(value) if isinstance(value, str) and value.endswith(".gtrace") else value


async def initialised(bench, session, told):
    equal(told.serverInfo.name, "gputrace", "name")
    expect(told.capabilities.tools is not None and told.instructions, "capabilities")
    await session.send_ping()


async def listed(bench, session, told):
    tools = {t.name: t for t in (await session.list_tools()).tools}
    equal(sorted(tools), ["diff", "growth", "ledger", "oom", "peak", "plan", "sql", "steps", "summary", "traces"], "tools")
    for tool in tools.values():
        expect(tool.description and tool.annotations.readOnlyHint, tool.name + " says nothing")
        equal(tool.inputSchema["type"], "object", "schema")
        expect(set(tool.inputSchema["required"]) <= set(tool.inputSchema["properties"]), "required")


async def each(bench, session, told):
    """Every tool against its command."""
    a, large = (os.path.join(bench.dir, "served", n + ".gtrace") for n in ("a", "large"))
    for tool, arguments, line in (
            ("summary", {}, ()), ("oom", {"remedies": True}, ("--remedies",)), ("peak", {"by": "owner"}, ("--by", "owner")),
            ("peak", {"level": "driver", "device": 0}, ("--level", "driver", "--device", "0")), ("growth", {}, ()),
            ("steps", {}, ()), ("ledger", {"at": "peak"}, ("--at", "peak"))):
        got = await good(session, tool, trace="a.gtrace", **arguments)
        equal(relative(got), relative(bench.json(tool, a, *line)), "answer of " + tool)
    got = await good(session, "diff", a="a.gtrace", b="large.gtrace", by="function")
    wanted = relative(bench.json("diff", a, large, "--by", "function"))
    for key, value in relative(got).items():
        if key not in got.get("left_out", {}):
            equal(value, wanted[key], "diff: " + key)
    arguments = {"params": "350M", "gpu": "24GiB", "sample": "410M", "target": 256}
    got = await good(session, "plan", traces=[], **arguments)
    equal(got, bench.json("plan", *(f"--{k}={v}" for k, v in arguments.items())), "answer of plan")
    got = await good(session, "sql", trace="a.gtrace", query="SELECT sum(bytes) FROM peak_by_line")
    equal(got["rows"][0][0], bench.json("peak", a)["devices"][0]["bytes"], "sum by SQL")
    expect({"trace": "a.gtrace", "bytes": os.path.getsize(a)} in (await good(session, "traces"))["traces"], "traces")


async def refused(bench, session, told):
    await bad(session, "summary", "needs")
    await bad(session, "peak", "not understood", trace="a.gtrace", by="nothing")
    for path in ("../out.gtrace", "/etc/passwd", "leads-out.gtrace"):
        await bad(session, "summary", "outside the folder", trace=path)
    await bad(session, "summary", "cut at byte", trace="cut.gtrace")
    try:
        await session.call_tool("nothing", {})
    except mcp.McpError as error:
        equal(error.error.code, -32602, "code of an unknown tool")
    else:
        expect(False, "an unknown tool was called")


async def huge(bench, session, told):
    got = await good(session, "peak", trace="large.gtrace", by="stack")
    expect(got["left_out"]["holders"]["of"] > got["left_out"]["holders"]["shown"] > 0, "nothing was left out")
    got = await good(session, "sql", trace="large.gtrace", query="SELECT * FROM block", rows=5000)
    expect(got["more_rows"] and got["rows"], "all rows fitted")


async def session_of(bench, folder, cases):
    parameters = mcp.StdioServerParameters(command=bench.tool, args=["mcp", folder], env=dict(os.environ))
    async with stdio_client(parameters) as (reading, writing), mcp.ClientSession(reading, writing) as session:
        told = await session.initialize()
        for test in cases:
            try:
                await test(bench, session, told)
                bench.case("client-" + test.__name__, lambda bench: None)
            except Exception as error:  # told by case, in its words
                why = error
                bench.case("client-" + test.__name__, lambda bench: (_ for _ in ()).throw(why))


def main():
    bench, wanted = Bench(sys.argv[1]), sys.argv[2:]
    cases = [t for t in (initialised, listed, each, refused, huge)
             if not wanted or any(part in "client-" + t.__name__ for part in wanted)]
    asyncio.run(session_of(bench, served(bench), cases))
    return bench.bad > 0


if __name__ == "__main__":
    sys.exit(main())
