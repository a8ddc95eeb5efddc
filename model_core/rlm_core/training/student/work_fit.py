"""Fits the work mixture of an exported model: rows with work facts and the model's predictions -> networks and bands.

The rows are those that the model was not trained on: the validation and calibration splits of real functions, and
generated functions whose text fixes their cost. Whole project groups are left out to calibrate the bands.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rlm_core.inference.calibration import Calibration
from rlm_core.inference.cost_ratio import RatioModel, ratio_task
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.work_mixture import (
    FACTS,
    FEATURES,
    FIXED,
    METRICS,
    KnownWork,
    Network,
    WorkMixture,
    features,
    kind_of,
    log_quantiles,
    log_work,
    mixture_cdf,
    model_cdf,
)
from rlm_core.training.corpus import floor_of
from rlm_core.training.datasets.schema import HAND_WRITTEN, Edit, read_facts, read_rows
from rlm_core.training.losses import mixture_nats
from rlm_core.types import Callee, CodeText, Query, WorkFacts

from .cost_ratio_fit import FEWEST_PAIRS, fit_ratio_model

Array = npt.NDArray[np.float64]
HIDDEN = 48
FOLDS = 5
_EPOCHS, _RATE, _PATIENCE = 600, 0.01, 60
_SHRINK = 1e-3
# Chosen on packages of no split and functions written by hand: with 20 the first are ranked a little better
# (latency .782 instead of .778) and fewer of the second are within a factor of 10 (95.7 instead of 96.9 %).
_REAL_SHARE = 10.0
_BATCH = 512


@dataclass(frozen=True, slots=True)
class WorkRows:
    """Rows of one metric: facts, the model's quantiles and log10 values; whole groups are in one fold."""

    metric: str
    floor: float
    ids: list[str]
    facts: list[WorkFacts]
    quantiles: list[tuple[float, ...]]
    values: Array
    groups: npt.NDArray[np.str_]
    generated: npt.NDArray[np.bool_]
    fold: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        metric: str,
        ids: list[str],
        facts: list[WorkFacts],
        quantiles: list[tuple[float, ...]],
        values: Array,
        groups: npt.NDArray[np.str_],
        generated: npt.NDArray[np.bool_],
    ) -> WorkRows:
        """Rows with values in SI units; their groups fall into folds by name."""
        floor = floor_of(f"call/python/{metric}")
        fold = np.array([zlib.crc32(group.encode()) % FOLDS for group in groups.tolist()], np.int64)
        return cls(metric, floor, ids, facts, quantiles, np.log10(np.maximum(values, floor)), groups, generated, fold)

    def joined(self, other: WorkRows) -> WorkRows:
        """The rows of both."""
        return replace(
            self,
            ids=self.ids + other.ids,
            facts=self.facts + other.facts,
            quantiles=self.quantiles + other.quantiles,
            values=np.concatenate([self.values, other.values]),
            groups=np.concatenate([self.groups, other.groups]),
            generated=np.concatenate([self.generated, other.generated]),
            fold=np.concatenate([self.fold, other.fold]),
        )

    def chosen(self, mask: npt.NDArray[np.bool_]) -> WorkRows:
        """Some of the rows."""
        places = np.flatnonzero(mask)
        return replace(
            self,
            ids=[self.ids[place] for place in places],
            facts=[self.facts[place] for place in places],
            quantiles=[self.quantiles[place] for place in places],
            **{name: getattr(self, name)[mask] for name in ("values", "groups", "generated", "fold")},
        )

    @property
    def written(self) -> npt.NDArray[np.bool_]:
        """Which functions were written by hand: they calibrate, and train nothing."""
        return np.char.startswith(self.groups, HAND_WRITTEN)

    @property
    def logs(self) -> Array:
        """The model's log10 quantiles, ``(rows, LEVELS)``."""
        return np.stack([log_quantiles(entry, self.floor) for entry in self.quantiles])

    def inputs(self) -> Array:
        """The networks' inputs, ``(rows, FEATURES)``."""
        logs = self.logs
        return np.stack([features(facts, self.metric, row) for facts, row in zip(self.facts, logs, strict=True)])


