"""Run time of programs of unseen problems: TF-IDF and ridge against our n-gram ridge and trees on facts, by judge.

    python -m tools.experiments.judges_cv --data boj.parquet atcoder.parquet --out judges.json [--splits train val]

Five folds by problem of at most ``--rows`` rows of each of a judge's five largest languages. Everything, the ridge's
predictions that the trees read included, is fitted without the problems of a fold. Prints Spearman and the median error
factor with 95 % intervals (problems resampled), and the difference to TF-IDF on the same resamples. Choose what to
keep on ``--splits train val``. ``--model`` adds an exported student, which has seen no test row; the figures are then
of the rows of the test split alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rlm_core.inference.features import describe
from rlm_core.inference.features.program import FACTS
from rlm_core.inference.ngram_ridge import bag, calendar, words_of
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.queries.judges import JUDGES
from rlm_core.queries.query_vector import decimal_year
from rlm_core.source.canonical import canonical
from rlm_core.training.evaluation.rows import Row, select
from rlm_core.training.student.ngram_ridge_fit import fold_of
from scipy import sparse
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import Ridge

Array = npt.NDArray[np.float64]
_FOLDS, _LANGUAGES, _RESAMPLES, _BITS, _FORESTS = 5, 5, 300, 18, 1
_TOKENIZER = Path(__file__).parents[2] / "model_core/rlm_core/builtin/tokenizer.model"


class Task:
    """The rows of one judge and language, with what the arms read of them."""

    def __init__(self, rows: Sequence[Row], cache: Path | None) -> None:
        self.rows = rows
        first = rows[0]
        floor = JUDGES[first.query.device or ""].floor(first.query.metric)
        self.language = first.code.language
        self.target: Array = np.log10(np.maximum([row.value for row in rows], floor or 1e-12))
        self.groups = np.array([row.group for row in rows])
        self.folds = np.array([fold_of(group, _FOLDS) for group in self.groups])
        texts = [row.code.text for row in rows]
        self.words = _hashed_words(texts)
        self.grams = _grams(texts, self.language)
        self.facts = _facts(texts, self.language, cache)
        years = np.array([decimal_year(row.query.workload) for row in rows])
        runtimes = sorted({row.query.workload.get("runtime", "") for row in rows})
        chosen = np.array([runtimes.index(row.query.workload.get("runtime", "")) for row in rows])
        self.query = np.hstack([calendar(years) * 2.0, np.eye(len(runtimes))[chosen]]).astype(np.float32)
        self.plain_query = np.column_stack([years, chosen])


def _hashed_words(texts: Sequence[str]) -> sparse.csr_matrix:
    vectors = HashingVectorizer(
        token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), n_features=1 << _BITS, norm=None, alternate_sign=False,
        lowercase=False, dtype=np.float32,
    )  # fmt: skip
    return vectors.transform(texts)


def _grams(texts: Sequence[str], language: str) -> sparse.csr_matrix:
    """Counts of the hashed n-grams that our ridge reads, as ``1 + log(count)``."""
    tokenizer = Tokenizer.load(_TOKENIZER)
    indices, data, ends = [], [], [0]
    for text in texts:
        code = canonical(text, language)
        counted = bag(tokenizer.encode(code, language), words_of(code), _BITS)
        indices.append(counted.buckets)
        data.append(counted.weights)
        ends.append(ends[-1] + len(counted.buckets))
    return sparse.csr_matrix((np.concatenate(data), np.concatenate(indices), ends), shape=(len(texts), 1 << _BITS))


def _facts(texts: Sequence[str], language: str, cache: Path | None) -> npt.NDArray[np.float32]:
    key = hashlib.sha256("\0".join([language, *FACTS, *texts]).encode("utf-8", "replace")).hexdigest()[:20]
    path = cache / f"{key}.npy" if cache is not None else None
    if path is not None and path.exists():
        found: npt.NDArray[np.float32] = np.load(path)
        return found
    with ProcessPoolExecutor(2) as pool:
        found = np.stack(list(pool.map(_described, texts, [language] * len(texts), chunksize=100)))
    if path is not None:
        np.save(path, found)
    return found


def _described(text: str, language: str) -> npt.NDArray[np.float32]:
    found: npt.NDArray[np.float32] = describe(canonical(text, language), "program", language).facts
    return found


def _tfidf(train: sparse.csr_matrix, *others: sparse.csr_matrix) -> list[sparse.csr_matrix]:
    transform = TfidfTransformer(sublinear_tf=False).fit(train)
    return [transform.transform(part) for part in (train, *others)]


def _sublinear(counts: sparse.csr_matrix) -> sparse.csr_matrix:
    result = counts.copy()
    result.data = 1 + np.log(result.data)
    return result


def _ridge(train: sparse.csr_matrix, target: Array, test: sparse.csr_matrix, penalty: float) -> Array:
    found: Array = Ridge(penalty, solver="sparse_cg", tol=1e-3).fit(train, target).predict(test)
    return found


def _with(words: sparse.csr_matrix, query: npt.NDArray[np.float32]) -> sparse.csr_matrix:
    return sparse.hstack([words, sparse.csr_matrix(query)], format="csr", dtype=np.float32)


@dataclass(slots=True)
class Fold:
    """One fold of a task: its rows, the ridge's predictions for them (out of fold for training rows), and all arms."""

    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]
    wide: Array
    arms: dict[str, Array]


