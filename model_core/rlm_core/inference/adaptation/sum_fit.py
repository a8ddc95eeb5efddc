"""A new device for networks: what known devices take for arithmetic, for memory and once per kernel, each scaled.

Devices differ in how fast their arithmetic, their memory and the start of a kernel are. A few measured networks give
three factors on the mean of known devices of a kind, such as GPUs: they minimise the errors of logarithms, with less
weight on networks that are far off, and are drawn towards one common factor. Kinds count by how likely they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from rlm_core.queries.devices import device_table
from rlm_core.types import Prediction

from .fit import SMALLEST, Array, DeviceFit, Indices, Rest

PARTS = ("arithmetic", "memory", "once")
MIN_NETWORKS = 3
# The error, in logarithms, from which on a network counts less: that of half of the networks of unseen families.
_NEAR = 0.1
# The prior variance of a factor, in units of the squared error of a network.
_PULL = 0.1
_REPEATS = 0.03  # error of a measurement, in logarithms: no kind is likelier for smaller ones
_STEPS = 30
_MOST_STEP = 1.0  # in logarithms


def part_columns(answers: Sequence[Prediction]) -> Array:
    """Seconds of :data:`PARTS` on each known device, ``(devices * parts,)``; NaN where they are not known."""
    columns = []
    for answer in answers:
        parts = answer.parts
        if parts is None or answer.median is None:
            columns += [math.nan] * len(PARTS)
        else:
            shares = parts.arithmetic, 1 - parts.arithmetic - parts.once, parts.once
            columns += [answer.median * max(share, 0.0) for share in shares]
    return np.array(columns)


def kinds_of(devices: Sequence[str]) -> list[list[int]]:
    """The places of the devices of each kind, such as processors and GPUs."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(devices):
        known = device_table().get(name)
        found[known.kind if known else name].append(place)
    return list(found.values())


def fit_sum(columns: Array, target: Array, texts: Sequence[Hashable], kinds: Sequence[Sequence[int]]) -> DeviceFit:
    """Fit a device from its log10 seconds ``(n,)`` and the :func:`part_columns` of known devices ``(n, columns)``.

    ``kinds`` are the places of the known devices by their kind, as from :func:`kinds_of`.

    Raises:
        ValueError: fewer than ``MIN_NETWORKS`` texts.
    """
    order = list(dict.fromkeys(texts))
    own: Indices = np.array([order.index(text) for text in texts], np.int64)
    if len(order) < MIN_NETWORKS:
        raise ValueError(f"{len(order)} networks cannot be fitted")
    seconds = 10.0**target
    weights = _weights(columns, seconds, kinds)
    without = np.array([_weights(columns[own != text], seconds[own != text], kinds) for text in range(len(order))])
    left_out = np.log10(np.maximum((columns * without[own]).sum(axis=1), SMALLEST))
    rest = Rest(without, np.zeros(len(order)), target - left_out)
    return DeviceFit(columns.shape[1], columns.mean(axis=0), weights, 0.0, own, rest, None, is_sum=True)


def _weights(columns: Array, seconds: Array, kinds: Sequence[Sequence[int]]) -> Array:
    """The factor of each part of each device, ``(columns,)``: of each kind of devices, by how likely it is."""
    parts = columns.reshape(len(columns), -1, len(PARTS))
    logs = np.log(seconds)
    factors, losses = [], []
    for places in kinds:
        # Devices of a kind count alike, however fast they are.
        scales = np.median(seconds[:, None] / np.maximum(parts[:, places].sum(axis=2), SMALLEST), axis=0) / len(places)
        together = np.einsum("rdp,d->rp", parts[:, places], scales)
        of_parts = _factors(together, logs)
        errors = np.log(np.maximum(together @ np.exp(of_parts), SMALLEST)) - logs
        factors.append(np.outer(scales, np.exp(of_parts)))
        losses.append(len(logs) * math.log(max(float(np.abs(errors).mean()), _REPEATS)))
    shares = np.exp(min(losses) - np.array(losses))
    result = np.zeros(parts.shape[1:])
    for places, of_kind, share in zip(kinds, factors, shares / shares.sum(), strict=True):
        result[places] += share * of_kind
    return result.ravel()


def _factors(parts: Array, logs: Array) -> Array:
    """The logarithms of the factors of parts ``(rows, parts)``, by iterated least squares."""
    count = parts.shape[1]
    common = np.eye(count) - 1 / count  # what is drawn to zero: the distance from the mean factor
    found = np.zeros(count)
    for _ in range(_STEPS):
        scaled = parts * np.exp(found)
        total = np.maximum(scaled.sum(axis=1), SMALLEST)
        errors = np.log(total) - logs
        slopes = scaled / total[:, None]
        weights = 1 / np.sqrt(errors**2 + _NEAR**2)
        curvature = (slopes * weights[:, None]).T @ slopes + 2 * _PULL * common
        step = np.linalg.solve(
            curvature + 1e-9 * np.eye(count), slopes.T @ (weights * errors) + 2 * _PULL * common @ found
        )
        found = found - np.clip(step, -_MOST_STEP, _MOST_STEP)
    return found
