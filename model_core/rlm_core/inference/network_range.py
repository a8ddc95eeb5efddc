"""The networks that models of NAS benchmarks answer for: of the sizes that these benchmarks have.

Trees give a network beyond all that they were trained on the value of the largest one, and an accuracy after training
on small images says nothing about a network for large ones. Likeness of texts does not show either. A sum over kernels
that was fitted to cells of one search space says little about a network that does much more of some kind of work.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rlm_core.types import Abstention, AbstentionCode, Query

from .features.network import NAMES
from .network_settings import SettingCost
from .network_work import NetworkWork, factors_of
from .trees import Forest

_PLACE = {name: number for number, name in enumerate(NAMES)}
_IMAGE_SIDE = {"cifar10": 32, "cifar100": 32, "imagenet16-120": 32}
"""Of the networks that were trained on each data set."""
# Decades. The highest threshold of a forest is below its largest network: by up to .4 among the shipped ones.
_MARGIN = 0.6
_MOST_BEYOND = 0.05
"""Of the cost: the largest share that is more work of a kind than any measured network has."""


def out_of_range(forest: Forest, query: Query, features: npt.NDArray[np.float32]) -> Abstention | None:
    """The reason to abstain from a network with features ``(len(NAMES),)``; None for one like those of the forest."""
    dataset = query.workload.get("dataset", "")
    side, usual = float(features[_PLACE["input_side"]]), _IMAGE_SIDE.get(dataset)
    if query.metric == "accuracy" and usual is not None and side not in (0, usual):
        details = {"dataset": dataset, "side": f"{side:.0f}", "usual": str(usual)}
        return Abstention(AbstentionCode.OTHER_IMAGE_SIZE, details)
    most = max(_highest(forest, name) for name in ("all_macs", "live_macs"))
    macs = float(features[_PLACE["all_macs"]])
    if most > 0 and macs > most + _MARGIN:
        details = {"gmacs": f"{10**macs / 1e9:.2g}", "most": f"{10**most / 1e9:.2g}"}
        return Abstention(AbstentionCode.TOO_LARGE, details)
    return None


def beyond_measured(work: NetworkWork, setting: SettingCost, batch: int) -> Abstention | None:
    """The reason to abstain from a network with more or less work than those of a setting; None without such limits.

    A column of work may exceed what the measured networks have by what costs a small share of the whole.
    """
    if not setting.most:
        return None
    factors, images = factors_of(setting), batch / work.batch
    by_kernel = work.at(batch) * factors
    costs = by_kernel.sum(axis=0)
    total = float(costs.sum()) + setting.fixed
    beyond = np.maximum(costs - np.array(setting.most) * factors, 0.0)
    sizes = [(kernel.read + kernel.written) * images for kernel in work.kernels]
    if max(sizes, default=0.0) > setting.largest:
        named = work.operators[sizes.index(max(sizes))]
    elif float(beyond.sum()) > _MOST_BEYOND * total:
        named = work.operators[int(by_kernel[:, int(beyond.argmax())].argmax())]
    elif total < setting.least:
        named = ""
    else:
        return None
    details = {"metric": setting.metric, "device": setting.device, "operators": named}
    return Abstention(AbstentionCode.BEYOND_MEASURED, details)


def _highest(forest: Forest, name: str) -> float:
    """The highest threshold of a feature in a forest; 0 without any."""
    thresholds = forest.threshold[forest.feature == _PLACE[name]]
    highest = float(thresholds.max()) if len(thresholds) else 0.0
    return highest if math.isfinite(highest) else 0.0