def fit_fold(task: Task, fold: int, penalty: float) -> Fold:
    """The linear arms of a fold."""
    train, test = np.flatnonzero(task.folds != fold), np.flatnonzero(task.folds == fold)
    target, found = task.target[train], {}
    words = _tfidf(_sublinear(task.words[train]), _sublinear(task.words[test]))
    found["tfidf"] = _ridge(words[0], target, words[1], 1.0)
    found["tfidf+query"] = _ridge(_with(words[0], task.query[train]), target, _with(words[1], task.query[test]), 1.0)
    grams = _tfidf(task.grams[train], task.grams[test])
    inputs = [_with(part, task.query[rows]) for part, rows in zip(grams, (train, test), strict=True)]
    found["ridge"] = _ridge(inputs[0], target, inputs[1], penalty)
    wide = np.zeros(len(task.rows))
    wide[test] = found["ridge"]
    for other in np.unique(task.folds[train]):
        held = task.folds[train] == other
        wide[train[held]] = _ridge(inputs[0][~held], target[~held], inputs[0][held], penalty)
    return Fold(train, test, wide, found)


def add_forests(tasks: Sequence[Task], folds: Sequence[Fold]) -> None:
    """The arms with trees of one fold of all languages of a judge; a pooled forest learns from all of them."""
    inputs = [
        np.hstack([task.facts, task.plain_query, fold.wide[:, None]]) for task, fold in zip(tasks, folds, strict=True)
    ]
    means = [float(task.target[fold.train].mean()) for task, fold in zip(tasks, folds, strict=True)]
    named = [np.hstack([part, np.full((len(part), 1), i)]) for i, part in enumerate(inputs)]
    for part, mean in zip(named, means, strict=True):
        part[:, -2] -= mean
    pooled = _forest(
        np.concatenate([part[fold.train] for part, fold in zip(named, folds, strict=True)]),
        np.concatenate([task.target[fold.train] - mean for task, fold, mean in zip(tasks, folds, means, strict=True)]),
    )
    for task, fold, part, own, mean in zip(tasks, folds, inputs, named, means, strict=True):
        target = task.target[fold.train]
        facts = part[:, :-1]
        fold.arms["facts"] = _predicted(_forest(facts[fold.train], target), facts[fold.test])
        fold.arms["ridge+facts"] = _predicted(_forest(part[fold.train], target), part[fold.test])
        fold.arms["pooled"] = mean + _predicted(pooled, own[fold.test])
        fold.arms["both"] = (fold.arms["ridge+facts"] + fold.arms["pooled"]) / 2


def _forest(features: Array, target: Array) -> list[HistGradientBoostingRegressor]:
    return [
        HistGradientBoostingRegressor(
            max_iter=150, learning_rate=0.06, max_leaf_nodes=16, min_samples_leaf=20, l2_regularization=2.0,
            max_features=0.3, random_state=seed,
        ).fit(features, target)
        for seed in range(_FORESTS)
    ]  # fmt: skip


def _predicted(forest: Sequence[HistGradientBoostingRegressor], features: Array) -> Array:
    found: Array = np.mean([model.predict(features) for model in forest], axis=0)
    return found


