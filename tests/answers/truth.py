# SPDX-License-Identifier: MIT
"""What a run with labels says of the blocks of a run without: see labels.py."""
import json
import os
import tempfile

from harness import Traced, expect

PRIORITY = ("weights", "gradients", "optimizer_state", "inputs", "activations")


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


def peak_of(blocks):
    """Position after which most is in use, for the first time."""
    changes = [(life.born, life.size) for life in blocks]
    changes += [(life.died, -life.size) for life in blocks if life.died is not None]
    now = most = where = 0
    for position, change in sorted(changes):
        now += change
        if now > most:
            most, where = now, position + 1
    return where


def truth_of(life, number, labels):
    """What no tensor claims is a temporary; workspaces stand apart, since only a symbol knows them."""
    if life.category == "workspaces":
        return "workspaces"
    return labels.get((life.device, number), "temporaries")


def run_both(build, program, *args, may_differ=False, **more):
    """(Lives of the run without labels, category by device and number, moments, that run)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "labels.json")
        told = Traced(build, program, *args, GT_LABELS=path, **more).lives()
        with open(path, encoding="utf-8") as file:
            truth = json.load(file)
    traced = Traced(build, program, *args, **more)
    plain = traced.lives()
    shapes = [[life.size for life in births_of(lives, 0)] for lives in (told, plain)]
    if shapes[0] != shapes[1]:
        expect(may_differ, "the run with labels allocated otherwise")
        plain = told  # threads of replicas take turns as they like
    return plain, label(told, truth["seen"]), truth["moments"], traced
