"""Fits how costs of callees propagate to callers: call graphs of packages and an exported model -> networks and bands.

The networks are trained on first predictions of packages that the n-gram ridge has not seen: it is fitted again with
each fold of packages left out, and its numbers go through the model's head (without the encoder, which has seen the
training packages) and work mixture. A random part of each package's functions counts as measured, so that the networks
learn how far to trust measured callees. The bands are calibrated on packages that the networks have not seen, each
package by the square root of its size.

    python -m rlm_core.training.propagation_fit --data CALLS.parquet... --model DIR
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from rlm_core.inference.calibration import Calibration
from rlm_core.inference.card import StudentCard, read_card
from rlm_core.inference.head import on_axis
from rlm_core.inference.ngram_ridge import Bag, bag, words_of
from rlm_core.inference.propagation import (
    CALLS,
    FEATURES,
    LEAST,
    MEASURED,
    METRICS,
    MOST_SIMILAR,
    MOST_STRETCH,
    PREDICTED,
    SHRINK_CLASS,
    SHRINK_FILE,
    CostEstimate,
    Network,
    Propagation,
    Residuals,
    Similar,
    SiteEstimate,
    features,
)
from rlm_core.inference.similar_texts import most_similar
from rlm_core.inference.student import TOKENIZER, WORK, OnnxPredictor
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.inference.work_mixture import (
    FIXED,
    LEAST_WEIGHT,
    WorkMixture,
    kind_of,
    known_wait,
    log_quantiles,
    mixture_quantiles,
    model_cdf,
    stated_floor,
    truncated,
)
from rlm_core.queries.called_functions import MAX_MEASURED, MAX_OF_PACKAGE, random_order
from rlm_core.queries.query_vector import query_vector
from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.source.syntax_counts import facts as head_facts
from rlm_core.source.syntax_counts import structure
from rlm_core.types import (
    LEVELS,
    MEDIAN,
    CalledFunction,
    Callee,
    Calls,
    CallSite,
    CodeText,
    KnownCost,
    MeasuredFunctions,
    Query,
    WorkFacts,
)

from .corpus import floor_of
from .datasets.schema import read_facts, read_rows
from .runs import say
from .student.ngram_ridge_fit import FOLDS, fold_of, idf_of
from .tuning.student import load_student

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
BITS = 18
_PENALTY, _ROLES = 3.0, (1.0, 0.7, 0.7)  # as the n-gram ridge of functions
_CALLEES = 12
_MOST_STEPS, _TOLERANCE = 40, 3e-3
HIDDEN = 32
SHARES = (0.0, 0.5, 1.0)  # of a package's functions that count as measured
_EPOCHS, _RATE, _DECAY, _BATCH = 12, 4e-3, 1e-4, 1024
_PREFIX = "call/python"
_P10, _P90 = LEVELS.index(0.1), LEVELS.index(0.9)
# The outermost quantiles are too rare to learn from.
_JUDGED = [place for place, level in enumerate(LEVELS) if 0.05 <= level <= 0.95]
_BELOW_FLOOR = 0.05
_RECALIBRATED, _PREDICTED_AT_ONCE = 12, 128


@dataclass(frozen=True, slots=True)
class PackageGraph:
    """The functions of packages: ``texts`` are distinct, all else has one entry per function.

    ``module`` and ``owner`` number the functions' modules and classes.
    ``callees`` are text numbers at both levels, ``sites`` have function numbers, ``values`` are in SI units or NaN.
    """

    module: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    texts: list[str]
    text: npt.NDArray[np.int64]
    callees: list[tuple[list[int], list[int]]]
    facts: list[WorkFacts | None]
    sites: list[list[tuple[list[int], int, int, float]]]
    outside: npt.NDArray[np.int64]
    unresolved: npt.NDArray[np.int64]
    package: npt.NDArray[np.str_]
    split: npt.NDArray[np.str_]
    values: dict[str, Array]

    def __len__(self) -> int:
        return len(self.text)

    @property
    def fold(self) -> npt.NDArray[np.int64]:
        """The fold of each function's package."""
        return np.array([fold_of(name) for name in self.package.tolist()])

    def logs(self, metric: str) -> Array:
        """Log10 of the values, none below what the measurement resolves; NaN where unknown."""
        result: Array = np.log10(np.maximum(self.values[metric], floor_of(f"{_PREFIX}/{metric}")))
        return result


