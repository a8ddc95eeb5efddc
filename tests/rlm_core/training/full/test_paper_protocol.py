"""The table of the paper, against a computation that shares none of its code."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from click.testing import CliRunner, Result
from rlm_core.errors import DataError, ModelError
from rlm_core.training.datasets.code_regression import read_batches
from rlm_core.training.full import paper_protocol, store
from rlm_core.training.full.decoding import quantiles
from rlm_core.training.full.model import FullModel, TextMemory
from rlm_core.training.full.paper_protocol import CAVEAT, Example, evaluate, named_spaces, predict, read_examples
from rlm_core.training.full.sequences import Slot, groups
from rlm_core.training.full.spaces import SPACES, Space
from rlm_lsp.cli.app import app
from scipy.stats import spearmanr

from .tiny import tiny_model, tiny_regress_lm

PREFIXES = {"APPS": "APPS\n", "KBSS": "KBSS\n", "NASNet": "NASNet\n\n", "CDSS": "# CDSS\n# Language: {}\n"}


@pytest.fixture(scope="module")
def model() -> FullModel:
    return tiny_regress_lm(sharpness=12.0)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in the published schema: more rows than wanted, in mixed order, some of them unusable."""
    rng = np.random.default_rng(0)
    kinds = [("APPS", ""), ("CDSS", "C++"), ("CDSS", "Python"), ("CDSS", "Fortran"), ("KBSS", ""), ("NASNet", "")]
    rows = []
    for number in range(240):
        space, language = kinds[number % len(kinds)]
        metadata = {"language": language, "p_id": "p1", "other": "it's 'C'"} if language else {}
        text = f"value{number} = {rng.integers(1000)}\n" * int(rng.integers(1, 4))
        target: float | None = float(rng.integers(1, 10**6))
        if number % 31 == 5:
            target = None if number % 2 else math.nan
        rows.append(_row(number, space, None if number % 37 == 9 else text, target, repr(metadata)))
    rows[3]["metadata"] = "{'language': 'COBOL'}"
    rows[9]["metadata"] = "not a literal ('Fortran'"
    rows[15]["metadata"] = None
    path = tmp_path_factory.mktemp("published") / "data.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def _row(number: int, space: str, text: str | None, target: float | None, metadata: str | None) -> dict[str, Any]:
    kind = {"KBSS": "latency_ms", "NASNet": None}.get(space, "memory_bytes")
    return {
        "identifier": f"{space}_{number}",
        "space": space,
        "input": text,
        "target": target,
        "metric_type": kind,
        "metadata": metadata,
    }


def rows_by_hand(path: Path, space: str, language: str, most: int) -> tuple[list[str], list[float]]:
    texts: list[str] = []
    targets: list[float] = []
    for row in pq.read_table(path).to_pylist():
        if row["space"] != space or row["input"] is None or row["target"] is None or not math.isfinite(row["target"]):
            continue
        try:
            own = ast.literal_eval(row["metadata"]).get("language", "")
        except (SyntaxError, ValueError):
            own = None
        if own == language and len(texts) < most:
            texts.append(PREFIXES[space].format(language) + row["input"])
            targets.append(row["target"])
    return texts, targets


def draw_by_hand(
    model: FullModel, memories: list[TextMemory], draws: int, generator: torch.Generator
) -> list[list[float]]:
    """Numbers of one batch of texts, token by token: the nucleus of the free distribution, then the grammar."""
    numbers = model.config.numbers
    written = torch.zeros(len(memories), draws, numbers.positions, dtype=torch.int64)
    for position in range(numbers.positions):
        points = torch.rand(len(memories), draws, generator=generator, dtype=torch.float64)
        for text, memory in enumerate(memories):
            with torch.inference_mode():
                logits = model.logits(model.remember([memory]), None, written[text][None, :, None])
            for one in range(draws):
                share = logits[0, one, 0, position].double().exp()
                share[0] = 0.0
                share /= share.sum()
                first = written[text, one, 0] if position else None
                allowed = model.grammar.mask(position, first)
                order = share.argsort(descending=True)
                count = int((share[order].cumsum(0) < 0.95).sum()) + 1
                kept = torch.zeros_like(allowed)
                kept[order[:count]] = True
                share = share * (kept & allowed if (kept & allowed).any() else allowed)
                total = (share / share.sum()).cumsum(0)
                written[text, one, position] = int((total <= points[text, one]).sum())
    return [[numbers.decode(row) for row in own] for own in written.tolist()]


