"""A predictor whose answers follow from the text, so that tests know what to expect."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rlm_core import CodeText, Prediction, Query
from rlm_core.inference.calibration import bands
from rlm_core.inference.predictor import WithoutComparison
from rlm_core.types import METRICS_OF_BASIS, Basis, CalibrationSource, CostRatio

from tests.fakes import NO_NUMBER, quantiles

PER_CHARACTER = {"latency": 1e-6, "memory": 1024.0, "accuracy": 1e-4}


class LengthPredictor(WithoutComparison):
    """Predicts 1 µs and 1 KiB a character, within a factor of 2 in 80 % of cases; abstains from texts with ``odd``."""

    model_id = "length-1"

    def __init__(self) -> None:
        self.batches: list[int] = []

    def devices(self, basis: Basis, language: str | None = None) -> tuple[str, ...]:
        return ("slow-gpu", "fast-gpu") if basis == "kernel" else ("x86-64",)

    def default_queries(self, basis: Basis, language: str) -> tuple[Query, ...]:
        return tuple(Query(metric, self.devices(basis)[0]) for metric in METRICS_OF_BASIS[basis])

    def predict(self, texts: Sequence[CodeText], queries: Sequence[Sequence[Query]]) -> list[list[Prediction]]:
        self.batches.append(len(texts))
        return [[self._one(code, query) for query in line] for code, line in zip(texts, queries, strict=True)]

    def _one(self, code: CodeText, query: Query) -> Prediction:
        fields = (code.basis, query.metric, query.device, query.workload, self.model_id)
        if "odd" in code.text or query.device not in self.devices(code.basis):
            return Prediction(*fields, None, (), 0.0, False, NO_NUMBER)
        value = len(code.text) * PER_CHARACTER[query.metric] * int(query.workload.get("M", "1"))
        found = quantiles(value)
        return Prediction(
            *fields, value, bands(found, 50, 500, CalibrationSource("length")), 0.0, False, quantiles=found
        )

    def compare(
        self, pairs: Sequence[tuple[CodeText, CodeText]], queries: Sequence[Sequence[Query]]
    ) -> list[list[CostRatio]]:
        """Ratios of lengths, within a factor of 1.1."""
        found = []
        for (before, after), line in zip(pairs, queries, strict=True):
            ends = quantiles(len(after.text) / len(before.text), 1.1)
            known = bands(ends, 50, 500, CalibrationSource("changes"))
            found.append(
                [CostRatio(after.basis, q.metric, q.device, self.model_id, ends[8], known, ends) for q in line]
            )
        return found


def never() -> LengthPredictor:
    """Stands where no model may be loaded."""
    raise AssertionError("the model was loaded")


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    """Write files, by their paths below a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder as a user would, with a name of its own and no configuration of this machine."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}
    who = {f"GIT_{role}_{what}": "t@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True, env=kept | settings | who
    )
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str | bytes]) -> str:
    """Write and commit files in a repository, made where there is none; the commit."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet", "--initial-branch=main")
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(folder, "rev-parse", "HEAD")
