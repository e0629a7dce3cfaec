#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gputrace compare and plan: the experiment table, the worked example, forecasts against runs.

usage: run.py BUILD [--write] [CASE...]     --write: golden texts are taken from this run
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "diff"))
from trained import Once, cases, checkout, neutral, speed, train, without_options  # noqa: E402  (sets the path)
from harness import Bench, equal, expect, golden  # noqa: E402

GIB = 1 << 30
WORKED = ["plan", "--params", "350M", "--gpu", "24GiB", "--reserve", "2GiB", "--target", "256"]


def says(bench, words, *args):
    done = bench.gputrace(*args)
    equal(done.returncode, 2, "status of %r, which said %r" % (args, done.stderr))
    lines = done.stderr.decode().splitlines()
    equal(len(lines), 1, "lines of %r: %r" % (args, lines))
    expect(lines[0].startswith("gputrace: ") and words in lines[0], "%r is not in %r" % (words, lines[0]))


# ---- plan without a trace --------------------------------------------------------------------------

def worked_example(bench, _):
    """24 GiB card, 350 M parameters in fp32 with Adam: 41, 76, 279 samples; 32 x 8, 64 x 4, 256 x 1."""
    answer = bench.json(*WORKED, "--sample", "0.40GiB,0.22GiB,0.06GiB")
    equal("%.2f" % (answer["static_bytes"] / GIB), "5.22", "static GiB")
    equal([(r["largest_micro_batch"], r["micro_batch"], r["accumulation"]) for r in answer["rows"]],
          [(41, 32, 8), (76, 64, 4), (279, 256, 1)], "rows")
    for sample, most in (("0.40GiB", 41), ("0.22GiB", 76), ("0.06GiB", 279)):
        answer = bench.json(*WORKED, "--sample", sample)
        equal(answer["largest_micro_batch"], most, sample)
        equal(answer["rows"][0]["largest_micro_batch"], most, "the base row of " + sample)


def bytes_per_parameter(bench, _):
    """Each row from its formula, worked out here a second time."""
    params, layers, rank, gpus = 41956352, 24, 8, 4
    answer = bench.json("plan", "--params", str(params), "--gpu", "8G", "--reserve", "0", "--sample", "64K",
                        "--layers", str(layers), "--rank", str(rank), "--gpus", str(gpus))
    rows = {r["technique"]: r for r in answer["rows"]}
    share = 4 * rank * (params / (12 * layers)) ** 0.5 * layers / params
    wanted = {"base": 16, "checkpointing": 16, "offload": 8, "sharded": 16 / gpus + 4 / layers, "autocast": 16,
              "autocast-checkpointing": 16, "adam-8bit": 8 + 2 * (1 + 4 / 256), "sgd-momentum": 12, "sgd": 8,
              "bf16-master": 16, "bf16": 8, "lora": 4 + 16 * share, "qlora": 4.127 / 8 + 16 * share}
    equal(set(rows), set(wanted), "techniques")
    for name, per in wanted.items():
        got = rows[name]["static_bytes"]
        expect(abs(got - per * params) <= 2, "%s: %d bytes, not %.1f" % (name, got, per * params))
    kept = (5 + 5) / 25  # 24 layers in segments of 5
    samples = {"checkpointing": kept, "autocast": 0.5, "autocast-checkpointing": kept / 2, "bf16": 0.5}
    for name, factor in samples.items():
        equal(rows[name]["bytes_per_sample"], round(65536 * factor), "per sample, " + name)
    for row in answer["rows"]:
        room = 8 * GIB - row["static_bytes"]
        wanted = room / row["bytes_per_sample"]
        expect(abs(row["largest_micro_batch"] - wanted) <= 1 + wanted / row["bytes_per_sample"],
               "%s: %r" % (row["technique"], row))
    short = bench.json("plan", "--params", "7B")
    equal(short["static_bytes"], 7 * 16 * 10 ** 9, "static of 7B")
    equal((short["largest_micro_batch"], short["device_total"]), (None, None), "not known")
    unknown = {r["technique"] for r in short["rows"] if r["static_bytes"] is None}
    equal(unknown, {"checkpointing", "autocast-checkpointing", "lora", "qlora"}, "rows that need --layers")


# ---- plan from traces ------------------------------------------------------------------------------

def peak_of(bench, path):
    return bench.json("summary", path)["processes"][0]["devices"][0]["peak_allocated"]