def figures_by_hand(model: FullModel, path: Path, most: int, draws: int, seed: int) -> Iterator[dict[str, Any]]:
    for space, language in (("APPS", ""), ("CDSS", "C++"), ("CDSS", "Python"), ("CDSS", "Fortran"), ("KBSS", "")):
        texts, targets = rows_by_hand(path, space, language, most)
        longest_first = sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True)
        memories = model.encode([texts[index] for index in longest_first])
        questions = [[[Slot()]]] * len(memories)
        generator = torch.Generator().manual_seed(seed)
        drawn, exact = np.empty(len(texts)), np.empty(len(texts))
        for group in groups(model, memories, questions):
            samples = draw_by_hand(model, [memories[index] for index in group.texts], draws, generator)
            for index, own in zip(group.texts, samples, strict=True):
                drawn[longest_first[index]] = np.nanmedian(own)
        for index, [answer] in enumerate(quantiles(model, memories, questions, (0.5,), 1e-4)):
            exact[longest_first[index]] = answer.values[0]
        yield {
            "space": space,
            "language": language,
            "rows": len(texts),
            "drawn": spearmanr(targets, drawn).statistic,
            "exact": spearmanr(targets, exact).statistic,
        }


def test_the_figures_are_those_of_an_independent_computation(model: FullModel, published: Path) -> None:
    spaces = named_spaces(["APPS", "cdss", "KBSS", "APPS"])
    report = evaluate(model, "tiny", [published], spaces, rows=25, draws=8, seed=7)
    expected = list(figures_by_hand(model, published, 25, 8, 7))
    assert [entry["rows"] for entry in expected] == [25] * 5
    for entry, own in zip(report.spaces, expected, strict=True):
        assert (entry.space, entry.language, entry.rows) == (own["space"], own["language"], own["rows"])
        assert entry.drawn == pytest.approx(own["drawn"], abs=1e-12)
        assert entry.exact == pytest.approx(own["exact"], abs=1e-12)
    assert report.codenet is not None
    assert report.codenet.drawn == pytest.approx(np.mean([own["drawn"] for own in expected[1:4]]))
    assert report.codenet.reproduction == pytest.approx(np.mean([0.788, 0.611, 0.412]))
    assert (report.codenet.language, report.codenet.rows) == ("mean of 3", 75)


def test_published_values_and_the_caveat_are_printed(model: FullModel, published: Path) -> None:
    report = evaluate(model, "tiny", [published], rows=3, draws=2)
    lines = str(report).split("\n")
    assert [entry.space for entry in report.spaces] == ["APPS", "CDSS", "CDSS", "CDSS", "KBSS", "NASNet"]
    assert "model tiny, Spearman, temperature 1, top-p 0.95, seed 0" in lines[0]
    assert "median of 2 draws" in lines[2]
    (network,) = (line for line in lines if "NASNet" in line)
    assert [cell.strip() for cell in network.split("|")][-3:] == ["0.209", "0.207", ""]
    assert lines[-1] == CAVEAT
    assert "held-out" in CAVEAT


def test_the_mean_of_the_reproduction_is_that_of_its_seventeen_languages() -> None:
    found = [paper_protocol.REPRODUCED["CDSS", language] for language in paper_protocol.CODENET_LANGUAGES]
    assert len(found) == 17
    assert np.mean(found) == pytest.approx(0.5234, abs=5e-4)


