"""When the model runs for a document: after a pause in typing, in small steps, for the newest version only.

There is one job per document. A job for a newer version replaces the current one, and its steps that have not started
are dropped. Steps of several documents, and hovers, take turns on the workers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from rlm_core.types import CodeText

STEP_UNITS, STEPS_AT_ONCE = 16, 2
PUBLISH_SECONDS = 0.5
_SHOW_SECONDS = 0.05


class Predict(Protocol):
    """Runs the model for some units; must check ``cancelled`` before it starts."""

    def __call__(self, codes: Sequence[CodeText], cancelled: Callable[[], bool]) -> Awaitable[None]:
        """Predict ``codes``."""
        ...


@dataclass(slots=True, eq=False)
class _Job:
    version: int
    waiting: dict[CodeText, None]
    urgent: set[CodeText]  # the newest narrow request: published as soon as all of it is predicted
    running: set[CodeText] = field(default_factory=set)
    cancelled: Event = field(default_factory=Event)
    task: asyncio.Task[None] | None = None

    def next_step(self) -> list[CodeText]:
        """The units to predict next; urgent units do not share a step with others."""
        step = list(self.waiting)[:STEP_UNITS]
        step = [code for code in step if code in self.urgent] or step
        for code in step:
            del self.waiting[code]
        self.running.update(step)
        return step


class Scheduler:
    """Schedules prediction jobs; lives on the event loop.

    Args:
        predict: runs the model off the loop.
        version_of: the current version of an open document, None when it is closed.
        publish: called with the document when there are new results for its current version.
        on_error: called with the exception of a job.
        on_step: called with a document, the number of its units that are done, and of all; equal at the end of a job.
        debounce: seconds of quiet after an edit.
    """

    def __init__(
        self,
        predict: Predict,
        version_of: Callable[[str], int | None],
        publish: Callable[[str], None],
        on_error: Callable[[BaseException], None],
        debounce: float,
        on_step: Callable[[str, int, int], None] = lambda uri, done, total: None,
    ) -> None:
        self._predict, self._version_of = predict, version_of
        self._publish, self._on_error, self.debounce = publish, on_error, debounce
        self._on_step = on_step
        self._jobs: dict[str, _Job] = {}
        self._edited_at: dict[str, float] = {}

    def edited(self, uri: str) -> None:
        """The document has changed: its job is out of date, and the pause starts again."""
        self._edited_at[uri] = asyncio.get_running_loop().time()
        self._drop(uri)

    def closed(self, uri: str) -> None:
        """The document is closed."""
        self._edited_at.pop(uri, None)
        self._drop(uri)

    def schedule(self, uri: str, version: int, codes: Sequence[CodeText]) -> asyncio.Task[None]:
        """Predict ``codes`` of a document after the pause; the task ends when they are done or out of date.

        A second request for the same version takes precedence over units that still wait, unless it includes all of
        them: what is on the screen does not wait for the whole file.
        """
        job = self._jobs.get(uri)
        if job is not None and job.version == version and job.task is not None and not job.task.done():
            # A running step is not started again.
            wanted = dict.fromkeys(code for code in codes if code not in job.running)
            if job.waiting.keys() <= wanted.keys():
                job.waiting |= wanted
            else:
                job.waiting, job.urgent = {**wanted, **job.waiting}, set(codes)
            return job.task
        self._drop(uri)
        job = _Job(version, dict.fromkeys(codes), set(codes))
        self._jobs[uri] = job
        job.task = asyncio.get_running_loop().create_task(self._work(uri, job))
        job.task.add_done_callback(lambda task: self._finish(uri, job, task))
        return job.task

    def _drop(self, uri: str) -> None:
        job = self._jobs.pop(uri, None)
        if job is not None:
            job.cancelled.set()

    def _finish(self, uri: str, job: _Job, task: asyncio.Task[None]) -> None:
        if self._jobs.get(uri) is job:
            del self._jobs[uri]
        if uri not in self._jobs:
            self._on_step(uri, 0, 0)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(error)

    async def quiet(self, uri: str) -> None:
        """Wait until the pause after a document's last edit is over."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._edited_at.get(uri, float("-inf")) + self.debounce - loop.time()))

    async def idle(self, uri: str) -> None:
        """Wait until the pause after a document's last edit is over, and all that was asked for is predicted and shown.

        What waits for this takes the processor: a client that asks for new hints first has them sooner.
        """
        await self.quiet(uri)
        while (job := self._jobs.get(uri)) is not None and job.task is not None and not job.task.done():
            await asyncio.wait({job.task})
            await asyncio.sleep(_SHOW_SECONDS)

    async def _work(self, uri: str, job: _Job) -> None:
        loop = asyncio.get_running_loop()
        await self.quiet(uri)
        published = loop.time()
        done = 0
        steps: deque[tuple[list[CodeText], asyncio.Future[None]]] = deque()
        try:
            while (job.waiting or steps) and not job.cancelled.is_set():
                while job.waiting and len(steps) < STEPS_AT_ONCE:
                    step = job.next_step()
                    steps.append((step, asyncio.ensure_future(self._predict(step, job.cancelled.is_set))))
                self._on_step(uri, done, done + len(job.running) + len(job.waiting))
                step, ran = steps.popleft()
                await ran
                done += len(step)
                was_urgent = bool(job.urgent)
                job.running.difference_update(step)
                job.urgent.difference_update(step)
                urgent_done = was_urgent and not job.urgent
                if (job.waiting or steps) and not urgent_done and loop.time() - published < PUBLISH_SECONDS:
                    continue
                published = loop.time()
                # The version may have moved on while the workers were busy.
                if not job.cancelled.is_set() and self._version_of(uri) == job.version:
                    self._publish(uri)
        finally:
            # Steps that have started end with the job; the first error is reported, further ones are ignored.
            await asyncio.gather(*(ran for _, ran in steps), return_exceptions=True)
