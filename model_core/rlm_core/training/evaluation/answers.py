"""Predictions of many rows as columns: each text is encoded once for all its queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from rlm_core.inference.calibration import scores
from rlm_core.inference.features import answers_alone
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.student import OnnxPredictor
from rlm_core.queries.devices import answered_by_sheet
from rlm_core.types import Basis, CodeText

from .pairs import Pair, Ratios
from .rows import Row

Array = npt.NDArray[np.float64]
_BATCH, _MOST_QUERIES = 256, 2048


@dataclass(frozen=True, slots=True)
class Answers:
    """Medians and band ends in SI units, ``(rows,)`` each; NaN where there is no prediction or no band."""

    median: Array
    low80: Array
    high80: Array
    low90: Array
    high90: Array

    def chosen(self, rows: npt.NDArray[np.int64]) -> Answers:
        """The same for some rows."""
        return Answers(*(getattr(self, name)[rows] for name in Answers.__slots__))


@dataclass(frozen=True, slots=True)
class Asked:
    """Answers to rows, the floor of each, and the code of the reason to abstain (empty where there is a number)."""

    answers: Answers
    floors: Array
    reasons: list[str]


def ask(predictor: Predictor, rows: Sequence[Row]) -> Asked:
    """Ask a predictor about all rows."""
    columns = np.full((5, len(rows)), np.nan)
    floors, reasons = np.zeros(len(rows)), [""] * len(rows)
    batches = list(_batches(rows))
    # `disable=None`: no bar where stderr is no terminal.
    for batch in tqdm(batches, desc="predicting", unit="batch", disable=True if len(rows) < 1000 else None):
        codes, queries = [code for code, _ in batch], [[rows[i].query for i in places] for _, places in batch]
        for (_, places), predictions in zip(batch, predictor.predict(codes, queries), strict=True):
            for place, found in zip(places, predictions, strict=True):
                if found.median is None:
                    reasons[place] = str(found.abstained)
                    continue
                floors[place] = found.floor
                ends = [end for band in found.bands[:2] for end in (band.low, band.high)]
                columns[: 1 + len(ends), place] = [found.median, *ends]
    return Asked(Answers(*columns), floors, reasons)


def ask_changes(predictor: OnnxPredictor, rows: Sequence[Row], pairs: Sequence[Pair]) -> Ratios:
    """What a predictor says of the ratios of pairs of rows."""
    found = np.full((3, len(pairs)), np.nan)
    for start in range(0, len(pairs), _BATCH):
        batch = pairs[start : start + _BATCH]
        asked = [(rows[pair.first].code, rows[pair.second].code) for pair in batch]
        queries = [[rows[pair.second].query] for pair in batch]
        for place, [change] in enumerate(predictor.changes(asked, queries), start):
            if change.ratio is not None:
                band = change.bands[0]
                found[:, place] = np.log10([change.ratio, band.low, band.high])
    return Ratios(*found)


def central_levels(predictor: Predictor, rows: Sequence[Row]) -> Array:
    """The smallest level whose uncalibrated central interval covers each row's value, ``(rows,)``; NaN if unknown.

    The share of rows at or below t is the measured coverage of the interval that states t. Forests that answer alone
    have no interval before their calibration.
    """
    levels = np.full(len(rows), np.nan)
    if not isinstance(predictor, OnnxPredictor):
        return levels
    own = np.flatnonzero([_asks_head(predictor, row.code.basis, row.query.device) for row in rows])
    for start in range(0, len(own), _BATCH):
        places = own[start : start + _BATCH]
        batch = [rows[int(i)] for i in places]
        found, slices = predictor.distributions([row.code for row in batch], [row.query for row in batch])
        for number in np.unique(slices):
            mine = np.flatnonzero(slices == number)
            values = np.array([batch[int(i)].value for i in mine])
            levels[places[mine]] = scores(found[mine], predictor.card.slices[number].scale, values)
    return levels


def _asks_head(predictor: OnnxPredictor, basis: Basis, device: str | None) -> bool:
    return not answers_alone(basis) and not answered_by_sheet(basis, device, predictor.devices(basis))


def _batches(rows: Sequence[Row]) -> Iterator[list[tuple[CodeText, list[int]]]]:
    """Texts with the places of their rows, so many at a time that neither texts nor queries grow without bound."""
    places: dict[CodeText, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.code].append(place)
    batch: list[tuple[CodeText, list[int]]] = []
    queries = 0
    for code, mine in places.items():
        for start in range(0, len(mine), _MOST_QUERIES):
            batch.append((code, mine[start : start + _MOST_QUERIES]))
            queries += len(batch[-1][1])
            if len(batch) == _BATCH or queries >= _MOST_QUERIES:
                yield batch
                batch, queries = [], 0
    if batch:
        yield batch
