"""The side of a cluster that sends items to the nodes and takes their results, each once."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from rlm_core import __version__
from rlm_core.errors import RlmError

from .connect import connected
from .node import shipped

Item = TypeVar("Item")
Value = TypeVar("Value")
Note = Callable[[str], None]
Argument = Callable[[Item], Any]
_TRIES = 4
_QUEUED = 2  # items a place: one that runs, and one that waits to
_LOOK_SECONDS, _GRACE_SECONDS, _TAKE_SECONDS = 10.0, 5.0, 60.0


@dataclass(frozen=True, slots=True)
class Need:
    """What an item takes of a node while it is worked on."""

    cpus: float = 1
    gpus: float = 0

    def __str__(self) -> str:
        return " and ".join(f"{count:g} {what}" for count, what in ((self.cpus, "CPU"), (self.gpus, "GPU")) if count)


@dataclass(frozen=True, slots=True)
class Result(Generic[Value]):
    """What came of an item, known by its ``index``: its value, or the ``error`` that it ended in.

    An item of :meth:`Cluster.stream` has a result for each value and one more, without a value, that is ``last``.
    """

    index: int
    value: Value | None = None
    error: str = ""
    last: bool = True


@dataclass(slots=True)
class _Sent:
    """An item, and how often it was sent."""

    index: int
    item: Any
    tries: int = 0


def _itself(item: Item) -> Item:
    return item


class Cluster:
    """A cluster of which this process is a driver, as a context: when it is left, what still runs is ended.

    ``note`` is told of lost workers.

    Raises:
        RlmError: Ray is not installed, or no cluster answers at the address in time.
    """

    def __init__(self, address: str, note: Note) -> None:
        self._stack = contextlib.ExitStack()
        self._ray, self._note = self._stack.enter_context(connected(address)), note
        self._open: list[dict[Any, _Sent]] = []

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            for running in self._open:
                self._end(running)
        finally:
            self._stack.close()

    @property
    def cores(self) -> float:
        """The CPUs of the smallest node that has any: an item that takes so many has such a node to itself."""
        return min(filter(None, (node.get("CPU", 0.0) for node in self._nodes())), default=1.0)

    @property
    def has_gpus(self) -> bool:
        """Whether a node has a GPU."""
        return any(node.get("GPU", 0.0) >= 1 for node in self._nodes())

    def spread(
        self, task: Callable[[Any], Value], items: Iterable[Item], need: Need, argument: Argument[Item] = _itself
    ) -> Generator[Result[Value], None, None]:
        """Work on ``items`` by ``task(argument(item))``, as many at once as the cluster has room for.

        Results come in the order in which they are made, one an item. An item whose worker or node is lost is sent
        again, a few times. An error of the task itself is the item's result. Only so many items are taken from
        ``items`` as are sent.

        Raises:
            RlmError: no node has what an item needs, or one has another version of rlm-lsp.
        """
        return self._results(task, items, need, argument, yields=False)

    def stream(
        self,
        task: Callable[[Any], Iterator[Value]],
        items: Iterable[Item],
        need: Need,
        argument: Argument[Item] = _itself,
    ) -> Generator[Result[Value], None, None]:
        """Like :meth:`spread` for a task that yields: each value is a result as soon as it is made.

        For an item that is sent again its argument is made anew, so that it can leave out what has come already.
        """
        return self._results(task, items, need, argument, yields=True)

    def _results(
        self, task: Callable[[Any], Any], items: Iterable[Item], need: Need, argument: Argument[Item], *, yields: bool
    ) -> Generator[Result[Any], None, None]:
        remote = self._ray.remote(shipped()).options(
            max_retries=0,
            num_returns="streaming",
            num_cpus=need.cpus,
            num_gpus=need.gpus,
            scheduling_strategy="SPREAD",
        )
        again: deque[_Sent] = deque()
        rest = (_Sent(index, item) for index, item in enumerate(items))
        room = _QUEUED * self.places(need)
        running: dict[Any, _Sent] = {}
        self._open.append(running)
        try:
            while True:
                while len(running) < room and (sent := again.popleft() if again else next(rest, None)):
                    sent.tries += 1
                    order = self._ray.cloudpickle.dumps((task, argument(sent.item), str(Path.cwd())))
                    running[remote.remote(__version__, order)] = sent
                if not running:
                    return
                ready, _ = self._ray.wait(list(running), num_returns=1, timeout=_LOOK_SECONDS, fetch_local=False)
                room = room if ready else _QUEUED * self.places(need)
                for handle in ready:
                    sent = running[handle]
                    try:
                        result = self._next(handle, sent.index, last=not yields)
                    except _LostError as lost:
                        del running[handle]
                        if sent.tries < _TRIES:
                            self._note(f"a worker was lost ({lost}); what it did is done again")
                            again.append(sent)
                            continue
                        result = Result(sent.index, error=f"its worker was lost {_TRIES} times ({lost})")
                    if result is None or result.error or not yields:
                        running.pop(handle, None)
                    yield Result(sent.index) if result is None else result
        finally:
            self._end(running)

    def _next(self, handle: Any, index: int, *, last: bool) -> Result[Any] | None:
        """The next result of an item; None when there are no more."""
        exceptions = self._ray.exceptions
        try:
            kind, told = self._ray.get(next(handle), timeout=_TAKE_SECONDS)
        except StopIteration:
            return None
        except exceptions.RayTaskError as error:
            return Result(index, error=_last_line(error))
        except exceptions.RayError as error:
            raise _LostError(type(error).__name__.removesuffix("Error")) from None
        if kind == "refused":
            raise RlmError(told)
        return Result(index, error=told) if kind == "failed" else Result(index, told, last=last)

    def _end(self, running: dict[Any, _Sent]) -> None:
        """End what runs: as by Ctrl-C, and after some seconds by force."""
        ray, handles = self._ray, list(running)
        running.clear()
        for handle in handles:
            ray.cancel(handle)
        if ends := [handle.completed() for handle in handles]:
            _, late = ray.wait(ends, num_returns=len(ends), timeout=_GRACE_SECONDS, fetch_local=False)
            for handle in handles if late else ():
                ray.cancel(handle, force=True)

    def _nodes(self) -> list[dict[str, float]]:
        """What the nodes that live have."""
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def places(self, need: Need) -> int:
        """How many items that need so much can run at once.

        Raises:
            RlmError: none can.
        """
        places = 0
        for node in self._nodes():
            fits = [node.get("CPU", 0.0) // need.cpus] + ([node.get("GPU", 0.0) // need.gpus] if need.gpus else [])
            places += int(min(fits))
        if not places:
            raise RlmError(f"no node of the cluster has {need}; add one to it")
        return places


class _LostError(Exception):
    """A worker did not live to tell a result."""


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def in_order(results: Iterable[Result[Value]]) -> Iterator[Value]:
    """The values of items that have one each, in the order of the items.

    Raises:
        RlmError: an item has ended in an error.
    """
    waiting: dict[int, Value] = {}
    due = 0
    for result in results:
        if result.error:
            raise RlmError(result.error)
        waiting[result.index] = cast(Value, result.value)
        while due in waiting:
            yield waiting.pop(due)
            due += 1