def read_graph(paths: Sequence[Path]) -> PackageGraph:
    """The call graphs in data sets of :mod:`rlm_core.training.datasets.calls`.

    Raises:
        DataError: a file is missing or is not one of our data sets.
    """
    rows: dict[str, dict[str, Any]] = {}
    for row in read_rows(paths):
        known = rows.get(row["id"])
        # A package may have been measured twice: a later row adds what is missing.
        rows[row["id"]] = row if known is None else {**row, **{k: v for k, v in known.items() if v is not None}}
    number = {name: place for place, name in enumerate(rows)}
    texts: dict[str, int] = {}

    def of(text: str) -> int:
        return texts.setdefault(text, len(texts))

    def level(row: dict[str, Any], depth: int) -> list[int]:
        return [of(entry["text"]) for entry in row["callees"] if entry["level"] == depth][:_CALLEES]

    listed = list(rows.values())
    places = [name.rpartition(":") for name in rows]
    return PackageGraph(
        module=_numbered([module for module, _, _ in places]),
        owner=_numbered([f"{module}:{name.rpartition('.')[0]}" for module, _, name in places]),
        text=np.array([of(row["text"]) for row in listed]),
        callees=[(level(row, 1), level(row, 2)) if row["split"] != "none" else ([], []) for row in listed],
        texts=list(texts),
        facts=[read_facts(row["work"]) for row in listed],
        sites=[
            [
                ([number[name] for name in site["candidates"]], site["loops"], site["branches"], site["times"])
                for site in row["sites"]
            ]
            for row in listed
        ],
        outside=np.array([row["outside"] for row in listed]),
        unresolved=np.array([row["unresolved"] for row in listed]),
        package=np.array([row["family"] for row in listed]),
        split=np.array([row["split"] for row in listed]),
        values={
            metric: np.array([np.nan if row[metric] is None else row[metric] for row in listed]) for metric in METRICS
        },
    )


