"""The processes that train one model: one alone, or those that Hugging Face Accelerate or ``torchrun`` started.

All processes hold the data and draw the same batches. Each computes its share of a step; gradients are summed (DDP), or
weights, gradients and optimizer states are sharded (FSDP 2). Held-out rows are shared out too and the answers gathered,
so that all processes take the same decisions. Only the main process writes files and prints.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from rlm_core.errors import DataError, RlmError

# How long a process waits for the others, for example while the main process writes.
_TIMEOUT = timedelta(minutes=30)
_UNSUPPORTED = {"ACCELERATE_USE_DEEPSPEED": "DeepSpeed", "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM"}

Result = TypeVar("Result")
Model = TypeVar("Model", bound=nn.Module)
Indices = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]


class ReportedElsewhereError(DataError):
    """The main process reports the error; this process only ends."""


class Processes:
    """A single process; :class:`Accelerated` overrides what differs for several.

    Attributes:
        rank, world: the number of this process and how many there are; process 0 is the main one.
        sharded: whether weights are sharded (FSDP).
        device: where this process computes.
    """

    rank, world, sharded = 0, 1, False

    def __init__(self) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def main(self) -> bool:
        """True in the process that writes files and prints."""
        return self.rank == 0

    def prepare(self, model: Model) -> tuple[nn.Module, Model]:
        """The module to call in training, and the model that holds the trained weights: ``model`` or a sharded copy."""
        model.to(self.device)
        return model, model

    def accumulating(self, module: nn.Module, last: bool) -> AbstractContextManager[None]:
        """A context for the passes of one batch; gradients are exchanged in the ``last`` batch of a step."""
        return nullcontext()

    def sum(self, value: Tensor) -> Tensor:
        """The sum over processes."""
        return value

    def agree(self, value: bool) -> bool:
        """The value of the main process."""
        return value

    def copy_from_main(self, weight: Tensor) -> None:
        """Overwrite a weight in place with that of the main process."""

    def spread(self, rows: Indices, texts: Indices, evaluate: Callable[[Indices], Array]) -> Array:
        """Values of all rows, ``(rows, ...)``; each process evaluates its share, and a text is in one share only."""
        return evaluate(rows)

    @contextmanager
    def together(self) -> Iterator[None]:
        """An :class:`RlmError` in any process ends all of them.

        The main process raises it, the others raise :class:`ReportedElsewhereError`.
        """
        yield

    def once(self, work: Callable[[], Result]) -> Result:
        """The result of work that only the main process does; errors as in :meth:`together`."""
        return work()


class Accelerated(Processes):
    """The processes that ``accelerate launch`` or ``torchrun`` started, or one process if neither did.

    Raises:
        DataError: the launcher is set up for an engine that is not supported.
        ModuleNotFoundError: accelerate is not installed.
    """

    def __init__(self) -> None:
        import accelerate

        for variable, engine in _UNSUPPORTED.items():
            if _flag(variable):
                raise DataError(f"--accelerate: {engine} is not supported; launch with DDP (--multi_gpu) or FSDP 2")
        fsdp = _flag("ACCELERATE_USE_FSDP")
        if fsdp and os.environ.get("FSDP_VERSION", "1") != "2":
            raise DataError("--accelerate: FSDP 1 is not supported; launch with --fsdp_version 2")
        self._accelerator = accelerate.Accelerator(
            cpu=not torch.accelerator.is_available(),
            mixed_precision="no",  # the `precision` of the configuration decides
            kwargs_handlers=[accelerate.utils.InitProcessGroupKwargs(timeout=_TIMEOUT)],
        )
        self.device = self._accelerator.device
        self.rank, self.world = self._accelerator.process_index, self._accelerator.num_processes
        if self.world != launched():
            raise DataError(
                f"--accelerate: {launched()} processes were started, and Accelerate sees {self.world};"
                " start them with accelerate launch or torchrun, on CPUs with ACCELERATE_USE_CPU=true"
            )
        self.sharded = fsdp and torch.distributed.is_initialized()

    def prepare(self, model: Model) -> tuple[nn.Module, Model]:
        """See :meth:`Processes.prepare`. Sharding expects a submodule ``encoder``."""
        if not self.sharded:
            return self._accelerator.prepare_model(model), model
        keep = os.environ.get("FSDP_RESHARD_AFTER_FORWARD", "").lower() == "false"
        shards = _sharded(model.cpu(), self.device, self.world, keep=keep, offload=_flag("FSDP_OFFLOAD_PARAMS"))
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

    def spread(self, rows: Indices, texts: Indices, evaluate: Callable[[Indices], Array]) -> Array:
        """See :meth:`Processes.spread`."""
        turn = np.unique(texts, return_inverse=True)[1] % self.world
        shares = [np.flatnonzero(turn == rank) for rank in range(self.world)]
        parts = self._gather(evaluate(rows[shares[self.rank]]))
        values = np.empty((len(rows), *parts[0].shape[1:]))
        for share, part in zip(shares, parts, strict=True):
            values[share] = part
        return values

    @contextmanager
    def together(self) -> Iterator[None]:
        """See :meth:`Processes.together`."""
        error = None
        try:
            yield
        except RlmError as raised:
            error = raised
        errors = [raised for raised in self._gather(error) if raised is not None]
        if errors:
            raise errors[0] if self.main else ReportedElsewhereError(str(errors[0]))

    def once(self, work: Callable[[], Result]) -> Result:
        """See :meth:`Processes.once`."""
        results: list[Result] = []
        with self.together():
            if self.main:
                results.append(work())
        return self._gather(results)[0][0]  # type: ignore[no-any-return]

    def _gather(self, value: Any) -> list[Any]:
        """The values of all processes by rank."""
        from accelerate.utils import gather_object

        return list(gather_object([value]))

    def end(self) -> None:
        """Leave the process group."""
        self._accelerator.end_training()


@contextmanager
def processes(accelerate: bool) -> Iterator[Processes]:
    """The processes of a run; all but the main process are silent.

    Raises:
        DataError: several were launched without ``accelerate``, or for an engine that is not supported.
        ReportedElsewhereError: the same in a process that is not the main one.
        ModuleNotFoundError: accelerate is not installed.
    """
    if not accelerate:
        if launched() > 1:
            raise _reported_once(
                f"started as {launched()} processes, which would all write to one folder;"
                " start it once, or add --accelerate to train or tune a full model"
            )
        yield Processes()
        return
    try:
        group = Accelerated()
    except DataError as error:
        raise _reported_once(str(error)) from None
    if group.main:
        yield group
    else:
        with Path(os.devnull).open("w") as null, redirect_stdout(null), redirect_stderr(null):
            yield group
    group.end()


def launched() -> int:
    """Return how many processes the launcher started, according to its environment variable."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def _reported_once(text: str) -> DataError:
    """An error that all processes raise and only the main process reports."""
    return DataError(text) if int(os.environ.get("RANK") or 0) == 0 else ReportedElsewhereError(text)


