"""The words of the documentation, of messages and of comments: no phrase that a technical writer would change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .blocks import REPOSITORY
from .language import problems, problems_of

_TEXTS = (
    "*.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "model_core/labels/*.md",
    "vscode-extension/*.md",
    "vscode-extension/media/**/*.md",
)
_CLIENTS = (
    "vscode-extension/package.json",
    "vscode-extension/src/**/*.ts",
    "editors/nvim/**/*.txt",
    "editors/nvim/**/*.lua",
    ".pre-commit-hooks.yaml",
    "mkdocs.yml",
    "Makefile",
    "pyproject.toml",
    "configs/*.toml",
)
_PROGRAMS = ("server/**/*.py", "model_core/**/*.py", "tools/**/*.py")
_TEST_NAME = re.compile(r"def (test_\w+)")
_WORDS_TO_AVOID_IN_NAMES = re.compile(
    r"_(?:told|tells?|nobodys?|somebody|stands?|anew|dear(?:er|est)|goes_before|of_(?:its|their)_own$"
    r"|rests_on|asked|beside)(?=_|$)"
)


def _files(*globs: str) -> list[Path]:
    return sorted(path for glob in globs for path in REPOSITORY.glob(glob))


def test_texts_are_in_plain_technical_english() -> None:
    files = _files(*_TEXTS, *_CLIENTS, *_PROGRAMS)
    assert len(files) > 500
    found = [problem for path in files for problem in problems_of(path, path.relative_to(REPOSITORY).as_posix())]
    assert not found, "\n".join(found)


def test_names_of_tests_are_in_plain_technical_english() -> None:
    names = {name for path in _files("tests/**/test_*.py") for name in _TEST_NAME.findall(path.read_text("utf-8"))}
    assert sorted(name for name in names if _WORDS_TO_AVOID_IN_NAMES.search(name)) == []


@pytest.mark.parametrize("name", ["test_a_change_is_told", "test_a_file_is_read_anew", "test_a_level_of_its_own"])
def test_a_word_to_avoid_in_a_name_is_found(name: str) -> None:
    assert _WORDS_TO_AVOID_IN_NAMES.search(name)


@pytest.mark.parametrize(
    "text",
    [
        "one row a unit",
        "about 4,000 tokens a second",
        "`foo` is no metric",
        "the features that the model is told",
        "it tells what changed",
        "the model is made anew",
        "which function became dearer",
        "a comment that stands above a unit",
        "the file lies\nin the folder",
        "a comment goes before the configuration",
        "what you can mend",
        "a process of its own",
        "measurements of yours",
        "measured beside predicted",
        "where a budget is passed",
        "it has passed its budget",
        "what came of it",
        "four calls in five fall into it",
        "all findings of now",
        "the head of before",
        "nobody asks for it",
        "The mildest findings that give exit status 1",
        "a crash costs itself",
        "run: pip install rlm-lsp",
        "run: pip install 'rlm-lsp[onnx]'",
    ],
)
def test_a_phrase_to_avoid_is_reported_with_its_place(text: str) -> None:
    [problem, *_] = problems(text, "docs/a.md", 7)
    assert problem.startswith("docs/a.md:7: ")


@pytest.mark.parametrize(
    "text",
    [
        "A language server and CLI that predict what your code will cost as you type.",
        "The range after a signature is a prediction, not a measurement. About 80 % of calls should fall inside it.",
        "Budgets by file glob, relative to the workspace folder. A `# rlm:` comment takes precedence.",
        "Lowest severity that makes the exit status 1.",
        "There is no telemetry, and the server is no longer needed.",
        "`+5` stands for five more sizes.",
        "It calls a function and runs a test; one in twenty differs.",
        "Install it from a checkout: pip install '.[onnx]'",
    ],
)
def test_plain_sentences_are_accepted(text: str) -> None:
    assert problems(text, "docs/a.md") == []


def test_prose_of_programs_is_read_and_their_names_are_not(tmp_path: Path) -> None:
    program = tmp_path / "a.py"
    program.write_text(
        '"""Reads ``told`` values."""\n\n# A row\n# a unit is written.\n'
        'told = {"told": 1}\nmessage = f"{told} is no valid metric"\n'
    )
    assert [problem.partition(": ")[0] for problem in problems_of(program, "a.py")] == ["a.py:3", "a.py:6"]
    script = tmp_path / "a.ts"
    script.write_text("/** What the server is\n * told now. */\nconst told = ['told', `it was told ${told} twice`];\n")
    assert [problem.partition(": ")[0] for problem in problems_of(script, "a.ts")] == ["a.ts:2", "a.ts:3"]
    manifest = tmp_path / "package.json"
    manifest.write_text('{\n  "told": "a",\n  "title": "List the dearest functions"\n}\n')
    assert [problem.partition(": ")[0] for problem in problems_of(manifest, "p.json")] == ["p.json:3"]
