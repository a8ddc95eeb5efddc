"""The last stage: every text is encoded once, the head is fitted to the finished encodings and calibrated.

For calibration the head is fitted again without each fold of families in turn (as the n-gram ridge was), and scored on
calibration rows of the families it did not see: a user's package is never in the training data.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from rlm_core.inference.calibration import Calibration, Scale, parents, scores
from rlm_core.inference.features import answers_alone
from rlm_core.queries.query_vector import task_parts
from rlm_core.training.corpus import Corpus
from rlm_core.training.losses import soft_cross_entropy

from .batches import HeadInputs, pool_callees
from .config import EncoderFitConfig
from .encoder_fit import Bank
from .network import Base, Deep, Head, StudentConfig
from .ngram_ridge_fit import FOLDS, fold_of

Indices = npt.NDArray[np.int64]
_BATCH = 1024
_FEW_FAMILIES = 100
_LEAST_GAIN = 0.003  # Spearman on held-out groups, for which the encoder reads the texts of a task
_WEIGHT_SPREAD = 0.1


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
            inputs,
            bank.vectors,
            torch.cat([part.half() for part, _ in parts]),
            torch.cat([count for _, count in parts]),
        )

    def deep(self, deep: Deep, rows: Tensor) -> Tensor:
        """The deep part's logits for some rows, ``(rows, outcomes)``."""
        inputs = self.inputs.rows(rows)
        logits: Tensor = deep(
            self.vectors[inputs.text],
            self.callees[rows].float(),
            self.counts[rows],
            inputs.task,
            inputs.date,
            inputs.query,
        )
        return logits

    def base(self, base: Base, rows: Tensor) -> Tensor:
        """A base's logits for some rows, ``(rows, outcomes)``."""
        inputs = self.inputs.rows(rows)
        logits: Tensor = base(inputs.wide, inputs.facts, inputs.task, inputs.date, inputs.query)
        return logits

    def logits(self, head: Head, rows: Tensor) -> Tensor:
        """The head's logits for some rows, ``(rows, outcomes)``."""
        evidence = self.deep(head.deep, rows) - self.base(head.prior, rows)
        weight = head.weight[self.inputs.task[rows]]
        return self.base(head.base, rows) + weight[:, None] * evidence


def fit_head(
    features: Features,
    train: npt.NDArray[np.int64],
    val: npt.NDArray[np.int64],
    sizes: StudentConfig,
    config: EncoderFitConfig,
    deep: Deep | None = None,
) -> tuple[Head, float]:
    """Fit a head on finished encodings; the best parts by validation loss, and the loss of the whole.

    Base, prior and, unless one is given, the deep part are fitted on ``train`` and stopped early on ``val``; then the
    weights of the deep part's evidence are fitted on ``val``, whose groups the encoder has not seen.
    """
    torch.manual_seed(config.seed)
    head = Head(sizes)
    for base in (head.base, head.prior):
        _fit(base, partial(features.base, base), features, train, val, config)
    if deep is not None:
        head.deep.load_state_dict(deep.state_dict())
    else:
        _fit(head.deep, partial(features.deep, head.deep), features, train, val, config)
    return head.eval(), _fit_weights(features, head, val, config)