def _flag(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")


def _sharded(model: Model, device: torch.device, world: int, *, keep: bool, offload: bool) -> Model:
    """A copy of a model of which each of ``world`` processes holds a part.

    A layer of the encoder is gathered when it is needed, everything else for a whole pass: the decoder's layers are
    also read outside their own forward pass, which Accelerate's choice of units does not allow. With ``keep``, layers
    stay gathered until the backward pass, which is faster and takes more memory; with ``offload``, shards wait in the
    memory of the CPU.
    """
    mesh = init_device_mesh(device.type, (world,))
    policy = CPUOffloadPolicy() if offload else OffloadPolicy()
    shards = copy.deepcopy(model)
    encoder = shards.get_submodule("encoder")
    for stack in [module for module in encoder.modules() if isinstance(module, nn.ModuleList)]:
        for layer in stack:
            fully_shard(layer, mesh=mesh, reshard_after_forward=not keep, offload_policy=policy)
    fully_shard(shards, mesh=mesh, reshard_after_forward=not keep, offload_policy=policy)
    return shards


def whole(tensor: Tensor) -> Tensor:
    """A tensor gathered from its shards on the CPU, by all processes at once; any other tensor unchanged."""
    return tensor.full_tensor().cpu() if isinstance(tensor, DTensor) else tensor


def like(tensor: Tensor, weight: Tensor) -> Tensor:
    """A whole tensor, sharded like a weight of its shape, by all processes at once; any other tensor unchanged."""
    if not isinstance(weight, DTensor) or tensor.shape != weight.shape:
        return tensor
    return distribute_tensor(tensor.to(weight.device), weight.device_mesh, weight.placements)


def whole_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The state of an optimizer with whole tensors, by all processes at once."""
    saved = optimizer.state_dict()
    tensors = {n: {name: whole(value) for name, value in values.items()} for n, values in saved["state"].items()}
    return {**saved, "state": tensors}


def load_whole_state(optimizer: torch.optim.Optimizer, saved: dict[str, Any]) -> None:
    """Load what :func:`whole_state` returned, sharded like the weights."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state = {n: {name: like(x, weights[n]) for name, x in values.items()} for n, values in saved["state"].items()}
    optimizer.load_state_dict({**saved, "state": state})
