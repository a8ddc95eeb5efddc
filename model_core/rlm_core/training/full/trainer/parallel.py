"""The processes that train one model: what the loop asks of them, and the answers of one alone.

All processes hold the data and draw the same plan. Each computes its share of a step's batches; gradients are summed
(DDP), or weights, gradients and optimizer states lie in shards (FSDP 2). Held-out rows are shared out too and the
answers gathered, so that all processes decide alike. Only the main process writes files and talks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rlm_core.errors import DataError
from rlm_core.training.full.model import FullModel

from .data import Batch, Ids

Result = TypeVar("Result")
Array = npt.NDArray[np.float64]
Answer = Callable[[Ids], Array]


class ToldElsewhereError(DataError):
    """The main process tells what went wrong; this one only has to end."""


class Processes:
    """One process alone.

    Attributes:
        rank, world: the number of this process and how many there are; 0 is the main one.
        sharded: whether weights lie in shards (FSDP).
        device: where this process computes.
    """

    rank, world, sharded = 0, 1, False

    def __init__(self) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def main(self) -> bool:
        """Whether this process writes and talks."""
        return self.rank == 0

    def prepare(self, model: FullModel) -> tuple[nn.Module, FullModel]:
        """What to call in training, and the model that holds the trained weights: ``model``, or its sharded copy."""
        model.to(self.device)
        return model, model

    def accumulating(self, module: nn.Module, last: bool) -> AbstractContextManager[None]:
        """Around the passes of a batch: gradients meet in the ``last`` one of a step."""
        return nullcontext()

    def sum(self, value: Tensor) -> Tensor:
        """The sum over processes."""
        return value

    def agree(self, value: bool) -> bool:
        """What the main process says."""
        return value

    def copy_from_main(self, weight: Tensor) -> None:
        """Make a weight that of the main process, in place."""

    def spread(self, rows: Ids, texts: Ids, ask: Answer) -> Array:
        """Answers about all rows, ``(rows, ...)``, where each process asks about its share; a text is in one share."""
        return ask(rows)

    @contextmanager
    def together(self) -> Iterator[None]:
        """An :class:`RlmError` in any process ends all: the main one raises it, others :class:`ToldElsewhereError`."""
        yield

    def once(self, work: Callable[[], Result]) -> Result:
        """The result of what the main process alone does; an error as :meth:`together`."""
        return work()

    def share(self, parts: list[Batch]) -> list[Batch]:
        """This process's share of a step's batches, as many in each process; some may hold no number.

        Whole batches where there are enough for all, otherwise pieces of them by text.
        """
        if self.world == 1:
            return parts
        cut = -(-self.world // len(parts))
        pieces = [part.some(slice(start, None, cut)) for part in parts for start in range(min(cut, len(part.ids)))]
        mine = pieces[self.rank :: self.world]
        idle = [pieces[0].some(slice(1)).unasked()] * (-(-len(pieces) // self.world) - len(mine))
        return mine + idle


@contextmanager
def processes(accelerate: bool) -> Iterator[Processes]:
    """The processes of a run; all but the main one are silent.

    Raises:
        DataError: several were launched without ``accelerate``, or for what is not supported.
        ToldElsewhereError: the same in a process that is not the main one.
        ModuleNotFoundError: accelerate is not installed.
    """
    if not accelerate:
        if launched() > 1:
            raise _once(
                f"started as {launched()} processes, which would all write to one folder;"
                " start it once, or add --accelerate to train or tune of a full model"
            )
        yield Processes()
        return
    from .accelerated import Accelerated

    try:
        group = Accelerated()
    except DataError as error:
        raise _once(str(error)) from None
    if group.main:
        yield group
    else:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
            yield group
    group.end()


def launched() -> int:
    """How many processes a launcher says that it started."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def _once(text: str) -> DataError:
    """An error that all processes raise and the main one tells."""
    return DataError(text) if int(os.environ.get("RANK") or 0) == 0 else ToldElsewhereError(text)
