"""Queries of the full model: metric, basis and language of a number, its device and workload.

A query becomes one vector before the number that it is about, so that each number of a sequence can be another
metric on another device: "accuracy; then latency on a phone; then latency on a GPU". It is the sum of learned vectors
for metric, basis and language and a linear map of the device and workload as numbers (``query_vector``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from rlm_core.errors import ModelError
from rlm_core.queries.query_vector import QUERY, decimal_year, query_vector
from rlm_core.types import Query

from .decoder import FullConfig

FEATURES = QUERY + 2
_YEAR = 2023.0


@dataclass(frozen=True, slots=True)
class NumberQuery:
    """The query that one number answers. ``device=None`` and an empty workload mean that they are unknown."""

    metric: str
    basis: str = ""
    language: str = ""
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Query, basis: str, language: str) -> NumberQuery:
        """A query about a unit of a basis and language."""
        return cls(query.metric, basis, language, query.device, query.workload)


@dataclass(frozen=True, slots=True)
class QueryBatch:
    """Queries as tensors: ``names (..., 3)``, ids of metric, basis, language; ``features (..., FEATURES)``."""

    names: Tensor
    features: Tensor

    def to(self, device: torch.device) -> QueryBatch:
        """The same on a device."""
        return QueryBatch(self.names.to(device), self.features.to(device))

    def view(self, *shape: int) -> QueryBatch:
        """The same in another shape."""
        return QueryBatch(self.names.view(*shape, 3), self.features.view(*shape, FEATURES))

    def __getitem__(self, index: Tensor | tuple[Tensor | slice | int, ...] | slice | int) -> QueryBatch:
        return QueryBatch(self.names[index], self.features[index])


class QueryTokens(nn.Module):
    """Queries -> vectors ``(..., width)``."""

    def __init__(self, config: FullConfig) -> None:
        super().__init__()
        self._ids = [
            {name: index for index, name in enumerate(names, 1)}
            for names in (config.metrics, config.bases, config.languages)
        ]
        self.metric, self.basis, self.language = (nn.Embedding(1 + len(ids), config.width) for ids in self._ids)
        self.features = nn.Linear(FEATURES, config.width)

    def batch(self, queries: Sequence[NumberQuery]) -> QueryBatch:
        """Queries as tensors on the CPU, ``(queries,)``.

        Raises:
            ModelError: a metric that the model does not know.
            DataError: a workload's date is malformed.
        """
        names, features = np.zeros((len(queries), 3), np.int64), np.zeros((len(queries), FEATURES), np.float32)
        for row, query in enumerate(queries):
            if query.metric not in self._ids[0]:
                known = ", ".join(self._ids[0])
                raise ModelError(f"metric {query.metric!r}: this model was not trained for it; it knows {known}")
            names[row] = [
                ids.get(name, 0)
                for ids, name in zip(self._ids, (query.metric, query.basis, query.language), strict=True)
            ]
            year = decimal_year(query.workload)
            features[row, :QUERY] = query_vector(query.device, query.workload)
            features[row, QUERY:] = (1.0, (year - _YEAR) / 5) if year else (0.0, 0.0)
        return QueryBatch(torch.from_numpy(names), torch.from_numpy(features))

    def forward(self, queries: QueryBatch) -> Tensor:
        """Vectors ``(..., width)``."""
        metric, basis, language = queries.names.unbind(-1)
        total: Tensor = self.metric(metric) + self.basis(basis) + self.language(language)
        return total + self.features(queries.features.to(total.dtype))  # type: ignore[no-any-return]
