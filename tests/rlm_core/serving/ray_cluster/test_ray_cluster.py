"""Work over a real cluster of two nodes: each result once, whatever becomes of the nodes."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from rlm_core import RlmError
from rlm_core.serving.ray_cluster import Cluster, Need, Result, in_order

from . import tasks
from .conftest import Nodes

pytestmark = pytest.mark.timeout(240)


class Driven(NamedTuple):
    """A cluster, and what its user reads."""

    cluster: Cluster
    notes: list[str]


@pytest.fixture(scope="module")
def connected(nodes: Nodes) -> Iterator[Driven]:
    notes: list[str] = []
    with Cluster(nodes.two(), notes.append) as cluster:
        yield Driven(cluster, notes)


@pytest.fixture
def driven(connected: Driven, nodes: Nodes) -> Driven:
    nodes.two()
    connected.notes.clear()
    return connected


def test_all_items_come_back_once_and_in_order_from_both_nodes(driven: Driven, tmp_path: Path) -> None:
    results = driven.cluster.spread(tasks.square, range(40), Need(), lambda number: (number, str(tmp_path)))
    found = list(in_order(results))
    assert [square for square, _ in found] == [number * number for number in range(40)]
    assert len({process for _, process in found} | {os.getpid()}) == 3
    assert driven.notes == []


def test_only_so_many_items_are_taken_as_there_is_room_for(driven: Driven) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = driven.cluster.spread(tasks.square_unless_bad, items(), Need())
    next(results)
    assert 1 <= len(taken) <= 2 * 2 + 1
    results.close()
    assert len(taken) <= 2 * 2 + 1


def test_an_error_of_an_item_is_its_result_alone(driven: Driven) -> None:
    found = {one.index: one for one in driven.cluster.spread(tasks.square_unless_bad, range(6), Need())}
    assert {index: one.value for index, one in found.items() if not one.error} == {0: 0, 1: 1, 4: 16, 5: 25}
    assert found[2].error == "2 is bad input"
    assert found[3].error.startswith("ZeroDivisionError")
    assert driven.notes == []


def test_the_items_of_a_lost_worker_are_done_again(driven: Driven, tmp_path: Path) -> None:
    found = list(driven.cluster.spread(tasks.die_once, range(8), Need(), lambda number: (number, str(tmp_path))))
    assert sorted((one.index, one.value) for one in found) == [(number, number * 2) for number in range(8)]
    [note] = driven.notes
    assert note == "a worker was lost (WorkerCrashed); its item is sent again"


def test_an_item_that_ends_every_worker_is_given_up(driven: Driven) -> None:
    [found] = driven.cluster.spread(tasks.die, [0], Need())
    assert found == Result(0, error="its worker was lost 4 times (WorkerCrashed)")
    assert len(driven.notes) == 3


def test_unavailable_resources_are_reported_immediately(driven: Driven) -> None:
    assert not driven.cluster.has_gpus
    assert driven.cluster.cores == 1
    with pytest.raises(RlmError, match="no node of the cluster has 1 CPU and 1 GPU"):
        list(driven.cluster.spread(tasks.square_unless_bad, [1], Need(gpus=1)))


def test_work_for_a_kind_of_gpu_runs_on_nodes_that_have_it(driven: Driven, nodes: Nodes) -> None:
    wanted = Need(gpus=1, accelerator="H100")
    with pytest.raises(RlmError, match=r"no node of the cluster has 1 CPU and 1 GPU of the kind H100; add one to it"):
        driven.cluster.places(wanted)
    with nodes.gpu("H100") as node:
        found = list(driven.cluster.spread(tasks.node_of, range(4), wanted))
        assert [one.value for one in found] == [node] * 4
        assert driven.cluster.places(Need(gpus=1)) == 1
        with pytest.raises(RlmError, match=r"has 1 CPU and 1 GPU of the kind A100 \(it has H100\); add one to it"):
            list(driven.cluster.spread(tasks.node_of, [1], Need(gpus=1, accelerator="A100")))


def test_another_version_on_a_node_is_reported(driven: Driven, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.serving.ray_cluster.program_version", lambda: "9.9.9")
    with pytest.raises(RlmError, match=r"node .* has rlm-lsp .*, but the driver has 9\.9\.9"):
        list(driven.cluster.spread(tasks.square_unless_bad, [1], Need()))


def test_an_interrupt_ends_what_runs(driven: Driven, tmp_path: Path) -> None:
    def interrupt_when_both_run() -> None:
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("begun.*"))) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt_when_both_run, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        list(driven.cluster.spread(tasks.wait, [str(tmp_path)] * 2, Need()))
    names = {word: {path.suffix for path in tmp_path.glob(f"{word}.*")} for word in ("begun", "ended")}
    assert len(names["begun"]) == 2
    assert names["ended"] == names["begun"]


def test_a_lost_node_costs_nothing_that_has_come(driven: Driven, nodes: Nodes, tmp_path: Path) -> None:
    counted: dict[int, set[int]] = {0: set(), 1: set()}
    results = []
    lost = False

    def argument(number: int) -> tuple[int, frozenset[int], str]:
        if counted[number]:
            # It is sent again: the loss has been seen.
            (tmp_path / "go").touch()
        return number, frozenset(counted[number]), str(tmp_path)

    for result in driven.cluster.stream(tasks.count, (0, 1), Need(), argument):
        results.append(result)
        if result.value is not None:
            counted[result.value[0]].add(result.value[1])
        if not lost and [len(steps) for steps in counted.values()] == [3, 3]:
            # Both wait in the middle of their work, one on each node, for the file that tells of the loss.
            nodes.lose()
            lost = True
    assert counted == {0: set(range(5)), 1: set(range(5))}
    assert len(driven.notes) == 1
    values = [result.value for result in results if result.value is not None]
    assert sorted(values) == [(number, step) for number in (0, 1) for step in range(5)]
    assert sorted(result.index for result in results if result.last) == [0, 1]
    for number in (0, 1):
        assert [(tmp_path / f"{number}-{step}").read_text() for step in range(3)] == ["x"] * 3


def test_an_address_where_nothing_listens_is_one_line_in_seconds() -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    for address, message in (
        (f"127.0.0.1:{port}", "cannot be reached"),
        ("nonsense", "is not auto, local or HOST:PORT"),
        ("ray://127.0.0.1:10001", "run this on a node of the cluster"),
    ):
        with pytest.raises(RlmError, match=message) as caught:
            Cluster(address, print)
        assert "\n" not in str(caught.value)
    assert time.monotonic() - began < 20


def test_a_listener_that_is_not_a_cluster_is_reported_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.serving.ray_cluster._ANSWER_SECONDS", 4.0)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        pytest.raises(RlmError, match="no Ray cluster answers within 4 s"),
    ):
        Cluster(f"127.0.0.1:{listening.getsockname()[1]}", print)