def _numbered(names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The same number for the same name."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names])


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
    """First predictions by metric, each from a ridge that has not seen the function's package."""
    card = read_card(model)
    read = partial(_read_text, Tokenizer.load(model / TOKENIZER), card.forms.get(_PREFIX, CanonicalForm.LINES))
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
    task = next(number for number, entry in enumerate(card.tasks) if entry.name == f"{_PREFIX}/{metric}")
    scale, floor = card.tasks[task].scale, floor_of(f"{_PREFIX}/{metric}")
    default = card.defaults["call"]
    level = card.calibration.lookup("call", "python", metric, str(default.get("device")))
    mixture = WorkMixture.load(model / WORK)
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
        if facts is not None:
            least = stated_floor(facts, metric)
            work = mixture.known_work(facts, metric, line, floor)
            kind = kind_of(facts, work)
            joined = card.calibration.exactly(f"{kind}/{_PREFIX}/{metric}")
            if work.weight >= LEAST_WEIGHT and joined is not None:
                line = mixture_quantiles(line, floor, work, joined.raw_levels(), least)
            line = truncated(line, floor, least)
            is_open[place] = kind != FIXED and not known_wait(facts)[1]
        logs[place] = log_quantiles(line, floor)
    return logs, np.stack([estimates[:, 1], estimates[:, 2] - estimates[:, 0]], axis=1), is_open


def inputs_of(
    graph: PackageGraph, metric: str, first: FirstPass, rows: Iterable[int], measured: Mask
) -> npt.NDArray[np.float64]:
    """The network's inputs for some functions, ``(rows, FEATURES)``; ``measured`` functions count as known."""
    values = np.log10(np.maximum(graph.values[metric], LEAST[metric]))
    known = measured & np.isfinite(values)
    of_file = _Around(graph.module, known, values - first.estimates[:, 0], SHRINK_FILE)
    of_class = _Around(graph.owner, known, values - first.estimates[:, 0], SHRINK_CLASS)
    rows = list(rows)
    similar = _similar(graph, known, values - first.estimates[:, 0], first.bags, rows)
    result = []
    for row in rows:
        sites = []
        for candidates, loops, branches, times in graph.sites[row]:
            costs = [
                CostEstimate(float(values[place]), 0.0, True)
                if known[place]
                else CostEstimate(float(first.estimates[place, 0]), float(first.estimates[place, 1]))
                for place in candidates
            ]
            sites.append(SiteEstimate(costs, loops, branches, times))
        outside, unresolved = int(graph.outside[row]), int(graph.unresolved[row])
        around = of_file.residuals(row), of_class.residuals(row), similar[row]
        result.append(features(metric, first.logs[row], sites, outside, unresolved, graph.facts[row], *around))
    return np.array(result)


class _Around:
    """The residuals of measured functions by group, such as a module."""

    def __init__(self, group: npt.NDArray[np.int64], known: Mask, values: Array, shrink: float) -> None:
        self._group, self._shrink = group, shrink
        self._members: dict[int, list[tuple[int, float]]] = {}
        for place in np.flatnonzero(known):
            self._members.setdefault(int(group[place]), []).append((int(place), float(values[place])))

    def residuals(self, row: int) -> Residuals:
        """Those of the group of a function, without its own."""
        members = self._members.get(int(self._group[row]), [])
        others = [value for place, value in members if place != row][:MAX_MEASURED]
        return Residuals.of(others, self._shrink)


def _similar(
    graph: PackageGraph, known: Mask, residuals: Array, bags: sparse.csr_matrix, rows: Sequence[int]
) -> dict[int, Similar]:
    """The residuals of the measured functions that are most similar to each row, of its file and package."""
    result: dict[int, Similar] = {}
    pools = _Pools(graph, known)
    of_module: dict[int, list[int]] = {}
    for row in rows:
        of_module.setdefault(int(graph.module[row]), []).append(row)
    for members in of_module.values():
        pool = pools.around(members[0])
        texts = graph.text[members]
        cosines = np.clip((bags[texts] @ bags[graph.text[pool]].T).toarray(), 0, 1)
        # A function's own measurement is not among its inputs, nor is that of the same text elsewhere.
        cosines[texts[:, None] == graph.text[pool][None, :]] = 0
        for row, line in zip(members, cosines, strict=True):
            chosen = most_similar(line, MOST_SIMILAR)
            result[row] = Similar.of(line[chosen].astype(np.float64), residuals[pool[chosen]])
    return result


class _Pools:
    """The measured functions that a predictor compares a function with, see :class:`GraphReader`."""

    def __init__(self, graph: PackageGraph, known: Mask) -> None:
        self._graph = graph
        self._of_package: dict[str, list[int]] = {}
        self._of_module: dict[int, list[int]] = {}
        order = sorted(np.flatnonzero(known).tolist(), key=lambda place: random_order(graph.texts[graph.text[place]]))
        for place in order:
            self._of_package.setdefault(str(graph.package[place]), []).append(place)
            self._of_module.setdefault(int(graph.module[place]), []).append(place)

    def others(self, row: int) -> list[int]:
        """Those of the other files of a function's package."""
        members = self._of_package.get(str(self._graph.package[row]), ())
        module = self._graph.module[row]
        return list(islice((place for place in members if self._graph.module[place] != module), MAX_OF_PACKAGE))

    def around(self, row: int) -> npt.NDArray[np.int64]:
        """Those of its file and of the other files."""
        own = self._of_module.get(int(self._graph.module[row]), [])[:MAX_MEASURED]
        return np.array([*own, *self.others(row)], np.int64)


@dataclass(frozen=True, slots=True)
class CallRows:
    """Rows to fit or judge one metric with: inputs, first log10 quantiles, log10 values and packages."""

    inputs: Array
    logs: Array
    values: Array
    package: npt.NDArray[np.str_]
    fold: npt.NDArray[np.int64]
    share: Array
    floor: float

    def chosen(self, mask: Mask) -> CallRows:
        """Some of the rows."""
        parts = {name: getattr(self, name)[mask] for name in ("inputs", "logs", "values", "package", "fold", "share")}
        return replace(self, **parts)

    @property
    def has_known(self) -> Mask:
        """Whether a callee, or a function of the same file or package, counts as measured."""
        columns = [FEATURES.index(name) for name in ("known_share", "file_measured", "similarity")]
        result: Mask = np.any(self.inputs[:, columns] > 0, axis=1)
        return result


def call_rows(
    graph: PackageGraph, metric: str, first: FirstPass, chosen: Mask, shares: Sequence[float] = SHARES, seed: int = 0
) -> CallRows:
    """The rows of chosen functions, once for each share of measured functions.

    With a share between 0 and 1 only functions that are not measured themselves are rows. Functions that are not
    chosen never count as measured.
    """
    values = graph.logs(metric)
    generator = np.random.default_rng(seed)
    parts = []
    for share in shares:
        measured = chosen & (generator.random(len(graph)) < share)
        taken = chosen & first.is_open & np.isfinite(values) & (~measured if share < 1 else True)
        rows = np.flatnonzero(taken)
        # A function's own measurement is not among its inputs: it neither calls itself nor is its own neighbour.
        part = CallRows(
            inputs_of(graph, metric, first, rows, measured),
            first.logs[rows],
            values[rows],
            graph.package[rows],
            graph.fold[rows],
            np.full(len(rows), share),
            floor_of(f"{_PREFIX}/{metric}"),
        )
        parts.append(part)
    joined = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("inputs", "logs", "values", "package", "fold", "share")
    ]
    inputs, logs, logged, package, fold, share_of = joined
    return CallRows(inputs, logs, logged, package, fold, share_of, parts[0].floor)


