"""Plain baselines, fitted on the training rows of the same data, with split-conformal bands from its calibration rows.

Functions and programs: TF-IDF and ridge. Kernels, modules and networks: boosting on device, numbers of the workload and
the text's TF-IDF in a few dimensions. A model that does not beat them is not a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from rlm_core.inference.calibration import COVERAGES

from .answers import Answers
from .metrics import Array, Names
from .rows import Row
from .workload_table import WorkloadTable

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


def fit_baselines(
    train: Sequence[Row], calibration: Sequence[Row], test: Sequence[Row], floor: float
) -> dict[str, Answers]:
    """Answers of every baseline to the test rows of one slice; the one of ``MAIN`` comes last.

    Args:
        train: rows to fit on, at least one.
        calibration: rows that set the width of bands; without any there are no bands.
        test: rows to answer.
        floor: the smallest value that the slice's measurement resolves, in SI units; 0 for none.
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


def _answers(logs: Array, residuals: Array, groups: Names, floor: float) -> Answers:
    median = 10**logs
    ends = []
    for coverage in COVERAGES:
        if not len(residuals):
            ends += [np.full(len(logs), np.nan)] * 2
            continue
        radius = conformal_radius(residuals, groups, coverage)
        low = 10 ** (logs - radius)
        ends += [np.where(low <= floor, 0.0, low), np.maximum(10 ** (logs + radius), floor)]
    return Answers(median, *ends)


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
        mine = reduced[[place[row.code.text] for row in rows]]
        matrices.append(np.hstack([table.columns([row.query for row in rows]), mine]))
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
    places, columns = zip(*known, strict=True) if known else ((), ())
    return sparse.csr_matrix((np.ones(len(known)), (places, columns)), shape=(len(rows), len(quarters)))