def test_draws_follow_the_seed(model: FullModel) -> None:
    examples = [Example(f"print({number})\n", 1.0) for number in range(10)]
    first, second, third = (predict(model, SPACES[0], "", examples, 8, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.drawn, second.drawn)
    assert not np.array_equal(first.drawn, third.drawn)
    assert np.array_equal(first.exact, third.exact)


def test_many_texts_are_encoded_in_parts(model: FullModel, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = [Example(f"print({'9' * number})\n", 1.0) for number in range(9)]
    whole = predict(model, SPACES[0], "", examples, 2, 0)
    monkeypatch.setattr(paper_protocol, "_TEXTS", 4)
    steps: list[int] = []
    parts = predict(model, SPACES[0], "", examples, 2, 0, steps.append)
    assert np.array_equal(whole.exact, parts.exact)
    assert steps == [4, 4, 1]


def test_long_texts_lose_their_end_at_the_limit_of_their_space(model: FullModel) -> None:
    space = Space("APPS", "program", "memory", 1.0, ("python",), max_tokens=12)
    long, short = "value = 1\n" * 30, "x\n"
    found = predict(model, space, "", [Example(long, 1.0), Example(short, 2.0)], 1, 0)
    assert found.cropped == 1
    ids = model.encoder.tokenize([PREFIXES["APPS"] + long]).ids[0]
    with torch.inference_mode():
        vectors = model.encoder(torch.from_numpy(ids[None, :12]), torch.ones(1, 12, dtype=torch.bool))[0]
    [[expected]] = quantiles(model, [TextMemory(vectors)], [[[Slot()]]], (0.5,), 1e-4)
    assert found.exact[0] == expected.values[0]


def test_reading_stops_when_all_spaces_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_row(number, "APPS" if number < 900 else "KBSS", "x", 1.0, "{}") for number in range(3000)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    read: list[int] = []

    def counted(*arguments: Any) -> Iterator[Any]:
        for batch, done, total in read_batches(*arguments):
            read.append(done)
            yield batch, done, total

    monkeypatch.setattr(paper_protocol, "read_batches", counted)
    found = read_examples([tmp_path / "a.parquet", tmp_path / "missing.parquet"], SPACES[:1], 100)
    assert len(found["APPS", ""]) == 100
    assert len(read) == 1
    found = read_examples([tmp_path / "a.parquet"], named_spaces(["APPS", "KBSS"]), 150)
    assert [len(own) for own in found.values()] == [150, 150]
    assert read[-1] < 1500


def test_spaces_of_graphs_have_their_older_target_and_other_names(tmp_path: Path) -> None:
    rows = [{"space": "PNAS", "input": f"graph {n}", "val_accuracy": 90.0 + n, "metadata": None} for n in range(5)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (space,) = named_spaces(["PNAS"])
    assert (space.prefix, space.max_tokens) == ("{space}\n\n", 4096)
    found = read_examples([tmp_path / "a.parquet"], [space], 3)
    assert found == {("PNAS", ""): [Example(f"graph {n}", 90.0 + n) for n in range(3)]}


def test_a_file_without_the_spaces_or_columns_is_refused(published: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no usable rows of NoSuch; they hold APPS, CDSS, KBSS, NASNet"):
        read_examples([published], named_spaces(["NoSuch"]), 3)
    pq.write_table(pa.table({"space": ["APPS"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="has no column 'input'"):
        read_examples([tmp_path / "a.parquet"], SPACES, 3)


def test_a_model_with_query_vectors_is_refused(published: Path) -> None:
    with pytest.raises(ModelError, match="asked by queries"):
        evaluate(tiny_model(), "tiny", [published])


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_prints_the_table_and_json(model: FullModel, published: Path, tmp_path: Path) -> None:
    card = store.save(model, tmp_path / "model", "tiny", {})
    arguments = ("eval", "--protocol", "rlm-paper", "--data", published, "--model", tmp_path / "model")
    result = run(*arguments, "--space", "APPS", "--space", "CDSS", "--rows", 5, "--draws", 3, "--format", "json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert (report["model"], report["draws"], report["caveat"]) == (card.model_id, 3, CAVEAT)
    assert [(entry["space"], entry["language"], entry["rows"]) for entry in report["spaces"]] == [
        ("APPS", "", 5),
        ("CDSS", "C++", 5),
        ("CDSS", "Python", 5),
        ("CDSS", "Fortran", 5),
    ]
    assert report["spaces"][0]["card"] == 0.926
    table = run(*arguments, "--space", "KBSS", "--rows", 4, "--draws", 2)
    assert table.exit_code == 0, table.output
    assert table.stdout.rstrip().endswith(CAVEAT)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--space", "APPS"], "add --protocol rlm-paper"),
        (["--rows", "5"], "add --protocol rlm-paper"),
        (["--protocol", "rlm-paper", "--baselines"], "leave out --card"),
        (["--protocol", "rlm-paper", "--split", "val"], "leave out --card"),
        (["--protocol", "rlm-paper", "--model", "http://localhost:1"], "not a full model on this machine"),
        (["--protocol", "rlm-paper", "--model", "builtin"], "not a full model on this machine"),
        (["--protocol", "rlm-paper", "--model", "nowhere"], "nowhere"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], reason: str) -> None:
    result = run("eval", "--data", "x.parquet", *arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