def _fit(
    part: nn.Module,
    logits: Callable[[Tensor], Tensor],
    features: Features,
    train: npt.NDArray[np.int64],
    val: npt.NDArray[np.int64],
    config: EncoderFitConfig,
) -> None:
    optimizer = torch.optim.AdamW(part.parameters(), lr=config.head_learning_rate, weight_decay=0.02)
    steps = math.ceil(len(train) / _BATCH) * config.head_epochs
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.head_learning_rate, total_steps=steps)
    best, state = math.inf, copy.deepcopy(part.state_dict())
    held_out = torch.from_numpy(val)
    for _ in range(config.head_epochs):
        part.train()
        order = torch.from_numpy(train)[torch.randperm(len(train))]
        for rows in order.split(_BATCH):
            loss = soft_cross_entropy(logits(rows), features.inputs.target[rows], config.label_sigma)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(part.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        part.eval()
        with torch.inference_mode():
            reached = float(soft_cross_entropy(logits(held_out), features.inputs.target[held_out], config.label_sigma))
        if reached < best:
            best, state = reached, copy.deepcopy(part.state_dict())
    part.load_state_dict(state)
    part.eval()


def _fit_weights(features: Features, head: Head, val: npt.NDArray[np.int64], config: EncoderFitConfig) -> float:
    """Fit how much the deep part's evidence counts in each task; the loss reached, in nats.

    A task's weight is drawn to the mean of all by a Gaussian prior, so that few held-out rows do not make a large one.
    """
    chosen = torch.from_numpy(val)
    inputs = features.inputs.rows(chosen)
    with torch.no_grad():
        base = features.base(head.base, chosen)
        evidence = features.deep(head.deep, chosen) - features.base(head.prior, chosen)
        head.weight.fill_(0.3)
    optimizer = torch.optim.LBFGS([head.weight], max_iter=100, line_search_fn="strong_wolfe")

    def loss_now() -> Tensor:
        return soft_cross_entropy(
            base + head.weight[inputs.task][:, None] * evidence, inputs.target, config.label_sigma
        )

    def closure() -> float:
        optimizer.zero_grad()
        drawn = ((head.weight - head.weight.mean()) ** 2).sum() / (2 * _WEIGHT_SPREAD**2 * len(val))
        loss = loss_now()
        (loss + drawn).backward()
        return float((loss + drawn).detach())

    optimizer.step(closure)
    with torch.no_grad():
        head.weight.clamp_(min=0)
        return float(loss_now())


def drop_encoder(
    features: Features, head: Head, corpus: Corpus, scales: list[Scale], val: npt.NDArray[np.int64]
) -> dict[str, float]:
    """Set the weight of the deep part to 0 in tasks that it ranks hardly better; the gains in Spearman by task.

    A task without it needs no pass of the encoder, which is most of the time of a prediction.
    """
    whole = log_medians(features, head, corpus, scales)
    kept = head.weight.detach().clone()
    with torch.no_grad():
        head.weight.zero_()
    alone = log_medians(features, head, corpus, scales)
    gains: dict[str, float] = {}
    for number, name in enumerate(corpus.tasks):
        rows = val[corpus.rows.task[val] == number]
        if answers_alone(name) or not len(rows):
            continue
        values = corpus.rows.value[rows]
        gains[name] = float(np.nan_to_num(spearmanr(whole[rows], values)[0] - spearmanr(alone[rows], values)[0]))
    # Tasks share the encodings of their texts: one that gains keeps them for all of its kind of text.
    kinds = {name.rpartition("/")[0] for name, gain in gains.items() if gain >= _LEAST_GAIN}
    with torch.no_grad():
        for number, name in enumerate(corpus.tasks):
            if name not in gains or name.rpartition("/")[0] in kinds:
                head.weight[number] = kept[number]
    return gains


def as_dropped(head: Head, other: Head) -> Head:
    """A head that does without the encoder where another one does."""
    with torch.no_grad():
        head.weight.mul_(other.weight > 0)
    return head


def needed(head: Head, tasks: Tensor, evidence: Tensor) -> Tensor:
    """The deep part's evidence, ``(rows, outcomes)``; none in tasks that do without the encoder."""
    return evidence * (head.weight[tasks] > 0)[:, None]


def deep_weight_of(name: str, weight: float) -> float:
    """The weight of the encoder's evidence in a task; forests that answer alone need it to know what is unlike."""
    return 1.0 if answers_alone(name) else weight


def probabilities(
    features: Features, head: Head, rows: npt.NDArray[np.int64], scales: list[Scale]
) -> npt.NDArray[np.float64]:
    """Distributions of rows, ``(rows, outcomes)``; no mass at the floor where a task has none."""
    head.eval()
    with torch.inference_mode():
        parts = [features.logits(head, chosen).double() for chosen in torch.from_numpy(rows).split(4096)]
        logits = torch.cat(parts)
        floorless = torch.tensor([scale.floor == 0 for scale in scales])[features.inputs.task[torch.from_numpy(rows)]]
        logits[floorless, 0] = -torch.inf
        result: npt.NDArray[np.float64] = logits.softmax(1).numpy()
    return result


def log_medians(features: Features, head: Head, corpus: Corpus, scales: list[Scale]) -> npt.NDArray[np.float64]:
    """Log10 of the predicted medians of the rows that the head answers, at least the floor, ``(rows,)``; else NaN."""
    result = np.full(len(corpus.rows), np.nan)
    for number, (name, scale) in enumerate(zip(corpus.tasks, scales, strict=True)):
        mine = np.flatnonzero(corpus.rows.task == number)
        if len(mine) and not answers_alone(name):
            found = scale.quantiles(probabilities(features, head, mine, scales), [0.5])[:, 0]
            result[mine] = np.log10(np.maximum(found, scale.floor or 1e-12))
    return result


def calibrate(
    features: Features,
    corpus: Corpus,
    head: Head,
    scales: list[Scale],
    head_of: Callable[[Indices, Indices], Head],
) -> Calibration:
    """Calibrate on the ``cal`` split, whole families left out where their other rows were trained on.

    ``head_of`` fits a head to ``train`` and ``val`` rows. A language with few families to calibrate on is calibrated on
    its training rows too, each by a head without them.
    """
    rows = corpus.rows
    cal = _calibration_rows(corpus)
    train, val = np.flatnonzero(rows.split == "train"), np.flatnonzero(rows.split == "val")
    result = np.full(len(cal), np.nan)
    seen = np.isin(rows.family[cal], np.unique(rows.family[train]))
    folds = np.array([fold_of(family) for family in rows.family])
    jobs: list[tuple[npt.NDArray[np.bool_], Head]] = [(~seen, head)]
    related = np.isin(rows.task, np.unique(rows.task[cal[seen]]))
    for fold in range(FOLDS):
        chosen = seen & (folds[cal] == fold)
        if chosen.any():
            others = train[(folds[train] != fold) & related[train]]
            held_out = val[(folds[val] != fold) & related[val]]
            # Little data may have its families in one fold: then a head that knows them has to do.
            enough = len(others) > 0 and len(held_out) > 0
            jobs.append((chosen, head_of(others, held_out) if enough else head))
    for chosen, fitted in jobs:
        for number, scale in enumerate(scales):
            mine = chosen & (rows.task[cal] == number)
            if mine.any():
                found = probabilities(features, fitted, cal[mine], scales)
                result[mine] = scores(found, scale, rows.value[cal[mine]])
    names = []
    for row in cal:
        basis, language, metric, _ = task_parts(corpus.tasks[rows.task[row]])
        names.append(parents(basis, language, metric, corpus.queries[rows.query[row]][0]))
    return Calibration.fit(names, result, rows.family[cal])


def _calibration_rows(corpus: Corpus) -> npt.NDArray[np.int64]:
    rows = corpus.rows
    headed = np.array([not answers_alone(name) for name in corpus.tasks])[rows.task]
    chosen = headed & (rows.split == "cal")
    for prefix in corpus.prefixes():
        mine = np.zeros(len(rows), bool)
        mine[corpus.rows_of(prefix)] = True
        mine &= headed
        if len(np.unique(rows.family[mine & chosen])) < _FEW_FAMILIES:
            chosen |= mine & (rows.split == "train")
    return np.flatnonzero(chosen)
