"""Hover over a real connection: all numbers of the command line, their calibration, and reasons to abstain."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from rlm_core import Band
from rlm_lsp.rendering import labels as render

from tests.fakes import unpadded

from .clients import CLIENTS, reads_markdown

pytestmark = [pytest.mark.timeout(60), pytest.mark.asyncio]

Start = Callable[..., Awaitable[Any]]
Predict = Callable[[Path], list[dict[str, Any]]]


def shown(row: dict[str, Any]) -> str:
    return render.band(row["metric"], Band(row["low"], row["high"], row["coverage"]))


@pytest.mark.parametrize("markup", ["markdown", "plaintext"])
async def test_the_hover_has_the_numbers_of_the_command_line(
    start: Start, examples: Path, predict: Predict, markup: str
) -> None:
    session = await start(markup=markup)
    uri = session.open(examples / "functions.py")
    for row in predict(examples / "functions.py"):
        text = await session.hover(uri, row["line"] - 1, 6)
        assert shown(row) in text
        assert row["median"] == 0 or render.quantity(row["metric"], row["median"]) in text
        assert row["qualname"] in text
        assert f"model {row['model']}" in text
        assert f"on {row['device']}" in text
        assert ("| median |" in unpadded(text)) == (markup == "markdown")


async def test_the_hover_says_how_far_the_band_can_be_trusted(start: Start, examples: Path) -> None:
    session = await start()
    text = await session.hover(session.open(examples / "functions.py"), 13)
    assert "one call, as tests would call it" in text
    assert re.search(
        r"- latency: bands checked on [\d,]+ packages that the model had not seen"
        r" \([\d,]+ measurements of Python functions\)\n",
        text,
    )
    assert re.search(r"- uses more memory than \d+ % of comparable Python functions \(those above 64 B\)", text)


@pytest.mark.parametrize("editor", CLIENTS)
async def test_each_editor_gets_what_it_can_show(start: Start, examples: Path, editor: str) -> None:
    session = await start(editor=editor)
    text = await session.hover(session.open(examples / "kernel.py"), 7, 5)
    assert ("| latency |" in unpadded(text)) == reads_markdown(editor)
    assert ("`" in text) == reads_markdown(editor)
    assert "typical sizes because the file names none" in text
    assert "n_elements 4194304" in text


async def test_a_kernel_is_shown_for_each_device_and_size(start: Start, tmp_path: Path, examples: Path) -> None:
    devices = ["nvidia-h100-sxm", "nvidia-a100-sxm4-80gb"]
    session = await start(refresh=False, options={"devices": devices})
    sizes = "".join(f"# rlm: sizes n_elements={size} dtype=fp16\n" for size in (4096, 8192, 16384))
    source = (examples / "kernel.py").read_text().replace("@triton.jit", f"{sizes}@triton.jit")
    uri = session.open(tmp_path / "kernel.py", source)
    [hint] = await session.hints(uri)
    assert hint.label.endswith(" +5")
    text = await session.hover(uri, hint.position.line, 5)
    assert "| | device | at | median | 80 % band | 90 % band |" in unpadded(text)
    rows = [line for line in unpadded(text).splitlines() if line.startswith("| latency | ")]
    shown_for = [tuple(row.split(" | ")[1:3]) for row in rows]
    assert shown_for == [(device, f"n_elements {size}") for size in (4096, 8192, 16384) for device in devices]
    assert "sizes from the comment at the kernel" in text


async def test_a_program_is_hovered_on_its_class(start: Start, examples: Path) -> None:
    session = await start()
    text = await session.hover(session.open(examples / "Solution.java", language="java"), 1)
    assert "`Solution`" in text
    assert "a whole solution on the judge's inputs" in text


async def test_only_headers_have_a_hover(start: Start, examples: Path) -> None:
    session = await start()
    uri = session.open(examples / "functions.py")
    assert await session.hover(uri, 15, 4) is None
    assert await session.hover(uri, 0) is None


async def test_the_innermost_unit_counts(start: Start, tmp_path: Path) -> None:
    session = await start()
    uri = session.open(tmp_path / "a.py", "def outer():\n    def inner(): return 1\n    return inner\n")
    assert "outer.<locals>.inner" in await session.hover(uri, 1)
    assert "`outer`" in await session.hover(uri, 0)


async def test_the_hover_says_where_the_sizes_of_a_module_come_from(
    start: Start, tmp_path: Path, examples: Path, predict: Predict
) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"{(examples / 'module.py').read_text()}\n\nGatedMlp()(torch.randn(8, 16, 512))\n")
    [row] = predict(path)
    assert row["workload"]["x"] == "8x16x512"
    session = await start()
    text = await session.hover(session.open(path), row["line"] - 1)
    line = path.read_text().count("\n")
    assert row["sizes_from"] == f"sizes from line {line}: GatedMlp()(torch.randn(8, 16, 512))"
    assert f"sizes from line {line}: `GatedMlp()(torch.randn(8, 16, 512))`" in text
    assert "x 8x16x512" in text
    [layers] = predict(examples / "module.py")
    assert layers["sizes_from"].endswith("set others with # rlm: sizes x=32x512 above the class")


async def test_the_hover_says_why_the_model_abstains(start: Start, unsized_module: Path, predict: Predict) -> None:
    [row] = predict(unsized_module)
    assert row["abstained"] == (
        "the tensor sizes are unknown; write `# rlm: sizes x=32x1024 width=1024 hidden=1024` above the class"
    )
    session = await start()
    text = await session.hover(session.open(unsized_module), row["line"] - 1)
    assert f"latency: no prediction because {row['abstained']}" in text
    assert "median" not in text


async def test_a_budget_is_in_the_hover_with_its_probability(start: Start, tmp_path: Path) -> None:
    session = await start()
    text = "# rlm: latency < 1 s, memory < 1 B\ndef f(n):\n    return list(range(n))\n"
    shown_text = await session.hover(session.open(tmp_path / "a.py", text), 1, 5)
    assert "- budget 1 s: under 1 % likely to exceed" in shown_text
    assert re.search(r"- budget 1 B: (over )?\d+ % likely to exceed", shown_text)


async def test_details_are_a_document_where_the_client_can_show_one(start: Start, examples: Path) -> None:
    session = await start(editor="vscode")
    uri = session.open(examples / "functions.py")
    summary = await session.hover(uri, 13, 5)
    assert "bands checked on" not in summary
    [link] = re.findall(r"\[Details\]\((rlm-lsp:/details/mean\.md\?[\w-]+)\)", summary)
    assert "workspace/textDocumentContent" in session.registered
    answer = await session.client.workspace_text_document_content_async(types.TextDocumentContentParams(link))
    assert answer.text.startswith(summary.partition("\n\n[Details]")[0])
    assert "bands checked on" in answer.text
    with pytest.raises(JsonRpcException, match="not a link of a hover"):
        await session.client.workspace_text_document_content_async(
            types.TextDocumentContentParams("rlm-lsp:/details/mean.md?x")
        )


async def test_details_have_a_plot_for_a_client_that_shows_html(start: Start, tmp_path: Path) -> None:
    text = "def total(items: list[int]) -> int:\n    t = 0\n    for item in items:\n        t += item\n    return t\n"
    for options, count in (({"plots": True}, 1), ({}, 0)):
        session = await start(editor="vscode", options=options)
        summary = await session.hover(session.open(tmp_path / "a.py", text), 0, 6)
        assert "<svg" not in summary
        [link] = re.findall(r"\[Details\]\((rlm-lsp:/details/total\.md\?[\w-]+)\)", summary)
        answer = await session.client.workspace_text_document_content_async(types.TextDocumentContentParams(link))
        assert answer.text.count("<figcaption>latency</figcaption><svg") == count


async def test_details_are_refreshed_after_an_edit(start: Start, examples: Path) -> None:
    session = await start(editor="vscode")
    path = examples / "functions.py"
    uri = session.open(path)
    summary = await session.hover(uri, 13, 5)
    [link] = re.findall(r"\[Details\]\((rlm-lsp:/details/mean\.md\?[\w-]+)\)", summary)
    params = types.TextDocumentContentParams(link)
    before = (await session.client.workspace_text_document_content_async(params)).text
    text = path.read_text()
    session.change(uri, text.replace("def mean(", "def renamed(").replace("mean(", "renamed("))
    await session.labels(uri, 4)
    assert await session.content_refreshes.get() == link
    after = (await session.client.workspace_text_document_content_async(params)).text
    assert "bands checked on" in before
    assert after == "mean has no prediction any more.\n"
    # Another model changes every number.
    while not session.content_refreshes.empty():
        session.content_refreshes.get_nowait()
    await session.client.workspace_text_document_content_async(params)
    await session.client.workspace_execute_command_async(types.ExecuteCommandParams("rlm-lsp.restartModel"))
    assert await session.content_refreshes.get() == link


async def test_details_follow_in_the_hover_of_other_clients(start: Start, examples: Path) -> None:
    session = await start(editor="neovim")
    text = await session.hover(session.open(examples / "functions.py"), 13, 5)
    assert text.index("| latency") < text.index("About 80 %") < text.index("**Details**") < text.index("bands checked")
