#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports read by packages of PyPI, and counters that a real Prometheus scraped from a running program.

usage: tests/exports/python readers.py BUILD [CASE...]
"""
import collections
import glob
import gzip
import http.client
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.parse

import duckdb
import duckdb_extension_sqlite_scanner as sqlite_scanner
import jsonschema
from grpc_tools import protoc
from perfetto.protos.perfetto.trace import perfetto_trace_pb2
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from run import (HERE, ROOT, Bench, answers, equal, events, expect, export, lines, queries, round_trip, samples,
                 stacks, traces)
from wire import Pprof


def schema(name):
    with open(os.path.join(HERE, name + ".schema.json")) as file:
        return jsonschema.Draft202012Validator(json.load(file))


def pprof(bench, path):
    """By the schema, and nothing in the file that the schema does not have."""
    where = os.path.join(bench.dir, "proto")
    os.makedirs(where, exist_ok=True)
    equal(protoc.main(["protoc", "-I" + HERE, "--python_out=" + where, "profile.proto"]), 0, "status of protoc")
    sys.path.insert(0, where)
    import profile_pb2
    for device in bench.json("peak", path)["devices"]:
        with gzip.open(export(bench, "pprof", path, "--device", str(device["device"]))) as file:
            data = file.read()
        profile = profile_pb2.Profile.FromString(data)
        again = profile_pb2.Profile.FromString(data)
        again.DiscardUnknownFields()
        equal(again.ByteSize(), profile.ByteSize(), "bytes without unknown fields")
        types = [profile.string_table[t.type] for t in profile.sample_type]
        column = types.index("inuse_space")
        equal(sum(s.value[column] for s in profile.sample), device["bytes"], "sum")
        equal(profile.string_table[profile.default_sample_type], "inuse_space", "default")


def json_schemas(bench, path):
    for kind in ("speedscope", "chrome"):
        with open(export(bench, kind, path)) as file:
            errors = list(schema(kind).iter_errors(json.load(file)))
        expect(not errors, "%s: %s" % (kind, errors[:1]))


def duck(bench, path):
    """DuckDB takes the CSV as it is; the documented queries have the commands' sums."""
    db = duckdb.connect()
    out = export(bench, "csv", path)
    db.execute("CREATE TABLE blocks AS SELECT * FROM read_csv(?)", [out])
    with open(out, newline="") as file:
        equal(db.execute("SELECT count(*) FROM blocks").fetchone()[0], file.read().count("\r\n") - 1, "rows")
    peak, last, ever = (db.execute(q).fetchall() for q in queries("duckdb"))
    peaks = {d["device"]: d["bytes"] for d in bench.json("peak", path)["devices"]}
    now = {d["ordinal"]: d["allocated"] for d in bench.json("summary", path)["processes"][0]["devices"]}
    equal({device: bytes for device, bytes, event in peak}, peaks, "peaks")
    sums = collections.Counter()
    for device, line, bytes, blocks in last:
        sums[device] += bytes
    equal(dict(sums), {d: n for d, n in now.items() if n}, "sums of what lives")
    with open(export(bench, "speedscope", path)) as file:
        wanted = sum(p["endValue"] for p in json.load(file)["profiles"][1::2])
    equal(sum(row[2] for row in ever), wanted, "bytes ever allocated")


