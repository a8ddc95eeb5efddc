"""Optimizers of the full model: only what is to be trained, the encoder at its own pace."""

from __future__ import annotations

import math

import torch
from torch import nn

from rlm_core.training.full.model import FullModel

from .config import LoopConfig


def trained(model: FullModel) -> dict[str, nn.Parameter]:
    """The parameters that training changes, by name; a frozen or adapted base is not among them."""
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def make_optimizers(model: FullModel, config: LoopConfig) -> list[torch.optim.Optimizer]:
    """The optimizers of a run. Groups hold their highest rate as ``peak``.

    Muon (arXiv 2502.16982) takes the matrices inside of layers; adapters have too low a rank for it.
    """
    matrices: list[dict[str, object]] = []
    others: list[dict[str, object]] = []
    for in_encoder, factor in ((True, config.encoder_rate), (False, 1.0)):
        own = {name: w for name, w in trained(model).items() if name.startswith("encoder.") == in_encoder}
        inner = [w for name, w in own.items() if config.optimizer == "muon" and _is_matrix(name, w)]
        ids = {id(weight) for weight in inner}
        outer = [weight for weight in own.values() if id(weight) not in ids]
        for groups, weights, rate in (
            (matrices, inner, config.matrix_learning_rate),
            (others, outer, config.learning_rate),
        ):
            if weights:
                groups.append({"params": weights, "lr": rate * factor, "peak": rate * factor})
    found: list[torch.optim.Optimizer] = []
    if matrices:
        found.append(torch.optim.Muon(matrices, weight_decay=config.weight_decay, adjust_lr_fn="match_rms_adamw"))
    if others and config.optimizer == "adafactor":
        found.append(torch.optim.Adafactor(others, weight_decay=config.weight_decay))
    elif others:
        found.append(torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=config.weight_decay))
    return found


def _is_matrix(name: str, weight: nn.Parameter) -> bool:
    return weight.ndim == 2 and ".layers." in name and "lora_" not in name


def set_rates(optimizers: list[torch.optim.Optimizer], config: LoopConfig, step: int, total: int) -> float:
    """Set the rates of a step (0-based): linear warm-up, then a cosine; the share of the peak."""
    warm = min(1.0, (step + 1) / max(config.warmup_steps, 1))
    fall = 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(total, 1))))
    share = warm * (config.final_rate + (1 - config.final_rate) * fall)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * share
    return share
