"""Measurements on a new device -> its adapters: the model is asked about every measured text on each known device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median

import numpy as np

from rlm_core.errors import DataError
from rlm_core.inference.predictor import Predictor
from rlm_core.types import Abstention, Basis, Metric, Prediction, Query

from .fit import MIN_MEASUREMENTS, Array, DeviceFit, choose, fit_device
from .measurements import Measurement
from .predictor import logs, text_column_names, text_columns
from .store import Adapter, check_name, text_key
from .sum_fit import MIN_NETWORKS, PARTS, fit_sum, kinds_of, part_columns

_CLEAR = 2.0  # standard errors


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A measurement that the model has no answer for: its line and the reason (None: no device is known)."""

    line: int
    reason: Abstention | None


@dataclass(frozen=True, slots=True)
class Adaptation:
    """The adapters of a device, and one entry per measurement or kind of measurement that was not used."""

    adapters: tuple[Adapter, ...]
    problems: tuple[str | RefusedRow, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """Measurements of one basis and metric with what known devices take for them.

    ``known (rows, devices)``: log10 medians. ``parts (rows, devices, 3)``: of networks, see :func:`part_columns`.
    """

    rows: list[Measurement]
    devices: tuple[str, ...]
    known: Array
    parts: Array

    def extra_columns(self, columns: Sequence[str]) -> Array | None:
        """What the texts are beyond the devices' answers, ``(rows, columns)``; None without columns."""
        return np.array([text_columns(row.code, columns) for row in self.rows]) if columns else None


@dataclass(frozen=True, slots=True)
class _Map:
    """A fit with the known devices and the columns that it reads."""

    known: tuple[str, ...]
    columns: tuple[str, ...]
    fit: DeviceFit


def adapt(base: Predictor, device: str, measurements: Sequence[Measurement]) -> Adaptation:
    """Fit ``device`` for each basis and metric with enough distinct measurements: five, of networks three.

    Raises:
        DataError: the device's name cannot be used, or no basis and metric has enough usable measurements.
    """
    check_name(device)
    adapters: list[Adapter] = []
    problems: list[str | RefusedRow] = []
    for (basis, metric), rows in _by_kind([row for row in measurements if row.value is not None]).items():
        table, refused = _ask(base, basis, _distinct(rows))
        problems += refused
        chosen = _chosen(table, basis) if table is not None else None
        if table is None or chosen is None:
            usable = len(table.rows) if table is not None else 0
            needed = MIN_NETWORKS if basis == "network" else MIN_MEASUREMENTS
            problems.append(
                f"{metric} of basis {basis}: {usable} usable measurements;"
                f" at least {needed} of different texts or workloads are needed"
            )
            continue
        texts = [text_key(row.code.text, row.code.language) for row in table.rows]
        fit = chosen.fit
        if fit.text_count == 1:
            problems.append(f"{metric} of basis {basis}: all measurements are of one text; others may lie far outside")
        head = device, basis, metric, base.model_id, date.today().isoformat()
        several = dict(zip(fit.texts.tolist(), texts, strict=True))
        keys = tuple(several[number] for number in range(fit.several))
        adapters.append(Adapter(*head, chosen.known, chosen.columns, keys, fit))
    if not adapters:
        detail = problems[-1] if problems else f"0 usable measurements; at least {MIN_MEASUREMENTS} are needed"
        raise DataError(f"device {device}: nothing to adapt from: {detail}")
    return Adaptation(tuple(adapters), tuple(problems))


def _chosen(table: _Table, basis: Basis) -> _Map | None:
    """The map that a table allows, None for too few measurements.

    Of networks it is a sum of parts, unless a map of logarithms misses clearly less where a text is left out.
    """
    target = np.log10([row.value or math.nan for row in table.rows])
    texts = [text_key(row.code.text, row.code.language) for row in table.rows]
    of_logs = None
    if len(table.rows) >= MIN_MEASUREMENTS:
        columns = text_column_names(basis)
        fit = fit_device(table.known, target, table.extra_columns(columns), texts)
        of_logs = _Map(table.devices, columns, fit)
    places = [place for place in range(len(table.devices)) if np.isfinite(table.parts[:, place]).all()]
    if not places or len(set(texts)) < MIN_NETWORKS:
        return of_logs
    devices = tuple(table.devices[place] for place in places)
    summed = fit_sum(table.parts[:, places].reshape(len(table.rows), -1), target, texts, kinds_of(devices))
    of_parts = _Map(devices, PARTS, summed)
    if of_logs is None:
        return of_parts
    saved = np.abs(summed.without_text.residuals) - np.abs(of_logs.fit.without_text.residuals)
    is_clear = saved.mean() > _CLEAR * saved.std(ddof=1) / math.sqrt(len(saved))
    return of_logs if is_clear else of_parts


def suggest(base: Predictor, candidates: Sequence[Measurement], count: int) -> list[int]:
    """The lines of the ``count`` candidates per basis and metric that are most worth measuring, the best first."""
    lines: list[int] = []
    for (basis, _), rows in _by_kind(candidates).items():
        table, _ = _ask(base, basis, _distinct(rows))
        if table is not None:
            lines += [
                table.rows[i].line for i in choose(table.known, count, table.extra_columns(text_column_names(basis)))
            ]
    return lines


def _by_kind(measurements: Sequence[Measurement]) -> dict[tuple[Basis, Metric], list[Measurement]]:
    kinds: dict[tuple[Basis, Metric], list[Measurement]] = {}
    for row in measurements:
        kinds.setdefault((row.code.basis, row.query.metric), []).append(row)
    return kinds


def _distinct(rows: Sequence[Measurement]) -> list[Measurement]:
    """Repeats of one text and workload as one row with their median.

    Otherwise a repeat that is left out would be predicted by the others.
    """
    same: dict[tuple[object, ...], list[Measurement]] = {}
    for row in rows:
        same.setdefault((row.code, tuple(sorted(row.query.workload.items()))), []).append(row)
    return [_merged(repeats) for repeats in same.values()]


def _merged(repeats: Sequence[Measurement]) -> Measurement:
    first = repeats[0]
    values = [row.value for row in repeats if row.value is not None]
    return Measurement(first.line, first.code, first.query, median(values) if values else None)


def _ask(base: Predictor, basis: Basis, rows: list[Measurement]) -> tuple[_Table | None, list[RefusedRow]]:
    """The table of the rows that the model can answer, on the devices for which it answers all of them.

    Devices of networks that are sums of parts answer about networks of any family, others about those of benchmarks:
    the former are asked alone where that leaves more rows.
    """
    devices = base.devices(basis)
    answers = base.predict(
        [row.code for row in rows],
        [[Query(row.query.metric, device, row.query.workload) for device in devices] for row in rows],
    )
    every = list(range(len(devices)))
    with_parts = [place for place in every if any(line[place].parts is not None for line in answers)]
    good, of_parts = _usable(answers, every), _usable(answers, with_parts)
    if len(of_parts) > len(good):
        good, every = of_parts, with_parts
    kept = [place for place in every if all(_answered(answers[i][place]) for i in good)]
    refused = [
        _refusal(rows[i], [answers[i][place] for place in every]) for i in range(len(rows)) if i not in set(good)
    ]
    if not good or not kept:
        return None, refused
    chosen = [rows[i] for i in good]
    known = np.array([logs([answers[i][place] for place in kept]) for i in good])
    parts = np.array([part_columns([answers[i][place] for place in kept]) for i in good])
    return _Table(chosen, tuple(devices[place] for place in kept), known, parts.reshape(*known.shape, -1)), refused


def _usable(answers: Sequence[Sequence[Prediction]], places: Sequence[int]) -> list[int]:
    """The rows that are not at fault: a row that most devices cannot answer is, else the device is."""
    counts = [sum(_answered(line[place]) for place in places) for line in answers]
    most = max(counts, default=0)
    return [number for number, count in enumerate(counts) if most > 0 and count * 2 > most]


def _answered(answer: Prediction) -> bool:
    return answer.median is not None and math.isfinite(answer.median)


def _refusal(row: Measurement, answers: Sequence[Prediction]) -> RefusedRow:
    return RefusedRow(row.line, next((answer.abstained for answer in answers if answer.abstained), None))
