"""Micro-batching: what is joined, whose turn it is, and what happens to texts that break the model or nobody wants."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from rlm_core import CodeText, Prediction, Query
from rlm_core.serving.batching import Batcher, Batching, FairQueue, QueueFullError
from rlm_core.serving.wire import Question
from rlm_core.types import Abstention, AbstentionCode

from .support import LATENCY, LengthPredictor, call

pytestmark = [pytest.mark.timeout(60)]
PATIENT = 1000.0


@asynccontextmanager
async def working(
    predictor: LengthPredictor, settings: Batching, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Batcher]:
    batcher = Batcher(predictor, settings, clock)
    batcher.start()
    try:
        yield batcher
    finally:
        predictor.gate.set()
        await batcher.close()


async def until(happened: Callable[[], bool]) -> None:
    while not happened():
        await asyncio.sleep(0)


def ask(batcher: Batcher, client: str, *texts: str, network: str = "192.0.2.1") -> asyncio.Task[list[list[Prediction]]]:
    questions = [Question.about(call(text), LATENCY) for text in texts]
    return asyncio.create_task(batcher.answer((network, client), questions))


async def keep_busy(batcher: Batcher, predictor: LengthPredictor) -> asyncio.Task[list[list[Prediction]]]:
    """Give the model a text that it works on until its gate is opened."""
    predictor.gate.clear()
    task = ask(batcher, "first", "first")
    await until(predictor.busy.is_set)
    return task


def sizes(predictor: LengthPredictor) -> list[int]:
    return [len(texts) for texts in predictor.calls]


@pytest.mark.asyncio
async def test_what_arrives_while_the_model_is_busy_goes_in_one_batch() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(wait=0)) as batcher:
        tasks = [await keep_busy(batcher, predictor)]
        tasks += [ask(batcher, f"client {n}", "x" * n) for n in range(1, 8)]
        await until(lambda: batcher.waiting == 7)
        predictor.gate.set()
        answers = await asyncio.gather(*tasks)
    assert sizes(predictor) == [1, 7]
    assert [line[0].median for [line] in answers] == pytest.approx([n * 1e-6 for n in (5, *range(1, 8))])
    counts = batcher.counts
    assert (counts.batches, counts.texts, counts.queries, counts.failures) == (2, 8, 8, 0)
    assert counts.seconds > 0


@pytest.mark.asyncio
async def test_a_free_model_waits_for_company_and_no_longer_than_until_the_batch_is_full() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=2, wait=PATIENT)) as batcher:
        await asyncio.gather(ask(batcher, "a", "x"), ask(batcher, "b", "y"))
    assert sizes(predictor) == [2]


@pytest.mark.asyncio
async def test_a_text_alone_does_not_wait_for_ever() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=2, wait=0.001)) as batcher:
        [[answer]] = await ask(batcher, "a", "x")
    assert answer.median == pytest.approx(1e-6)


@pytest.mark.asyncio
async def test_what_has_waited_for_a_busy_model_does_not_wait_for_company_too() -> None:
    predictor, seconds = LengthPredictor(), [0.0]
    async with working(predictor, Batching(texts=2, wait=PATIENT), lambda: seconds[0]) as batcher:
        predictor.gate.clear()
        first = [ask(batcher, "a", "x"), ask(batcher, "b", "y")]
        await until(predictor.busy.is_set)
        late = ask(batcher, "c", "z")
        await until(lambda: batcher.waiting == 1)
        seconds[0] = PATIENT
        predictor.gate.set()
        await asyncio.gather(*first, late)
    assert sizes(predictor) == [2, 1]


@pytest.mark.asyncio
async def test_a_small_question_does_not_wait_for_the_rest_of_a_large_one() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=4, wait=0)) as batcher:
        tasks = [await keep_busy(batcher, predictor)]
        tasks.append(ask(batcher, "large", *("l" * n for n in range(1, 41))))
        await until(lambda: batcher.waiting == 40)
        tasks.append(ask(batcher, "small", "s", "ss"))
        await until(lambda: batcher.waiting == 42)
        predictor.gate.set()
        await asyncio.gather(*tasks)
    # One text of each in turn: both of the small client's are in the first batch that could hold them.
    assert sorted(code.text for code in predictor.calls[1]) == ["l", "ll", "s", "ss"]
    assert sizes(predictor) == [1, 4, *[4] * 9, 2]


@pytest.mark.asyncio
async def test_a_batch_is_a_small_step_whatever_waits() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(step=2_000, parallel=2)) as batcher:
        tasks = [await keep_busy(batcher, predictor)]
        tasks.append(ask(batcher, "large", *("x" * 1_000 for _ in range(9)), "y" * 9_000, "z" * 9_000, "z" * 500))
        await until(lambda: batcher.waiting == 12)
        predictor.gate.set()
        await asyncio.gather(*tasks)
    # Texts count a little more than their length. A text that is longer than a step goes with others of its length.
    assert [[len(code.text) for code in texts] for texts in predictor.calls[1:]] == [
        *[[1_000] * 3] * 3,
        [9_000] * 2,
        [500],
    ]


@pytest.mark.asyncio
async def test_clients_have_the_same_share_of_the_time_not_of_the_texts() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=1)) as batcher:
        tasks = [await keep_busy(batcher, predictor)]
        tasks.append(ask(batcher, "long", *("l" * 10_000 for _ in range(5))))
        tasks.append(ask(batcher, "short", *("s" * 1_000 for _ in range(20))))
        await until(lambda: batcher.waiting == 25)
        predictor.gate.set()
        await asyncio.gather(*tasks)
    order = "".join(texts[0].text[0] for texts in predictor.calls[1:])
    # A text of 10,000 characters takes as long as eight of 1,000, with what each text takes whatever its length.
    assert order == "l" + "s" * 9 + "l" + "s" * 8 + "l" + "sss" + "ll"


@pytest.mark.asyncio
async def test_many_clients_of_one_network_have_one_share() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=1)) as batcher:
        tasks = [await keep_busy(batcher, predictor)]
        tasks += [ask(batcher, f"mark {n}", "a", "a", network="2001:db8::/64") for n in range(10)]
        tasks.append(ask(batcher, "good", *"gggg", network="192.0.2.7"))
        await until(lambda: batcher.waiting == 24)
        predictor.gate.set()
        await asyncio.gather(*tasks)
    order = "".join(texts[0].text for texts in predictor.calls[1:])
    assert order.startswith("agagagag")


@pytest.mark.asyncio
async def test_a_text_with_many_queries_is_sent_in_parts_and_answered_as_one() -> None:
    predictor = LengthPredictor()
    devices = [Query("latency", f"device {n}") for n in range(25)]
    async with working(predictor, Batching(queries=10)) as batcher:
        [line, [single]] = await batcher.answer(
            ("a",), [Question.about(call("x"), devices), Question.about(call("yy"), LATENCY)]
        )
    assert [answer.device for answer in line] == [query.device for query in devices]
    assert single.median == pytest.approx(2e-6)
    assert sizes(predictor) == [1, 1, 2]


@pytest.mark.asyncio
async def test_a_text_that_breaks_the_model_affects_no_other_request() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=8, wait=PATIENT)) as batcher:
        texts = ["a", "bb", "poison", "ccc", "dddd", "eeeee", "f", "g"]
        answers = await asyncio.gather(*(ask(batcher, text, text) for text in texts))
    found = {text: line[0] for text, [line] in zip(texts, answers, strict=True)}
    assert found.pop("poison").abstained == Abstention(AbstentionCode.MODEL_FAILED, {"error": "ArithmeticError"})
    assert [answer.median for answer in found.values()] == pytest.approx([len(text) * 1e-6 for text in found])
    assert batcher.counts.failures == 1


class Forgetful(LengthPredictor):
    """Leaves out the last answer."""

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        return super().predict(texts, queries)[:-1]


@pytest.mark.asyncio
async def test_answers_of_another_shape_are_model_errors() -> None:
    async with working(Forgetful(), Batching()) as batcher:
        [[answer]] = await ask(batcher, "a", "x")
    assert answer.abstained == Abstention(AbstentionCode.MODEL_FAILED, {"error": "ModelError"})


@pytest.mark.asyncio
async def test_no_question_and_no_query_need_no_model() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching()) as batcher:
        assert await batcher.answer(("a",), []) == []
        assert await batcher.answer(("a",), [Question.about(call("x"), [])]) == [[]]
    assert predictor.calls == []


@pytest.mark.asyncio
async def test_a_full_queue_turns_requests_away_until_there_is_room() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(texts=4, queue=3, wait=0)) as batcher:
        tasks = [await keep_busy(batcher, predictor)]
        # A queue that holds nothing takes a request of any size, or it could never be answered.
        tasks.append(ask(batcher, "a", *"vwxyz"))
        await until(lambda: batcher.waiting == 5)
        with pytest.raises(QueueFullError, match="5 texts wait for the model"):
            await ask(batcher, "b", "x")
        predictor.gate.set()
        await asyncio.gather(*tasks)
        assert len(await ask(batcher, "b", "x")) == 1


@pytest.mark.asyncio
async def test_abandoned_queries_are_not_sent_to_the_model() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(wait=0)) as batcher:
        first = await keep_busy(batcher, predictor)
        gone, also, stays = ask(batcher, "a", "gone", "too"), ask(batcher, "b", "gone"), ask(batcher, "a", "stays")
        await until(lambda: batcher.waiting == 4)
        gone.cancel()
        also.cancel()
        await asyncio.wait([gone, also])
        assert batcher.waiting == 1
        predictor.gate.set()
        await asyncio.gather(first, stays)
    assert [[code.text for code in texts] for texts in predictor.calls] == [["first"], ["stays"]]


@pytest.mark.asyncio
async def test_a_client_that_disconnects_during_inference_affects_no_other() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(wait=0)) as batcher:
        first = await keep_busy(batcher, predictor)
        first.cancel()
        second = ask(batcher, "b", "xx")
        await until(lambda: batcher.waiting == 1)
        predictor.gate.set()
        [[answer]] = await second
    assert first.cancelled()
    assert answer.median == pytest.approx(2e-6)


@pytest.mark.asyncio
async def test_two_workers_work_at_once() -> None:
    predictor = LengthPredictor()
    async with working(predictor, Batching(workers=2, wait=0)) as batcher:
        first = await keep_busy(batcher, predictor)
        second = ask(batcher, "b", "second")
        await until(lambda: len(predictor.calls) == 2)
        predictor.gate.set()
        await asyncio.gather(first, second)


@dataclass(frozen=True)
class Item:
    client: str
    cost: float = 1.0


def put(queue: FairQueue[Item], client: str, *costs: float) -> None:
    for cost in costs:
        queue.put(tuple(client.split("/")), Item(client, cost))


def take(queue: FairQueue[Item]) -> Item:
    item = queue.take(lambda item: True)
    assert item is not None
    return item


def served(queue: FairQueue[Item], count: int) -> Counter[str]:
    """The service of each client in the next ``count`` items."""
    total: Counter[str] = Counter()
    for _ in range(count):
        item = take(queue)
        total[item.client] += item.cost  # type: ignore[assignment]
    return total


@pytest.mark.parametrize("costs", [(1, 1), (1, 10), (7, 3)])
def test_clients_that_wait_have_equal_service_up_to_one_item(costs: tuple[float, float]) -> None:
    queue: FairQueue[Item] = FairQueue()
    for client, cost in zip("ab", costs, strict=True):
        put(queue, client, *[cost] * 200)
    total = served(queue, 150)
    assert abs(total["a"] - total["b"]) <= max(costs)


def test_a_client_that_comes_later_is_next_and_has_saved_up_nothing() -> None:
    queue: FairQueue[Item] = FairQueue()
    put(queue, "a", *[5] * 40)
    served(queue, 20)
    put(queue, "b", *[5] * 20)
    assert "b" in {take(queue).client, take(queue).client}
    assert served(queue, 10) == {"a": 25, "b": 25}


def test_a_client_that_asks_one_by_one_has_its_share_of_the_cost() -> None:
    queue: FairQueue[Item] = FairQueue()
    put(queue, "a", *[1] * 400)
    put(queue, "b", 10)
    total: Counter[str] = Counter()
    for _ in range(220):
        item = take(queue)
        total[item.client] += item.cost  # type: ignore[assignment]
        if item.client == "b":
            put(queue, "b", 10)
    assert abs(total["a"] - total["b"]) <= 20


def test_new_names_do_not_starve_a_client_of_the_same_network_and_are_forgotten() -> None:
    queue: FairQueue[Item] = FairQueue()
    put(queue, "net/good", 1)
    for number in range(5):
        put(queue, f"net/{number}", 1)
    good = 0
    for number in range(5, 2_005):
        item = take(queue)
        if item.client == "net/good":
            good += 1
            put(queue, "net/good", 1)
        else:
            put(queue, f"net/{number}", 1)
    # Six wait at a time: each has a sixth.
    assert 2_000 / 6 * 0.8 <= good <= 2_000 / 6 * 1.2
    assert len(queue._shares["net"]._shares) < 50


def test_a_network_has_one_share_however_many_names_it_has() -> None:
    queue: FairQueue[Item] = FairQueue()
    for number in range(50):
        put(queue, f"bad/{number}", 3, 3, 3)
    put(queue, "good/one", *[1] * 30)
    total = served(queue, 40)
    assert abs(total["good/one"] - sum(total.values()) / 2) <= 3


def test_what_does_not_fit_stays_where_it_is() -> None:
    queue: FairQueue[Item] = FairQueue()
    put(queue, "a", 5)
    put(queue, "b", 1)
    assert queue.take(lambda item: item.cost < 5) is None
    assert queue.waiting == 2
    assert [item.client for item in queue.heads()] == ["a", "b"]
    assert [take(queue).client, take(queue).client] == ["a", "b"]
    assert queue.take(lambda item: True) is None


def test_dropped_items_are_not_served() -> None:
    queue: FairQueue[Item] = FairQueue()
    put(queue, "n/a", 1, 2, 1)
    put(queue, "n/b", 1)
    assert queue.drop(("n", "a"), lambda item: item.cost == 1) == 2
    assert queue.drop(("n", "nobody"), lambda item: True) == 0
    assert queue.waiting == 2
    assert sorted((take(queue).client, take(queue).client)) == ["n/a", "n/b"]
