"""Reading on from many beginnings at once: rows of different inputs, any number for each, over one cache.

Sampling and the search for quantiles keep their open sequences as rows, sorted by input. Here the rows become the grid
``(inputs, branches)`` that the decoder wants, a bounded part of it at a time.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .decoder import Cache, Memory
from .model import FullModel

_ROWS = 1024


class Branches:
    """Sequences about the inputs of ``memory``; each read makes the rows that the next one can go on from.

    Args:
        model: reads.
        memory: of its inputs.
        x: ``(inputs, branches, tokens, width)``, how the sequences begin.

    Attributes:
        logits: ``(rows, vocabulary)`` of each row's next token, in double precision.
    """

    def __init__(self, model: FullModel, memory: Memory, x: Tensor) -> None:
        self._model, self._memory = model, memory
        hidden, self._cache = model.decoder(x, memory)
        self.logits = self._score(hidden[:, :, -1].flatten(0, 1))
        self._owner = torch.arange(len(self.logits), device=x.device) // x.shape[1]
        self._place = torch.arange(len(self.logits), device=x.device)

    def read(self, rows: Tensor, x: Tensor, last: bool = False) -> None:
        """Go on from some rows.

        Args:
            rows: ``(new rows,)``, ascending, which row each goes on from; a row may be left out or stand repeatedly.
            x: ``(new rows, tokens, width)``, what each reads.
            last: nothing will be read after this, so that nothing needs to be kept.
        """
        owner, place = self._owner[rows], self._place[rows]
        inputs = self._memory.inputs
        counts = torch.bincount(owner, minlength=inputs)
        column = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner]
        widest = int(counts.max())
        # Where an input has fewer rows than another, row 0 fills up the grid.
        grid = torch.zeros(inputs, widest, dtype=torch.int64, device=owner.device)
        grid[owner, column] = torch.arange(len(owner), device=owner.device)
        size = max(_ROWS // inputs, 1)
        caches: list[Cache] = []
        hidden = []
        for start in range(0, widest, size):
            part = grid[:, start : start + size]
            out, longer = self._model.decoder(x[part], self._memory, self._cache.select(place[part.flatten()]))
            hidden.append(out[:, :, -1])
            if not last:
                caches.append(longer)
        self.logits = self._score(torch.cat(hidden, 1)[owner, column])
        chunk = column // size
        wide = (widest - chunk * size).clamp(max=size)
        self._owner, self._place = owner, chunk * size * inputs + owner * wide + column % size
        if not last:
            self._cache = Cache.join(caches)

    def _score(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self._model.decoder.logits(hidden)
        return logits.double()
