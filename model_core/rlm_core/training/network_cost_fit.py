"""Rows of measured networks -> the costs of kernels by setting: ``python -m rlm_core.training.network_cost_fit``.

The latency of a network, or its energy, is a sum over its kernels (:mod:`rlm_core.inference.network_cost`). Its factors
are not negative and minimise relative errors, with less weight on networks that are far off. What a setting has few
networks for is drawn towards the mean of the other settings on the same kind of device. Families of networks are left
out in turn for bands, and for the figures that are printed. A fit of one metric leaves the settings of the other as
they are.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from rlm_core.inference.card import read_card
from rlm_core.inference.network_settings import BATCH, COLUMNS, MACS, MOVED, NETWORK_COSTS, SettingCost, load, save
from rlm_core.inference.network_work import work_of
from rlm_core.queries.devices import device_table
from rlm_core.source.onnx_graph.kernels import KINDS
from rlm_core.types import LEVELS, MEDIAN, Metric

from .datasets.schema import read_rows
from .student.ngram_ridge_fit import fold_of

Array = npt.NDArray[np.float64]
FOLDS = 5
MIN_ROWS, MIN_FAMILIES = 60, 20
_STEPS = 5  # of reweighting
_NEAR = 0.03  # relative errors below it have the same weight: measurements repeat to a few per cent
_RIDGE = 1e-3
_TOWARDS_OTHERS = 3e-3
_SHARE, _FAMILIES = 0.02, 4  # a kind is known if so many families have so much of their work in it


@dataclass(frozen=True, slots=True)
class SettingRows:
    """The measured networks of a setting: ``amounts (rows, columns)`` for their batches, and ``values (rows,)``.

    Values are seconds, or joules of an energy.
    """

    device: str
    workload: Mapping[str, str]
    texts: tuple[str, ...]
    families: npt.NDArray[np.str_]
    batches: npt.NDArray[np.int64]
    amounts: Array
    values: Array
    metric: Metric = "latency"

    def part(self, chosen: npt.NDArray[np.bool_]) -> SettingRows:
        """Some of the rows."""
        return SettingRows(
            self.device,
            self.workload,
            tuple(text for text, kept in zip(self.texts, chosen, strict=True) if kept),
            self.families[chosen],
            self.batches[chosen],
            self.amounts[chosen],
            self.values[chosen],
            self.metric,
        )

    @property
    def folds(self) -> npt.NDArray[np.int64]:
        """The fold of each row: that of its family."""
        return np.array([fold_of(family, FOLDS) for family in self.families])

    @property
    def kind(self) -> str:
        """The kind of device, such as ``gpu``, with what else changes which kernels are quick."""
        device = device_table().get(self.device)
        return f"{device.kind if device else self.device}/{self.workload.get('backend')}/{self.workload.get('mode')}"


def settings_of(paths: Sequence[Path], splits: Sequence[str], metric: Metric = "latency") -> list[SettingRows]:
    """The settings of a metric in data sets, the usual one of a device first."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[dict[str, object]]] = defaultdict(list)
    for row in read_rows(paths, splits):
        # Rows of NAS benchmarks do not say what ran the network.
        if row["basis"] == "network" and row["metric"] == metric and "backend" in row["workload"]:
            workload = {name: value for name, value in row["workload"].items() if name != BATCH}
            found[row["device"], tuple(sorted(workload.items()))].append(row)
    settings = [_setting(device, dict(workload), rows, metric) for (device, workload), rows in found.items()]
    return sorted(settings, key=_order)


def _setting(device: str, workload: dict[str, str], rows: Sequence[dict[str, object]], metric: Metric) -> SettingRows:
    batches = [int(row["workload"][BATCH]) for row in rows]  # type: ignore[index]
    texts = tuple(str(row["text"]) for row in rows)
    amounts = [work_of(text).at(batch).sum(axis=0) for text, batch in zip(texts, batches, strict=True)]
    return SettingRows(
        device,
        workload,
        texts,
        np.array([str(row["family"]) for row in rows]),
        np.array(batches),
        np.array(amounts),
        np.array([float(row["value"]) for row in rows]),  # type: ignore[arg-type]
        metric,
    )


