"""Fits how costs of callees propagate to callers: call graphs of packages and an exported model -> networks and bands.

The networks are trained on first predictions of packages that the n-gram ridge has not seen: it is fitted again with
each fold of packages left out, and its numbers go through the model's head (without the encoder, which has seen the
training packages) and work mixture. A random part of each package's functions counts as measured, so that the networks
learn how far to trust measured callees. The bands are calibrated on packages that the networks have not seen, and on
the whole model's predictions of packages that no part of it was trained on; packages count by the root of their size.

    python -m rlm_core.training.propagation_fit --data CALLS.parquet... --unseen CALLS.parquet... --model DIR
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse

from rlm_core.inference.calibration import INTERVALS, MIN_GROUPS, Calibration, TaskCalibration
from rlm_core.inference.card import StudentCard, read_card
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
from rlm_core.inference.student import OnnxPredictor
from rlm_core.inference.work_mixture import log_quantiles, model_cdf
from rlm_core.queries.called_functions import MAX_MEASURED
from rlm_core.types import LEVELS, MEDIAN, Query

from .corpus import floor_of
from .losses import pinball
from .package_graph import PREFIX, GraphReader, PackageGraph, Pools, read_graph
from .runs import say
from .student.ngram_ridge_fit import FOLDS
from .tuning.first_pass import FirstPass, first_pass

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
HIDDEN = 32
SHARES = (0.0, 0.5, 1.0)  # of a package's functions that count as measured
_EPOCHS, _RATE, _DECAY, _BATCH = 12, 4e-3, 1e-4, 1024
# The outermost quantiles are too rare to learn from.
_JUDGED = [place for place, level in enumerate(LEVELS) if 0.05 <= level <= 0.95]
_BELOW_FLOOR = 0.05
_JUDGED_OF_PACKAGE, _PREDICTED_AT_ONCE = 200, 128


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
    pools = Pools(graph, known)
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
        """For each row, whether a callee, or a function of the same file or package, counts as measured."""
        columns = [FEATURES.index(name) for name in ("known_share", "file_measured", "similarity")]
        result: Mask = np.any(self.inputs[:, columns] > 0, axis=1)
        return result


def call_rows(
    graph: PackageGraph, metric: str, first: FirstPass, chosen: Mask, shares: Sequence[float] = SHARES
) -> CallRows:
    """The rows of chosen functions, once for each share of measured functions.

    With a share between 0 and 1 only functions that are not measured themselves are rows. Functions that are not
    chosen never count as measured.
    """
    values = graph.logs(metric)
    generator = np.random.default_rng(0)
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
            floor_of(f"{PREFIX}/{metric}"),
        )
        parts.append(part)
    joined = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("inputs", "logs", "values", "package", "fold", "share")
    ]
    inputs, logs, logged, package, fold, share_of = joined
    return CallRows(inputs, logs, logged, package, fold, share_of, parts[0].floor)


def fit_network(rows: CallRows, epochs: int = _EPOCHS) -> Network:
    """The network whose corrected quantiles have the least mean pinball loss, in log10.

    Quantiles below what the measurement resolves count as equal to it, as values do.
    """
    torch.manual_seed(0)
    mean, scale = rows.inputs.mean(0), np.maximum(rows.inputs.std(0), 1e-3)
    x = torch.from_numpy(np.clip((rows.inputs - mean) / scale, -6, 6)).float()
    values = torch.from_numpy(rows.values).float()[:, None]
    median = torch.from_numpy(rows.logs[:, MEDIAN]).float()[:, None]
    around = torch.from_numpy(rows.logs[:, _JUDGED]).float() - median
    levels = torch.tensor([LEVELS[place] for place in _JUDGED])
    floor = float(np.log10(max(rows.floor, 1e-30)))
    unresolved = torch.from_numpy((rows.logs[:, _JUDGED] <= floor) & (np.array(_JUDGED) < MEDIAN))
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
            line = torch.where(unresolved[batch], line.clamp(max=floor), line)  # as :meth:`Correction.apply` does
            # Nearly flat below the floor: there is no more to gain, but a way back.
            line = torch.where(line < floor, floor + _BELOW_FLOOR * (line - floor), line)
            loss = (pinball(line, values[batch], levels) * weights[batch]).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    tensors = [parameter.detach().double().numpy() for parameter in parameters]
    return Network(mean, scale, tensors[0].T.copy(), tensors[1], tensors[2].T.copy(), tensors[3])


def corrected(rows: CallRows, network: Network) -> Array:
    """Corrected log10 quantiles, not calibrated. Shape ``(rows, LEVELS)``."""
    corrections = network.corrections(rows.inputs)
    return np.stack([change.apply(line, rows.floor) for change, line in zip(corrections, rows.logs, strict=True)])


@dataclass(slots=True)
class Scores:
    """The smallest central interval that holds each value, with its task and package."""

    tasks: list[list[str]] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)

    def add(self, task: str, reached: float, package: str, *, at_floor: bool) -> None:
        """Add a value at the quantile ``reached``; one at the floor is held where the interval reaches the floor."""
        self.tasks.append([task])
        self.levels.append(max(0.0, 1 - 2 * reached) if at_floor else abs(2 * reached - 1))
        self.packages.append(package)

    def calibration(self) -> Calibration:
        """The levels that hold, each package by the square root of its size."""
        return Calibration.fit(self.tasks, np.array(self.levels), np.array(self.packages))


def cross_fitted(rows: CallRows) -> Array:
    """Corrected log10 quantiles of every row by a network that has not seen its package."""
    result = np.empty_like(rows.logs)
    for fold in range(FOLDS):
        held = rows.fold == fold
        if held.any():
            result[held] = corrected(rows.chosen(held), fit_network(rows.chosen(~held)))
    return result


def score_networks(metric: str, rows: CallRows, logs: Array, scores: Scores) -> None:
    """Score corrected quantiles of packages that the networks have not seen."""
    least = np.log10(max(rows.floor, 1e-30)) + 1e-6
    for line, value, known, package in zip(logs, rows.values, rows.has_known, rows.package.tolist(), strict=True):
        reached = float(model_cdf(line, np.array([value]))[0])
        task = f"{MEASURED if known else PREDICTED}/{PREFIX}/{metric}"
        scores.add(task, reached, package, at_floor=value <= least)


def score_model(graph: PackageGraph, model: Path, scores: Scores, most: int = _JUDGED_OF_PACKAGE) -> None:
    """Score what the model, whose levels leave its quantiles as they are, says of packages that it was not trained on.

    At most ``most`` functions of each package are judged, without measurements and with half of the package measured.
    """
    predictor = OnnxPredictor(model)
    counts: Counter[str] = Counter()
    rows = []
    for row in np.random.default_rng(0).permutation(len(graph)).tolist():
        if any(np.isfinite(graph.values[metric][row]) for metric in METRICS):
            counts[str(graph.package[row])] += 1
            if counts[str(graph.package[row])] <= most:
                rows.append(row)
    for share in (0.0, 0.5):
        measured = np.random.default_rng(1).random(len(graph)) < share
        reader = GraphReader(graph, measured)
        judged = [row for row in rows if not measured[row]]
        for start in range(0, len(judged), _PREDICTED_AT_ONCE):
            step = judged[start : start + _PREDICTED_AT_ONCE]
            codes = [reader.code(row) for row in step]
            answers = predictor.predict(codes, [[Query(metric) for metric in METRICS]] * len(codes))
            for row, answer in ((row, answer) for row, line in zip(step, answers, strict=True) for answer in line):
                value = float(graph.logs(answer.metric)[row])
                task = answer.band.source.task if answer.band is not None else ""
                if task.startswith((PREDICTED, MEASURED)) and np.isfinite(value):
                    reached = float(model_cdf(log_quantiles(answer.quantiles, answer.floor), np.array([value]))[0])
                    at_floor = value <= np.log10(answer.floor) + 1e-6
                    scores.add(task, reached, str(graph.package[row]), at_floor=at_floor)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit on all but the test splits and add the networks to a model."""
    parser = argparse.ArgumentParser(description="Fit the propagation of callees' costs and add it to a model.")
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="data sets of `rlm-lsp data build calls`")
    parser.add_argument("--unseen", type=Path, nargs="+", required=True, help="the same, of packages of no split")
    parser.add_argument("--model", type=Path, required=True, help="directory of an exported model")
    options = parser.parse_args(arguments)
    graph, unseen = read_graph(options.data), read_graph(options.unseen)
    if known := sorted(set(unseen.package.tolist()) & set(graph.package.tolist())):
        parser.error(f"--unseen: also in --data: {', '.join(known)}; leave them out of one of the two")
    first = first_pass(graph, options.model)
    learnt = np.isin(graph.split, ("train", "val", "cal"))
    networks: dict[str, Network] = {}
    scores = Scores()
    for metric in METRICS:
        rows = call_rows(graph, metric, first[metric], learnt)
        score_networks(metric, rows, cross_fitted(rows), scores)
        networks[metric] = fit_network(rows)
        say(f"{metric}: fitted to {len(rows.values):,} rows of {len(np.unique(rows.package))} packages")
    add_to(read_card(options.model), Propagation(networks), _unchanged_levels(), options.model)
    score_model(unseen, options.model, scores)
    levels = scores.calibration().to_json()
    add_to(read_card(options.model), Propagation(networks), levels, options.model)
    for task, level in levels.items():
        say(f"{task}: calibrated on {level['rows']:,} functions of {level['groups']} packages")


def _unchanged_levels() -> dict[str, Any]:
    """Levels that leave the corrected distributions as they are."""
    names = [f"{kind}/{PREFIX}/{metric}" for kind in (PREDICTED, MEASURED) for metric in METRICS]
    return Calibration({name: TaskCalibration(name, INTERVALS, MIN_GROUPS, MIN_GROUPS) for name in names}).to_json()


def add_to(card: StudentCard, propagation: Propagation, levels: dict[str, Any], model: Path) -> None:
    """Write the networks into the directory of a model, and their checksum and calibration into its card."""
    propagation.save(model / CALLS)
    calibration = Calibration.from_json(card.calibration.to_json() | levels)
    files = list(dict.fromkeys([*card.files, CALLS]))
    replace(card, calibration=calibration, files={}).write(model, files)


if __name__ == "__main__":
    main()
