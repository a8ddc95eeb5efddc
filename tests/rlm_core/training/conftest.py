"""Data sets of generated functions, programs and kernels, a tiny model trained on them, and a small call graph."""

from __future__ import annotations

import fcntl
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rlm_core
import torch
from click.testing import CliRunner
from rlm_core.inference.predictor import Predictor
from rlm_core.source.syntax_counts import structure
from rlm_core.training.corpus import Corpus, load_corpus
from rlm_core.training.datasets.functions import CALL_GRAPH_SCHEMA
from rlm_core.training.datasets.schema import write_rows
from rlm_core.training.package_graph import PackageGraph, read_graph
from rlm_core.training.student.batches import EncoderData, head_inputs
from rlm_lsp.cli.app import app

from tests.warm_server import warm_training

from .full import tiny

pytestmark = pytest.mark.extras

MadeOnce = Callable[[str, Callable[[Path], None]], Path]

CONFIG = """
name = "tiny"
[model]
vocabulary = 540
width = 32
layers = 1
heads = 2
hidden = 48
context = 48
head_hidden = 32
base_hidden = 32
[pretrain]
tokens = 4000
tokens_per_batch = 256
warmup_steps = 2
compile = false
[train]
epochs = 1
tokens_per_batch = 256
warmup_steps = 2
head_epochs = 2
compile = false
threads = 1
[trees.kernel]
trees = 5
seeds = 1
leaves = 4
leaf_rows = 2
[trees.program]
trees = 5
seeds = 1
leaf_rows = 2
[ngram_ridge]
bits = 10
"""
_SPLITS = ("train", "train", "val", "train", "cal", "train", "train", "test")
_METRICS = (("latency", 1e-6), ("memory", 300.0))


# Tensors here are tiny: more threads would only wait for each other.
torch.set_num_threads(1)


@dataclass(frozen=True, slots=True)
class Trained:
    """A tiny model: its data set, configuration, training directory and exported directory."""

    data: Path
    config: Path
    directory: Path
    exported: Path


def run_cli(*arguments: object) -> str:
    """Run a command that must succeed; what it printed on stdout."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def function_rows(count: int) -> list[dict[str, Any]]:
    """Rows of basis ``call``: functions whose cost grows with their loops; some call a helper."""
    rows = []
    for number in range(count):
        loops = 1 + number % 3
        lines = [f"def work_{number}(items):"]
        lines += [f"{'    ' * (depth + 1)}for x{depth} in items:" for depth in range(loops)]
        lines += ["    " * (loops + 1) + f"helper(x0 + {number})", "    return items"]
        helper = {"text": f"def helper(x):\n    return x * {number % 4}\n", "level": 1 + number % 2}
        site = {"candidates": [helper["text"]], "loops": loops, "branches": 0, "times": 1.0}
        package = f"package{number % 7}"
        for metric, scale in _METRICS:
            rows.append(
                {
                    "id": f"functions/{number}/{metric}",
                    "text": "\n".join(lines) + "\n",
                    "callees": [helper] if number % 3 else [],
                    "language": "python",
                    "basis": "call",
                    "metric": metric,
                    "device": "x86-64",
                    "workload": {"runtime": "cpython-3.12"},
                    "value": scale * 10**loops * (1 + number % 5),
                    "group": f"{package}/module{number}",
                    "family": package,
                    "held_out": "module",
                    "split": _SPLITS[number % len(_SPLITS)],
                    "source": f"{package}==1.0:module{number}.py:1",
                    "work": None,
                    "calls": {"sites": [site], "outside": 0, "unresolved": 0} if number % 3 else None,
                    "repository": None,
                    "sizes": None,
                    "sized": None,
                    "first": None,
                    "floor": None,
                }
            )
    return rows


def program_rows(count: int) -> list[dict[str, Any]]:
    """Rows of basis ``program``: Java solutions of different dates."""
    rows = []
    for number in range(count):
        text = f"class Solution {{\n    int f(int n) {{ return n * {number}; }}\n}}\n"
        for metric, value in (("latency", 0.001 * (1 + number)), ("memory", 4e7 + 1e5 * number)):
            rows.append(
                {
                    "id": f"leethub/{number}/{metric}",
                    "text": text,
                    "callees": [],
                    "language": "java",
                    "basis": "program",
                    "metric": metric,
                    "device": "leetcode",
                    "workload": {"judge": "leetcode", "date": f"2024-{1 + number % 12:02}-15"},
                    "value": value,
                    "group": f"leetcode/{number}",
                    "family": f"leetcode/{number}",
                    "held_out": "problem",
                    "split": _SPLITS[number % len(_SPLITS)],
                    "source": f"someone/solutions@{number:040}:a.java",
                    "work": None,
                    "calls": None,
                    "repository": None,
                    "sizes": None,
                    "sized": None,
                    "first": None,
                    "floor": None,
                }
            )
    return rows


def kernel_rows(count: int) -> list[dict[str, Any]]:
    """Rows of basis ``kernel``: Triton kernels of different work, on two devices at two sizes."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        steps = "".join(f"    x = tl.exp(x) * {step}\n" for step in range(1 + number % 4))
        text = (
            f"@triton.jit\ndef kernel_{number}(x_ptr, n, BLOCK: tl.constexpr):\n"
            "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
            f"    x = tl.load(x_ptr + at, mask=at < n)\n{steps}    tl.store(x_ptr + at, x, mask=at < n)\n"
        )
        rows += [
            {
                "id": f"triton/{number}/{device}/{size}",
                "text": text,
                "callees": [],
                "language": "triton",
                "basis": "kernel",
                "metric": "latency",
                "device": device,
                "workload": {"arg0": str(size), "n": str(size), "dtype": "fp32"},
                "value": 1e-6 * (1 + number % 4) * (1 + place) * (1 + size / 1e5),
                "group": f"kernel_{number}",
                "family": f"kernel_{number}",
                "held_out": "kernel",
                "split": _SPLITS[number % len(_SPLITS)],
                "source": f"kernels.py:{number}",
                "work": None,
                "calls": None,
                "repository": None,
                "sizes": None,
                "sized": None,
                "first": None,
                "floor": None,
            }
            for place, device in enumerate(("nvidia-a100-sxm4-80gb", "nvidia-l40s"))
            for size in (1024, 1048576)
        ]
    return rows


