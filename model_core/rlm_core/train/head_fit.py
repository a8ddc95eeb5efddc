"""The last stage: the encoder is done, every text is encoded once, the head is fitted to the finished encodings and calibrated.

For calibration the head is fitted again without each fold of families in turn (as the wide part was), and scored on
calibration rows of the families it did not see: a user's package is never in the training data.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..bins import Scale
from ..calibration import Calibration, parents, scores
from ..student import Head, StudentConfig
from .batches import HeadInputs, pool_callees
from .config import LoopConfig
from .dataset import Corpus
from .loop import Bank, loss_of
from .wide_fit import FOLDS, fold_of

_BATCH = 1024


@dataclass(slots=True)
class Features:
    """The head's inputs for all rows, callees pooled once (float16)."""

    inputs: HeadInputs
    vectors: Tensor
    callees: Tensor
    counts: Tensor

    @classmethod
    def build(cls, inputs: HeadInputs, bank: Bank) -> Features:
        """Pool the callees of every row."""
        bank = Bank(bank.vectors.cpu(), bank.known.cpu())
        parts = [
            pool_callees(bank.vectors, bank.known, inputs.callees[i : i + 4096])
            for i in range(0, len(inputs.text), 4096)
        ]
        return cls(
            inputs, bank.vectors, torch.cat([part.half() for part, _ in parts]), torch.cat([count for _, count in parts])
        )

    def logits(self, head: Head, rows: Tensor) -> Tensor:
        """The head's logits for some rows, ``(rows, outcomes)``."""
        inputs = self.inputs.rows(rows)
        result: Tensor = head(
            self.vectors[inputs.text],
            self.callees[rows].float(),
            self.counts[rows],
            inputs.wide,
            inputs.slice,
            inputs.date,
        )
        return result


def fit_head(
    features: Features,
    train: npt.NDArray[np.int64],
    val: npt.NDArray[np.int64],
    sizes: StudentConfig,
    config: LoopConfig,
    start: Head | None = None,
) -> tuple[Head, float]:
    """Fit a head on finished encodings, from scratch or from ``start``; the best by validation loss, and that loss."""
    torch.manual_seed(config.seed)
    head = copy.deepcopy(start) if start is not None else Head(sizes)
    optimizer = torch.optim.AdamW(head.parameters(), lr=config.head_learning_rate, weight_decay=config.weight_decay)
    steps = math.ceil(len(train) / _BATCH) * config.head_epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.head_learning_rate, total_steps=steps)
    best, state = head_loss(features, head, val, config), copy.deepcopy(head.state_dict())
    if start is None:
        best = math.inf
    for _ in range(config.head_epochs):
        head.train()
        order = torch.from_numpy(train)[torch.randperm(len(train))]
        for rows in order.split(_BATCH):
            loss = loss_of(features.logits(head, rows), features.inputs.rows(rows), config.label_sigma)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        loss_now = head_loss(features, head, val, config)
        if loss_now < best:
            best, state = loss_now, copy.deepcopy(head.state_dict())
    head.load_state_dict(state)
    return head.eval(), best


def head_loss(features: Features, head: Head, rows: npt.NDArray[np.int64], config: LoopConfig) -> float:
    """Mean cross-entropy of a head on rows, in nats."""
    head.eval()
    with torch.inference_mode():
        chosen = torch.from_numpy(rows)
        return float(loss_of(features.logits(head, chosen), features.inputs.rows(chosen), config.label_sigma))


def probabilities(
    features: Features, head: Head, rows: npt.NDArray[np.int64], scales: list[Scale]
) -> npt.NDArray[np.float64]:
    """Distributions of rows, ``(rows, outcomes)``; no mass at the floor where a slice has none."""
    head.eval()
    with torch.inference_mode():
        parts = [features.logits(head, chosen).double() for chosen in torch.from_numpy(rows).split(4096)]
        logits = torch.cat(parts)
        floorless = torch.tensor([scale.floor == 0 for scale in scales])[features.inputs.slice[torch.from_numpy(rows)]]
        logits[floorless, 0] = -torch.inf
        result: npt.NDArray[np.float64] = logits.softmax(1).numpy()
    return result


def calibrate(
    features: Features,
    corpus: Corpus,
    head: Head,
    scales: list[Scale],
    devices: dict[str, str],
    sizes: StudentConfig,
    config: LoopConfig,
) -> Calibration:
    """Calibrate on the ``cal`` split, whole families left out where their other rows were trained on."""
    rows = corpus.rows
    cal = np.flatnonzero(rows.split == "cal")
    train, val = np.flatnonzero(rows.split == "train"), np.flatnonzero(rows.split == "val")
    result = np.full(len(cal), np.nan)
    seen = np.isin(rows.family[cal], np.unique(rows.family[train]))
    folds = np.array([fold_of(family) for family in rows.family])
    jobs: list[tuple[npt.NDArray[np.bool_], Head]] = [(~seen, head)]
    related = np.isin(rows.slice, np.unique(rows.slice[cal[seen]]))
    for fold in range(FOLDS):
        chosen = seen & (folds[cal] == fold)
        if chosen.any():
            others = train[(folds[train] != fold) & related[train]]
            refitted, _ = fit_head(features, others, val[related[val] & (folds[val] != fold)], sizes, config)
            jobs.append((chosen, refitted))
    for chosen, fitted in jobs:
        for number, scale in enumerate(scales):
            mine = chosen & (rows.slice[cal] == number)
            if mine.any():
                found = probabilities(features, fitted, cal[mine], scales)
                result[mine] = scores(found, scale, rows.value[cal[mine]])
    names = []
    for row in cal:
        basis, language, metric = corpus.slices[rows.slice[row]].split("/")
        names.append(parents(basis, language, metric, devices[basis]))
    return Calibration.fit(names, result, rows.family[cal])
