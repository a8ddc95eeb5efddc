"""Predictions and explanations for an agent: those of the command line, at the sizes that it asks about."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from rlm_lsp.mcp.requested_units import MOST_UNITS

from .clients import FAST, SLOW, call, connected, printed, refused

pytestmark = pytest.mark.asyncio


async def test_predictions_are_those_of_the_command_line(tmp_path: Path) -> None:
    pairs = "def pairs(xs, ys):\n    return [x for x in xs if x in list(ys)]\n"
    (tmp_path / "a.py").write_text(f"{SLOW}\n\ndef g(n):\n    return sum(range(n))\n\n{pairs}")
    expected = json.loads(printed(tmp_path, "predict", "a.py", "--no-measured", "--format", "json"))
    async with connected(tmp_path) as client:
        text, answer = await call(client, "predict", path="a.py")
        by_text, from_text = await call(client, "predict", text=(tmp_path / "a.py").read_text(), unit="f")
    assert answer["units"] == 3
    assert answer["omitted"] == 0
    key = ("qualname", "metric")
    for row in answer["rows"]:
        [same] = [other for other in expected if [other[k] for k in key] == [row[k] for k in key]]
        assert row == {name: same[name] for name in row}
    assert [row["median"] for row in from_text["rows"]] == [
        row["median"] for row in answer["rows"] if row["qualname"] == "f"
    ]
    assert len(text.splitlines()) == 3
    assert ", from line " in text
    [row] = [row for row in answer["rows"] if (row["qualname"], row["metric"]) == ("pairs", "latency")]
    assert [origin["text"] for origin in row["growth_from"]][:1] == ["x in list(ys)"]
    assert by_text.startswith("line 1, f: latency ")


async def test_the_most_expensive_units_of_a_folder_come_first_and_the_rest_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def cheap(n):\n    return n\n\n\ndef wait(n):\n    import time\n    time.sleep(1)\n"
    )
    (tmp_path / "bad.py").write_bytes(b"\0\0")
    async with connected(tmp_path) as client:
        text, answer = await call(client, "predict", path=".", limit=1)
    assert [row["qualname"] for row in answer["rows"]] == ["wait", "wait"]
    assert (answer["units"], answer["omitted"]) == (2, 1)
    assert "1 more unit;" in text
    assert len(answer["failed"]) == 1
    assert answer["failed"][0].startswith("bad.py: ")


async def test_tests_and_what_does_not_parse_are_left_out_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f'def old():\n    print "x"\n\n\n{FAST}')
    (tmp_path / "test_a.py").write_text(SLOW.replace("def f", "def test_f"))
    async with connected(tmp_path) as client:
        text, answer = await call(client, "predict", path=".")
        assert {row["qualname"] for row in answer["rows"]} == {"f"}
        assert "a.py: 1 unit with syntax errors left out (line 2: Missing parentheses" in text
        assert (await call(client, "predict", path="test_a.py"))[1]["units"] == 1
        line = await refused(client, "predict", text="def f(:\n    return 1\n")
        assert line == "the text: does not parse as Python (line 1: invalid syntax)"


async def test_progress_in_a_folder_is_reported(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"a{number}.py").write_text(FAST)
    reported: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async with connected(tmp_path) as client:
        result = await client.call_tool("predict", {"path": "."}, progress_callback=report)
    assert not result.is_error
    assert (0, 100, "0 of 3 read") in reported
    assert (50, 100, "0 of 3 predicted") in reported
    shares = [progress for progress, _, _ in reported]
    assert shares == sorted(set(shares))


async def test_of_a_large_folder_the_rest_is_named_and_a_unit_is_found_in_all_of_it(tmp_path: Path) -> None:
    functions = "\n".join(f"def f{number}(n):\n    return n\n" for number in range(MOST_UNITS))
    for name in ("a/one.py", "a/two.py", "b/deep/one.py", "b/deep/two.py", "c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(functions if name == "a/one.py" else FAST.replace("def f", "def g"))
    async with connected(tmp_path) as client:
        text, answer = await call(client, "predict", path=".")
        _, found = await call(client, "predict", path=".", unit="g")
        _, rest = await call(client, "predict", path="b")
    # Files next to folders come first.
    assert {row["path"]: row["files"] for row in answer["unread"]} == {"a/two.py": 1, "b": 2}
    assert "2 of 5 files were read, up to 300 units; left out: b (2 files), a/two.py; name one as `path`" in text
    assert {row["file"] for row in found["rows"]} == {"a/two.py", "b/deep/one.py", "b/deep/two.py", "c.py"}
    assert (rest["units"], rest["unread"]) == (2, [])


async def test_answers_are_at_the_sizes_of_a_comment(tmp_path: Path) -> None:
    loop = "def f(items: list[int]) -> int:\n    t = 0\n    for a in items:\n        t += a\n    return t\n"
    pairs = loop.replace(
        "    for a in items:\n        t += a\n",
        "    for i in range(len(items)):\n        for j in range(i + 1, len(items)):\n"
        "            t += items[i] * items[j]\n",
    )
    sized = f"# rlm: sizes items=10k\n{pairs}"
    async with connected(tmp_path) as client:
        text, answer = await call(client, "predict", text=sized)
        _, small = await call(client, "predict", text=pairs)
        compared, ratios = await call(client, "compare", before=loop, after=sized)
        _, without = await call(client, "compare", before=loop, after=pairs)
    row = answer["rows"][0]
    assert (row["holds_for"], row["sizes"]["items"]["value"]) == ("given sizes", 10_000)
    assert small["rows"][0]["holds_for"] == "small inputs"
    assert "at items=10k from a comment (line 1)" in text
    assert ratios["rows"][0]["sizes"] == {"items": 10_000}
    # The growth comes first, and the ratio says for which inputs it holds.
    assert re.search(r"latency grows as n\^2 in items instead of n; at items=10k ", compared)
    assert ratios["rows"][0]["ratio"] > 100 * without["rows"][0]["ratio"]
    assert without["rows"][0]["sizes"] == {}


async def test_answers_are_at_the_sizes_that_the_agent_gives(tmp_path: Path) -> None:
    loop = "def f(items: list[int]) -> int:\n    t = 0\n    for a in items:\n        t += a\n    return t\n"
    pairs = loop.replace("        t += a\n", "        for b in items:\n            t += a * b\n")
    send = "def g(orders: list[str]) -> None:\n    for order in orders:\n        fetch(order)\n"
    (tmp_path / "a.py").write_text(f"# rlm: sizes items=50\n{pairs}\n\n{send}")
    async with connected(tmp_path) as client:
        text, answer = await call(client, "predict", path="a.py", sizes={"items": 10_000, "orders": "2k"})
        compared, ratios = await call(client, "compare", before=loop, after=pairs, sizes={"items": "10k"})
        unknown = await client.call_tool("predict", {"text": pairs, "sizes": {"rows": 5}})
        wrong = await client.call_tool("compare", {"before": loop, "after": pairs, "sizes": {"items": "many"}})
    rows = {row["qualname"]: row for row in answer["rows"] if row["metric"] == "latency"}
    # What the agent asks about takes precedence over the comment.
    assert rows["f"]["sizes"]["items"] == {
        "source": "query", "value": 10_000, "rule": "", "calls": None, "least": None, "median": None, "most": None
    }  # fmt: skip
    assert rows["f"]["holds_for"] == "given sizes"
    assert rows["f"]["median"] > 0.1
    assert rows["g"]["bound"]["calls"] == {"fetch()": 2_000}
    assert "at items=10k asked about" in text
    assert ratios["rows"][0]["sizes"] == {"items": 10_000}
    assert "at items=10k over 999×" in compared
    assert [part.text for part in unknown.content] == [  # type: ignore[union-attr]
        "no cost of f depends on the size of 'rows'; they depend on items"
    ]
    assert "sizes: items: `many` is not a size" in wrong.content[0].text  # type: ignore[union-attr]


async def test_an_explanation_names_the_statement_that_costs_most(tmp_path: Path) -> None:
    source = "import time\n\n\ndef f(n):\n    total = n + 1\n    time.sleep(2)\n    return total\n"
    (tmp_path / "a.py").write_text(source + "\n\ndef g(n):\n    return n\n")
    async with connected(tmp_path) as client:
        text, answer = await call(client, "explain", path="a.py", unit="f")
        assert "name one unit of these: f, g" in await refused(client, "explain", path="a.py")
        assert "there is no unit 'h'" in await refused(client, "explain", path="a.py", unit="h")
    assert (answer["qualname"], answer["metric"]) == ("f", "latency")
    assert answer["effects"][0]["text"] == "time.sleep(2)"
    assert answer["effects"][0]["line"] == 6
    assert answer["effects"][0]["ratio"] > 100
    assert "`time.sleep(2)`" in text


async def test_the_settings_say_how_long_a_wait_takes(tmp_path: Path) -> None:
    text = "def one(session, user):\n    session.refresh(user)\n"
    (tmp_path / "a.py").write_text(text)
    async with connected(tmp_path) as client:
        _, before = await call(client, "predict", path="a.py")
        (tmp_path / "pyproject.toml").write_text('[tool.rlm-lsp.waits]\ndatabase = "20 ms"\n')
        said, after = await call(client, "predict", path="a.py")
    assert before["rows"][0]["median"] < 0.01 < 0.02 < after["rows"][0]["median"] < 0.03
    assert "20 ms database" in said