def work_rows(
    predictor: Predictor, data: Sequence[Path], splits: Sequence[str] = ("val", "cal")
) -> dict[str, WorkRows]:
    """The rows of functions in data sets that have work facts, with the model's predictions, by metric.

    Rows of generated functions are taken from their ``train`` split too, since the model was not trained on them.
    """
    collected: dict[str, list[dict[str, Any]]] = {metric: [] for metric in METRICS}
    for row in read_rows(data, ("train", *splits)):
        generated = row["held_out"] == "edit"
        if row["basis"] != "call" or row["work"] is None or (row["split"] == "train" and not generated):
            continue
        collected[row["metric"]].append(
            {
                "id": row["id"],
                "code": CodeText(
                    row["text"],
                    row["language"],
                    row["basis"],
                    tuple(Callee(entry["text"], entry["level"]) for entry in row["callees"]),
                ),
                "facts": read_facts(row["work"]),
                "value": row["value"],
                "group": row["family"] if generated else row["group"],
                "generated": generated,
            }
        )
    return {metric: _with_predictions(predictor, metric, rows) for metric, rows in collected.items() if rows}


def _with_predictions(predictor: Predictor, metric: str, rows: list[dict[str, Any]]) -> WorkRows:
    kept, quantiles = [], []
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        answers = predictor.predict([row["code"] for row in batch], [[Query(metric)]] * len(batch))  # type: ignore[arg-type]
        for row, (answer,) in zip(batch, answers, strict=True):
            if answer.quantiles:
                kept.append(row)
                quantiles.append(answer.quantiles)
    return WorkRows.of(
        metric,
        [row["id"] for row in kept],
        [row["facts"] for row in kept],
        quantiles,
        np.array([row["value"] for row in kept]),
        np.array([row["group"] for row in kept]),
        np.array([row["generated"] for row in kept]),
    )


def fit_mixture(rows: dict[str, WorkRows], say: Callable[[str], None]) -> WorkMixture:
    """The networks that explain the values best, stopped early on the groups of one fold."""
    networks = {}
    for metric, part in rows.items():
        networks[metric], before, after = _fit(part, part.fold != 0, part.fold == 0)
        say(
            f"{metric}: {len(part.values):,} rows; held-out loss {before:.4f} nats without facts, {after:.4f} with them"
        )
    return WorkMixture(networks)


def _fit(
    rows: WorkRows, train_rows: npt.NDArray[np.bool_], stop_rows: npt.NDArray[np.bool_]
) -> tuple[Network, float, float]:
    torch.manual_seed(0)
    inputs, logs = rows.inputs(), rows.logs
    mean, scale = inputs.mean(0), np.maximum(inputs.std(0), 1e-3)
    x = torch.from_numpy(np.clip((inputs - mean) / scale, -8, 8)).float()
    typical = torch.from_numpy(inputs[:, 5]).float()
    y = torch.from_numpy(rows.values).float()
    density = torch.from_numpy(_model_density(logs, rows.values, rows.floor)).float()
    at_floor = torch.from_numpy(rows.values <= np.log10(max(rows.floor, 1e-30)) + 1e-6)
    weights = torch.from_numpy(_weights(rows)).float()
    hidden = torch.nn.Linear(FEATURES, HIDDEN)
    out = torch.nn.Linear(HIDDEN, 3)
    with torch.no_grad():
        out.weight.mul_(0.1)
        out.bias.copy_(torch.tensor([-1.0, 0.0, -1.0]))
    parameters = [*hidden.parameters(), *out.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=_RATE)
    train, held = (torch.from_numpy(np.flatnonzero(mask)) for mask in (train_rows, stop_rows))

    def loss_of(chosen: Tensor) -> Tensor:
        gate, shift, width = out(torch.tanh(hidden(x[chosen]))).unbind(1)
        spread = width.clamp(-4.0, 1.5).exp()
        z = (y[chosen] - typical[chosen] - shift) / spread
        nats = mixture_nats(gate, z, spread, at_floor[chosen], density[chosen])
        return (nats * weights[chosen]).sum() / weights[chosen].sum()

    best, state, since = np.inf, [p.detach().clone() for p in parameters], 0
    model_alone = float(-(density[held] * weights[held]).sum() / weights[held].sum())
    for _ in range(_EPOCHS):
        loss = loss_of(train) + _SHRINK * sum((p**2).sum() for p in (hidden.weight, out.weight)) / len(train) ** 0.5
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            reached = float(loss_of(held))
        since += 1
        if reached < best - 1e-4:
            best, state, since = reached, [p.detach().clone() for p in parameters], 0
        elif since > _PATIENCE:
            break
    tensors = [p.double().numpy() for p in state]
    network = Network(mean, scale, tensors[0].T.copy(), tensors[1], tensors[2].T.copy(), tensors[3])
    return network, model_alone, best


