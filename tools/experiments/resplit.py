"""Refits the model to other splits of the rows, on encodings that have seen no label.

For figures under protocols other than that of the shipped model (random rows, folds over all groups, few training
rows): everything that reads labels is fitted on the ``train`` rows of the corpus it is given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from rlm_core.inference.calibration import fit_scale
from rlm_core.inference.features import answers_alone
from rlm_core.inference.tokenizer import Ids
from rlm_core.training.corpus import Corpus, floor_of
from rlm_core.training.student.batches import head_inputs
from rlm_core.training.student.config import TrainConfig
from rlm_core.training.student.encoder_fit import Bank
from rlm_core.training.student.head_fit import Features, fit_head, probabilities
from rlm_core.training.student.network import StudentConfig
from rlm_core.training.student.ngram_ridge_fit import fit_ngram_ridge
from rlm_core.training.student.trees_fit import fit_trees


@dataclass(frozen=True, slots=True)
class Frozen:
    """The data that do not depend on labels: uncropped ids, syntax counts and encodings of the corpus' texts."""

    ids: list[Ids]
    counts: npt.NDArray[np.float32]
    bank: Bank


@dataclass(frozen=True, slots=True)
class Refit:
    """Medians (SI units) of the test rows, by the whole model and by its wide part or trees alone."""

    rows: npt.NDArray[np.int64]
    median: npt.NDArray[np.float64]
    wide: npt.NDArray[np.float64]
    distributions: npt.NDArray[np.float64]


def refit(corpus: Corpus, frozen: Frozen, settings: TrainConfig) -> Refit:
    """Fit wide part, trees and head on the corpus' ``train`` and ``val`` rows and answer its ``test`` rows."""
    fitted = fit_ngram_ridge(corpus, frozen.ids, bits=settings.ngram_bits, penalty=settings.ngram_penalty)
    grown = fit_trees(corpus, settings.trees)
    predictions = fitted.predictions + grown.predictions
    rows = corpus.rows
    train = np.flatnonzero(rows.split == "train")
    val, test = np.flatnonzero(rows.split == "val"), np.flatnonzero(rows.split == "test")
    target, position = np.zeros(len(rows)), np.zeros(len(rows))
    scales = []
    for number, name in enumerate(corpus.tasks):
        mine = rows.task == number
        scale = fit_scale(rows.value[mine & (rows.split == "train")], floor_of(name))
        target[mine], position[mine] = scale.position(rows.value[mine]), scale.position(10 ** predictions[mine])
        scales.append(scale)
    lengths = np.array([len(text) for text in frozen.ids])
    features = Features.build(head_inputs(corpus, frozen.counts, lengths, position, target), frozen.bank)
    sizes: StudentConfig = replace(settings.model, slices=len(corpus.tasks))
    head, _ = fit_head(features, train, val, sizes, settings.train)
    found = probabilities(features, head, test, scales)
    median = np.zeros(len(test))
    for number, (name, scale) in enumerate(zip(corpus.tasks, scales, strict=True)):
        mine = rows.task[test] == number
        alone = answers_alone(name)
        median[mine] = 10 ** predictions[test][mine] if alone else scale.quantiles(found[mine], [0.5])[:, 0]
    return Refit(test, median, 10 ** predictions[test], found)


def resplit(corpus: Corpus, split: npt.NDArray[np.str_]) -> Corpus:
    """The corpus with other splits, ``(rows,)``."""
    return replace(corpus, rows=replace(corpus.rows, split=split))