def fit_network(rows: CallRows, seed: int = 0, epochs: int = _EPOCHS) -> Network:
    """The network whose corrected quantiles have the least mean pinball loss, in log10.

    Quantiles below what the measurement resolves count as equal to it, as values do.
    """
    torch.manual_seed(seed)
    mean, scale = rows.inputs.mean(0), np.maximum(rows.inputs.std(0), 1e-3)
    x = torch.from_numpy(np.clip((rows.inputs - mean) / scale, -6, 6)).float()
    values = torch.from_numpy(rows.values).float()[:, None]
    median = torch.from_numpy(rows.logs[:, MEDIAN]).float()[:, None]
    around = torch.from_numpy(rows.logs[:, _JUDGED]).float() - median
    levels = torch.tensor([LEVELS[place] for place in _JUDGED])
    floor = float(np.log10(max(rows.floor, 1e-30)))
    _, inverse, sizes = np.unique(rows.package, return_inverse=True, return_counts=True)
    weights = torch.from_numpy(1 / np.sqrt(sizes[inverse])).float()
    weights = weights / weights.mean()
    hidden, out = torch.nn.Linear(len(FEATURES), HIDDEN), torch.nn.Linear(HIDDEN, 2)
    with torch.no_grad():
        out.weight.mul_(0.1)
        out.bias.zero_()
    parameters = [*hidden.parameters(), *out.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=_RATE, weight_decay=_DECAY)
    steps = epochs * (len(x) // _BATCH + 1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps + 1)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(_BATCH):
            shift, stretch = out(torch.tanh(hidden(x[batch]))).split(1, dim=1)
            line = median[batch] + shift + stretch.clamp(-MOST_STRETCH, MOST_STRETCH).exp() * around[batch]
            # Nearly flat below the floor: there is no more to gain, but a way back.
            line = torch.where(line < floor, floor + _BELOW_FLOOR * (line - floor), line)
            over = values[batch] - line
            loss = (torch.maximum(levels * over, (levels - 1) * over).mean(1) * weights[batch]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    tensors = [parameter.detach().double().numpy() for parameter in parameters]
    return Network(mean, scale, tensors[0].T.copy(), tensors[1], tensors[2].T.copy(), tensors[3])


def corrected(rows: CallRows, network: Network) -> Array:
    """Corrected log10 quantiles, not calibrated. Shape ``(rows, LEVELS)``."""
    corrections = network.corrections(rows.inputs)
    return np.stack([change.apply(line) for change, line in zip(corrections, rows.logs, strict=True)])


def cross_fitted(rows: CallRows) -> Array:
    """Corrected log10 quantiles of every row by a network that has not seen its package."""
    result = np.empty_like(rows.logs)
    for fold in range(FOLDS):
        held = rows.fold == fold
        if held.any():
            result[held] = corrected(rows.chosen(held), fit_network(rows.chosen(~held)))
    return result


def calibrate(metric: str, rows: CallRows, logs: Array) -> Calibration:
    """The levels of corrected bands, apart for units with measurements around them."""
    names, scores = [], []
    least = np.log10(max(rows.floor, 1e-30)) + 1e-6
    for line, value, known in zip(logs, rows.values, rows.has_known, strict=True):
        names.append([f"{MEASURED if known else PREDICTED}/{_PREFIX}/{metric}"])
        reached = float(model_cdf(line, np.array([value]))[0])
        score = abs(2 * reached - 1)
        if value <= least:
            score = max(0.0, 1 - 2 * reached)
        scores.append(score)
    return Calibration.fit(names, np.array(scores), rows.package)


class GraphReader:
    """What a predictor reads of functions; those of ``measured`` that have values are known, but not to themselves."""

    def __init__(self, graph: PackageGraph, measured: Mask) -> None:
        self._graph = graph
        self._known = [_known_costs(graph, place) if measured[place] else () for place in range(len(graph))]
        self._members: dict[int, list[int]] = {}
        known = np.array([bool(costs) for costs in self._known])
        self._pools, self._of_package = _Pools(graph, known), dict[int, MeasuredFunctions]()
        for place in np.flatnonzero(known).tolist():
            self._members.setdefault(int(graph.module[place]), []).append(place)

    def _called(self, place: int) -> CalledFunction:
        return CalledFunction(self._graph.texts[self._graph.text[place]], known=self._known[place])

    def _measured(self, places: Iterable[int]) -> MeasuredFunctions:
        return MeasuredFunctions(tuple(map(self._called, places)))

    def code(self, row: int) -> CodeText:
        """What is read of one function."""
        graph = self._graph
        sites = tuple(
            CallSite(tuple(map(self._called, candidates)), loops, branches, times)
            for candidates, loops, branches, times in graph.sites[row]
        )
        of_file = [place for place in self._members.get(int(graph.module[row]), ()) if place != row]
        of_class = [place for place in of_file if graph.owner[place] == graph.owner[row]]
        module = int(graph.module[row])
        if module not in self._of_package:
            self._of_package[module] = self._measured(self._pools.others(row))
        calls = Calls(
            sites,
            int(graph.outside[row]),
            int(graph.unresolved[row]),
            self._measured(of_file[:MAX_MEASURED]),
            self._measured(of_class[:MAX_MEASURED]),
            self._of_package[module],
        )
        callees = tuple(
            Callee(graph.texts[text], depth) for depth, texts in enumerate(graph.callees[row], 1) for text in texts
        )
        text = graph.texts[graph.text[row]]
        return CodeText(text, "python", "call", callees, work=graph.facts[row], calls=calls)


def _known_costs(graph: PackageGraph, place: int) -> tuple[KnownCost, ...]:
    values = {metric: float(graph.values[metric][place]) for metric in METRICS}
    return tuple(KnownCost(metric, value, value, value) for metric, value in values.items() if np.isfinite(value))


def recalibrate(graph: PackageGraph, model: Path, most: int = _RECALIBRATED) -> dict[str, Any]:
    """The levels of corrected bands on the model's own predictions of functions that it was not trained on.

    The whole model is sharper than the ridge and the base of the head that the networks are fitted to, and its bands
    of memory would be too narrow; but these rows are of packages that it has seen, so :func:`wider` joins both. Rows
    are of the splits ``val`` and ``cal``, at most ``most`` of each package, cold and with half of the package measured.
    """
    card, predictor = read_card(model), OnnxPredictor(model)
    order = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(graph.split, ("val", "cal"))))
    counts: Counter[str] = Counter()
    rows = []
    for row in order.tolist():
        counts[str(graph.package[row])] += 1
        if counts[str(graph.package[row])] <= most:
            rows.append(row)
    names, scores, packages = [], [], []
    learnt = np.isin(graph.split, ("train", "val", "cal"))
    for share in (0.0, 0.5):
        measured = learnt & (np.random.default_rng(1).random(len(graph)) < share)
        reader = GraphReader(graph, measured)
        judged = [row for row in rows if not measured[row]]
        for start in range(0, len(judged), _PREDICTED_AT_ONCE):
            step = judged[start : start + _PREDICTED_AT_ONCE]
            codes = [reader.code(row) for row in step]
            answers = predictor.predict(codes, [[Query(metric) for metric in METRICS]] * len(codes))
            for row, answer in ((row, answer) for row, line in zip(step, answers, strict=True) for answer in line):
                value = float(graph.logs(answer.metric)[row])
                task = answer.band.source.task if answer.band is not None else ""
                level = card.calibration.exactly(task)
                if not task.startswith((PREDICTED, MEASURED)) or level is None or not np.isfinite(value):
                    continue
                reached = float(model_cdf(log_quantiles(answer.quantiles, answer.floor), np.array([value]))[0])
                # From the calibrated levels back to those of the distribution that the networks give.
                raw = float(np.interp(reached, LEVELS, level.raw_levels()))
                at_floor = value <= np.log10(answer.floor) + 1e-6
                names.append([task])
                scores.append(max(0.0, 1 - 2 * raw) if at_floor else abs(2 * raw - 1))
                packages.append(str(graph.package[row]))
    return Calibration.fit(names, np.array(scores), np.array(packages)).to_json()


