"""The MCP server as an agent meets it: a real process over stdio, driven by the SDK's own client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import jsonschema
import pytest
import rlm_core
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, ListRootsResult, Root
from rlm_core.inference.query_selection import queries_for
from rlm_core.measurement.known import KnownMeasurements
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.mcp.answers import Predictions
from rlm_lsp.mcp.requested_units import MOST_UNITS
from rlm_lsp.mcp.roots import Roots
from rlm_lsp.mcp.server import create_server
from rlm_lsp.mcp.tools import AgentTools

from tests import softmax_kernels
from tests.paths import REPOSITORY
from tests.warm_server import warm_command

pytestmark = [pytest.mark.timeout(120), pytest.mark.asyncio]

TOOLS = {"predict", "compare", "rank", "explain", "check", "measure_command"}
SLOW = "def f(values):\n    return [v for i, v in enumerate(values) if v not in values[:i]]\n"
FAST = "def f(values):\n    return list(dict.fromkeys(values))\n"
Mode = Literal["legacy", "auto"]
BOTH_ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@asynccontextmanager
async def connected(
    folder: Path,
    roots: Sequence[Path] | None = None,
    mode: Mode = "auto",
    options: Sequence[str] = (),
    **variables: str,
) -> AsyncIterator[Client]:
    """A client of a server whose working directory is ``folder``; with ``roots``, the client has these, as they are."""

    async def listed(context: object) -> ListRootsResult:
        assert roots is not None
        return ListRootsResult(roots=[Root.model_validate({"uri": path.as_uri()}) for path in roots])

    program, arguments = warm_command()[0], [*warm_command()[1:], "mcp", "--no-measured", *options]
    server = StdioServerParameters(command=program, args=arguments, cwd=folder, env={**os.environ, **variables})
    async with Client(server, mode=mode, list_roots_callback=listed if roots is not None else None) as client:
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The text and the structured answer of a tool that must succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    return text_of(result), cast(dict[str, Any], result.structured_content)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The one line of a tool that must refuse."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    [line] = text_of(result).splitlines()
    return line


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert content.type == "text"
    return content.text


def printed(folder: Path, *command: str) -> str:
    """What ``rlm-lsp`` prints in a folder."""
    line = [sys.executable, "-m", "rlm_lsp", *command]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False).stdout


def git(folder: Path, *command: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, "-C", folder, *command], check=True, capture_output=True)


def state_of(folder: Path) -> Mapping[str, tuple[int, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


async def test_every_tool_only_reads_and_has_schemas_for_what_it_takes_and_answers(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.description
        for schema in (tool.input_schema, tool.output_schema):
            assert schema is not None
            jsonschema.Draft202012Validator.check_schema(schema)
        # The roots come from the client, never from the agent.
        assert "roots" not in tool.input_schema["properties"]
        assert all("description" in field for field in tool.input_schema["properties"].values())


async def test_the_skill_for_reviews_is_a_prompt(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        [prompt] = (await client.list_prompts()).prompts
        [message] = (await client.get_prompt(prompt.name)).messages
    assert prompt.name == "review_cost"
    assert message.content.type == "text"
    assert message.content.text == printed(tmp_path, "mcp", "--skill")


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


@BOTH_ERAS
async def test_without_roots_a_path_outside_the_working_directory_is_refused(tmp_path: Path, mode: Mode) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.py").write_text(FAST)
    (inside / "link.py").symlink_to(outside / "a.py")
    async with connected(inside, None, mode) as client:
        await call(client, "predict", path="a.py")
        await call(client, "predict", path=str(inside / "a.py"))
        for name in (str(outside / "a.py"), "../outside/a.py", "link.py", "/etc/passwd", "..", "~/a.py\0"):
            for tool in ("predict", "explain", "check", "measure_command", "compare"):
                line = await refused(client, tool, path=name)
                assert ("is outside" in line) or "\0" in name, line
        assert "does not exist" in await refused(client, "predict", path="b.py")
        _, answer = await call(client, "predict", path=".")
        assert {row["file"] for row in answer["rows"]} == {"a.py"}


@BOTH_ERAS
async def test_the_users_folders_count_whatever_the_client_names(tmp_path: Path, mode: Mode) -> None:
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for folder in folders:
        folder.mkdir()
        (folder / f"{folder.name}.py").write_text(FAST)
    options = ["--root", "one", "--root", str(folders[1])]
    for roots in (None, [folders[2]]):
        async with connected(tmp_path, roots, mode, options) as client:
            for name in ("one", "two"):
                _, answer = await call(client, "predict", path=f"{name}.py")
                assert {row["file"] for row in answer["rows"]} == {f"{name}.py"}
            assert "is outside" in await refused(client, "predict", path=str(folders[2] / "three.py"))


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


class _RecordingTools(AgentTools):
    """Notes how answers end."""

    def __init__(self) -> None:
        super().__init__(rlm_core.load, KnownMeasurements(None))
        self.ends: list[str] = []

    def predict(self, *arguments: Any) -> tuple[list[str], Predictions]:
        end = "given up"
        try:
            answer = super().predict(*arguments)
            end = "answered"
        finally:
            self.ends.append(end)
        return answer


async def test_a_question_that_the_client_gives_up_ends(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"a{number}.py").write_text(FAST)
    tools = _RecordingTools()
    async with Client(create_server(tools, Roots.of_folders([tmp_path]))) as client:
        with anyio.CancelScope() as scope:

            async def report(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("predict", {"path": "."}, progress_callback=report)
        await call(client, "predict", path="a0.py")
    assert tools.ends == ["given up", "answered"]


@BOTH_ERAS
async def test_the_clients_roots_decide_what_may_be_read_and_may_change(tmp_path: Path, mode: Mode) -> None:
    folders = [tmp_path / name for name in ("here", "one", "two")]
    for folder in folders:
        folder.mkdir()
        (folder / f"{folder.name}.py").write_text(FAST)
    roots = [folders[1]]
    async with connected(folders[0], roots, mode) as client:
        await call(client, "predict", path="one.py")
        assert "is outside" in await refused(client, "predict", path=str(folders[0] / "here.py"))
        assert "is outside" in await refused(client, "predict", path=str(folders[2] / "two.py"))
        roots[:] = [folders[1], folders[2]]
        _, answer = await call(client, "predict", path="two.py")
        assert answer["rows"][0]["file"] == "two.py"
        roots.clear()
        assert "there are none" in await refused(client, "predict", path="one.py")
        await call(client, "predict", text=FAST)


async def test_code_outside_the_roots_does_not_reach_a_prediction(tmp_path: Path) -> None:
    package, secret = tmp_path / "work" / "package", tmp_path / "secret.py"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from .b import helper\n\n\ndef f(n):\n    return helper(n)\n")
    (package / "b.py").symlink_to(secret)
    numbers = []
    for text in ("def helper(n):\n    return n\n", "import time\n\n\ndef helper(n):\n    time.sleep(60)\n"):
        secret.write_text(text)
        async with connected(tmp_path / "work") as client:
            _, answer = await call(client, "predict", path="package/a.py")
        numbers.append([row["median"] for row in answer["rows"]])
    assert numbers[0] == numbers[1]


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


async def test_the_command_that_measures_is_returned_and_nothing_is_run_or_written(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (package / "__init__.py").write_text("raise SystemExit('imported')\n")
    (package / "a.py").write_text(FAST)
    (tmp_path / "b.py").write_text(FAST)
    before = state_of(tmp_path)
    async with connected(tmp_path) as client:
        text, answer = await call(client, "measure_command", path="package/a.py")
        assert (await refused(client, "measure_command", path="b.py")).endswith("can be written in a command")
        assert (await refused(client, "measure_command", path=".")).endswith("; name one in it: package")
        assert (await call(client, "measure_command", path="package"))[1] == answer
        for tool in ("predict", "check"):
            await call(client, tool, path=".")
    assert answer["command"] == f"cd {tmp_path} && rlm-lsp measure tests --package package"
    assert answer["command"] in text
    assert state_of(tmp_path) == before
    async with connected(tmp_path, RLM_LSP_MEASURE="false") as client:
        assert "switches measurements off" in await refused(client, "measure_command", path="package/a.py")


async def test_bad_questions_get_one_line(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert await refused(client, "predict") == "give either path or text"
        assert "predict has no argument 'file'; it takes path, text, " in await refused(client, "predict", file="a.py")
        assert await refused(client, "measure_command") == "measure_command: path: field required"
        assert (await refused(client, "check", limit=0)).startswith("check: limit: input should be greater than")
        assert "give either before and after, or path" in await refused(client, "compare", before=FAST)
        assert "unknown language 'klingon'" in await refused(client, "predict", text=FAST, language="klingon")
        assert "nothing to predict" in await refused(client, "predict", text="x = 1\n")
        assert "is empty" in await refused(client, "predict", text=" ")
        assert "over the limit" in await refused(client, "predict", text="x" * (2**21 + 1))
        two = "def g(n):\n    return n\n\n\ndef h(n):\n    return n\n"
        assert "no unit is on both sides: f before, g, h after" in await refused(
            client, "compare", before=FAST, after=two
        )


async def test_the_server_ends_when_its_client_leaves(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rlm_lsp", "mcp"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


async def test_without_the_extra_one_line_says_what_to_install() -> None:
    program = "import sys; sys.modules['mcp'] = None; sys.argv[1:] = ['mcp']; from rlm_lsp.cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert done.returncode == 2
    assert done.stderr == "rlm-lsp: error: mcp is not installed; run: pip install '.[mcp]'\n"


async def test_the_settings_say_how_long_a_wait_takes(tmp_path: Path) -> None:
    text = "def one(session, user):\n    session.refresh(user)\n"
    (tmp_path / "a.py").write_text(text)
    async with connected(tmp_path) as client:
        _, before = await call(client, "predict", path="a.py")
        (tmp_path / "pyproject.toml").write_text('[tool.rlm-lsp.waits]\ndatabase = "20 ms"\n')
        said, after = await call(client, "predict", path="a.py")
    assert before["rows"][0]["median"] < 0.01 < 0.02 < after["rows"][0]["median"] < 0.03
    assert "20 ms database" in said
