"""Runs the model for ``rlm-lsp predict``, in this process or on the nodes of a Ray cluster.

Both give the same numbers: the user's adapted devices and CPU score travel with each batch, and every node loads the
same model from its directory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import rlm_core
from rlm_core import ModelError, RlmError
from rlm_core.inference.adaptation.predictor import UserCorrections
from rlm_core.inference.model_store import BUILTIN
from rlm_core.inference.predictor import Predictor
from rlm_core.loading import is_full, is_remote, with_stored
from rlm_core.serving.ray_cluster import Cluster, Need, in_order
from rlm_core.types import CodeText, Prediction, Query

from rlm_lsp.rendering import console

from .options import check_ray_gpu

Predictions = list[list[Prediction]]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Texts and the queries about each of them."""

    codes: Sequence[CodeText]
    queries: Sequence[Sequence[Query]]


@dataclass(frozen=True, slots=True)
class _NodeModel:
    """The model that a node loads: its directory, its threads, and the id that it must have."""

    name: str
    threads: int
    id: str


@dataclass(frozen=True, slots=True)
class Runner:
    """The means that run batches: a model, its threads, and the address of a cluster with the kind of its GPUs."""

    model: str
    threads: int
    ray: str | None = None
    ray_gpu: str | None = None


class BatchPredictor:
    """A model that answers batches, distributed over a cluster if ``runner`` names one; close it as a context.

    ``predictor`` is the model in this process, with the user's adaptations.

    Raises:
        RlmError: the model cannot be loaded, or the cluster cannot be reached.
    """

    def __init__(self, runner: Runner) -> None:
        self._stack = ExitStack()
        model, threads, ray = runner.model, runner.threads, runner.ray
        if ray is not None and is_remote(model):
            raise RlmError(f"--ray {ray}: the model server {model} does all the work; leave out one of the two")
        check_ray_gpu(runner.ray_gpu, ray, on_gpu=is_full(model))
        base = rlm_core.load(model, threads=threads)
        self._corrections = UserCorrections.read(base.model_id)
        self.predictor = self._corrections.around(with_stored(base, model))
        self._cluster: Cluster | None = None
        if ray is None:
            return
        directory = model if model == BUILTIN else str(Path(model).resolve())
        self._model = _NodeModel(directory, max(threads, 1), base.model_id)
        self._cluster = self._stack.enter_context(Cluster(ray, console.note))
        gpus = int(is_full(model) and (self._cluster.has_gpus or runner.ray_gpu is not None))
        self._need = Need(self._model.threads, gpus, runner.ray_gpu)

    def __enter__(self) -> BatchPredictor:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def predict(self, batches: Iterable[tuple[_T, TextBatch]]) -> Iterator[tuple[_T, Predictions]]:
        """The predictions of each batch, in order, together with the item that came with it.

        Raises:
            RlmError: a node cannot answer.
        """
        if self._cluster is None:
            for item, batch in batches:
                yield item, self.predictor.predict(batch.codes, batch.queries)
            return
        sent: deque[_T] = deque()

        def orders() -> Iterator[tuple[_NodeModel, UserCorrections, TextBatch]]:
            for item, batch in batches:
                sent.append(item)
                yield self._model, self._corrections, batch

        for predictions in in_order(self._cluster.spread(predict_on_node, orders(), self._need)):
            yield sent.popleft(), predictions


def predict_on_node(order: tuple[_NodeModel, UserCorrections, TextBatch]) -> Predictions:
    """Answer a batch on a node of a cluster, with a model that each process loads once.

    Raises:
        ModelError: the node has no such model, or a different one under the same name.
    """
    model, corrections, batch = order
    return corrections.around(_loaded(model)).predict(batch.codes, batch.queries)


@lru_cache(maxsize=1)
def _loaded(model: _NodeModel) -> Predictor:
    base = rlm_core.load(model.name, threads=model.threads)
    if base.model_id != model.id:
        raise ModelError(
            f"{model.name}: is {base.model_id} on a node and {model.id} here; name one that all nodes have"
        )
    return base


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of ``size`` items; the last one may be shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
