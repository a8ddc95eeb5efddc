"""A growth data set -> the weights of the growth head: ``python -m rlm_core.training.growth_fit``.

A linear model on hashed words and signs, fitted per metric; a small network on its out-of-fold scores and the dense
features; temperatures fitted on the calibration split. Solutions with a single method are learned a second time as
functions, without the class around it. The test split is read by the evaluation alone.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse
import torch
from sklearn.svm import LinearSVC
from torch.nn import functional

from rlm_core.cost.analysis import work_facts
from rlm_core.inference import growth
from rlm_core.inference.card import StudentCard, read_card
from rlm_core.inference.growth_facts import FACT_FEATURES, fact_features
from rlm_core.inference.growth_features import BITS, FEATURES, GrowthFeatures, growth_features, unit_weights
from rlm_core.source.canonical import canonical
from rlm_core.types import GROWTH_CLASSES

from .datasets.growth import read_growth
from .student.ngram_ridge_fit import fold_of

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]
FOLDS = 3
MISSING = -1
_COST = 0.5  # of a margin violation; .25 to 1 are equal on validation groups
_HIDDEN, _NETWORKS, _EPOCHS, _BATCH, _RATE, _DROPOUT, _DECAY = 96, 3, 12, 256, 3e-3, 0.4, 0.02
_FACTS_LEFT_OUT = 0.2
_METHOD = re.compile(r"\A(?:(?:import|from)[^\n]*\n)*class \w+(?:\(object\))?:\n\t(?=def )")


@dataclass(frozen=True, slots=True)
class GrowthRows:
    """Labelled texts, with ``facts (rows, fact features)`` and class numbers ``labels (rows, metrics)`` (-1: none)."""

    features: list[GrowthFeatures]
    facts: Array
    basis: list[str]
    language: list[str]
    labels: Indices
    group: list[str]
    split: npt.NDArray[np.str_]
    source: list[str]
    text: list[str]

    def of_split(self, *splits: str) -> Indices:
        """The rows of some splits."""
        return np.flatnonzero(np.isin(self.split, splits))


def as_function(text: str, language: str) -> str | None:
    """The only method of a Python solution as a function; None for other texts."""
    if language != "python" or (match := _METHOD.match(text)) is None:
        return None
    body = text[match.end() :]
    if re.search(r"^\tdef |^\S", body, re.MULTILINE) and re.search(r"\n(?:\tdef |\S|\t@)", body):
        return None
    return canonical("\t" + body, language)


def read_rows(path: Path, splits: Sequence[str] | None = None, *, functions: bool = True) -> GrowthRows:
    """The rows of a data set with their features; Python solutions with one method also as functions.

    Raises:
        DataError: the file is missing or is not a data set of growth.
    """
    columns = read_growth(path, splits).to_pydict()
    entries: list[tuple[int, str, str]] = []
    for number, (text, language) in enumerate(zip(columns["text"], columns["language"], strict=True)):
        entries.append((number, text, "program"))
        function = as_function(text, language) if functions else None
        if function:
            entries.append((number, function, "call"))
    numbers = [number for number, _, _ in entries]
    languages = [columns["language"][number] for number in numbers]
    with ProcessPoolExecutor(2) as pool:
        texts = [text for _, text, _ in entries]
        bases = [basis for _, _, basis in entries]
        features = list(pool.map(_features, texts, languages, bases, chunksize=256))
        facts = np.stack(list(pool.map(_facts, texts, languages, chunksize=256)))
    index = {name: number for number, name in enumerate(GROWTH_CLASSES)}
    labels = [[index.get(columns[name][number], MISSING) for name in ("time", "space")] for number in numbers]
    return GrowthRows(
        features,
        facts,
        bases,
        languages,
        np.array(labels),
        [columns["group"][number] for number in numbers],
        np.array([columns["split"][number] for number in numbers]),
        [columns["source"][number] for number in numbers],
        texts,
    )


def _features(text: str, language: str, basis: str) -> GrowthFeatures:
    return growth_features(growth.read_text(text, language, basis), language)


def _facts(text: str, language: str) -> Array:
    return fact_features(work_facts(text) if language == "python" else None)


def fit(rows: GrowthRows, chosen: Indices, calibration: Indices, *, seed: int = 0) -> growth.GrowthWeights:
    """The weights fitted on the chosen rows, with temperatures from the calibration rows."""
    idf = _idf([rows.features[row] for row in chosen])
    matrix = _matrix(rows.features, idf)
    folds = np.array([fold_of(group, FOLDS) for group in rows.group])
    scores = np.zeros((len(rows.features), growth.OUTPUTS), np.float32)
    for fold in np.unique(folds[chosen]):
        held = chosen[folds[chosen] == fold]
        weights, offset = _fit_linear(matrix, rows.labels, chosen[folds[chosen] != fold])
        scores[held] = matrix[held] @ weights.T + offset
    weights, offset = _fit_linear(matrix, rows.labels, chosen)
    dense = np.stack([row.dense for row in rows.features])
    mean, deviation = dense[chosen].mean(axis=0), dense[chosen].std(axis=0) + 1e-2
    scale = np.maximum(np.abs(weights).max(axis=1), 1e-12) / 127
    codes = np.round(weights / scale[:, None]).astype(np.int8)
    none = np.zeros((0, 0), np.float32)
    head = growth.GrowthWeights(
        idf, codes, scale.astype(np.float32), offset, mean, deviation, none, none, none, none,
        np.ones(len(growth.METRICS), np.float32),
    )  # fmt: skip
    layers = _fit_networks(_inputs(rows, scores, head.standardised(dense)), rows.labels, chosen, seed)
    first, first_bias, last, last_bias = layers
    return _calibrated(
        replace(head, first=first, first_bias=first_bias, last=last, last_bias=last_bias), rows, calibration
    )


def predictions(head: growth.GrowthWeights, rows: GrowthRows, chosen: Indices) -> Array:
    """The probabilities of the chosen rows, ``(rows, metrics, classes)``."""
    return np.stack(
        [head.probabilities(rows.features[row], rows.facts[row], rows.language[row], rows.basis[row]) for row in chosen]
    )


def _idf(rows: Sequence[GrowthFeatures]) -> Array:
    counts = np.bincount(np.concatenate([row.buckets for row in rows]), minlength=2 << BITS)
    return (np.log((1 + len(rows)) / (1 + counts)) + 1).astype(np.float16).astype(np.float32)


def _matrix(rows: Sequence[GrowthFeatures], idf: Array) -> sparse.csr_matrix:
    indptr = np.cumsum([0, *(len(row.buckets) for row in rows)])
    data = np.concatenate([unit_weights(row, idf) for row in rows])
    return sparse.csr_matrix((data, np.concatenate([row.buckets for row in rows]), indptr), (len(rows), 2 << BITS))


def _fit_linear(matrix: sparse.csr_matrix, labels: Indices, rows: Indices) -> tuple[Array, Array]:
    """Weights ``(outputs, buckets)`` and offsets of one linear classifier per metric, one class against the rest."""
    weights = np.zeros((growth.OUTPUTS, matrix.shape[1]), np.float32)
    offset = np.full(growth.OUTPUTS, -1.0, np.float32)
    for metric in range(labels.shape[1]):
        known = rows[labels[rows, metric] != MISSING]
        if len(np.unique(labels[known, metric])) < 2:
            continue  # one class needs no classifier
        model = LinearSVC(C=_COST, dual=True, tol=0.1, max_iter=100, random_state=0)
        model.fit(matrix[known], labels[known, metric])
        places = metric * len(GROWTH_CLASSES) + model.classes_
        is_binary = len(places) == 2  # then there is one hyperplane, of the second class
        weights[places] = np.concatenate([-model.coef_, model.coef_]) if is_binary else model.coef_
        offset[places] = np.concatenate([-model.intercept_, model.intercept_]) if is_binary else model.intercept_
    return weights, offset


def _inputs(rows: GrowthRows, scores: Array, standardised: Array) -> torch.Tensor:
    entries = zip(scores, standardised, rows.facts, rows.language, rows.basis, strict=True)
    return torch.from_numpy(np.stack([growth.head_inputs(*entry) for entry in entries]))


def _fit_networks(inputs: torch.Tensor, labels: Indices, rows: Indices, seed: int) -> tuple[Array, Array, Array, Array]:
    """Several networks with one hidden layer, joined to one whose output is the mean of their outputs."""
    targets = torch.from_numpy(labels)
    start = len(FEATURES) + growth.OUTPUTS
    facts = slice(start, start + len(FACT_FEATURES))
    layers = []
    for number in range(_NETWORKS):
        torch.manual_seed(seed * 1000 + number)
        network = torch.nn.Sequential(
            torch.nn.Linear(inputs.shape[1], _HIDDEN), torch.nn.ReLU(), torch.nn.Dropout(_DROPOUT),
            torch.nn.Linear(_HIDDEN, growth.OUTPUTS),
        )  # fmt: skip
        optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=_DECAY)
        steps = _EPOCHS * max(len(rows) // _BATCH, 1)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 1e-3, steps)
        for _ in range(_EPOCHS):
            order = torch.from_numpy(rows)[torch.randperm(len(rows))]
            for batch in order.split(_BATCH):
                entry = inputs[batch]
                # Units in other languages, and those that the analysis cannot read, have no facts.
                entry[:, facts] *= (torch.rand(len(batch), 1) > _FACTS_LEFT_OUT).float()
                logits = network(entry).reshape(-1, len(GROWTH_CLASSES))
                loss = functional.cross_entropy(logits, targets[batch].reshape(-1), ignore_index=MISSING)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
        layers.append([parameter.detach().numpy() for parameter in network.parameters()])
    first, first_bias, last, last_bias = zip(*layers, strict=True)
    return (
        np.concatenate(first).T.copy(),
        np.concatenate(first_bias),
        (np.concatenate(last, axis=1).T / _NETWORKS).astype(np.float32),
        np.mean(last_bias, axis=0, dtype=np.float32),
    )


def _calibrated(head: growth.GrowthWeights, rows: GrowthRows, calibration: Indices) -> growth.GrowthWeights:
    """The head with the temperature of each metric that gives the calibration rows the largest likelihood."""
    logs = np.log(predictions(head, rows, calibration) + 1e-9)
    best = []
    for metric in range(len(growth.METRICS)):
        labels = rows.labels[calibration, metric]
        known = np.flatnonzero(labels != MISSING)
        losses = []
        grid = np.geomspace(0.5, 3.0, 60)
        for temperature in grid:
            scaled = logs[known, metric] / temperature
            scaled = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
            losses.append(-scaled[np.arange(len(known)), labels[known]].mean())
        best.append(grid[int(np.argmin(losses))])
    return replace(head, temperature=np.array(best, np.float32))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the head on the ``train`` and ``val`` splits and add it to a model."""
    parser = argparse.ArgumentParser(description="Fit the growth head and add it to a model.")
    parser.add_argument("--data", type=Path, required=True, help="data set of `rlm-lsp data build growth`")
    parser.add_argument("--model", type=Path, required=True, help="directory of an exported model")
    options = parser.parse_args(arguments)
    card = read_card(options.model)
    rows = read_rows(options.data, ("train", "val", "cal"))
    add_to(card, fit(rows, rows.of_split("train", "val"), rows.of_split("cal")), options.model)


def add_to(card: StudentCard, head: growth.GrowthWeights, model: Path) -> None:
    """Write the head into the directory of a model, and its checksum into the card."""
    growth.save(head, model / growth.GROWTH)
    replace(card, files={}).write(model, list(dict.fromkeys([*card.files, growth.GROWTH])))


if __name__ == "__main__":
    main()