def duck_sqlite(bench, path):
    """DuckDB's own reader of SQLite opens the database: the three documented queries, word for word, and every view."""
    out, db = export(bench, "sqlite", path), duckdb.connect()
    db.execute("LOAD '%s'" % glob.glob(os.path.join(sqlite_scanner.__path__[0], "extensions", "*", "*.duckdb_extension"))[0])
    db.execute("ATTACH '%s' AS run (TYPE sqlite, READ_ONLY)" % out)
    db.execute("USE run")
    texts = queries("sql")
    equal(len(texts), 3, "documented queries")
    for device in bench.json("peak", path)["devices"]:
        for text in texts:
            cursor = db.execute(text.replace("device = 0", "device = %d" % device["device"]))
            column = [d[0] for d in cursor.description].index("bytes")
            equal(sum(row[column] for row in cursor.fetchall()), device["bytes"], "sum of " + " ".join(text.split())[:60])
    ours = sqlite3.connect(out)
    for kind, name in ours.execute("SELECT type, name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall():
        rows = [len(each.execute("SELECT * FROM %s" % name).fetchall()) for each in (db, ours)]
        equal(*rows, "rows of the %s %s" % (kind, name))
        equal(db.execute("SELECT count(*) FROM %s" % name).fetchone(), (rows[1],), "count of the %s %s" % (kind, name))


def perfetto(bench, path):
    """By Perfetto's own messages, with nothing that they do not have: counters, refusals, ranges, flows."""
    with open(export(bench, "perfetto", path), "rb") as file:
        data = file.read()
    trace, again = perfetto_trace_pb2.Trace.FromString(data), perfetto_trace_pb2.Trace.FromString(data)
    again.DiscardUnknownFields()
    equal(again.ByteSize(), len(data), "bytes without unknown fields")
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    events = [p for p in trace.packet if p.HasField("track_event")]
    expect(all(p.track_event.track_uuid in tracks for p in events), "an event on no track")
    expect(all(p.trusted_packet_sequence_id == 1 for p in trace.packet) and trace.packet[0].sequence_flags == 1, "sequence")
    for device in bench.json("peak", path)["devices"]:
        name = "GPU %d in use" % device["device"]
        values = [p.track_event.counter_value for p in events if tracks[p.track_event.track_uuid].name == name]
        if device["count"] is not None:  # else the history of the peak is gone
            equal(max(values), device["bytes"], "highest of " + name)
        unit, = {t.counter.unit for t in tracks.values() if t.name == name}
        equal(unit, 3, "unit: bytes")
    kinds = collections.Counter(p.track_event.type for p in events)
    equal(kinds[1], kinds[2], "begins and ends of slices")
    equal(sum(p.track_event.name.startswith("out of memory") for p in events), len(bench.json("errors", path)["errors"]), "refusals")
    with open(export(bench, "chrome", path)) as file:
        chrome = json.load(file)["traceEvents"]
    equal(collections.Counter(p.track_event.name for p in events if p.track_event.type == 1),
          collections.Counter(e["name"] for e in chrome if e["ph"] in "Xb"), "slices")
    flows(bench, path, [p.track_event for p in events])


def flows(bench, path, events):
    """Each has two ends of the same size, and they are of the largest blocks that were freed."""
    begins, ends = ({f: e.debug_annotations[0].uint_value for e in events for f in getattr(e, key)}
                    for key in ("flow_ids", "terminating_flow_ids"))
    equal(begins, ends, "ends of flows")
    for device in bench.json("peak", path)["devices"]:
        said = [e.name for e in events if e.name.startswith("GPU %d: flows" % device["device"])]
        equal(len(said), 1, "what is said of flows")
    freed = [size for size, in sqlite3.connect(export(bench, "sqlite", path)).execute(
        "SELECT bytes FROM block WHERE in_use AND from_event > 0 AND to_event > 0 AND device = ? ORDER BY 1 DESC LIMIT 1000",
        (device["device"],))] if len(bench.json("peak", path)["devices"]) == 1 else None
    expect(freed is None or sorted(begins.values(), reverse=True) == freed, "not the largest blocks")


def parsers(bench, path):
    """Prometheus's own parsers, the strict one for OpenMetrics."""
    for parse, text in ((openmetrics, bench.text("export", "--format", "openmetrics", path)),
                        (prometheus, bench.text("metrics", path))):
        wanted = samples(text)
        got = {(s.name, int(s.labels["device"])): int(s.value) for f in parse(text) for s in f.samples}
        equal(got, wanted, "samples")
        kinds = {f.name: f.type for f in parse(text)}
        equal(kinds["gputrace_allocations"], "counter", "type")


# ---- PyTorch --------------------------------------------------------------------------------------

def torch_trace(bench):
    """A training; None where there is no PyTorch."""
    where = os.path.join(bench.dir, "torch")
    os.mkdir(where)
    environment = dict(os.environ, GPUTRACE_DIR=where, GPUTRACE_QUIET="1",
                       LD_PRELOAD=os.path.join(bench.build, "libgputrace.so"))
    done = subprocess.run([os.path.join(ROOT, "tests/torch/python"), "--devices", "2",
                           os.path.join(ROOT, "tests/torch/mlp.py"), "--steps", "12",
                           "--snapshot", os.path.join(bench.dir, "snapshot.pickle")],
                          env=environment, stdout=subprocess.DEVNULL, timeout=600)
    if done.returncode == 77:
        return None
    equal(done.returncode, 0, "status of the training")
    return os.path.join(where, os.listdir(where)[0])


def categories(bench, path):
    """Categories at the peak, in SQLite and as labels of pprof; steps."""
    db = sqlite3.connect(export(bench, "sqlite", path))
    profile = Pprof(export(bench, "pprof", path))
    for device in bench.json("peak", path)["devices"]:
        number = device["device"]
        got = {(c or "").replace(" ", "_"): n for c, n in db.execute(
            "SELECT category, bytes FROM peak_by_category WHERE device = ?", (number,))}
        wanted = {k: n for k, n in device["categories"].items() if n}
        equal(got, wanted, "categories of device %d" % number)
        for category, bytes in wanted.items():
            equal(profile.sum("inuse_space", device="GPU %d" % number, category=category.replace("_", " ")), bytes,
                  "label " + category)
        steps = db.execute("SELECT step, peak_allocated FROM step WHERE device = ?", (number,)).fetchall()
        wanted = [(s["step"], s["peak_allocated"]) for s in bench.json("steps", path, "--device", str(number))["steps"]]
        expect(len(wanted) > 8, "few steps: no test")
        equal(steps, wanted, "steps of device %d" % number)
    blocks = dict(db.execute("SELECT ifnull(category, ''), sum(bytes) FROM block JOIN device USING (process, device) "
                             "WHERE in_use AND from_event <= peak_event AND (to_event IS NULL OR to_event > peak_event) "
                             "GROUP BY 1"))
    equal(blocks, dict(db.execute("SELECT ifnull(category, ''), sum(bytes) FROM peak_by_category GROUP BY 1")),
          "categories of blocks")


# ---- Prometheus -----------------------------------------------------------------------------------

def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(number, query):
    """The value of a query's one sample; None while there is no answer."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", number, timeout=5)
        connection.request("GET", "/api/v1/query?query=" + urllib.parse.quote(query))
        result = json.load(connection.getresponse())["data"]["result"]
        return int(result[0]["value"][1]) if result else None
    except (OSError, ValueError, KeyError):
        return None


def scraped(bench):
    """A running program's counters, by metrics --watch, node_exporter and Prometheus."""
    where = os.path.join(bench.dir, "scrape")
    os.makedirs(where + "/traces")
    node, server = port(), port()
    with open(where + "/prometheus.yml", "w") as file:
        file.write("scrape_configs: [{job_name: n, scrape_interval: 1s, static_configs: [{targets: "
                   "['127.0.0.1:%d']}]}]\n" % node)
    environment = dict(os.environ, GPUTRACE_DIR=where + "/traces", GPUTRACE_QUIET="1",
                       LD_PRELOAD=os.path.join(bench.build, "libgputrace.so"))
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    program = subprocess.Popen([os.path.join(ROOT, "tests/sim/run"), os.path.join(bench.build, "prog/traffic"),
                                "--events", "2001", "--hold"], env=environment, stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL)
    others = [subprocess.Popen(command, **quiet) for command in (
        [bench.tool, "metrics", "--watch", where + "/traces", "--every", "200ms", "-o", where + "/gpu.prom"],
        ["prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
         "--collector.textfile.directory=" + where, "--web.listen-address=127.0.0.1:%d" % node],
        ["prometheus", "--config.file=" + where + "/prometheus.yml", "--storage.tsdb.path=" + where + "/tsdb",
         "--web.listen-address=127.0.0.1:%d" % server])]
    try:
        got, until = None, time.monotonic() + 90
        wanted = 2001
        while got != wanted and time.monotonic() < until:
            time.sleep(0.2)  # between questions; the answer decides, not the time
            parts = [ask(server, "gputrace_%s_total" % n) for n in ("allocations", "frees")]
            got = None if None in parts else sum(parts) - overhead(bench, where)
        equal(got, wanted, "events that Prometheus knows of")
        equal(ask(server, "gputrace_running"), 1, "gputrace_running")
        trace, = os.listdir(where + "/traces")
        device, = bench.json("summary", os.path.join(where, "traces", trace))["processes"][0]["devices"]
        equal(ask(server, "gputrace_allocated_bytes"), device["allocated"], "bytes in use")
        equal(ask(server, "node_textfile_scrape_error"), 0, "node_exporter's own error")
    finally:
        program.communicate(b"\n", timeout=60)
        for process in others:
            process.terminate()
            process.wait(timeout=60)


def overhead(bench, where):
    """Events that are none of the program's calls: its context."""
    trace, = os.listdir(where + "/traces")
    device, = bench.json("summary", os.path.join(where, "traces", trace))["processes"][0]["devices"]
    return device["allocations"] + device["frees"] - 2001


def main():
    bench, wanted = Bench(sys.argv[1]), sys.argv[2:]
    paths = traces(bench)
    cases = [("%s-%s" % (name, n), test, paths[n]) for name, test in
             (("pprof", pprof), ("json", json_schemas), ("parsers", parsers), ("perfetto", perfetto)) for n in ("oom", "two", "hostile", "lost")]
    cases += [("again-" + n, round_trip, paths[n]) for n in ("oom", "hostile")]
    cases += [("duckdb-" + n, duck, paths[n]) for n in ("oom", "two", "hostile", "large")]
    cases += [("duckdb-sqlite-" + n, duck_sqlite, paths[n]) for n in ("oom", "two", "hostile")]
    cases.append(("perfetto-large", perfetto, paths["large"]))
    say = os.path.join(bench.build, "tests", "marks", "say")
    if os.path.exists(say):
        cases.append(("perfetto-say", perfetto, bench.trace("say", [say, "random"], sim=("--devices", "2"))))
    asked = not wanted or any("torch" in part or "snapshot" in part for part in wanted)
    torch = torch_trace(bench) if asked else None
    if torch:
        snapshot = os.path.join(bench.dir, "snapshot.pickle")
        cases += [("torch-categories", categories, torch), ("torch-stacks", stacks, torch),
                  ("torch-events", events, torch), ("torch-answers", answers, torch), ("torch-lines", lines, torch),
                  ("torch-pprof", pprof, torch), ("torch-json", json_schemas, torch),
                  ("torch-again", round_trip, torch), ("snapshot-again", round_trip, snapshot), ("torch-duckdb", duck, torch),
                  ("torch-duckdb-sqlite", duck_sqlite, torch), ("torch-perfetto", perfetto, torch),
                  ("snapshot-stacks", stacks, snapshot, False), ("snapshot-answers", answers, snapshot),
                  ("snapshot-json", json_schemas, snapshot)]
    elif asked:
        print("skip torch: no PyTorch environment can be made here")
    if shutil.which("prometheus") and shutil.which("prometheus-node-exporter"):
        cases.append(("scraped", scraped))
    else:
        print("skip scraped: not installed (apt-get install prometheus prometheus-node-exporter)")
    return bench.cases(cases, wanted)


if __name__ == "__main__":
    sys.exit(main())