def foretold(answer, batch):
    return max(p["static_bytes"] + p["bytes_per_sample"] * batch for p in answer["lines"])


def forecast(bench, runs):
    """From two batch sizes the peak of a third, smaller, between or larger, within 5 %."""
    worst = 0
    for missing in runs:
        others = [path for batch, path in runs.items() if batch != missing]
        answer = bench.json("plan", *others)
        measured = peak_of(bench, runs[missing])
        error = abs(foretold(answer, missing) - measured) / measured
        worst = max(worst, error)
        expect(error <= 0.05, "batch %d: %d foretold, %d measured" % (missing, foretold(answer, missing), measured))
    print("# plan: largest error of a forecast %.2f %%" % (100 * worst))


def optimizer_bound(bench, runs):
    """A model whose peak is in the optimizer for small batches: one line for all would be wrong."""
    answer = bench.json("plan", *[runs[b] for b in sorted(runs)][:2])
    biggest = max(runs)
    measured = peak_of(bench, runs[biggest])
    expect(abs(foretold(answer, biggest) - measured) <= measured / 20,
           "batch %d: %d foretold, %d measured" % (biggest, foretold(answer, biggest), measured))
    phases = [bench.json("steps", path)["steps"][1]["peak_phase"] for path in runs.values()]
    equal(phases, ["optimizer", "optimizer", "backward"], "phases of the peaks")


def adds_up(bench, runs):
    """The line's static bytes are what was measured and the residual; the rows start with the line."""
    answer = bench.json("plan", *list(runs.values())[:2], "--target", "96", "--reserve", "1G", "--gpu", "4G")
    base = answer["rows"][0]
    parts = base["weights"] + base["gradients"] + base["optimizer_state"] + answer["residual_bytes"]
    expect(abs(parts - answer["static_bytes"]) <= 2, "%d is not %d: %r" % (parts, answer["static_bytes"], answer))
    equal((base["static_bytes"], base["bytes_per_sample"]), (answer["static_bytes"], answer["bytes_per_sample"]),
          "the base row")
    most = answer["largest_micro_batch"]
    expect(foretold(answer, most) <= 3 * GIB < foretold(answer, most + 1), "batch %d" % most)
    equal(answer["micro_batch"] * answer["accumulation"], 96, "target")
    equal([p["batch"] for p in answer["points"]], list(runs)[:2], "batch sizes")


def one_run(bench, runs):
    """An estimate, from the categories at the peak: all that is not static is taken to be of the batch."""
    batch, path = list(runs.items())[-1]
    answer = bench.json("plan", path)
    equal(round(foretold(answer, batch) / peak_of(bench, path), 3), 1.0, "its own peak")
    wanted = bench.json("plan", *runs.values())["bytes_per_sample"]
    expect(abs(answer["bytes_per_sample"] - wanted) <= wanted / 10,
           "%d per sample, not %d" % (answer["bytes_per_sample"], wanted))
    equal(bench.json("plan", path, "--batch", "2")["points"][0]["batch"], 2, "--batch")


def bad_arguments(bench, runs):
    a, b, *_ = runs.values()
    says(bench, "usage: gputrace plan", "plan")
    says(bench, "--sample needs", "plan", "--params", "350M", "--sample", "1G")
    says(bench, "there is none", "plan", "--params", "350M", "--batch", "4")
    says(bench, "goes with --params alone", "plan", a, "--sample", "1G")
    says(bench, "1 number for 2 traces", "plan", a, b, "--batch", "4")
    says(bench, "the same batch size", "plan", a, b, "--batch", "4,4")
    for option, value in (("--gpu", "big"), ("--gpu", "0"), ("--target", "0"), ("--params", "-3"),
                          ("--params", "3Q"), ("--batch", "4,,8"), ("--batch", "x"), ("--reserve", "much"),
                          ("--layers", "2.5"), ("--rank", ""), ("--gpus", "-1"), ("--sample", "0")):
        says(bench, "plan: %s %s: not understood" % (option, value), "plan", "--params", "1M", option, value)
    says(bench, "usage: gputrace compare", "compare")


def no_steps(bench, _):
    path = bench.trace("traffic", [bench.program("traffic"), "--events", "300"])
    says(bench, "no steps found", "plan", path, "--batch", "4")


# ---- compare ---------------------------------------------------------------------------------------