def _spearman(first: Array, second: Array) -> float:
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def report(task: Task, found: Mapping[str, Array]) -> dict[str, Any]:
    """Figures of every arm with 95 % intervals; ``gain`` is the Spearman above TF-IDF."""
    random = np.random.default_rng(0)
    names, members = np.unique(task.groups, return_inverse=True)
    order = np.argsort(members, kind="stable")
    starts = np.searchsorted(members[order], np.arange(len(names) + 1))
    result: dict[str, Any] = {"rows": len(task.rows), "problems": len(names)}
    draws = []
    for _ in range(_RESAMPLES):
        chosen = random.integers(0, len(names), len(names))
        draws.append(np.concatenate([order[starts[i] : starts[i + 1]] for i in chosen]))
    plain = [_spearman(found["tfidf"][rows], task.target[rows]) for rows in draws]
    for arm, predicted in found.items():
        errors = np.abs(predicted - task.target)
        ranks = [_spearman(predicted[rows], task.target[rows]) for rows in draws]
        medians = [float(np.median(errors[rows])) for rows in draws]
        result[arm] = {
            "spearman": _spearman(predicted, task.target),
            "interval": np.quantile(ranks, [0.025, 0.975]).tolist(),
            "gain": _spearman(predicted, task.target) - _spearman(found["tfidf"], task.target),
            "gain_interval": np.quantile(np.subtract(ranks, plain), [0.025, 0.975]).tolist(),
            "error_factor": float(10 ** np.median(errors)),
            "error_interval": (10 ** np.quantile(medians, [0.025, 0.975])).tolist(),
        }
    return result


def _student(directory: Path, task: Task) -> Array:
    """Return the predictions of an exported student, at least its floor, with the work facts of the texts left out."""
    predictor = OnnxPredictor(directory, join_facts=False)
    answers = predictor.predict([row.code for row in task.rows], [[row.query] for row in task.rows])
    medians = [max(one.median or 0.0, one.floor) if one.median is not None else np.nan for [one] in answers]
    logs: Array = np.log10(medians)
    # A row without an answer counts as the mean: abstaining must not make a rank correlation better.
    return np.where(np.isnan(logs), task.target.mean(), logs)


def _keep(task: Task, arms: dict[str, Array], rows: npt.NDArray[np.int64]) -> None:
    """Leave all but some rows out of the report."""
    task.rows = [task.rows[row] for row in rows]
    task.target, task.groups = task.target[rows], task.groups[rows]
    for arm, predicted in arms.items():
        arms[arm] = predicted[rows]


def main() -> None:
    """Run the cross-validations and print their figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--splits", nargs="+")
    parser.add_argument("--metric", default="latency")
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--penalty", type=float, default=1.0)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    results: dict[str, Any] = {}
    for path in arguments.data:
        chosen = select([path], arguments.splits, arguments.rows).rows
        chosen = [row for row in chosen if row.query.metric == arguments.metric]
        counts = Counter(row.code.language for row in chosen)
        chosen_languages = [language for language, _ in counts.most_common(_LANGUAGES)]
        tasks = [Task([row for row in chosen if row.code.language == one], arguments.cache) for one in chosen_languages]
        found: list[dict[str, Array]] = [{} for _ in tasks]
        for fold in range(_FOLDS):
            folds = [fit_fold(task, fold, arguments.penalty) for task in tasks]
            add_forests(tasks, folds)
            for task, one, arms in zip(tasks, folds, found, strict=True):
                for arm, predicted in one.arms.items():
                    arms.setdefault(arm, np.zeros(len(task.rows)))[one.test] = predicted
        for task, arms in zip(tasks, found, strict=True):
            if arguments.model is not None:
                arms["student"] = _student(arguments.model, task)
                _keep(task, arms, np.flatnonzero([row.split == "test" for row in task.rows]))
            name = f"{task.rows[0].query.device}/{task.language}"
            results[name] = report(task, arms)
            print(f"{name}: {len(task.rows):,} rows of {results[name]['problems']:,} problems", flush=True)
            for arm in arms:
                figures = results[name][arm]
                low, high = figures["gain_interval"]
                print(
                    f"  {arm:18} {figures['spearman']:.3f} [{figures['interval'][0]:.3f}, {figures['interval'][1]:.3f}]"
                    f"  {figures['gain']:+.3f} [{low:+.3f}, {high:+.3f}]  error x{figures['error_factor']:.2f}",
                    flush=True,
                )
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
