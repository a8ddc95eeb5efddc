"""Training in the processes that ``accelerate launch`` or ``torchrun`` started, through Hugging Face Accelerate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import accelerate
import numpy as np
import torch
from accelerate.utils import InitProcessGroupKwargs, gather_object
from torch import Tensor, nn

from rlm_core.errors import DataError, RlmError
from rlm_core.training.full.model import FullModel

from .data import Ids
from .fsdp import in_shards
from .parallel import Answer, Array, Processes, Result, ToldElsewhereError, launched

# The longest that a process waits for the others, as while the main one writes.
_TIMEOUT = timedelta(minutes=30)
_UNSUPPORTED = {"ACCELERATE_USE_DEEPSPEED": "DeepSpeed", "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM"}


class Accelerated(Processes):
    """The processes that ``accelerate launch`` or ``torchrun`` started; one alone where neither did.

    Raises:
        DataError: they were launched for what is not supported.
    """

    def __init__(self) -> None:
        for variable, engine in _UNSUPPORTED.items():
            if _flag(variable):
                raise DataError(f"--accelerate: {engine} is not supported; launch with DDP (--multi_gpu) or FSDP 2")
        fsdp = _flag("ACCELERATE_USE_FSDP")
        if fsdp and os.environ.get("FSDP_VERSION", "1") != "2":
            raise DataError("--accelerate: FSDP 1 is not supported; launch with --fsdp_version 2")
        self._accelerator = accelerate.Accelerator(
            cpu=not torch.accelerator.is_available(),
            mixed_precision="no",  # the configuration's `precision` is what counts
            kwargs_handlers=[InitProcessGroupKwargs(timeout=_TIMEOUT)],
        )
        self.device = self._accelerator.device
        self.rank, self.world = self._accelerator.process_index, self._accelerator.num_processes
        if self.world != launched():
            raise DataError(
                f"--accelerate: {launched()} processes were started, and Accelerate sees {self.world};"
                " start them with accelerate launch or torchrun, on CPUs with ACCELERATE_USE_CPU=true"
            )
        self.sharded = fsdp and torch.distributed.is_initialized()

    def prepare(self, model: FullModel) -> tuple[nn.Module, FullModel]:
        """See :meth:`Processes.prepare`."""
        if not self.sharded:
            return self._accelerator.prepare_model(model), model
        keep = os.environ.get("FSDP_RESHARD_AFTER_FORWARD", "").lower() == "false"
        shards = in_shards(model.cpu(), self.device, self.world, keep=keep, offload=_flag("FSDP_OFFLOAD_PARAMS"))
        return shards, shards

    def accumulating(self, module: nn.Module, last: bool) -> AbstractContextManager[None]:
        """See :meth:`Processes.accumulating`. Shards add up at once: whole gradients would fill the memory."""
        if last or self.sharded:
            return nullcontext()
        return self._accelerator.no_sync(module)  # type: ignore[no-any-return]

    def sum(self, value: Tensor) -> Tensor:
        """See :meth:`Processes.sum`."""
        return self._accelerator.reduce(value, "sum")  # type: ignore[no-any-return]

    def agree(self, value: bool) -> bool:
        """See :meth:`Processes.agree`."""
        return bool(self.sum(torch.tensor(float(value and self.main), device=self.device)))

    def copy_from_main(self, weight: Tensor) -> None:
        """See :meth:`Processes.copy_from_main`."""
        if self.world > 1:
            torch.distributed.broadcast(weight.detach(), 0)

    def spread(self, rows: Ids, texts: Ids, ask: Answer) -> Array:
        """See :meth:`Processes.spread`."""
        turn = np.unique(texts, return_inverse=True)[1] % self.world
        places = [np.flatnonzero(turn == rank) for rank in range(self.world)]
        answers = self._gather(ask(rows[places[self.rank]]))
        found = np.empty((len(rows), *answers[0].shape[1:]))
        for own, part in zip(places, answers, strict=True):
            found[own] = part
        return found

    @contextmanager
    def together(self) -> Iterator[None]:
        """See :meth:`Processes.together`."""
        error = None
        try:
            yield
        except RlmError as raised:
            error = raised
        found = [one for one in self._gather(error) if one is not None]
        if found:
            raise found[0] if self.main else ToldElsewhereError(str(found[0]))

    def once(self, work: Callable[[], Result]) -> Result:
        """See :meth:`Processes.once`."""
        found: list[Result] = []
        with self.together():
            if self.main:
                found.append(work())
        return self._gather(found)[0][0]  # type: ignore[no-any-return]

    def _gather(self, value: Any) -> list[Any]:
        """The values of all processes by rank."""
        return list(gather_object([value]))

    def end(self) -> None:
        """Leave the group."""
        self._accelerator.end_training()


def _flag(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")
