"""Work on a Ray cluster: items in, their results out as they come; the items of lost workers are sent again.

Items are worked on by importable functions, in processes of the nodes, which must have this version of rlm-lsp. This
process is the driver: :class:`Cluster` connects it, sends items and takes each result once. :func:`shipped` and
:func:`work` run on the nodes. Ray is imported only when an address is given. Addresses are those of Ray: ``auto`` is
the cluster that runs on this machine, ``HOST:PORT`` one that this machine is a node of, and ``local`` makes one of this
machine alone.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TextIO, TypeVar, cast

from rlm_core.errors import RlmError

from .wire import program_version

Item = TypeVar("Item")
Value = TypeVar("Value")
Note = Callable[[str], None]
Argument = Callable[[Item], Any]
_TRIES = 4
_ACCELERATOR = "accelerator_type:"  # how Ray names the resource of a node with such a GPU
_QUEUED = 2  # items per place: one that runs, and one that waits
_LOOK_SECONDS, _GRACE_SECONDS, _TAKE_SECONDS = 10.0, 5.0, 60.0
_CONNECT_SECONDS, _ANSWER_SECONDS = 5.0, 30.0
_OBJECT_STORE = 128 << 20  # bytes; what goes between processes is small
# Ray itself needs minutes to give up and then prints many lines: a separate process finds out within a time limit.
_PROBE = """
import logging, sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)
except Exception as error:
    sys.exit(str(error).splitlines()[0])
"""


@dataclass(frozen=True, slots=True)
class Need:
    """The resources of a node that one item needs; ``accelerator`` is a kind of GPU by Ray's name for it."""

    cpus: float = 1
    gpus: float = 0
    accelerator: str | None = None

    def __str__(self) -> str:
        gpu = f"GPU of the kind {self.accelerator}" if self.accelerator else "GPU"
        return " and ".join(f"{count:g} {what}" for count, what in ((self.cpus, "CPU"), (self.gpus, gpu)) if count)


@dataclass(frozen=True, slots=True)
class Result(Generic[Value]):
    """The result of the item at ``index``: its value, or the ``error`` that ended it.

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
    """A cluster of which this process is a driver, as a context manager: on exit, running items are cancelled.

    ``note`` is called with a line about each lost worker.

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
        """True if any node has a GPU."""
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

        When an item is sent again, its argument is computed again, so that it can leave out the values received so far.
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
            accelerator_type=need.accelerator,
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
                    running[remote.remote(program_version(), order)] = sent
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
                            self._note(f"a worker was lost ({lost}); its item is sent again")
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
            kind, content = self._ray.get(next(handle), timeout=_TAKE_SECONDS)
        except StopIteration:
            return None
        except exceptions.RayTaskError as error:
            return Result(index, error=_last_line(error))
        except exceptions.RayError as error:
            raise _LostError(type(error).__name__.removesuffix("Error")) from None
        if kind == "refused":
            raise RlmError(content)
        return Result(index, error=content) if kind == "failed" else Result(index, content, last=last)

    def _end(self, running: dict[Any, _Sent]) -> None:
        """Cancel what runs: as by Ctrl-C, and after some seconds by force."""
        ray, handles = self._ray, list(running)
        running.clear()
        for handle in handles:
            ray.cancel(handle)
        if ends := [handle.completed() for handle in handles]:
            _, late = ray.wait(ends, num_returns=len(ends), timeout=_GRACE_SECONDS, fetch_local=False)
            for handle in handles if late else ():
                ray.cancel(handle, force=True)

    def _nodes(self) -> list[dict[str, float]]:
        """The resources of the live nodes."""
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def _kinds(self) -> Iterator[str]:
        """The resources that stand for the kinds of GPUs of the nodes."""
        return (name for node in self._nodes() for name in node if name.startswith(_ACCELERATOR))

    def places(self, need: Need) -> int:
        """Return how many items with this need can run at once.

        Raises:
            RlmError: none can.
        """
        places = 0
        nodes = self._nodes()
        if need.accelerator is not None:
            nodes = [node for node in nodes if _ACCELERATOR + need.accelerator in node]
        for node in nodes:
            fits = [node.get("CPU", 0.0) // need.cpus] + ([node.get("GPU", 0.0) // need.gpus] if need.gpus else [])
            places += int(min(fits))
        if not places:
            kinds = sorted({name.removeprefix(_ACCELERATOR) for name in self._kinds()}) if need.accelerator else []
            known = f" (it has {', '.join(kinds)})" if kinds else ""
            raise RlmError(f"no node of the cluster has {need}{known}; add one to it")
        return places


class _LostError(Exception):
    """A worker was lost before it returned a result."""


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


def shipped() -> Callable[[str, bytes], Iterator[tuple[str, Any]]]:
    """The function that a node runs first; it is sent by value, so that a node without this version can report it."""

    def run(version: str, order: bytes) -> Iterator[tuple[str, Any]]:
        import platform

        try:
            from rlm_core.serving.wire import program_version

            installed = f"rlm-lsp {program_version()}"
            matches = program_version() == version
        except ImportError:
            installed, matches = "no rlm-lsp", False
        if not matches:
            problem = f"node {platform.node()} has {installed}, but the driver has {version}"
            yield "refused", f"{problem}; install the same version on all nodes"
            return
        from rlm_core.serving.ray_cluster import work

        yield from work(order)

    return run


def work(order: bytes) -> Iterator[tuple[str, Any]]:
    """On a node: do what was sent, from the driver's working directory where the node has it."""
    try:
        task, argument, folder = pickle.loads(order)  # noqa: S301 (from the driver that Ray has let in)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        made = task(argument)
        for value in made if inspect.isgenerator(made) else (made,):
            yield "value", value
    except RlmError as error:
        yield "failed", str(error)
    except Exception as error:
        yield "failed", f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray itself, connected.

    Raises:
        RlmError: Ray is not installed, or no cluster answers at the address in time.
    """
    try:
        import ray
    except ModuleNotFoundError:
        raise RlmError("ray is not installed; run: pip install '.[ray]'") from None
    options: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE}
    if address != "local":
        _probe(address)
        options = {}
    with contextlib.redirect_stdout(cast(TextIO, _Output(sys.stdout))):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL, **options)
        except Exception as error:
            raise RlmError(f"--ray {address}: {_first_line(error)}") from None
        try:
            yield ray
        finally:
            with contextlib.redirect_stdout(io.StringIO()):
                ray.shutdown()


class _Output:
    """Standard output for the thread that made it; what Ray's threads print about lost nodes is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text: str) -> int:
        """Write a text of the owning thread; drop others."""
        return self._stream.write(text) if threading.get_ident() == self._thread else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _probe(address: str) -> None:
    """Check that a cluster answers at an address.

    Raises:
        RlmError: none does.
    """
    way_out = "name the address that `ray start --head` printed, or local"
    if address.startswith("ray://"):
        raise RlmError(f"--ray {address}: Ray Client is not used; run this on a node of the cluster with --ray auto")
    host, _, port = address.rpartition(":")
    if address != "auto":
        if not host or not port.isdigit():
            raise RlmError(f"--ray {address}: is not auto, local or HOST:PORT; {way_out}")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise RlmError(f"--ray {address}: cannot be reached ({error}); {way_out}") from None
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROBE, address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RlmError(f"--ray {address}: no Ray cluster answers within {_ANSWER_SECONDS:g} s; {way_out}") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RlmError(f"--ray {address}: {reason} ({way_out})")


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
