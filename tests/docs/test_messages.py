"""The pages quote messages as the program prints them."""

from __future__ import annotations

import ast
import re

import pytest

from .blocks import REPOSITORY

_TABLES = (("numbers.md", "## Abstention"), ("troubleshooting.md", "## Messages"))


def _quoted(page: str, heading: str) -> list[str]:
    """The messages in the first column of the table below a heading."""
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8").partition(f"{heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def literals() -> str:
    """All string literals of the program."""
    sources = (path for room in ("server", "model_core") for path in (REPOSITORY / room).rglob("*.py"))
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sources)
    nodes = (node for tree in trees for node in ast.walk(tree))
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


@pytest.mark.parametrize(
    "message", [message for page, heading in _TABLES for message in _quoted(page, heading)], ids=lambda text: text[:40]
)
def test_a_quoted_message_exists(message: str, literals: str) -> None:
    for part in message.split("..."):
        assert part.strip() in literals


def test_both_tables_are_read() -> None:
    assert all(len(_quoted(page, heading)) >= 5 for page, heading in _TABLES)


@pytest.mark.parametrize("text", ["To measure, run: ", "needs the onnx package", "no predictions"])
def test_the_extension_recognizes_messages_of_the_server(text: str, literals: str) -> None:
    sources = (REPOSITORY / "vscode-extension" / "src").rglob("*.ts")
    assert any(text in source.read_text(encoding="utf-8") for source in sources)
    assert text in literals