def wider(levels: dict[str, Any], others: dict[str, Any]) -> dict[str, Any]:
    """The levels of two calibrations that cover the held-out rows of both; names that only one has stay as they are."""
    return {
        name: entry | {"levels": [max(pair) for pair in zip(entry["levels"], others[name]["levels"], strict=True)]}
        if name in others
        else entry
        for name, entry in levels.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit on all but the test splits and add the networks to a model."""
    parser = argparse.ArgumentParser(description="Fit the propagation of callees' costs and add it to a model.")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="data sets of `rlm-lsp data build calls`")
    parser.add_argument("--model", type=Path, required=True, help="directory of an exported model")
    options = parser.parse_args(arguments)
    graph = read_graph(options.data)
    first = first_pass(graph, options.model)
    learnt = np.isin(graph.split, ("train", "val", "cal"))
    networks: dict[str, Network] = {}
    levels: dict[str, Any] = {}
    for metric in METRICS:
        rows = call_rows(graph, metric, first[metric], learnt)
        levels |= calibrate(metric, rows, cross_fitted(rows)).to_json()
        networks[metric] = fit_network(rows)
        say(f"{metric}: fitted to {len(rows.values):,} rows of {len(np.unique(rows.package))} packages")
    add_to(read_card(options.model), Propagation(networks), levels, options.model)
    levels = wider(levels, recalibrate(graph, options.model))
    add_to(read_card(options.model), Propagation(networks), levels, options.model)


def add_to(card: StudentCard, propagation: Propagation, levels: dict[str, Any], model: Path) -> None:
    """Write the networks into the directory of a model, and their checksum and calibration into its card."""
    propagation.save(model / CALLS)
    calibration = Calibration.from_json(card.calibration.to_json() | levels)
    files = list(dict.fromkeys([*card.files, CALLS]))
    replace(card, calibration=calibration, files={}).write(model, files)


if __name__ == "__main__":
    main()
