"""The networks that the forests of NAS benchmarks answer for: of the sizes that these benchmarks have.

Trees give a network beyond all that they were trained on the value of the largest one, and an accuracy after training
on small images says nothing about a network for large ones. Likeness of texts does not show either.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from rlm_core.types import Abstention, AbstentionCode, Query

from .features.network import NAMES
from .trees import Forest

_PLACE = {name: number for number, name in enumerate(NAMES)}
_IMAGE_SIDE = {"cifar10": 32, "cifar100": 32, "imagenet16-120": 32}
"""Of the networks that were trained on each data set."""
# Decades. The highest threshold of a forest is below its largest network: by up to .4 among the shipped ones.
_MARGIN = 0.6


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


def _highest(forest: Forest, name: str) -> float:
    """The highest threshold of a feature in a forest; 0 without any."""
    thresholds = forest.threshold[forest.feature == _PLACE[name]]
    highest = float(thresholds.max()) if len(thresholds) else 0.0
    return highest if math.isfinite(highest) else 0.0
