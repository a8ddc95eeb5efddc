"""Fuzzed readers of what the product has written: model cards, labels, and measurements."""

from __future__ import annotations

import json
import random
from functools import cached_property
from typing import Any, ClassVar

from rlm_core.errors import RlmError

from tests.paths import REPOSITORY

from . import fuzz_generators as generate
from .fuzz_target import Target, one_line


class Cards(Target):
    """The cards of students and full models, and what is computed from them."""

    name = "cards"

    @cached_property
    def _seeds(self) -> list[Any]:
        from rlm_core.inference.card import checksum

        (self.folder / "encoder.onnx").write_bytes(b"encoder")
        shipped = json.loads((REPOSITORY / "model_core/rlm_core/builtin/card.json").read_text())
        # One entry of each table: a small card is read thousands of times a second.
        small = {
            key: dict(list(part.items())[:2]) if isinstance(part, dict) and key != "sizes" else part
            for key, part in shipped.items()
        }
        small["slices"] = shipped["slices"][:2]
        small["files"] = {"encoder.onnx": checksum(self.folder / "encoder.onnx")}
        return [small, {**small, "format": "rlm-full-1", "trained": {"serving.json": "0" * 64}}]

    def make(self, rng: random.Random) -> bytes:
        return generate.json_bytes(rng, self._seeds)

    def read(self, data: bytes) -> None:
        from rlm_core.inference.card import CARD, read_card, read_model_card

        self.file(CARD, data)
        card = read_model_card(self.folder)
        one_line(card.model_id)
        student = read_card(self.folder)
        for task in student.tasks:
            task.scale.share_below(1.0)
            task.scale.position([0.0, 1e-6, 1e9])
        for basis in ("call", "kernel", "x"):
            level = student.calibration.lookup(basis, "python", "latency", "")
            if level is not None:
                level.raw_levels()


class Labels(Target):
    """Label files: exports of measurements and the labels of data sets, as JSON Lines."""

    name = "labels"
    _LABEL: ClassVar[Any] = {
        "package": "anyio",
        "version": "4.16.0",
        "module": "anyio.a",
        "qualname": "f",
        "file": "anyio/a.py",
        "firstlineno": 1,
        "lastlineno": 2,
        "source_sha1": "094a9122fb69ee3185c4f58e43ed6499051ddec6",
        "source_hash": "48b4a42ce61894ba242159512381283d",
        "calls": 180,
        "tests": 71,
        "generator": False,
        "kind": "function",
        "language": "python",
        "recursive": False,
        "exceptions": 0,
        "latency_us": {"p10": 3.2, "p50": 6.0, "p90": 67.1},
        "latency_ok": True,
        "mem_calls": 180,
        "peak_bytes": {"p10": 16.0, "p50": 48.0, "p90": 925.6},
        "threads": True,
        "device": "AMD EPYC",
        "machine": "x86-64",
        "workload": {"runtime": "cpython-3.12"},
        "measured_at": "2026-11-22T01:50:42+00:00",
        "run": "20261122-015042-ed17fad3",
    }

    def make(self, rng: random.Random) -> bytes:
        return b"\n".join(
            generate.json_bytes(rng, [self._LABEL]) if rng.random() < 0.7 else generate.dumps(self._LABEL)
            for _ in range(rng.choice((1, 1, 2)))
        )

    def read(self, data: bytes) -> None:
        from rlm_core.files import read_json_lines
        from rlm_core.measurement.labels import from_labels

        path = self.file("labels.jsonl", data)
        for measurement in from_labels(read_json_lines(path)):
            assert measurement.low <= measurement.median <= measurement.high


class Measurements(Target):
    """Committed measurements of a project, measurements for `adapt`, and adapters."""

    name = "measurements"
    _COMMITTED: ClassVar[Any] = {
        "file": "src/a.py",
        "unit": "f",
        "device": "AMD EPYC",
        "runtime": "cpython-3.12",
        "date": "2026-11-22T01:50:42+00:00",
        "tests": 3,
        "hash": "48b4a42ce61894ba242159512381283d",
        "latency": {"p10": 1e-6, "p50": 2e-6, "p90": 3e-6, "calls": 10},
        "memory": {"p10": 1.0, "p50": 2.0, "p90": 3.0, "calls": 10},
        "text": "def f(): pass",
        "workload": {"M": "64"},
    }
    _ROW: ClassVar[Any] = {
        "text": "def f(): pass",
        "language": "python",
        "basis": "call",
        "latency_us": 3.5,
        "metric": "latency",
        "workload": {"M": 64},
    }

    def make(self, rng: random.Random) -> bytes:
        kind = rng.randrange(2)
        return (b"C", b"R")[kind] + generate.json_bytes(rng, [(self._COMMITTED, self._ROW)[kind]])

    def read(self, data: bytes) -> None:
        from rlm_core.inference.adaptation.measurements import read_measurements
        from rlm_core.measurement.committed import FOLDER, read_committed

        notes: list[str] = []
        if data[:1] == b"C":
            (self.folder / FOLDER).mkdir(exist_ok=True)
            self.file(f"{FOLDER}/measurements.jsonl", data[1:])
            read_committed(self.folder, notes.append)
        else:
            _, notes = read_measurements(self.file("rows.jsonl", data[1:]))
        for note in notes:
            one_line(note)
        if notes:
            raise RlmError("notes")
