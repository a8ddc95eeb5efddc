"""The scheduler: newest version wins, nothing stale is published. Time is in the test's hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from rlm_core import CodeText
from rlm_lsp.lsp.scheduler import STEP_UNITS, Scheduler
from rlm_lsp.lsp.scheduler import STEPS_AT_ONCE as STEPS

pytestmark = [pytest.mark.timeout(30), pytest.mark.asyncio]

URI = "file:///a.py"


def codes(*names: str) -> list[CodeText]:
    return [CodeText(name, "python", "call") for name in names]


class Bench:
    """A scheduler over a model whose every step waits until the test lets it go."""

    def __init__(self, debounce: float = 0.0) -> None:
        self.version: int | None = 1
        self.started: list[list[str]] = []
        self.published: list[str] = []
        self.publish: Callable[[str], None] = self.published.append
        self.errors: list[BaseException] = []
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.fail = False
        self.scheduler = Scheduler(
            self.predict, lambda uri: self.version, lambda uri: self.publish(uri), self.errors.append, debounce
        )

    async def predict(self, codes: Sequence[CodeText], cancelled: Callable[[], bool]) -> None:
        self.started.append([code.text for code in codes])
        self.entered.set()
        if self.fail:
            raise RuntimeError("broken model")
        await self.gate.wait()


async def test_results_of_the_current_version_are_published() -> None:
    bench = Bench()
    bench.gate.set()
    await bench.scheduler.schedule(URI, 1, codes("f", "g", "f"))
    assert bench.started == [["f", "g"]]
    assert bench.published == [URI]


async def test_results_of_an_old_version_are_not_published() -> None:
    bench = Bench()
    task = bench.scheduler.schedule(URI, 1, codes("f"))
    await bench.entered.wait()
    bench.version = 2
    bench.gate.set()
    await task
    assert bench.published == []


async def test_a_newer_version_replaces_the_steps_that_have_not_begun() -> None:
    bench = Bench()
    first = bench.scheduler.schedule(URI, 1, codes(*(f"old{i}" for i in range(STEPS * STEP_UNITS + 5))))
    await bench.entered.wait()
    bench.version = 2
    second = bench.scheduler.schedule(URI, 2, codes("new"))
    bench.gate.set()
    await asyncio.gather(first, second)
    assert [len(step) for step in bench.started] == [*[STEP_UNITS] * STEPS, 1]
    assert bench.started[-1] == ["new"]
    assert bench.published == [URI]


async def test_an_edit_drops_what_was_scheduled_before_it() -> None:
    bench = Bench()
    task = bench.scheduler.schedule(URI, 1, codes("f"))
    bench.scheduler.edited(URI)
    await task
    assert bench.started == []
    assert bench.published == []


async def test_the_model_waits_for_a_pause_in_the_typing() -> None:
    bench = Bench(debounce=3600)
    bench.scheduler.edited(URI)
    task = bench.scheduler.schedule(URI, 1, codes("f"))
    done, _ = await asyncio.wait({task}, timeout=0.05)
    assert not done
    assert bench.started == []
    task.cancel()


async def test_a_document_is_idle_when_all_requested_queries_are_predicted() -> None:
    bench = Bench()
    await bench.scheduler.idle(URI)
    bench.scheduler.schedule(URI, 1, codes("f"))
    waiting = asyncio.create_task(bench.scheduler.idle(URI))
    await bench.entered.wait()
    bench.scheduler.schedule(URI, 1, codes("g"))
    assert not waiting.done()
    bench.gate.set()
    await waiting
    assert bench.started == [["f"], ["g"]]


async def test_a_client_that_asks_again_at_once_is_answered_before_a_document_is_idle() -> None:
    bench = Bench()
    answered: list[str] = []

    def asks_again(uri: str) -> None:
        asyncio.get_running_loop().call_later(0.005, answered.append, uri)

    bench.publish = asks_again
    bench.gate.set()
    task = bench.scheduler.schedule(URI, 1, codes("f"))
    await bench.scheduler.idle(URI)
    assert task.done()
    assert answered == [URI]


async def test_the_first_request_for_an_opened_document_does_not_wait() -> None:
    bench = Bench(debounce=3600)
    bench.gate.set()
    await bench.scheduler.schedule(URI, 1, codes("f"))
    assert bench.published == [URI]


async def test_more_codes_of_the_same_version_join_the_job_and_come_first() -> None:
    bench = Bench()
    many = [f"f{i}" for i in range(STEPS * STEP_UNITS + 1)]
    task = bench.scheduler.schedule(URI, 1, codes(*many))
    await bench.entered.wait()
    assert bench.scheduler.schedule(URI, 1, codes("visible")) is task
    bench.gate.set()
    await task
    assert bench.started[STEPS:] == [["visible"], many[-1:]]


async def test_a_request_for_more_does_not_hold_up_the_one_before_it() -> None:
    bench = Bench()
    screen = [f"screen{i}" for i in range(STEP_UNITS)]
    rest = [f"rest{i}" for i in range(3 * STEP_UNITS)]
    task = bench.scheduler.schedule(URI, 1, codes(*screen))
    bench.scheduler.schedule(URI, 1, codes(*rest, *screen))
    published_after: list[int] = []
    bench.publish = lambda uri: published_after.append(len(bench.started))
    bench.gate.set()
    await task
    assert bench.started[0] == screen
    # What is on the screen is published at once, the rest when all of it is done: no half second has passed.
    assert published_after == [STEPS, 4]


async def test_codes_scheduled_as_the_job_ends_are_not_lost() -> None:
    bench = Bench()
    bench.gate.set()
    tasks: list[asyncio.Task[None]] = []

    def ask_again(uri: str) -> None:
        if len(tasks) == 1:
            # Runs when the job's task is done but nothing has been published yet.
            asyncio.get_running_loop().call_soon(lambda: tasks.append(bench.scheduler.schedule(uri, 1, codes("g"))))

    bench.publish = ask_again
    tasks.append(bench.scheduler.schedule(URI, 1, codes("f")))
    await tasks[0]
    await tasks[1]
    assert bench.started == [["f"], ["g"]]


async def test_a_closed_document_publishes_nothing() -> None:
    bench = Bench()
    task = bench.scheduler.schedule(URI, 1, codes("f"))
    await bench.entered.wait()
    bench.version = None
    bench.scheduler.closed(URI)
    bench.gate.set()
    await task
    assert bench.published == []


async def test_steps_overlap_and_what_has_begun_ends_with_its_job() -> None:
    bench = Bench()
    task = bench.scheduler.schedule(URI, 1, codes(*(f"f{i}" for i in range(3 * STEP_UNITS))))
    await bench.entered.wait()
    await asyncio.sleep(0)
    assert len(bench.started) == STEPS
    bench.scheduler.edited(URI)
    assert not task.done()
    bench.gate.set()
    await task
    assert len(bench.started) == STEPS
    assert bench.published == []


async def test_a_failing_model_is_reported_and_the_next_job_runs() -> None:
    bench = Bench()
    bench.fail = True
    await asyncio.wait({bench.scheduler.schedule(URI, 1, codes("f"))})
    assert [str(error) for error in bench.errors] == ["broken model"]
    assert bench.published == []
    bench.fail = False
    bench.gate.set()
    await bench.scheduler.schedule(URI, 1, codes("f"))
    assert bench.published == [URI]


async def test_each_step_and_the_end_of_a_job_are_reported() -> None:
    bench = Bench()
    bench.gate.set()
    steps: list[tuple[str, int, int]] = []
    scheduler = Scheduler(
        bench.predict,
        lambda uri: 1,
        bench.published.append,
        bench.errors.append,
        0.0,
        lambda uri, done, total: steps.append((uri, done, total)),
    )
    await scheduler.schedule(URI, 1, codes(*(f"f{number}" for number in range(2 * STEP_UNITS + 1))))
    await asyncio.sleep(0)
    total = 2 * STEP_UNITS + 1
    assert steps == [(URI, 0, total), (URI, STEP_UNITS, total), (URI, 2 * STEP_UNITS, total), (URI, 0, 0)]
