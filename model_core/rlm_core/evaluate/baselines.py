"""Plain baselines, fitted on the training rows of the same data. A model that does not beat them is not a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

Array = npt.NDArray[np.float64]
NAMES = ("mean", "length", "quarter", "tfidf")
_CHARACTERS = 4000
_WORDS = r"\w+|[^\w\s]"


@dataclass(frozen=True, slots=True)
class Sample:
    """What a baseline may see of rows: source texts with their callees', quarters ('' without a date), values."""

    texts: list[str]
    callees: list[list[str]]
    quarters: npt.NDArray[np.str_]
    values: Array


def quarter_of(workload: dict[str, str]) -> str:
    """The quarter of a workload's date, like ``2024Q1``; empty without a date."""
    day = workload.get("date")
    return f"{day[:4]}Q{(int(day[5:7]) - 1) // 3 + 1}" if day else ""


def predict_baselines(train: Sample, test: Sample, floor: float) -> dict[str, Array]:
    """Predictions of every baseline for the test rows, in SI units."""
    target = np.log10(np.maximum(train.values, floor if floor > 0 else 1e-12))
    quarters = {quarter: i for i, quarter in enumerate(np.unique(train.quarters))}
    lengths = [_lengths(sample) for sample in (train, test)]
    calendar = [_one_hot(sample, quarters) for sample in (train, test)]
    # Word 1-2-grams of the body and its callees, the strongest plain baseline that the label sets report.
    vectors = TfidfVectorizer(
        token_pattern=_WORDS, ngram_range=(1, 2), min_df=2, sublinear_tf=True, lowercase=False, dtype=np.float32
    )
    words = [vectors.fit_transform(_documents(train)), vectors.transform(_documents(test))]
    both = [sparse.hstack([words[i], calendar[i]], format="csr") for i in (0, 1)]
    logs = {
        "mean": np.full(len(test.values), target.mean()),
        "length": Ridge(1e-3).fit(lengths[0], target).predict(lengths[1]),
        "quarter": Ridge(1e-3).fit(calendar[0], target).predict(calendar[1]),
        "tfidf": Ridge(2.0, solver="sparse_cg", tol=1e-3).fit(both[0], target).predict(both[1]),
    }
    return {name: 10**value for name, value in logs.items()}


def _documents(sample: Sample) -> list[str]:
    return [
        "\n".join([text, *callees])[:_CHARACTERS] for text, callees in zip(sample.texts, sample.callees, strict=True)
    ]


def _lengths(sample: Sample) -> Array:
    return np.log([[1 + len(text)] for text in sample.texts])


def _one_hot(sample: Sample, quarters: dict[str, int]) -> sparse.csr_matrix:
    known = [(row, quarters[q]) for row, q in enumerate(sample.quarters) if q in quarters]
    rows, columns = zip(*known, strict=True) if known else ((), ())
    return sparse.csr_matrix((np.ones(len(known)), (rows, columns)), shape=(len(sample.quarters), len(quarters)))
