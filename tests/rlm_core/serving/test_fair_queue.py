"""Whose item is next: equal shares of the cost, by network and then by client, and nothing gained by new names."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from rlm_core.serving.fair_queue import FairQueue


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
