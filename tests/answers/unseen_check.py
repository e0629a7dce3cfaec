# SPDX-License-Identifier: MIT
"""Programs that no rule was fitted to: our categories against what the program's tensors say.

Bytes that are called by a wrong category, and by none, at the peak and at the ends of forward, backward
and step of the step in the middle. What no tensor claims is a temporary.
"""
import json
import os
import tempfile

from harness import Traced, equal, expect
from programs_check import extras

WRONG, UNKNOWN = 2, 5  # percent
UNDECIDED = {"reinforcement"}  # data put together on the GPU and used in three passes: not known what for
PRIORITY = ("weights", "gradients", "optimizer_state", "inputs", "activations")
PROGRAMS = ("gpt2", "resnet18", "unet", "mixture", "towers", "translation", "reinforcement", "two_devices")
EVERYDAY = {"unet"}


def births_of(lives, device):
    return sorted((life for life in lives.lives if life.device == device), key=lambda life: life.born)


def label(lives, truth):
    """Category of each block by device and number, from the run that was told."""
    found = {}
    devices = sorted({life.device for life in lives.lives})
    births = {device: births_of(lives, device) for device in devices}
    newest = {device: {} for device in devices}
    done = dict.fromkeys(devices, 0)
    for device, count, address, category in sorted(truth, key=lambda s: (s[0], s[1])):
        while done[device] < min(count, len(births[device])):
            newest[device][births[device][done[device]].address] = done[device]
            done[device] += 1
        number = newest[device].get(address)
        if number is not None:
            before = found.get((device, number), category)
            found[device, number] = min(before, category, key=PRIORITY.index)
    return found


def run(build, name, more, labels=None):
    sim = ("--devices", "2") if name == "two_devices" else ()
    if labels:
        more = dict(more, GT_LABELS=labels)
    return Traced(build, "unseen.py", name, sim=sim, **more)


def judge(blocks, position, labels):
    """(wrong, unknown, all) bytes of one device before the event at the position, and unknown by rule."""
    wrong = unknown = everything = 0
    rules = {}
    for number, life in enumerate(blocks):
        if not life.at(position):
            continue
        truth = labels.get((life.device, number), "temporaries")
        everything += life.size
        if life.category == "workspaces":
            continue
        if life.category == "unknown":
            unknown += life.size
            rules[life.rule] = rules.get(life.rule, 0) + life.size
        elif life.category != truth:
            wrong += life.size
            key = "%s: %s is %s" % (life.rule, truth, life.category)
            rules[key] = rules.get(key, 0) + life.size
    return wrong, unknown, everything, rules


def peak_of(blocks):
    """Position after which most is in use, from the second step on."""
    changes = [(life.born, life.size) for life in blocks]
    changes += [(life.died, -life.size) for life in blocks if life.died is not None]
    now = most = where = 0
    for position, change in sorted(changes):
        now += change
        if now > most:
            most, where = now, position + 1
    return where


def check_unseen(build, name, **more):
    more.update(extras(build) if name in ("gpt2", "resnet18") else {})
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "labels.json")
        told = run(build, name, more, path).lives()
        with open(path, encoding="utf-8") as file:
            truth = json.load(file)
    plain = run(build, name, more).lives()
    shapes = [[life.size for life in births_of(lives, 0)] for lives in (told, plain)]
    if shapes[0] != shapes[1]:
        expect(name == "two_devices", "the run with labels allocated otherwise")
        plain = told  # threads of replicas take turns as they like
    labels = label(told, truth)
    first, last = plain.passes[len(plain.passes) // 2]
    step = next(s for s in plain.steps if s[3] > last)
    worst = [0, 0]
    for device in sorted({life.device for life in plain.lives}):
        blocks = births_of(plain, device)
        for moment, position in (("peak", peak_of(blocks)), ("forward", first), ("backward", last + 1),
                                 ("step", step[3])):
            wrong, unknown, everything, rules = judge(blocks, position, labels)
            wrong, unknown = 100 * wrong / everything, 100 * unknown / everything
            print("# %-13s GPU %d %-8s %10d B  wrong %5.2f %%  unknown %5.2f %%  %s" %
                  (name, device, moment, everything, wrong, unknown, rules or ""))
            if moment in ("peak", "forward"):
                worst = [max(worst[0], wrong), max(worst[1], unknown)]
    equal(len(plain.steps), STEPS.get(name, 6), "steps")
    expect(worst[0] <= WRONG, "%.2f %% wrong" % worst[0])
    expect(worst[1] <= UNKNOWN or name in UNDECIDED, "%.2f %% unknown" % worst[1])


STEPS = {"reinforcement": 18}  # three updates for each look at the environment
def check_newest(build, name):
    check_unseen(build, name, TORCH="2.15.0")


CASES = {"unseen-" + name: (name in EVERYDAY, check_unseen, name) for name in PROGRAMS}
CASES.update({"newest-" + name: (False, check_newest, name) for name in ("mlp", "unet", "translation")})
