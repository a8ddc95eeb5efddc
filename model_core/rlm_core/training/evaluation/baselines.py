"""Plain baselines, fitted on the training rows of the same data, with split-conformal bands from its calibration rows.

Functions and programs: TF-IDF and ridge. Kernels, modules and networks: boosting on device, numbers of the workload and
the text's TF-IDF in a few dimensions. A model must beat them to be worth its size.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from rlm_core.inference.calibration import COVERAGES
from rlm_core.types import Query

from .metrics import Array, Names
from .rows import PredictionTable, Row

MAIN: Mapping[str, str] = {
    "call": "tfidf",
    "program": "tfidf",
    "kernel": "boosting",
    "module": "boosting",
    "network": "boosting",
}
DESCRIPTIONS: Mapping[str, str] = {
    "mean": "the mean of the training rows' logarithms",
    "length": "ridge on the length of the text and of what it calls",
    "quarter": "ridge on the quarter of the judge's date, no code",
    "tfidf": "ridge on TF-IDF of words, 1-2-grams of the text and its callees, and on the quarter",
    "boosting": "boosted trees on device, the workload's numbers and an SVD of the text's TF-IDF",
}
_CHARACTERS = 4000
_WORDS = r"\w+|[^\w\s]"
_DIMENSIONS = 48
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?(?:x\d+)*\Z", re.IGNORECASE)
_NAMES, _SIZES, _DEVICES = 40, 6, 250


def fit_baselines(
    train: Sequence[Row], calibration: Sequence[Row], test: Sequence[Row], floor: float
) -> dict[str, PredictionTable]:
    """Predictions of every baseline for the test rows of one task; the one of ``MAIN`` comes last.

    Args:
        train: rows to fit on, at least one.
        calibration: rows that set the width of bands; without them there are no bands.
        test: rows to predict.
        floor: the smallest value that the task's measurement resolves, in SI units; 0 for none.
    """
    target = _logs(train, floor)
    asked = [*calibration, *test]
    basis = train[0].code.basis
    logs = {"mean": np.full(len(asked), target.mean())}
    if MAIN[basis] == "tfidf":
        logs |= _linear(train, asked, target)
    else:
        logs["boosting"] = _boosting(train, asked, target)
    measured = _logs(calibration, floor)
    groups = np.array([row.whole for row in calibration])
    split = len(calibration)
    return {
        name: _answers(found[split:], np.abs(found[:split] - measured), groups, floor) for name, found in logs.items()
    }


def conformal_radius(residuals: Array, groups: Names, coverage: float) -> float:
    """The residual that the wanted share lies under; a group counts by the square root of its size.

    The same weights and the same allowance for the future row as ``conformal_level``.
    """
    _, inverse, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights = 1 / np.sqrt(sizes[inverse])
    order = np.argsort(residuals)
    cumulative = np.cumsum(weights[order])
    index = int(np.searchsorted(cumulative, coverage * (cumulative[-1] + weights.mean())))
    return float(residuals[order[min(index, len(order) - 1)]])


def _answers(logs: Array, residuals: Array, groups: Names, floor: float) -> PredictionTable:
    median = 10**logs
    ends = []
    for coverage in COVERAGES:
        if not len(residuals):
            ends += [np.full(len(logs), np.nan)] * 2
            continue
        radius = conformal_radius(residuals, groups, coverage)
        low = 10 ** (logs - radius)
        ends += [np.where(low <= floor, 0.0, low), np.maximum(10 ** (logs + radius), floor)]
    return PredictionTable(median, *ends)


def _logs(rows: Sequence[Row], floor: float) -> Array:
    values = np.array([row.value for row in rows], dtype=np.float64)
    return np.log10(np.maximum(values, floor if floor > 0 else 1e-12))


def _linear(train: Sequence[Row], asked: Sequence[Row], target: Array) -> dict[str, Array]:
    """Ridges on length, on the quarter where rows have one, and on TF-IDF with the quarter."""
    quarters = {quarter: i for i, quarter in enumerate(sorted({row.quarter for row in train if row.quarter}))}
    lengths = [_lengths(rows) for rows in (train, asked)]
    calendar = [_one_hot(rows, quarters) for rows in (train, asked)]
    words = _tfidf(_documents(train), _documents(asked))
    both = [sparse.hstack([words[i], calendar[i]], format="csr") for i in (0, 1)]
    found = {"length": Ridge(1e-3).fit(lengths[0], target).predict(lengths[1])}
    if quarters:
        found["quarter"] = Ridge(1e-3).fit(calendar[0], target).predict(calendar[1])
    found["tfidf"] = Ridge(2.0, solver="sparse_cg", tol=1e-3).fit(both[0], target).predict(both[1])
    return found


def _boosting(train: Sequence[Row], asked: Sequence[Row], target: Array) -> Array:
    """Boosted trees; columns are the device as a category, the workload and the text in ``_DIMENSIONS``."""
    table = WorkloadTable.fit([row.query for row in train])
    texts = [list(dict.fromkeys(row.code.text for row in rows)) for rows in (train, asked)]
    vectors = _reduced(*texts)
    matrices = []
    for rows, known, reduced in zip((train, asked), texts, vectors, strict=True):
        place = {text: i for i, text in enumerate(known)}
        selected = reduced[[place[row.code.text] for row in rows]]
        matrices.append(np.hstack([table.columns([row.query for row in rows]), selected]))
    # The trees refuse a column without any value.
    kept = np.flatnonzero(np.isfinite(matrices[0]).any(axis=0))
    matrices = [matrix[:, kept] for matrix in matrices]
    model = HistGradientBoostingRegressor(
        max_iter=300,
        learning_rate=0.06,
        max_leaf_nodes=24,
        min_samples_leaf=8,
        l2_regularization=1.0,
        categorical_features=[0],
        random_state=0,
    )
    found: Array = model.fit(matrices[0], target).predict(matrices[1])
    return found


def _reduced(train: list[str], asked: list[str]) -> list[npt.NDArray[np.float64]]:
    """Texts in a few dimensions, fitted on the training texts; the length is the last column."""
    first, second = _tfidf([text[:_CHARACTERS] for text in train], [text[:_CHARACTERS] for text in asked])
    size = min(_DIMENSIONS, first.shape[0] - 1, first.shape[1] - 1)
    lengths = [np.log([[1 + len(text)] for text in texts]) for texts in (train, asked)]
    if size < 1:
        return lengths
    # Equal texts have no variance to explain.
    with np.errstate(invalid="ignore", divide="ignore"):
        model = TruncatedSVD(size, random_state=0).fit(first)
    return [np.hstack([model.transform(part), length]) for part, length in zip((first, second), lengths, strict=True)]


def _tfidf(train: list[str], asked: list[str]) -> list[sparse.csr_matrix]:
    """Word 1-2-grams, the strongest plain reading of code that the label sets report."""
    vectors = TfidfVectorizer(
        token_pattern=_WORDS,
        ngram_range=(1, 2),
        min_df=2 if len(train) > 20 else 1,
        sublinear_tf=True,
        lowercase=False,
        dtype=np.float32,
    )
    return [vectors.fit_transform(train), vectors.transform(asked)]


def _documents(rows: Sequence[Row]) -> list[str]:
    return ["\n".join([row.code.text, *(c.text for c in row.code.callees)])[:_CHARACTERS] for row in rows]


def _lengths(rows: Sequence[Row]) -> Array:
    return np.log([[1 + len(row.code.text), 1 + sum(len(c.text) for c in row.code.callees)] for row in rows])


def _one_hot(rows: Sequence[Row], quarters: dict[str, int]) -> sparse.csr_matrix:
    known = [(place, quarters[row.quarter]) for place, row in enumerate(rows) if row.quarter in quarters]
    indices, columns = zip(*known, strict=True) if known else ((), ())
    return sparse.csr_matrix((np.ones(len(known)), (indices, columns)), shape=(len(rows), len(quarters)))


@dataclass(frozen=True, slots=True)
class WorkloadTable:
    """Codes of the training queries' devices, and of the words of each frequent name (empty: numbers)."""

    devices: dict[str, int]
    names: dict[str, dict[str, int]]

    @classmethod
    def fit(cls, queries: Sequence[Query]) -> WorkloadTable:
        """Read the most frequent names, and the devices by number of rows."""
        devices = Counter(query.device or "" for query in queries)
        values: dict[str, Counter[str]] = defaultdict(Counter)
        for query in queries:
            for name, value in query.workload.items():
                values[name][value] += 1
        frequent = sorted(values, key=lambda name: (-values[name].total(), name))[:_NAMES]
        names: dict[str, dict[str, int]] = {}
        for name in frequent:
            words = [word for word, _ in values[name].most_common() if not _NUMBER.match(word)]
            numeric = sum(count for word, count in values[name].items() if _NUMBER.match(word))
            names[name] = {} if 2 * numeric > values[name].total() else {word: i for i, word in enumerate(words)}
        return cls({device: i for i, (device, _) in enumerate(devices.most_common(_DEVICES))}, names)

    def columns(self, queries: Sequence[Query]) -> Array:
        """Device, largest sizes, their number, then one column a name. NaN where unknown. ``(rows, columns)``."""
        result = np.full((len(queries), 1 + _SIZES + 1 + len(self.names)), np.nan)
        for row, query in zip(result, queries, strict=True):
            row[0] = self.devices.get(query.device or "", np.nan)
            sizes = sorted((_size(v) for v in query.workload.values() if _NUMBER.match(v)), reverse=True)[:_SIZES]
            row[1 : 1 + len(sizes)] = sizes
            row[1 + _SIZES] = len(sizes)
            for place, (name, words) in enumerate(self.names.items(), 2 + _SIZES):
                value = query.workload.get(name)
                if value is not None:
                    row[place] = words.get(value, np.nan) if words or not _NUMBER.match(value) else _size(value)
        return result


def _size(text: str) -> float:
    """log2 of one more than the product of a shape, with the sign of a negative number."""
    value = math.prod(float(part) for part in text.lower().split("x"))
    return math.copysign(math.log2(1 + abs(value)), value) if math.isfinite(value) else math.nan