def _order(setting: SettingRows) -> tuple[object, ...]:
    """Inference before training, the newest runtime, plain before compiled, and the usual types and layout first.

    Networks here are ONNX files, so ONNX Runtime comes before others that need another format.
    """
    workload = setting.workload
    version = tuple(-int(part) for part in workload.get("runtime", "").rpartition("-")[2].split(".") if part)
    usual = (
        workload["mode"] != "infer",
        workload["backend"] not in ("eager", "onnxruntime"),
        version,
        workload.get("layout", ""),
        workload.get("dtype", ""),
    )
    return (setting.device, *usual)


def fit(settings: Sequence[SettingRows]) -> list[Array]:
    """The seconds per unit of each column, ``(columns,)`` for each setting."""
    alone = [_fitted(setting, None) for setting in settings]
    return [_fitted(setting, _prior(number, settings, alone)) for number, setting in enumerate(settings)]


def _prior(number: int, settings: Sequence[SettingRows], alone: Sequence[Array]) -> Array | None:
    """The mean of the other settings of a kind, as slow as this setting; None without any."""
    here = settings[number]
    others = []
    for other, factors in zip(settings, alone, strict=True):
        if other is not here and other.kind == here.kind:
            others.append(factors * _speed(here, factors))
    return np.mean(others, axis=0) if others else None


def _speed(rows: SettingRows, factors: Array) -> float:
    """The median factor by which measurements are slower than predicted with the factors of another setting."""
    return float(np.median(rows.values / np.maximum(rows.amounts @ factors, 1e-12)))


def _fitted(rows: SettingRows, prior: Array | None) -> Array:
    relative = rows.amounts / rows.values[:, None]
    scale = relative.mean(axis=0)
    used = scale > 0
    if prior is not None:
        used |= prior > 0
    scale = np.where(scale > 0, scale, np.median(scale[scale > 0]))
    table = (relative / scale)[:, used]
    target = np.zeros(used.sum()) if prior is None else (prior * scale)[used]
    pull = np.sqrt((_RIDGE if prior is None else _TOWARDS_OTHERS) * len(table)) * np.eye(table.shape[1])
    weights = np.ones(len(table))
    solution = target
    for _ in range(_STEPS):
        left, right = np.vstack([table * weights[:, None], pull]), np.concatenate([weights, pull @ target])
        solution, _ = nnls(left, right, maxiter=5000)
        predicted = np.maximum(table @ solution, 1e-3)
        weights = np.minimum(1, 1 / predicted) / np.sqrt(np.maximum(np.abs(np.log(predicted)), _NEAR))
        weights /= weights.mean()
    factors = np.zeros(len(COLUMNS))
    factors[used] = solution
    result: Array = factors / scale
    return result


def left_out(settings: Sequence[SettingRows]) -> list[Array]:
    """log(measured / predicted) of each row, ``(rows,)`` for each setting, by a fit without its family."""
    errors = [np.full(len(setting.values), np.nan) for setting in settings]
    folds = [setting.folds for setting in settings]
    for fold in range(FOLDS):
        fitted = fit([setting.part(own != fold) for setting, own in zip(settings, folds, strict=True)])
        for setting, own, factors, found in zip(settings, folds, fitted, errors, strict=True):
            rows = own == fold
            found[rows] = np.log(setting.values[rows] / np.maximum(setting.amounts[rows] @ factors, 1e-12))
    return errors


def baseline(setting: SettingRows) -> Array:
    """log(measured / predicted) of a line on the logarithms of three counts of each network, left out alike.

    They are those that papers state: multiply-accumulates, outputs of convolutions and products, and parameters.
    """
    counts = np.array([_counts(text) for text in setting.texts])
    table = np.concatenate([np.ones((len(counts), 1)), np.log(np.maximum(counts, 1))], axis=1)
    logs, folds = np.log(setting.values / setting.batches), setting.folds
    errors = np.zeros(len(logs))
    for fold in range(FOLDS):
        rows = folds == fold
        line = np.linalg.lstsq(table[~rows], logs[~rows], rcond=None)[0]
        errors[rows] = logs[rows] - table[rows] @ line
    return errors


def _counts(text: str) -> tuple[int, int, int]:
    found = work_of(text).kernels
    written = sum(kernel.written for kernel in found if kernel.macs)
    return sum(kernel.macs for kernel in found), written, sum(kernel.weights for kernel in found)