def experiment_table(bench, runs, failed):
    rows = bench.json("compare", *runs.values(), failed)["rows"]
    equal([r["configuration"] for r in rows],
          [{"arguments": "--batch %d" % b} for b in (*runs, 4096)], "configuration")
    for row, path in zip(rows, runs.values()):
        device = bench.json("summary", path)["processes"][0]["devices"][0]
        steps = bench.json("steps", path)["steps"]
        equal((row["peak_allocated"], row["peak_reserved"], row["first_step_peak"]),
              (device["peak_allocated"], device["peak_reserved"], steps[0]["peak_allocated"]), "peaks")
        equal(sum(row["categories"].values()), row["peak_allocated"], "sum of the categories")
        equal(row["static"], sum(row["categories"][c] for c in ("weights", "gradients", "optimizer_state")),
              "static")
        equal((row["end"], row["steps"]), ("ok", len(steps)), "end and steps")
        expect(row["steps_per_second"] > 0, "speed")
    equal(rows[-1]["end"], "oom", "end of the last")
    same = bench.json("diff", *runs.values(), failed)
    equal(neutral(same), neutral(bench.json("compare", *runs.values(), failed)), "diff of several")
    says(bench, "ran out of memory", "plan", failed)
    text = bench.text("compare", *runs.values(), failed)
    expect("%d fits, 4096 ran out of memory" % max(runs) in text.splitlines()[0], text.splitlines()[0])


def settings(bench, runs, other):
    """What differs is found in the environment, too."""
    path = list(runs.values())[0]
    for row, value in zip(bench.json("compare", path, other)["rows"], ("", "expandable_segments:True")):
        equal(row["configuration"], {"PYTORCH_CUDA_ALLOC_CONF": value} if value else
              {"PYTORCH_CUDA_ALLOC_CONF": None}, "configuration")


def screens(bench, runs, failed):
    a, b, *_ = runs.values()
    for columns in (80, 120):
        for name, command in (("compare", ["compare", *runs.values(), failed]),
                              ("plan", ["plan", a, b, "--gpu", "256M", "--reserve", "32M", "--target", "96", "--layers",
                                        "2", "--rank", "4"]),
                              ("plan-params", [*WORKED, "--sample", "0.40GiB", "--layers", "24", "--rank", "8"])):
            text = speed(bench.screen(columns, *command, NO_COLOR="1"))
            golden("%s-%d.txt" % (name, columns), text)
            expect(len(text.splitlines()) <= 24, "%s: %d lines" % (name, len(text.splitlines())))
            wide = [line for line in text.splitlines() if len(line) > columns]
            expect(not wide, "%s is wider than %d: %r" % (name, columns, wide))
    golden("compare.json", json.dumps(neutral(bench.json("compare", a, b)), indent=1) + "\n")
    golden("plan.json", json.dumps(neutral(bench.json("plan", a, b, "--target", "96")), indent=1) + "\n")
    for name in ("compare", "plan"):
        golden("help-%s.txt" % name, without_options(bench.text(name, "--help")))


def main():
    bench = Bench(sys.argv[1])
    program = checkout(bench, "here")
    wide = ["--width", "256", "--layers", "4", "--vocabulary", "8000", "--length", "16", "--steps", "4"]
    runs = Once(lambda: {n: train(bench, "b%d" % n, program, "--batch", str(n), "--steps", "4") for n in (4, 8, 16)})
    flat = Once(lambda: {n: train(bench, "w%d" % n, program, "--batch", str(n), *wide) for n in (4, 8, 64)})
    failed = Once(train, bench, "b4096", program, "--batch", "4096", "--steps", "4",
                  fails=True)
    other = Once(train, bench, "expandable", program, "--batch", "4", "--steps", "4",
                 PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
    cases(bench, [
        ("worked-example", worked_example, None),
        ("bytes-per-parameter", bytes_per_parameter, None),
        ("no-steps", no_steps, None),
        ("forecast", forecast, runs),
        ("optimizer-bound", optimizer_bound, flat),
        ("adds-up", adds_up, runs),
        ("one-run", one_run, runs),
        ("bad-arguments", bad_arguments, runs),
        ("experiment-table", experiment_table, runs, failed),
        ("settings", settings, runs, other),
        ("screens", screens, runs, failed),
    ])
    return bench.bad > 0


if __name__ == "__main__":
    sys.exit(main())
