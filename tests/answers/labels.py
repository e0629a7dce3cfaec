# SPDX-License-Identifier: MIT
"""What tensors say of themselves, for each block by the number of its allocation.

The n-th allocation of a process is the n-th in a second run of the same program, so a run with labels
tells what the blocks of a run without them were for. Saved-tensor hooks change how long tensors live,
so the run that is judged has none. A program calls start() once, at() in each part of a step with the
name of the part that ends there, and finish(). The file holds what was seen, and for each at() the
number of allocations before it.
"""
import json
import os

import torch
from torch.nn import functional

ON = os.environ.get("GT_LABELS")  # file to write
seen = []  # device, allocations so far, address, category
moments = []  # name of a moment, allocations of device 0 so far


def allocations(device):
    return torch.cuda.memory_stats(device).get("allocation.all.allocated", 0)


def tell(tensor, category):
    """Of the tensor's storage, whatever it is a view of."""
    if not ON or not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
        return
    address = tensor.untyped_storage().data_ptr()
    if address:
        seen.append((tensor.device.index, allocations(tensor.device.index), address, category))


def tell_all(value, category):
    if isinstance(value, torch.Tensor):
        tell(value, category)
    elif isinstance(value, dict):
        for one in value.values():
            tell_all(one, category)
    elif isinstance(value, (list, tuple)):
        for one in value:
            tell_all(one, category)


def pack(tensor):
    tell(tensor, "activations")
    return tensor


def hooks():
    """Hooks belong to a thread: replicas call this in theirs."""
    if ON:
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor).__enter__()


def tell_inputs(values):
    """What comes from no computation that has a gradient."""
    for value in values:
        if isinstance(value, (list, tuple)):
            tell_inputs(value)
        elif isinstance(value, torch.Tensor) and not value.requires_grad:
            tell(value, "inputs")


depth = [0]


def before(module, args, kwargs):
    if not depth[0]:
        tell_inputs(args)
        tell_inputs(kwargs.values())
    depth[0] += 1


def after(module, args, kwargs, result):
    depth[0] -= 1


def told_loss(function):
    """A module's own loss gets what the module has made."""
    def loss(*args, **kwargs):
        if not depth[0]:
            tell_inputs(args)
        return function(*args, **kwargs)
    return loss


def start(modules, optimizers, weights=(), state=(), called=None):
    """Before the first step, once all parameters are on their device.

    Weights that belong to no module, state that belongs to no optimizer; modules that get the inputs,
    if those are others.
    """
    start.modules, start.optimizers, start.weights, start.state = modules, optimizers, weights, state
    if not ON:
        return
    for module in modules if called is None else called:
        module.register_forward_pre_hook(before, with_kwargs=True)
        module.register_forward_hook(after, with_kwargs=True)
    for name in ("mse_loss", "cross_entropy"):
        setattr(functional, name, told_loss(getattr(functional, name)))
    hooks()


def at(moment):
    """Tell here, where all are alive: who is who now."""
    if not ON:
        return
    moments.append((moment, allocations(0)))
    for module in start.modules:
        tell_all(list(module.parameters()) + list(module.buffers()), "weights")
        tell_all([p.grad for p in module.parameters()], "gradients")
    tell_all(list(start.weights), "weights")
    tell_all([p.grad for p in start.weights if p.is_leaf], "gradients")
    tell_all(list(start.state), "optimizer_state")
    for optimizer in start.optimizers:
        tell_all(list(optimizer.state.values()), "optimizer_state")


def finish():
    if ON:
        with open(ON, "w", encoding="utf-8") as file:
            json.dump({"seen": seen, "moments": moments}, file)