def cost_of_setting(rows: SettingRows, factors: Array, errors: Array) -> SettingCost:
    """A setting as it is stored: the quantiles of its errors are symmetric about the median."""
    sizes = np.sort(np.abs(errors))
    quantiles = []
    for level in LEVELS:
        # The band of n errors that the next one is in with the probability of the level (split conformal prediction).
        rank = int(np.ceil(abs(2 * level - 1) * (len(sizes) + 1)))
        value = float(sizes[min(rank, len(sizes)) - 1]) if rank else 0.0
        quantiles.append(value if level > LEVELS[MEDIAN] else -value)
    quantiles[MEDIAN] = 0.0
    alike = rows.amounts.min(axis=0) == rows.amounts.max(axis=0)
    is_one_space = rows.metric == "energy"
    fixed = float(rows.amounts[0, alike] @ factors[alike]) if is_one_space else 0.0
    factors = np.where(alike, 0.0, factors) if is_one_space else factors
    low, middle, high = np.quantile(rows.batches, [0.05, 0.5, 0.95], method="nearest")
    return SettingCost(
        rows.device,
        dict(rows.workload),
        tuple(float(f"{value:.6g}") for value in factors),
        tuple(float(f"{value:.4g}") for value in quantiles),
        (int(low), int(high), int(middle)),
        _known(rows),
        len(set(rows.families)),
        len(rows.values),
        rows.metric,
        *(_limits(rows) if is_one_space else ((), 0.0, 0)),
        float(f"{fixed:.6g}"),
    )


def _limits(rows: SettingRows) -> tuple[tuple[float, ...], float, int]:
    """The most work of each column, the least cost and the largest kernel of networks that are all of one space."""
    most = tuple(float(f"{value:.6g}") for value in rows.amounts.max(axis=0))
    largest = max(kernel.read + kernel.written for text in rows.texts for kernel in work_of(text).kernels)
    return most, float(f"{rows.values.min():.6g}"), largest


def _known(rows: SettingRows) -> tuple[str, ...]:
    """The kinds of kernels that enough families have some of their arithmetic or moved elements in."""
    found = []
    kind_of = np.array([name.partition(".")[0] for name in COLUMNS])
    for kind in KINDS:
        has_some = np.zeros(len(rows.values), bool)
        for columns in (MACS, MOVED):
            part = np.isin(COLUMNS, columns)
            whole = np.maximum(rows.amounts[:, part].sum(axis=1), 1e-300)
            has_some |= rows.amounts[:, part & (kind_of == kind)].sum(axis=1) / whole > _SHARE
        if len(set(rows.families[has_some])) >= _FAMILIES:
            found.append(kind)
    return tuple(found)


def figures(settings: Sequence[SettingRows], errors: Sequence[Array]) -> str:
    """Lines on each setting: the factor that half and 90 % of the networks are within, here and for the baseline."""
    lines, table = [], []
    for setting, found in zip(settings, errors, strict=True):
        line = baseline(setting)
        row = [float(np.quantile(np.abs(part), share)) for part in (found, line) for share in (0.5, 0.9)]
        table.append(row)
        named = " ".join([setting.device, *setting.workload.values()])
        factors = " ".join(f"{np.exp(value):.3f}" for value in row)
        lines.append(f"{named}: {len(found)} rows, {len(set(setting.families))} families: {factors}")
    mean = np.mean(table, axis=0)
    lines.append(f"mean of log errors: {mean[0]:.3f}, 90 % {mean[1]:.3f}; baseline {mean[2]:.3f}, 90 % {mean[3]:.3f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, print figures and write the costs."""
    parser = argparse.ArgumentParser(prog="python -m rlm_core.training.network_cost_fit", description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="data sets of python -m tools.networks")
    parser.add_argument("--model", type=Path, help="directory of the model to write to")
    parser.add_argument("--metric", choices=("latency", "energy"), default="latency")
    chosen = parser.parse_args(arguments)
    settings = [
        setting
        for setting in settings_of(chosen.data, ("train",), chosen.metric)
        if len(setting.values) >= MIN_ROWS and len(set(setting.families)) >= MIN_FAMILIES
    ]
    errors = left_out(settings)
    print(figures(settings, errors))
    if chosen.model is not None:
        costs = [cost_of_setting(*parts) for parts in zip(settings, fit(settings), errors, strict=True)]
        path = chosen.model / NETWORK_COSTS
        kept = [setting for setting in load(path) if setting.metric != chosen.metric] if path.is_file() else []
        card = read_card(chosen.model)  # before a file of it changes
        save(sorted([*kept, *costs], key=lambda setting: setting.metric != "latency"), path)
        replace(card, files={}).write(chosen.model, list(dict.fromkeys([*card.files, NETWORK_COSTS])))


if __name__ == "__main__":
    main()
