"""Two texts, candidates, revisions and budgets, compared for an agent."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import rlm_core
from rlm_core.inference.query_selection import queries_for
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource

from tests import softmax_kernels

from .clients import FAST, SLOW, call, connected, printed, refused

pytestmark = pytest.mark.asyncio


def git(folder: Path, *command: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, "-C", folder, *command], check=True, capture_output=True)


async def test_it_says_where_nothing_supports_a_number_at_the_sizes(tmp_path: Path) -> None:
    before = "def g(orders):\n    for order in orders:\n        order.send()\n"
    after = "def g(orders):\n    for order in orders:\n        order.post()\n"
    async with connected(tmp_path) as client:
        compared, ratios = await call(client, "compare", before=before, after=after, sizes={"orders": "10k"})
    assert ratios["rows"][0]["sizes"] == {}
    assert [row["direction"] for row in ratios["rows"]] == [None, None]
    assert "cannot tell which costs more" in compared
    assert "nothing supports a number at orders=10k for g" in compared


async def test_candidates_are_ranked_at_the_sizes(tmp_path: Path) -> None:
    texts = [SLOW, FAST, "def f(values):\n    return first(values)\n"]
    async with connected(tmp_path) as client:
        text, answer = await call(client, "rank", candidates=texts, sizes={"values": "10k"})
        assert "takes 2 to 30 candidates, not 1" in await refused(client, "rank", candidates=texts[:1])
        assert "there is no unit 'g'" in await refused(client, "rank", candidates=texts, unit="g")
    assert answer["candidates"][0]["place"] == 1
    assert (answer["pairs"], answer["measure"]) == (3, 2)
    assert answer["candidates"][2]["slower_than"] == [1, 2]
    assert text.splitlines()[2] == "candidate 0: slower than candidate 1, candidate 2"


async def test_kernels_are_ranked_on_a_device(tmp_path: Path) -> None:
    texts = [softmax_kernels.SLOW, softmax_kernels.FAST]
    query = {"device": "nvidia-h100", "workload": softmax_kernels.SIZES}
    async with connected(tmp_path) as client:
        text, answer = await call(client, "rank", candidates=texts, **query)
    assert [one["place"] for one in answer["candidates"]] == [1, 0]
    assert (answer["pairs"], answer["compared"], answer["measure"]) == (1, 1, 1)
    assert text.splitlines()[1] == "candidate 0: slower than candidate 1"


async def test_the_ratio_of_two_texts_is_the_models(tmp_path: Path) -> None:
    predictor = rlm_core.load()
    [before], [after] = (
        [unit.code for unit in Analyser().analyse(ParsedSource(text.encode(), "python"))] for text in (SLOW, FAST)
    )
    [expected] = predictor.compare([(before, after)], [queries_for(predictor, after)]) or []
    async with connected(tmp_path) as client:
        text, answer = await call(client, "compare", before=SLOW, after=FAST)
        _, renamed = await call(client, "compare", before=SLOW, after=FAST.replace("def f", "def other"))
        _, same = await call(client, "compare", before=FAST, after=FAST.replace("values", "items"))
    for row, change in zip(answer["rows"], expected, strict=True):
        band = change.bands[0]
        shown = [row[name] for name in ("ratio", "low", "high", "coverage", "probability_higher")]
        probability = change.above(1.0) if change.direction is not None else None
        assert shown == [change.ratio, band.low, band.high, band.coverage, probability]
        assert row["direction"] == change.direction
    assert answer["rows"][0]["growth_after"]["class"] == "n"
    # Wherever a value is found, the copies of the values before it are as long.
    assert answer["rows"][0]["growth_before"]["class"] == "n^2"
    assert "f: latency grows as n in values instead of n^2; for small inputs about" in text
    # One unit on each side: they are compared whatever their names are.
    assert [(row["qualname"], row["state"]) for row in renamed["rows"]] == [("other", "changed")] * 2
    assert [(row["state"], row["ratio"], row["probability_higher"]) for row in same["rows"]] == [("same", 1, 0)] * 2


async def test_a_file_is_compared_with_a_git_revision(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    loads = "\n\ndef loads(n):\n    fetch(n)\n"
    longer = f"{loads}    for _ in range(1000):\n        pass\n"
    file.write_text(f"{FAST}\n\ndef kept(n):\n    return n\n{loads}")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    file.write_text(f"{SLOW}\n\ndef kept(n):\n    return n\n{longer}\n\ndef added(n):\n    return n\n")
    async with connected(tmp_path) as client:
        text, answer = await call(client, "compare", path="a.py")
        _, texts = await call(client, "compare", before=FAST + loads, after=SLOW + longer)
        _, checked = await call(client, "check", revision="HEAD")
        assert "no revision 'nothing'" in await refused(client, "compare", path="a.py", revision="nothing")
    assert [row["qualname"] for row in answer["rows"]] == ["f", "f", "loads", "loads"]
    assert (answer["unchanged"], answer["new"]) == (["kept"], ["added"])
    # A commit may change what most calls do not reach, so that only two texts to choose from have a direction.
    assert [row["direction"] for row in answer["rows"] if row["metric"] == "latency"] == [None, None]
    assert [row["direction"] for row in texts["rows"] if row["metric"] == "latency"] == ["higher", "higher"]
    assert "cannot tell which costs more" in text
    assert "unchanged: kept; new: added" in text
    assert checked["compared"] == 2


async def test_findings_are_those_of_check(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import time\n\n\n# rlm: latency < 1 ms\ndef f():\n    time.sleep(1)\n")
    [expected] = json.loads(printed(tmp_path, "check", "--format", "json", "--no-measured"))
    async with connected(tmp_path) as client:
        text, answer = await call(client, "check")
    [found] = answer["findings"]
    assert (answer["files"], answer["with_budget"]) == (1, 1)
    assert found["message"] == expected["message"]
    assert (found["code"], found["line"], found["severity"]) == ("over-budget", 5, expected["severity"])
    assert found["message"] in text
