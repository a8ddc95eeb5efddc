"""The published data sets become our rows; what has no place is counted and named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rlm_core
from rlm_core.errors import DataError
from rlm_core.inference.tokenizer import Tokenizer
from rlm_core.training.corpus import load_corpus
from rlm_core.training.datasets.code_regression import CodeRegressionBuilder
from rlm_core.training.datasets.schema import read_rows, write_rows
from rlm_core.training.datasets.splits import split_of
from rlm_core.training.full import store
from rlm_core.training.full.spaces import CODENET, codenet_language

from tests.rlm_core.training.full.tiny import CONFIG, run_cli

PROBLEM = {"s_id": "s1", "p_id": "p00001", "date": 1500000000, "language": "C++", "cpu_time": 20, "memory": 3000}
GRAPH = "graph torch_jit (\n%input.1[FLOAT, 1x3x32x32]\n) {\n%1 = Conv(%input.1)\nreturn %1\n}\n"


def row(space: str, number: int = 0, **changes: Any) -> dict[str, Any]:
    """A row as the data set has it."""
    found = {
        "identifier": f"{space}_{number}",
        "space": space,
        "input": f"print({number})\n",
        "target_metric": "val_accuracy",
        "val_accuracy": 100.0 + number,
        "metric_type": "latency_ms" if space == "KBSS" else "memory_bytes",
        "metadata": "{}",
    }
    return found | changes


def build(
    path: Path, rows: list[dict[str, Any]], split: str = "auto"
) -> tuple[list[dict[str, Any]], CodeRegressionBuilder]:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    builder = CodeRegressionBuilder(path, split)
    return list(builder.rows()), builder


def test_solutions_of_apps_are_python_programs_by_problem(tmp_path: Path) -> None:
    rows = [row("APPS", 0, metadata="{'problem_id': 7}"), row("APPS", 1, metadata="{'problem_id': 7}"), row("APPS", 2)]
    (first, second, third), _ = build(tmp_path / "a.jsonl", rows)
    assert (first["basis"], first["language"], first["metric"], first["value"]) == ("program", "python", "memory", 100)
    assert (first["device"], first["workload"]) == ("x86-64", {"judge": "apps"})
    assert first["group"] == second["group"] == "apps/7"
    assert first["split"] == split_of("apps/7")
    assert (first["held_out"], third["held_out"]) == ("problem", "text")
    assert third["group"] not in ("apps/7", "")


def test_the_same_text_without_a_problem_is_one_group(tmp_path: Path) -> None:
    rows = [row("APPS", 0), row("APPS", 1, input="print(0)\n"), row("APPS", 2)]
    (first, second, third), _ = build(tmp_path / "a.jsonl", rows)
    assert first["group"] == second["group"] != third["group"]


def test_solutions_of_codenet_have_their_language_date_and_cpu_time(tmp_path: Path) -> None:
    found, builder = build(tmp_path / "a.jsonl", [row("CDSS", 3, metadata=repr(PROBLEM), val_accuracy=3000)])
    assert [(one["metric"], one["value"]) for one in found] == [("memory", 3072000), ("latency", 0.02)]
    for one in found:
        assert (one["language"], one["group"]) == ("cpp", "cdss/p00001")
        assert one["workload"] == {"judge": "cdss", "date": "2017-07-14"}
    assert found[0]["id"] != found[1]["id"]
    assert (builder.report().rows, builder.report().units) == (2, 1)


def test_kernels_were_measured_on_one_gpu_in_milliseconds(tmp_path: Path) -> None:
    [found], _ = build(tmp_path / "a.jsonl", [row("KBSS", 1, val_accuracy=0.25, metadata="{'stddev_ms': 0.01}")])
    assert (found["basis"], found["language"], found["metric"]) == ("kernel", "triton", "latency")
    assert (found["value"], found["device"], found["held_out"]) == (0.00025, "nvidia-rtx-a6000", "kernel")


@pytest.mark.parametrize(
    ("space", "value", "others", "expected"),
    [("NDS", 92.97, [80.0], 0.9297), ("Twopath", 0.91, [0.5], 0.91), ("Hiaml", 0.6, [90.0], 0.006)],
)
def test_accuracies_of_a_space_are_per_cent_where_one_is_above_one(
    tmp_path: Path, space: str, value: float, others: list[float], expected: float
) -> None:
    rows = [row(space, n, input=GRAPH, val_accuracy=one, metric_type=None) for n, one in enumerate([value, *others])]
    (found, *_), _ = build(tmp_path / "a.jsonl", rows)
    assert (found["basis"], found["language"], found["metric"]) == ("network", "onnx", "accuracy")
    assert found["value"] == pytest.approx(expected)
    assert found["device"] is None
    assert found["workload"] == {"space": space.lower(), "dataset": "cifar10"}


def test_the_space_of_percentages_is_decided_while_the_file_is_read_once(tmp_path: Path) -> None:
    """Fractions are held back; what is decided is not, and nothing is lost."""
    fractions = [row("Twopath", n, input=f"{GRAPH}{n}", val_accuracy=0.5, metric_type=None) for n in range(300)]
    percentages = [row("NASNet", n, input=f"{GRAPH}{n}", val_accuracy=90.0, metric_type=None) for n in range(300)]
    mixed = [entry for pair in zip(fractions, percentages, strict=True) for entry in pair]
    late = row("Twopath", 900, input=GRAPH, val_accuracy=1.5, metric_type=None)
    found, builder = build(tmp_path / "a.jsonl", [*mixed, late])
    by_space = {space: [one for one in found if one["workload"]["space"] == space] for space in ("twopath", "nasnet")}
    assert [one["id"].split("/")[2] for one in by_space["twopath"]] == [f"Twopath_{n}" for n in range(300)]
    assert [one["id"].split("/")[2] for one in by_space["nasnet"]] == [f"NASNet_{n}" for n in range(300)]
    assert {one["value"] for one in by_space["twopath"]} == {0.5}
    assert {one["value"] for one in by_space["nasnet"]} == {0.9}
    assert [one["workload"]["space"] for one in found[:255]] == ["nasnet"] * 255
    assert builder.report().left_out == {"accuracy above 1": 1, "no target": 1}


def test_networks_of_a_parquet_file_of_graphs_are_read(tmp_path: Path) -> None:
    """The columns of GraphArch-Regression; an accuracy of 0 is none, and SNAS has no latencies."""
    latencies = repr({"zcp_synflow": 3.0, "lat_titan_rtx_64": 8.0, "lat_silver_4210r": 5.0, "lat_eyeriss": 2.0})
    rows: list[dict[str, Any]] = [
        {"space": "ENAS", "val_accuracy": 0.0, "metadata": latencies},
        {"space": "NASBench101", "val_accuracy": 93.25, "metadata": latencies},
        {"space": "SNAS", "val_accuracy": 71.5, "metadata": None},
        {"space": "OfaMB", "val_accuracy": None, "metadata": "{}"},
    ]
    table = [
        {"identifier": f"g{n}", "uid": None, "input": f"{GRAPH}{n}", "target_metric": "val_accuracy", "flops": 1.0}
        | one
        for n, one in enumerate(rows)
    ]
    pq.write_table(pa.Table.from_pylist(table), tmp_path / "a.parquet")
    builder = CodeRegressionBuilder(tmp_path / "a.parquet")
    steps: list[tuple[int, int]] = []
    found = list(builder.rows(lambda done, total: steps.append((done, total))))
    by_unit: dict[str, list[tuple[str, str | None, float]]] = {}
    for one in found:
        by_unit.setdefault(one["source"], []).append((one["metric"], one["device"], one["value"]))
    measured = [
        ("latency", "nvidia-titan-rtx", 0.008),
        ("latency", "intel-xeon-silver-4210r", 0.005),
        ("latency", "eyeriss", 0.002),
    ]
    assert by_unit["GraphArch-Regression g0"] == measured
    assert by_unit["GraphArch-Regression g1"] == [("accuracy", None, 0.9325), *measured]
    assert by_unit["GraphArch-Regression g2"] == [("accuracy", None, 0.715)]
    assert [one["workload"] for one in found if one["metric"] == "accuracy"] == [
        {"space": "nasbench101", "dataset": "cifar10"},
        {"space": "snas"},
    ]
    assert next(one["workload"] for one in found if one["device"] == "nvidia-titan-rtx") == {"batch": "64"}
    assert builder.report().left_out == {"no target": 1}
    assert steps[-1] == (4, 4)


@pytest.mark.parametrize(
    ("title", "name"),
    [("Haskell", "haskell"), ("D", "d"), ("OCaml", "ocaml"), ("Perl", "perl"), ("Fortran", "fortran")],
)
def test_languages_without_a_grammar_are_kept_and_can_be_trained_on(tmp_path: Path, title: str, name: str) -> None:
    text = "main =  loc(x)\n\n  where x = 1\n"
    rows = [row("CDSS", 0, input=text, metadata=repr(PROBLEM | {"language": title}), val_accuracy=2940)]
    found, _ = build(tmp_path / "a.jsonl", rows)
    assert [(one["language"], one["metric"], one["value"]) for one in found] == [
        (name, "memory", 2940 * 1024),
        (name, "latency", 0.02),
    ]
    write_rows(found, tmp_path / "a.parquet")
    corpus = load_corpus([tmp_path / "a.parquet"])
    assert corpus.texts == [("main = loc(x)\n\twhere x = 1", name)]
    tokenizer = Tokenizer.load(Path(rlm_core.__file__).parent / "builtin" / "tokenizer.model")
    assert len(corpus.encode(tokenizer)[0]) > 4
    assert name in CODENET.languages
    assert codenet_language(name) == title


def test_networks_have_their_latencies_and_unknown_devices_are_named(tmp_path: Path) -> None:
    metadata = {"lat_1080ti_32": 4.0, "lat_pixel3": 20.0, "lat_abacus": 1.0, "zcp_synflow": 3.0, "lat_pixel2": None}
    found, builder = build(
        tmp_path / "a.jsonl", [row("NB201", 0, input=GRAPH, metadata=repr(metadata), val_accuracy=None)]
    )
    assert [(one["device"], one["workload"], one["value"]) for one in found] == [
        ("nvidia-gtx-1080-ti", {"batch": "32"}, pytest.approx(0.004)),
        ("pixel-3", {"batch": "1"}, pytest.approx(0.02)),
    ]
    assert builder.report().left_out == {"latency of unknown device abacus": 1, "no latency in the metadata": 1}
    assert builder.report().examples["no latency in the metadata"] == ["NB201_0"]


def test_what_cannot_be_mapped_is_counted_and_named(tmp_path: Path) -> None:
    rows = [
        row("CDSS", 0, metadata="{'language': 'Brainfuck', 'p_id': 'p1'}"),
        row("CDSS", 1, metadata="not a literal("),
        row("APPS", 2, input="  \n"),
        row("APPS", 3, val_accuracy=None),
        row("KBSS", 4, metric_type="joules"),
    ]
    found, builder = build(tmp_path / "a.jsonl", rows)
    assert found == []
    assert builder.report().left_out == {
        "language Brainfuck is not supported": 1,
        "no language in the metadata": 1,
        "empty text": 1,
        "no target": 1,
        "unknown metric_type joules": 1,
    }
    assert builder.report().examples["no target"] == ["APPS_3"]


def test_parquet_with_the_later_column_and_gzip_are_read(tmp_path: Path) -> None:
    entry = {key: value for key, value in row("APPS", 5).items() if key != "val_accuracy"} | {"target": 42.0}
    pq.write_table(pa.Table.from_pylist([entry] * 3), tmp_path / "a.parquet")
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write(json.dumps(entry) + "\n\n")
    for name, count in (("a.parquet", 3), ("a.jsonl.gz", 1)):
        found = list(CodeRegressionBuilder(tmp_path / name, "test").rows())
        assert [(one["value"], one["split"]) for one in found] == [(42.0, "test")] * count


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"space": "APPS"}\n', r"row 1 has no 'identifier'; is this a file of Code-Regression\?"),
        ('{"identifier": "a", "space": "APPS", "input": "x"}\n', "row 1 has no 'target or val_accuracy'"),
        ("{nonsense\n", "a.jsonl:1: not JSON"),
        ("[1]\n", "a.jsonl:1: not an object"),
        ("", "no rows"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(content)
    with pytest.raises(DataError, match=message):
        CodeRegressionBuilder(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["none.jsonl", "none.parquet"])
def test_a_missing_file_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"cannot be read|not a readable Parquet"):
        CodeRegressionBuilder(tmp_path / name)


def test_metadata_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    build(tmp_path / "a.jsonl", [row("APPS", metadata=f"{{'x': open({str(mark)!r}, 'w')}}")])
    assert not mark.exists()


def test_it_is_built_by_the_command_line_trained_on_and_evaluated(tmp_path: Path) -> None:
    rows = [
        row("CDSS", n, input=f"int main() {{ return {n}; }}\n" * (1 + n % 5), val_accuracy=10.0 ** (3 + n % 5))
        | {"metadata": repr(PROBLEM | {"p_id": f"p{n // 2}", "cpu_time": 1 + n % 5})}
        for n in range(500)
    ]
    rows.append(row("CDSS", 900, metadata="{'language': 'COBOL'}"))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    data, out = tmp_path / "a.parquet", tmp_path / "run"
    printed = run_cli("data", "build", "code-regression", "--labels", tmp_path / "a.jsonl", "--out", data).stdout
    assert "1,000 rows of 500 units" in printed
    assert "left out 1: language COBOL is not supported; for example CDSS_900" in printed
    assert len(list(read_rows([data]))) == 1000
    tokenizer = f'tokenizer = "{Path(rlm_core.__file__).parent}/builtin/tokenizer.model"'
    (tmp_path / "c.toml").write_text(CONFIG.replace("epochs = 24", "epochs = 1").replace("vocabulary = 540", tokenizer))
    run_cli("train", "--data", data, "--config", tmp_path / "c.toml", "--out", out)
    assert store.read_card(out).trained["rows"] == sum(one["split"] == "train" for one in read_rows([data]))
    report = json.loads(run_cli("eval", "--data", data, "--model", out, "--format", "json").stdout)
    assert {(one["language"], one["metric"]) for one in report["slices"]} <= {("cpp", "memory"), ("cpp", "latency")}
