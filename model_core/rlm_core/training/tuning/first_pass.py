"""First predictions of functions from a ridge that has not seen their package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from rlm_core.inference.card import StudentCard, read_card
from rlm_core.inference.head import on_axis
from rlm_core.inference.ngram_ridge import Bag, bag, words_of
from rlm_core.inference.propagation import LEAST, METRICS
from rlm_core.inference.student import TOKENIZER, WORK
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.inference.work_mixture import (
    FIXED,
    LEAST_WEIGHT,
    WorkMixture,
    kind_of,
    known_wait,
    log_quantiles,
    mixture_quantiles,
    stated_floor,
    truncated,
)
from rlm_core.queries.query_vector import query_vector
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.source.syntax_counts import facts as head_facts
from rlm_core.source.syntax_counts import structure
from rlm_core.types import LEVELS, MEDIAN

from ..corpus import floor_of
from ..package_graph import PREFIX, PackageGraph
from ..runs import say
from ..student.ngram_ridge_fit import FOLDS, idf_of
from .student import load_student

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
BITS = 18
_PENALTY, _ROLES = 3.0, (1.0, 0.7, 0.7)  # as the n-gram ridge of functions
_MOST_STEPS, _TOLERANCE = 40, 3e-3
_P10, _P90 = LEVELS.index(0.1), LEVELS.index(0.9)


@dataclass(frozen=True, slots=True)
class FirstPass:
    """First predictions of one metric: ``logs (functions, LEVELS)``, and those of callees from their own text alone.

    ``estimates (functions, 2)`` are median and spread in log10; ``is_open`` says which predictions calls may change.
    ``bags (texts, buckets)`` are the n-grams of the distinct texts, by TF-IDF and of unit length.
    """

    logs: Array
    estimates: Array
    is_open: Mask
    bags: sparse.csr_matrix


def first_pass(graph: PackageGraph, model: Path) -> dict[str, FirstPass]:
    """First predictions by metric, each from a ridge that has not seen the function's package.

    They are joined with the functions' work facts; the model's work mixture is read only if there are facts.
    """
    card = read_card(model)
    read = partial(_read_text, Tokenizer.load(model / TOKENIZER), card.forms.get(PREFIX, CanonicalForm.LINES))
    with ProcessPoolExecutor(2) as pool:
        described = list(pool.map(read, graph.texts, chunksize=500))
    return _first_pass(graph, model, card, described)


def _first_pass(
    graph: PackageGraph, model: Path, card: StudentCard, described: Sequence[_TextFeatures]
) -> dict[str, FirstPass]:
    labelled = np.isin(graph.split, ("train", "val", "cal"))
    # Packages that hold test rows alone are not in any fold: one ridge of all others predicts them.
    fold = np.where(np.isin(graph.package, np.unique(graph.package[labelled])), graph.fold, -1)
    idf = idf_of([described[place].bag for place in np.unique(graph.text[labelled])], BITS)
    weighted = _weighted([entry.bag for entry in described], idf)
    roles = (
        _selection([[int(place)] for place in graph.text], len(graph.texts), _ROLES[0]),
        _selection([first for first, _ in graph.callees], len(graph.texts), _ROLES[1]),
        _selection([second for _, second in graph.callees], len(graph.texts), _ROLES[2]),
    )
    result: dict[str, FirstPass] = {}
    for metric in METRICS:
        alone, whole = _cross_fit(graph, metric, labelled, fold, weighted, roles)
        logs, estimates, is_open = _through_head(graph, metric, model, card, described, alone, whole)
        result[metric] = FirstPass(logs, estimates, is_open, weighted)
        say(f"{metric}: first predictions of {len(graph):,} functions")
    return result


@dataclass(frozen=True, slots=True)
class _TextFeatures:
    bag: Bag
    counts: npt.NDArray[np.float32]
    tokens: int


def _read_text(tokenizer: Tokenizer, form: CanonicalForm, text: str) -> _TextFeatures:
    plain = canonical(text, "python", form)
    ids = tokenizer.encode(plain, "python")
    return _TextFeatures(bag(ids, words_of(plain), BITS), structure(plain, "python"), len(ids))


def _weighted(bags: Sequence[Bag], idf: npt.NDArray[np.float32]) -> sparse.csr_matrix:
    data, indices, ends = [], [], [0]
    for entry in bags:
        weights = entry.weights * idf[entry.buckets]
        kept = weights > 0
        data.append(weights[kept] / max(float(np.linalg.norm(weights)), 1e-9))
        indices.append(entry.buckets[kept])
        ends.append(ends[-1] + int(kept.sum()))
    shape = (len(bags), len(idf))
    return sparse.csr_matrix((np.concatenate(data).astype(np.float32), np.concatenate(indices), ends), shape=shape)


def _selection(lists: Sequence[Sequence[int]], width: int, scale: float) -> sparse.csr_matrix:
    """A matrix that sums texts for each function, scaled by the root of their number."""
    lengths = [len(entry) for entry in lists]
    rows = np.repeat(np.arange(len(lists)), lengths)
    columns = np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=sum(lengths))
    values = np.repeat([scale / max(length, 1) ** 0.5 for length in lengths], lengths).astype(np.float32)
    return sparse.csr_matrix((values, (rows, columns)), shape=(len(lists), width))


def _cross_fit(
    graph: PackageGraph,
    metric: str,
    labelled: Mask,
    fold: npt.NDArray[np.int64],
    weighted: sparse.csr_matrix,
    roles: Sequence[sparse.csr_matrix],
) -> tuple[Array, Array]:
    """Out-of-fold predictions of the ridge in log10: from the own text alone, and with both levels of callees."""
    target = graph.logs(metric)
    rows = np.flatnonzero(labelled & np.isfinite(target))
    matrix = sparse.hstack([role[rows] @ weighted for role in roles], format="csr", dtype=np.float32)
    alone, whole = np.zeros(len(graph)), np.zeros(len(graph))
    for number in (-1, *range(FOLDS)):
        learnt = np.flatnonzero(fold[rows] != number)
        intercept = float(target[rows[learnt]].mean())
        weights = _ridge(matrix[learnt], target[rows[learnt]] - intercept)
        parts = [weighted @ part for part in weights.reshape(len(roles), -1)]
        held = fold == number
        own = (roles[0] @ parts[0] + intercept)[held]
        alone[held] = own
        whole[held] = own + (roles[1] @ parts[1] + roles[2] @ parts[2])[held]
    return alone, whole


def _ridge(matrix: sparse.csr_matrix, target: Array) -> npt.NDArray[np.float32]:
    """Ridge weights by conjugate gradients on the normal equations; the last digits are not worth their time."""
    transposed = matrix.T.tocsr()
    residual = transposed @ target.astype(np.float32)
    weights: npt.NDArray[np.float32] = np.zeros_like(residual)
    direction, norm = residual.copy(), float(residual @ residual)
    start = norm
    for _ in range(_MOST_STEPS):
        if not norm:
            break  # nothing is left to explain
        image = transposed @ (matrix @ direction) + np.float32(_PENALTY) * direction
        step = np.float32(norm / float(direction @ image))
        weights += step * direction
        residual -= step * image
        before, norm = norm, float(residual @ residual)
        if norm < _TOLERANCE**2 * start:
            break
        direction = residual + np.float32(norm / before) * direction
    return weights


def _through_head(
    graph: PackageGraph,
    metric: str,
    model: Path,
    card: StudentCard,
    described: Sequence[_TextFeatures],
    alone: Array,
    whole: Array,
) -> tuple[Array, Array, Mask]:
    """The ridge's numbers as calibrated distributions, joined with work facts; see :class:`FirstPass`."""
    task = next(number for number, entry in enumerate(card.tasks) if entry.name == f"{PREFIX}/{metric}")
    scale, floor = card.tasks[task].scale, floor_of(f"{PREFIX}/{metric}")
    default = card.defaults["call"]
    level = card.calibration.lookup("call", "python", metric, str(default.get("device")))
    mixture = WorkMixture.load(model / WORK) if any(facts is not None for facts in graph.facts) else None
    assert level is not None, "the model predicts functions"
    with load_student(model) as student:
        base = student.head.base

    def distributions(positions: Array, inputs: npt.NDArray[np.float32]) -> Array:
        asked = torch.from_numpy(query_vector(default.get("device"), default.get("workload", {})).astype(np.float32))
        parts = []
        for start in range(0, len(positions), 8192):
            step = slice(start, start + 8192)
            wide = torch.from_numpy(positions[step].astype(np.float32))
            with torch.no_grad():
                logits = base(
                    wide,
                    torch.from_numpy(inputs[step]),
                    torch.full((len(wide),), task),
                    torch.zeros(len(wide)),
                    asked.expand(len(wide), -1),
                )
            parts.append(scale.quantiles(logits.softmax(-1).double().numpy(), np.array(level.raw_levels())))
        return np.concatenate(parts)

    def inputs(levels: Callable[[int], tuple[list[int], list[int]]]) -> npt.NDArray[np.float32]:
        rows = []
        for place, text in enumerate(graph.text):
            tokens = [[described[other].tokens for other in level] for level in levels(place)]
            rows.append(head_facts(described[text].counts, described[text].tokens, *tokens))
        return np.stack(rows).astype(np.float32)

    axis = card.tasks[task]
    own = distributions(on_axis(axis, alone), inputs(lambda place: ([], [])))
    estimates = np.log10(np.maximum(own[:, [_P10, MEDIAN, _P90]], LEAST[metric]))
    quantiles = distributions(on_axis(axis, whole), inputs(lambda place: graph.callees[place]))
    logs = np.empty_like(quantiles)
    is_open = np.ones(len(graph), bool)
    for place, facts in enumerate(graph.facts):
        line = tuple(quantiles[place])
        if facts is not None and mixture is not None:
            least = stated_floor(facts, metric)
            work = mixture.known_work(facts, metric, line, floor)
            kind = kind_of(facts, work)
            joined = card.calibration.exactly(f"{kind}/{PREFIX}/{metric}")
            if work.weight >= LEAST_WEIGHT and joined is not None:
                line = mixture_quantiles(line, floor, work, joined.raw_levels(), least)
            line = truncated(line, floor, least)
            is_open[place] = kind != FIXED and not known_wait(facts)[1]
        logs[place] = log_quantiles(line, floor)
    return logs, np.stack([estimates[:, 1], estimates[:, 2] - estimates[:, 0]], axis=1), is_open
