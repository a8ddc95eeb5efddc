"""Where ``rlm-lsp predict`` asks the model: in this process, or on the nodes of a Ray cluster.

Both give the same numbers: what the user of this machine has measured (adapted devices, the CPU's score) goes with each
question, and the nodes load the same model by its directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import rlm_core
from rlm_core import ModelError, RlmError
from rlm_core.inference.adaptation import Personal
from rlm_core.inference.predictor import Predictor
from rlm_core.inference.query_selection import QuerySelection, queries_for
from rlm_core.loading import is_full
from rlm_core.serving.cluster import Cluster, Need, in_order
from rlm_core.types import CodeText, Prediction, Query

from rlm_lsp.rendering import console

Answers = list[list[Prediction]]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Questions:
    """Texts, and what is asked about them: the same about all (:class:`QuerySelection`), or of each its own queries."""

    codes: Sequence[CodeText]
    asked: QuerySelection | Sequence[Sequence[Query]]

    def answered(self, predictor: Predictor) -> Answers:
        """A list of predictions for each text."""
        asked = self.asked
        if isinstance(asked, QuerySelection):
            return predictor.predict(self.codes, [queries_for(predictor, code, asked) for code in self.codes])
        return predictor.predict(self.codes, asked)


@dataclass(frozen=True, slots=True)
class _Model:
    """A model by its name, how many threads it takes, and its id here, which that of a node must equal."""

    name: str
    threads: int
    id: str


class Answering:
    """Answers questions with a model, on a cluster where ``ray`` is its address; as a context it ends what runs there.

    Raises:
        RlmError: the model cannot be loaded, or the cluster cannot be reached.
    """

    def __init__(self, model: str, threads: int, ray: str | None) -> None:
        self._stack = ExitStack()
        if ray is not None and model.lower().startswith(("http://", "https://")):
            raise RlmError(f"--ray {ray}: the model server {model} does all the work; leave one of the two out")
        base = rlm_core.load(model, threads=threads)
        self._personal = Personal.read(base.model_id)
        self._cluster: Cluster | None = None
        if ray is None:
            self._predictor = self._personal.around(base)
            return
        place = model if model == "builtin" else str(Path(model).resolve())
        self._model = _Model(place, max(threads, 1), base.model_id)
        self._cluster = self._stack.enter_context(Cluster(ray, console.note))
        takes_gpu = self._cluster.has_gpus and is_full(model)
        self._need = Need(self._model.threads, gpus=int(takes_gpu))

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def answers(self, questions: Iterable[Questions]) -> Iterator[Answers]:
        """The answers to each of ``questions``, in their order.

        Raises:
            RlmError: a node cannot answer.
        """
        if self._cluster is None:
            return (one.answered(self._predictor) for one in questions)
        orders = ((self._model, self._personal, one) for one in questions)
        return in_order(self._cluster.spread(answer_on_node, orders, self._need))


def answer_on_node(order: tuple[_Model, Personal, Questions]) -> Answers:
    """On a node of a cluster: answer with a model that is loaded once a process.

    Raises:
        ModelError: the node has no such model, or another one in its place.
    """
    model, personal, questions = order
    return questions.answered(personal.around(_loaded(model)))


@lru_cache(maxsize=1)
def _loaded(model: _Model) -> Predictor:
    base = rlm_core.load(model.name, threads=model.threads)
    if base.model_id != model.id:
        raise ModelError(
            f"{model.name}: is {base.model_id} on a node and {model.id} here; name one that all nodes have"
        )
    return base


def chunks(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of ``size`` items, the last one shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
