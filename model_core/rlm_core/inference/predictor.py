"""The predictor protocol: a batch of texts, each with its queries -> predictions.

Three implementations are planned by the design; the server does not know which it has. Here is the embedded one's face.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlm_core.types import Basis, CodeText, Prediction, Query


class Predictor(Protocol):
    """Predicts the cost of code. Implementations are safe to call from several threads."""

    @property
    def model_id(self) -> str:
        """Name and version of the weights, as shown to users."""
        ...

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        """The queries asked about a unit when nobody says otherwise (device and workload filled in)."""
        ...

    def devices(self, basis: Basis) -> tuple[str, ...]:
        """The devices that it knows for a basis, by canonical id."""
        ...

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        """Answer ``queries[i]`` about ``texts[i]``; the same shape comes back.

        A query that the model was never trained for is answered with ``abstained`` set, never with an exception.
        """
        ...
