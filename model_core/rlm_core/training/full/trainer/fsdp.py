"""A model in shards (FSDP 2): each process holds a part of every weight, its gradient and its optimizer states."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from rlm_core.training.full.model import FullModel


def in_shards(model: FullModel, device: torch.device, world: int, *, keep: bool, offload: bool) -> FullModel:
    """A copy of a model of which each of ``world`` processes holds a part.

    A layer of the encoder is put together when it is needed, all else for a whole pass: the decoder's layers are also
    read outside of their own forward pass, which Accelerate's choice of units does not allow. With ``keep`` layers stay
    together until the backward pass, which is faster and takes more memory; with ``offload`` shards wait in that of the
    CPU.
    """
    mesh = init_device_mesh(device.type, (world,))
    policy = CPUOffloadPolicy() if offload else OffloadPolicy()
    shards = copy.deepcopy(model)
    for stack in [module for module in shards.encoder.modules() if isinstance(module, nn.ModuleList)]:
        for layer in stack:
            fully_shard(layer, mesh=mesh, reshard_after_forward=not keep, offload_policy=policy)
    fully_shard(shards, mesh=mesh, reshard_after_forward=not keep, offload_policy=policy)
    return shards


def whole(tensor: Tensor) -> Tensor:
    """A tensor put together from its shards on the CPU, by all processes at once; any other as it is."""
    return tensor.full_tensor().cpu() if isinstance(tensor, DTensor) else tensor


def like(tensor: Tensor, weight: Tensor) -> Tensor:
    """A whole tensor in shards as those of a weight of its shape, all processes at once; any other as it is."""
    if not isinstance(weight, DTensor) or tensor.shape != weight.shape:
        return tensor
    return distribute_tensor(tensor.to(weight.device), weight.device_mesh, weight.placements)


def whole_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The state of an optimizer with whole tensors, by all processes at once."""
    state = optimizer.state_dict()
    return {
        **state,
        "state": {n: {name: whole(value) for name, value in own.items()} for n, own in state["state"].items()},
    }


def take_state(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Take up what :func:`whole_state` gave, in shards as those of the weights."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    own = {n: {name: like(value, weights[n]) for name, value in values.items()} for n, values in state["state"].items()}
    optimizer.load_state_dict({**state, "state": own})
