"""Micro-batching across clients: texts that wait at the same time go to the model together, in small steps.

Texts come in with :meth:`Batcher.answer` and wait in a :class:`FairQueue`, where each client gets the same
share of the predicted time. A batch is a fraction of a second of work, so a client that asks about a whole repository
delays another's single function by one such step, not by the repository. While the model is busy, whatever arrives is
joined into the next batch.

A client is a path, here of its network and its own mark. Networks share the time equally, then the clients of a network
share its part, so opening more connections or inventing more marks gains nothing against other networks. Time is
predicted (the cost of an item): the order depends on no clock. This is fair queueing by start times (Goyal et al.,
1996) with the virtual time of WF2Q+ (Bennett and Zhang, 1997): the next item is that of the share that has had least,
and a share that comes back has had at least as much as virtual time says, so that being idle saves up nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Protocol, TypeVar

from rlm_core.errors import ModelError, RlmError
from rlm_core.inference.predictor import Predictor
from rlm_core.types import Abstention, AbstentionCode, CodeText, Prediction, Query

from .wire import Question

Path = tuple[str, ...]
_log = logging.getLogger(__name__)
# Of a text and of a query, in characters that take the model that ships as long (40 ms per 1,000 on a core).
_TEXT_COST, _QUERY_COST = 250, 20


class Priced(Protocol):
    """An item with a predicted service time, in any unit; positive."""

    @property
    def cost(self) -> float:
        """The predicted service time."""


Item = TypeVar("Item", bound=Priced)


class FairQueue(Generic[Item]):
    """Items that wait, by client. All clients have paths of the same length."""

    def __init__(self) -> None:
        self.waiting = 0
        self._had = 0.0  # service so far, in the virtual time of the queue around
        self._now = 0.0  # virtual time: service so far for each share that waited for it
        self._items: deque[Item] = deque()  # of a client
        self._shares: dict[str, FairQueue[Item]] = {}  # of the networks, or of the clients of one

    def put(self, path: Path, item: Item) -> None:
        """Append an item to those of a client."""
        self.waiting += 1
        if not path:
            self._items.append(item)
            return
        share = self._shares.get(path[0])
        if share is None:
            # A share that has had no more than a new one would have had is forgotten.
            self._shares = {
                name: known for name, known in self._shares.items() if known.waiting or known._had > self._now
            }
            share = self._shares[path[0]] = FairQueue()
        if not share.waiting:
            share._had = max(share._had, self._now)
        share.put(path[1:], item)

    def take(self, fits: Callable[[Item], bool]) -> Item | None:
        """Remove the item whose turn it is; None if it does not fit, or nothing waits."""
        if not self._shares:
            if not self._items or not fits(self._items[0]):
                return None
            self.waiting -= 1
            return self._items.popleft()
        open_shares = [share for share in self._shares.values() if share.waiting]
        if not open_shares:
            return None
        share = min(open_shares, key=lambda share: share._had)
        item = share.take(fits)
        if item is not None:
            self.waiting -= 1
            self._now = max(self._now, share._had) + item.cost / len(open_shares)
            share._had += item.cost
        return item

    def heads(self) -> Iterator[Item]:
        """The item of each client that waits longest."""
        yield from islice(self._items, 1)
        for share in self._shares.values():
            yield from share.heads()

    def drop(self, path: Path, unwanted: Callable[[Item], bool]) -> int:
        """Remove items of a client; how many there were."""
        if path:
            share = self._shares.get(path[0])
            count = share.drop(path[1:], unwanted) if share is not None else 0
        else:
            kept = deque(item for item in self._items if not unwanted(item))
            count, self._items = len(self._items) - len(kept), kept
        self.waiting -= count
        return count


class QueueFullError(RlmError):
    """Too many texts are waiting; the request is rejected."""


@dataclass(frozen=True, slots=True)
class Batching:
    """Settings for joining requests.

    Attributes:
        texts: most texts in one batch.
        queries: most queries in one batch; a text with more of them is asked about in several batches.
        wait: seconds that a free model waits for more texts once the first has come; 0 is the fastest for all where a
            batch takes longer than requests are apart, as what comes meanwhile is joined anyway.
        queue: most texts that wait; a request that would exceed it is turned away, unless none waits.
        workers: batches that the model works on at once.
        step: most characters in one batch for each text that the model works on at once; a longer text goes only with
            texts that take no longer. What a batch began is not stopped, neither for another client nor when its
            requests have been given up, so this bounds both waits.
        parallel: texts that the model works on at once.
    """

    texts: int = 64
    queries: int = 128
    step: int = 4_000
    parallel: int = 1
    wait: float = 0.0
    queue: int = 4096
    workers: int = 1


@dataclass(slots=True)
class Counts:
    """Counters since the start; ``seconds`` were spent in the model."""

    batches: int = 0
    texts: int = 0
    queries: int = 0
    failures: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _PendingRequest:
    """A request: its answers so far and how many queries are still open."""

    answers: list[list[Prediction | None]]
    open: int
    done: asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some queries of one text: those of question ``place`` from ``start`` on."""

    job: _PendingRequest
    place: int
    start: int
    code: CodeText
    queries: tuple[Query, ...]
    cost: float
    arrived: float