def _model_density(logs: Array, values: Array, floor: float) -> Array:
    """Log density of the model's own distribution at the values (per decade); at the floor the log probability."""
    step = 0.02
    result = np.empty(len(values))
    least = np.log10(max(floor, 1e-30)) + 1e-6
    for i, (row, value) in enumerate(zip(logs, values, strict=True)):
        if value <= least:
            result[i] = np.log(max(float(model_cdf(row, np.array([value + 2e-3]))[0]), 1e-6))
        else:
            low, high = model_cdf(row, np.array([value - step, value + step]))
            result[i] = np.log(max((high - low) / (2 * step), 1e-6))
    return result


def _weights(rows: WorkRows) -> Array:
    """Each group counts by the root of its size; real functions count ``_REAL_SHARE`` times as much as generated."""
    _, inverse, sizes = np.unique(rows.groups, return_inverse=True, return_counts=True)
    weights: Array = 1 / np.sqrt(sizes[inverse])
    for mask, share in ((rows.generated, 1.0), (~rows.generated, _REAL_SHARE)):
        if mask.any():
            weights[mask] *= share / weights[mask].sum()
    return weights * len(weights)


def calibrate_mixture(rows: dict[str, WorkRows], prefix: str = "call/python") -> Calibration:
    """Bands of the mixture, apart for texts that fix their cost and for all others.

    Every fold is scored by networks that have seen none of its groups, neither in training nor to stop early.
    """
    names: list[list[str]] = []
    scores: list[float] = []
    groups: list[str] = []
    for metric, part in rows.items():
        inputs, logs = part.inputs(), part.logs
        for fold in range(FOLDS):
            stop = (fold + 1) % FOLDS
            network, _, _ = _fit(part, (part.fold != fold) & (part.fold != stop), part.fold == stop)
            places = np.flatnonzero(part.fold == fold)
            for place, work in zip(places, network.known_work(inputs[places]), strict=True):
                kind = kind_of(part.facts[place], work)
                if kind == FACTS and part.generated[place]:
                    continue
                names.append([f"{kind}/{prefix}/{metric}"])
                scores.append(_score(logs[place], work, part.values[place]))
                groups.append(str(part.groups[place]))
    return Calibration.fit(names, np.array(scores), np.array(groups))


def calibrate_written(rows: dict[str, WorkRows], mixture: WorkMixture, prefix: str = "call/python") -> Calibration:
    """Bands of texts that fix their cost, from functions written by hand, which the networks were not trained on.

    Generated functions consist of what the analysis knows, so bands from them are too narrow for others.
    """
    names: list[list[str]] = []
    scores: list[float] = []
    groups: list[str] = []
    for metric, part in rows.items():
        logs = part.logs
        for place, work in enumerate(mixture.networks[metric].known_work(part.inputs())):
            if kind_of(part.facts[place], work) == FIXED:
                names.append([f"{FIXED}/{prefix}/{metric}"])
                scores.append(_score(logs[place], work, part.values[place]))
                groups.append(str(part.groups[place]))
    return Calibration.fit(names, np.array(scores), np.array(groups))


def _score(logs: Array, work: KnownWork, value: float) -> float:
    """The level of the smallest central interval of a mixture that holds a value."""
    return abs(2 * float(mixture_cdf(logs, work, np.array([value]))[0]) - 1)


def fit_ratios(rows: dict[str, WorkRows], mixture: WorkMixture, edits: Sequence[Edit]) -> dict[str, RatioModel]:
    """The ratio models of functions: one for pairs of texts that fix their cost, and one for all others."""
    models = {}
    for metric, part in rows.items():
        works, logs = mixture.networks[metric].known_work(part.inputs()), part.logs
        medians = np.array([_median(row, work) for row, work in zip(logs, works, strict=True)])
        works_of_texts = np.array([log_work(facts, metric) for facts in part.facts])
        inputs = np.stack([medians, np.zeros(len(medians)), works_of_texts], axis=1)
        fixed = np.array([kind_of(facts, work) == FIXED for facts, work in zip(part.facts, works, strict=True)])
        index = {name: number for number, name in enumerate(part.ids)}
        pairs = [(index[e.before], index[e.after]) for e in edits if e.before in index and e.after in index]
        for kind, chosen in (
            (FIXED, [pair for pair in pairs if fixed[list(pair)].all()]),
            ("call", [pair for pair in pairs if not fixed[list(pair)].all()]),
        ):
            if len(chosen) >= FEWEST_PAIRS:
                models[ratio_task(kind, metric)] = fit_ratio_model(chosen, inputs, part.values, part.groups)
    return models


def _median(logs: Array, work: KnownWork) -> float:
    """Log10 of the mixture's median."""
    at = np.linspace(min(logs[0], work.centre) - 1, max(logs[-1], work.centre) + 1, 512)
    return float(np.interp(0.5, mixture_cdf(logs, work, at), at))
