"""Rows -> rows with what a model predicts for them; a text is read once for all its queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm_core.inference.predictor import Predictor
from rlm_core.types import Abstention, Band, Prediction, Query

from .rows import Row

_BATCH = 64
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """A row with its prediction, whose ``median``, ``band`` (80 %) and ``quantiles`` are there."""

    row: Row
    prediction: Prediction

    @property
    def slice(self) -> str:
        """Basis and metric, like ``call latency``."""
        return f"{self.row.code.basis} {self.row.metric}"

    @property
    def band(self) -> Band:
        """The 80 % band."""
        return self.prediction.bands[0]

    @property
    def measured(self) -> float:
        """The measured value, no lower than what the measurement of the labels resolves."""
        return max(self.row.value, self.prediction.floor)

    @property
    def median(self) -> float:
        """The predicted median, no lower than that either."""
        return max(self.prediction.median or 0.0, self.prediction.floor)

    @property
    def is_covered(self) -> bool:
        """Whether the measured value is inside the band."""
        return self.band.low <= self.measured <= max(self.band.high, self.prediction.floor)

    @property
    def factor(self) -> float:
        """How many times the predicted median was measured; 1 where both are nothing."""
        if self.median <= 0 or self.measured <= 0:
            return 1.0 if self.median == self.measured else (self.measured + 1) / (self.median + 1)
        return self.measured / self.median


def answer(
    predictor: Predictor, rows: Sequence[Row], progress: Progress = lambda done, total: None
) -> tuple[list[Answered | None], Counter[Abstention]]:
    """What a model says of each row (None where it abstains), and its reasons to abstain.

    A row without a query is asked as a hover would.
    """
    places = defaultdict(list)
    for place, row in enumerate(rows):
        places[row.code].append(place)
    found: list[Answered | None] = [None] * len(rows)
    reasons: Counter[Abstention] = Counter()
    codes = list(places)
    for start in range(0, len(codes), _BATCH):
        batch = codes[start : start + _BATCH]
        asked = [
            [(place, query) for place in places[code] if (query := _query(predictor, rows[place]))] for code in batch
        ]
        answers = predictor.predict(batch, [[query for _, query in mine] for mine in asked])
        for mine, told in zip(asked, answers, strict=True):
            for (place, _), prediction in zip(mine, told, strict=True):
                if prediction.abstained is not None:
                    reasons[prediction.abstained] += 1
                else:
                    found[place] = Answered(rows[place], prediction)
        progress(min(start + _BATCH, len(codes)), len(codes))
    return found, reasons


def _query(predictor: Predictor, row: Row) -> Query | None:
    if row.query is not None:
        return row.query
    defaults = predictor.default_queries(row.code.basis, row.code.language)
    return next((query for query in defaults if query.metric == row.metric), Query(row.metric))