@pytest.fixture
def warm_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes of this interpreter are forks of one that has imported PyTorch."""
    monkeypatch.setattr(sys, "executable", warm_training())


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 72 rows in four slices."""
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    assert write_rows(function_rows(24) + program_rows(12), path) == 72
    return path


@pytest.fixture(scope="session")
def corpus(data: Path) -> Corpus:
    """The data set as arrays."""
    return load_corpus([data])


@pytest.fixture
def task(corpus: Corpus) -> EncoderData:
    """The generated data set, a letter a token."""
    ids = [np.array([ord(letter) % 60 + 2 for letter in text[:32]], np.int32) for text, _ in corpus.texts]
    places = np.log10(corpus.rows.value)
    lengths = np.array([len(text) for text in ids])
    counts = np.stack([structure(*entry) for entry in corpus.texts])
    wide = np.full(len(corpus.rows), 20.0)
    inputs = head_inputs(corpus, counts, lengths, wide, 5 * (places - places.min()))
    basis = np.array([name.split("/")[0] for name in corpus.tasks])[corpus.rows.task]
    return EncoderData(ids, inputs, corpus.rows.split, corpus.rows.group, basis)


@pytest.fixture(scope="session")
def mixed_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 136 rows in five slices, one of them of kernels."""
    path = tmp_path_factory.mktemp("mixed") / "rows.parquet"
    assert write_rows(function_rows(24) + program_rows(12) + kernel_rows(16), path) == 136
    return path


@pytest.fixture(scope="session")
def mixed_corpus(mixed_data: Path) -> Corpus:
    """Functions, programs and kernels as arrays."""
    return load_corpus([mixed_data])


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration of a model that trains in a second."""
    path = tmp_path_factory.mktemp("config") / "tiny.toml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="session")
def made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Make a folder of a name in one worker of pytest-xdist, for all of them; tests only read it."""
    root = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        root = root.parent

    def make(name: str, fill: Callable[[Path], None]) -> Path:
        folder, done = root / name, root / f"{name}.done"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def trained(mixed_data: Path, config: Path, made_once: MadeOnce) -> Trained:
    """A tiny model, trained and exported."""

    def fill(folder: Path) -> None:
        run_cli("train", "--data", mixed_data, "--config", config, "--out", folder / "run")
        run_cli("export", "--model", folder / "run", "--out", folder / "exported")

    folder = made_once("tiny", fill)
    return Trained(mixed_data, config, folder / "run", folder / "exported")


@pytest.fixture(scope="session")
def predictor(trained: Trained) -> Predictor:
    """The exported tiny model."""
    return rlm_core.load(trained.exported)


@pytest.fixture(scope="session")
def full_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of 400 rows of two tasks, with enough groups to calibrate on."""
    path = tmp_path_factory.mktemp("data") / "rows.parquet"
    assert write_rows(tiny.rows(), path) == 400
    return path


@pytest.fixture(scope="session")
def full_config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of a full model that trains in seconds."""
    path = tmp_path_factory.mktemp("config") / "full.toml"
    path.write_text(tiny.CONFIG)
    return path


@pytest.fixture(scope="session")
def full(full_data: Path, full_config: Path, made_once: MadeOnce) -> tiny.Trained:
    """A tiny full model, trained by the command line."""

    def fill(folder: Path) -> None:
        tiny.run_cli("train", "--data", full_data, "--config", full_config, "--out", folder / "run")

    return tiny.Trained(full_data, full_config, made_once("full", fill) / "run")


def call_row(
    name: str, calls: tuple[str, ...] = (), latency: float | None = 1e-5, split: str = "train"
) -> dict[str, object]:
    return {
        "id": name,
        "family": name.partition(":")[0],
        "group": name,
        "split": split,
        "text": f"def {name.rpartition(':')[2].rpartition('.')[2]}(): pass",
        "callees": [],
        "work": None,
        "latency": latency,
        "memory": None,
        "sites": [{"candidates": [called], "loops": 0, "branches": 0, "times": 1.0} for called in calls],
        "outside": 0,
        "unresolved": 0,
    }


@pytest.fixture
def graph(tmp_path: Path) -> PackageGraph:
    rows = [
        call_row("p:p.m:f", ("p:p.m:A.g", "p:p.m:A.h")),
        call_row("p:p.m:A.g", latency=1e-3),
        call_row("p:p.m:A.h", latency=None, split="none"),
        call_row("p:p.m:A.i", latency=1e-2, split="test"),
    ]
    pq.write_table(pa.Table.from_pylist(rows, CALL_GRAPH_SCHEMA), tmp_path / "calls.parquet")
    return read_graph([tmp_path / "calls.parquet"])