class Batcher:
    """Puts a predictor behind a queue. Everything but the predictor runs on one event loop; ``clock`` gives seconds."""

    def __init__(self, predictor: Predictor, settings: Batching, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts = Counts()
        self._predictor, self._settings, self._clock = predictor, settings, clock
        self._queue: FairQueue[_Piece] = FairQueue()
        self._arrived, self._full = asyncio.Event(), asyncio.Event()
        self._pool = ThreadPoolExecutor(settings.workers, thread_name_prefix="rlm-batch")
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """The number of texts that wait for the model."""
        return self._queue.waiting

    def start(self) -> None:
        """Begin to work; called on the event loop."""
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self._settings.workers)]

    async def close(self) -> None:
        """Stop; requests that still wait are not answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def answer(self, client: Path, questions: Sequence[Question]) -> list[list[Prediction]]:
        """The predictor's answers, in the shape of the questions. When cancelled, what still waits is dropped.

        Args:
            client: whose questions these are, from the outside in, like ``(network, mark)``.
            questions: texts with their queries.

        Raises:
            QueueFullError: too many texts wait.
        """
        job = _PendingRequest(
            [[None] * len(question.queries) for question in questions],
            sum(len(question.queries) for question in questions),
            asyncio.get_running_loop().create_future(),
        )
        most, now = self._settings.queries, self._clock()
        pieces = [
            _Piece(job, place, start, question.code, part, _cost(characters, len(part)), now)
            for place, question, characters in ((place, one, one.characters) for place, one in enumerate(questions))
            for start in range(0, len(question.queries), most)
            for part in (question.queries[start : start + most],)
        ]
        if self.waiting and self.waiting + len(pieces) > self._settings.queue:
            raise QueueFullError(f"{self.waiting} texts wait for the model; ask again in a moment")
        if pieces:
            self._put(client, pieces)
            try:
                await job.done
            finally:
                self._drop(client, job)
        return [[answer for answer in line if answer is not None] for line in job.answers]

    def _put(self, client: Path, pieces: list[_Piece]) -> None:
        for piece in pieces:
            self._queue.put(client, piece)
        self._arrived.set()
        if self.waiting >= self._settings.texts:
            self._full.set()

    def _drop(self, client: Path, job: _PendingRequest) -> None:
        if job.open:
            self._queue.drop(client, lambda piece: piece.job is job)

    async def _work(self) -> None:
        while True:
            while not self.waiting:
                self._arrived.clear()
                await self._arrived.wait()
            await self._wait_for_more()
            # Another worker may have taken what was there.
            if batch := self._next_batch():
                await self._answer_batch(batch)

    async def _wait_for_more(self) -> None:
        """Let a batch fill for at most the setting's time; what came while the model was busy has waited already."""
        oldest = min(piece.arrived for piece in self._queue.heads())
        left = oldest + self._settings.wait - self._clock()
        if left <= 0 or self.waiting >= self._settings.texts:
            return
        self._full.clear()
        try:
            async with asyncio.timeout(left):
                await self._full.wait()
        except TimeoutError:
            pass  # no other request came

    def _next_batch(self) -> list[_Piece]:
        settings = self._settings
        batch: list[_Piece] = []
        queries = 0
        cost = longest = 0.0

        def fits(piece: _Piece) -> bool:
            return not batch or (
                queries + len(piece.queries) <= settings.queries
                and piece.cost <= longest
                and cost + piece.cost <= longest * settings.parallel
            )

        while len(batch) < settings.texts and (piece := self._queue.take(fits)):
            longest = longest or max(piece.cost, settings.step)
            queries += len(piece.queries)
            cost += piece.cost
            batch.append(piece)
        return batch

    async def _answer_batch(self, batch: list[_Piece]) -> None:
        started = time.perf_counter()
        codes, queries = [piece.code for piece in batch], [piece.queries for piece in batch]
        loop = asyncio.get_running_loop()
        answers, failures = await loop.run_in_executor(self._pool, _ask, self._predictor, codes, queries)
        self.counts.seconds += time.perf_counter() - started
        self.counts.batches += 1
        self.counts.texts += len(batch)
        self.counts.queries += sum(map(len, queries))
        self.counts.failures += failures
        for piece, line in zip(batch, answers, strict=True):
            piece.job.answers[piece.place][piece.start : piece.start + len(line)] = line
            piece.job.open -= len(line)
            if not piece.job.open and not piece.job.done.done():
                piece.job.done.set_result(None)


def _cost(characters: int, queries: int) -> float:
    """The predicted service time of a text, in characters."""
    return characters + _TEXT_COST + queries * _QUERY_COST


def _ask(
    predictor: Predictor, codes: Sequence[CodeText], queries: Sequence[Sequence[Query]]
) -> tuple[list[list[Prediction]], int]:
    """The predictor's answers and on how many texts it failed.

    A batch that fails is halved until the failing texts are alone, so that no other text loses its answer.
    """
    try:
        found = predictor.predict(codes, queries)
        if [len(line) for line in found] != [len(line) for line in queries]:
            raise ModelError("the model's answers have another shape than the questions")
        return found, sum(any(map(_is_failure, line)) for line in found)
    except Exception as error:
        if len(codes) == 1:
            _log.exception("the model failed on a text of basis %s in %s", codes[0].basis, codes[0].language)
            reason = Abstention(AbstentionCode.MODEL_FAILED, {"error": type(error).__name__})
            return [[Prediction.missing(codes[0], query, predictor.model_id, reason) for query in queries[0]]], 1
    middle = len(codes) // 2
    first, second = (_ask(predictor, codes[part], queries[part]) for part in (slice(middle), slice(middle, None)))
    return first[0] + second[0], first[1] + second[1]


def _is_failure(answer: Prediction) -> bool:
    return answer.abstained is not None and answer.abstained.code is AbstentionCode.ANALYSIS_FAILED
