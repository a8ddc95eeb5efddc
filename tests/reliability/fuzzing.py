"""Structure-aware fuzzing of everything that reads outside data: no undeclared exception, and no slow input.

``python -m tests.reliability.fuzzing --inputs 1000000 --seed 1 --target settings``. Inputs are right documents with a
few hostile changes, and depend on the seed and their number alone: ``--first 4711 --inputs 1`` repeats one.
``--atheris`` mutates the inputs by code coverage instead, where the package atheris is installed.

A target returns the errors that it declares as values or as an ``RlmError`` of one line; anything else is a failure.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from rlm_core.errors import RlmError

from tests.paths import REPOSITORY

from . import fuzz_generators as generate

_SLOW_SECONDS = 2.0  # of processor time
_SHOWN_FAILURES = 20
_MEMORY_FOLDER = Path("/dev/shm")


@dataclass(slots=True)
class Report:
    """What came of the inputs of one target; times in seconds of processor time."""

    target: str
    inputs: int = 0
    refused: int = 0  # with an error that the target declares
    slowest: float = 0.0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


class Target:
    """One reader of outside data: how its inputs are made, and what reads them."""

    name = ""
    share = 1.0  # of the inputs of a run over all targets

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, rng: random.Random) -> bytes:
        """An input."""
        raise NotImplementedError

    def read(self, data: bytes) -> None:
        """Read an input, as the product does.

        Raises:
            RlmError: a declared refusal.
        """
        raise NotImplementedError

    def file(self, name: str, data: bytes) -> Path:
        """A file with the input."""
        path = self.folder / name
        path.write_bytes(data)
        return path


class Settings(Target):
    """The settings of a folder (TOML), of a client (JSON) and of the user's workspaces, and how they are resolved."""

    name = "settings"
    _WORDS = (
        *(
            "[",
            "]",
            "[[",
            "]]",
            "=",
            ".",
            '"',
            "'",
            '"""',
            "\n",
            "#",
            "{",
            "}",
            ",",
            " = ",
            "\\",
            "\\ud800",
            "\0",
            "\r",
        ),
        *("threads", "budgets", "severity", "device", "devices", "metrics", "tool.rlm-lsp", "exclude", "measure"),
        *("true", "1e999", "nan", "inf", "9" * 60, "0x", "1979-05-27T07:32:00Z", "25:61:61", "-", "_", "\ufeff", "ä"),
        *('"latency < 1 ms"', '["**/*a**"]', "{ }", "a.b.c.d", '"src/**" = "latency < 1 ms"'),
    )
    _TOML = (
        'metrics = ["latency"]\nlanguages = ["python", "java"]\nthreads = 2\ndebounce-ms = 100\n'
        'exclude = ["build/**"]\n'
        'devices = ["A100"]\n[budgets]\n"src/**/*.py" = "latency < 1 ms, memory < 10 MiB"\n'
        "[severity]\nwarning = 0.9\n[default-sizes]\nM = 4096\n",
        '[project]\nname = "x"\n[tool.rlm-lsp]\nmeasure = false\njudge = "atcoder"\n[tool.rlm-lsp.budgets]\n'
        '"*.py" = "latency < 1 s on x86-64 n=10"\n',
    )
    _JSON: Sequence[Any] = (
        {
            "metrics": ["latency"],
            "threads": 2,
            "debounceMs": 150,
            "budgets": {"src/**": "latency < 1 ms, memory < 10 MiB"},
            "severity": {"error": 0.99, "warning": 0.9},
            "defaultSizes": {"M": 4096, "dtype": "fp16"},
            "exclude": ["build/**"],
            "devices": ["A100"],
            "model": "builtin",
            "measure": True,
        },
        {"rlm-lsp": {"trace": {"server": "off"}}, "inlayHints": {"enabled": True}},
    )

    def make(self, rng: random.Random) -> bytes:
        kind = rng.randrange(4)
        if kind == 0:
            return b"J" + generate.json_bytes(rng, self._JSON)
        if kind == 1:
            return b"W" + generate.json_bytes(rng, [{str(self.folder): document} for document in self._JSON])
        text = generate.lines(rng, self._WORDS, self._TOML).encode("utf-8", "surrogatepass")
        return (b"T" if kind == 2 else b"P") + generate.broken(rng, text, 0.1)

    def read(self, data: bytes) -> None:
        from pathlib import PurePath

        from rlm_lsp.settings import files
        from rlm_lsp.settings.resolve import SettingsProblem, SettingsSource, resolve

        kind, content = data[:1], data[1:]
        problems: list[SettingsProblem] = []
        if kind == b"J":
            try:
                source = SettingsSource("client", json.loads(content))
            except (ValueError, RecursionError):  # such a message is answered by the reader of messages
                raise RlmError("not JSON") from None
        elif kind == b"W":
            self.file(files.WORKSPACES, content)
            source, problems = files.workspace_source(self.folder, self.folder / "config.toml")
        else:
            own, shared = self.folder / files.OWN_FILE, self.folder / files.SHARED_FILE
            (shared if kind == b"T" else own).unlink(missing_ok=True)
            self.file(files.OWN_FILE if kind == b"T" else files.SHARED_FILE, content)
            source, problems = files.folder_source(self.folder)
            config = files.folder_config(self.folder)
            if config is not None:
                config.line_of("budgets")
        settings, unresolved = resolve([source])
        for problem in (*problems, *unresolved):
            one_line(str(problem))
        settings.excludes(PurePath("src/a/b.py"))
        if problems or unresolved:
            raise RlmError("problems")


class Budgets(Target):
    """Budgets in settings and comments."""

    name = "budgets"
    _WORDS = (
        *(
            "latency",
            "memory",
            "accuracy",
            "<",
            ">",
            "≤",
            "<=",
            "=",
            ",",
            "ms",
            " s",
            "GiB",
            "%",
            "on",
            "device=",
            "n=",
        ),
        *(
            "1",
            "1e9",
            "1e999999999",
            "9" * 400,
            "-1",
            "0",
            ".",
            "nan",
            "µs",
            "μs",
            "\0",
            "\n",
            '"',
            "'",
            " ",
            "٣",
            "\ud800",
        ),
        *("# rlm:", "budget", "ignore", "judge=boj", "runtime=pypy", "//", "def f():\n    pass\n", "ẞ", "ﬀ"),
    )
    _SEEDS = (
        "latency < 1 ms, memory < 10 MiB",
        'latency < 2.5e-3 s on "my gpu" M=64 N=128, accuracy > 93 %',
        "# rlm: latency < 1 ms\ndef f(x):\n    return x\n",
        "# rlm: ignore memory\n# rlm: judge=atcoder runtime=pypy\ndef f(x):\n    return x\n\nclass A:\n"
        "    def g(self):\n        pass\n",
    )

    def make(self, rng: random.Random) -> bytes:
        return generate.lines(rng, self._WORDS, self._SEEDS).encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> None:
        from rlm_core.source.parsed import ParsedSource
        from rlm_core.source.units import find_units
        from rlm_lsp.budgets.comments import read_comments
        from rlm_lsp.budgets.syntax import parse, render

        text = data.decode("utf-8", "surrogatepass")
        written, mistakes = parse(text)
        for mistake in mistakes:
            assert 0 <= mistake.start <= mistake.end <= len(text)
        again, _ = parse(render([entry.budget for entry in written]))
        assert [entry.budget for entry in again] == [entry.budget for entry in written]
        if b"# rlm" in data:
            source = text.encode("utf-8", "replace")
            parsed = ParsedSource(source, "python")
            read_comments(parsed, find_units(parsed))


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


class Networks(Target):
    """ONNX files of users: read, written as text, and their costs."""

    name = "onnx"
    share = 0.1

    @cached_property
    def _seeds(self) -> list[Any]:
        import numpy as np
        from onnx import TensorProto, helper, numpy_helper

        def tensor(name: str, *shape: int | str) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))

        def weight(name: str, *shape: int) -> Any:
            return numpy_helper.from_array(np.zeros(shape, np.float32), name)

        nodes = [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("GlobalAveragePool", ["r"], ["p"]),
            helper.make_node("Flatten", ["p"], ["f"]),
            helper.make_node("Gemm", ["f", "m"], ["y"], transB=1),
        ]
        body = helper.make_graph([helper.make_node("Relu", ["f"], ["o"])], "body", [], [tensor("o", 1, 8)])
        branches = [
            *nodes[:4],
            helper.make_node("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.BOOL, [], [True])),
            helper.make_node("If", ["k"], ["y"], then_branch=body, else_branch=body),
        ]
        inputs, weights = [tensor("x", "n", 3, 32, 32)], [weight("w", 8, 3, 3, 3), weight("b", 8), weight("m", 4, 8)]
        return [
            helper.make_model(
                helper.make_graph(chosen, "g", inputs, [tensor("y", "n", 4)], weights),
                opset_imports=[helper.make_opsetid("", 17)],
                ir_version=9,
            )
            for chosen in (nodes, branches)
        ]

    def make(self, rng: random.Random) -> bytes:
        return generate.proto_bytes(rng, self._seeds)

    def read(self, data: bytes) -> None:
        from rlm_core.source.onnx_graph.costs import costs, total
        from rlm_core.source.onnx_graph.reader import read_onnx
        from rlm_core.source.onnx_graph.render import render

        graph = read_onnx(self.file("network.onnx", data))
        render(graph)
        total(costs(graph))


class TritonIr(Target):
    """Triton IR: its functions, canonical text and sizes."""

    name = "ttir"
    share = 0.3
    _WORDS = (
        *("tt.func", "public", "@k", "(", ")", "{", "}", "%arg0", ":", "!tt.ptr<f32>", "{tt.divisibility = 16 : i32}"),
        *(
            "loc(",
            "#loc",
            '"k.py":1:0',
            "\n",
            " " * 30,
            "tt.load",
            "tt.return",
            "tensor<64x64xf32>",
            "9" * 50,
            "\0",
            "`",
        ),
        *("scf.for", "=", "arith.constant", "dense<0>", "<", ">", "module", "@", '"', "\ud800", "\r", "\u2028", "-"),
    )
    _SEEDS = (
        '#loc = loc("k.py":1:0)\nmodule {\n  tt.func public @k(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {\n'
        "    %c = arith.constant 64 : i32 loc(#loc)\n    %0 = tt.load %arg0 : !tt.ptr<f32> loc(#loc2)\n"
        "    tt.return loc(#loc)\n  }\n}\n",
        "tt.func @f(%x: i32) {\n  scf.for %i = %x to %x {\n    %t = tt.dot %a, %b : tensor<64x64xf32>\n  }\n"
        "  tt.return\n}\n",
    )

    def make(self, rng: random.Random) -> bytes:
        return generate.broken(rng, generate.lines(rng, self._WORDS, self._SEEDS).encode("utf-8", "surrogatepass"), 0.1)

    def read(self, data: bytes) -> None:
        from rlm_core.inference.features import describe
        from rlm_core.source.canonical import canonical
        from rlm_core.source.units import find_units, read_source

        for unit in find_units(read_source(self.file("kernel.ttir", data))):
            describe(canonical(unit.text, unit.language), unit.basis, unit.language)


class Http(Target):
    """The bodies of requests to a model server, and of its answers to a client."""

    name = "http"
    _REQUEST: ClassVar[Any] = {
        "version": 3,
        "questions": [
            {
                "text": "def f(): pass",
                "language": "python",
                "basis": "call",
                "queries": [{"metric": "latency", "device": "x86-64", "workload": {"n": "3"}}],
                "callees": [{"text": "def g(): pass", "depth": 1}],
            }
        ],
    }
    _ANSWER: ClassVar[Any] = {
        "version": 3,
        "model": "m",
        "predictions": [[{"basis": "call", "metric": "latency", "device": None, "workload": {}, "model_id": "m"}]],
    }
    _PLAIN: Sequence[Any] = ({"error": "no"}, {"status": "ok", "queued": 3})

    @cached_property
    def _answers(self) -> list[Any]:
        from rlm_core.serving import wire

        from tests.rlm_core.serving.support import LATENCY, LengthPredictor, call

        found = tuple(map(tuple, LengthPredictor().predict([call("abc"), call("odd")], [LATENCY, LATENCY])))
        answer = json.loads(wire.write(wire.Answer(version=wire.VERSION, model="m", predictions=found)))
        return [answer, self._ANSWER, *self._PLAIN]

    def make(self, rng: random.Random) -> bytes:
        if rng.random() < 0.6:
            return b"Q" + generate.json_bytes(rng, [self._REQUEST])
        return b"A" + generate.json_bytes(rng, self._answers)

    def read(self, data: bytes) -> None:
        from rlm_core.serving import wire

        if data[:1] == b"Q":
            if len(data) > wire.Limits().body_bytes:
                raise RlmError("a longer body is refused before it is read")
            for question in wire.read_request(data[1:]).questions:
                _ = question.characters, question.code
            return
        readers: tuple[Callable[[bytes], object], ...] = (
            partial(wire.read, wire.Answer),
            partial(wire.read, wire.Problem),
            partial(wire.read, wire.Health),
        )
        for read in readers:
            try:
                read(data[1:])
            except wire.WireError as error:
                one_line(str(error))


class Globs(Target):
    """Globs of settings, against paths."""

    name = "globs"
    _WORDS = (
        "*",
        "**",
        "?",
        "/",
        "a",
        "**/",
        "/**",
        "[",
        "]",
        "!",
        "\\",
        ".",
        "b.py",
        "\0",
        "\n",
        "{a,b}",
        "(",
        ")+",
        "ä",
    )

    def make(self, rng: random.Random) -> bytes:
        glob = generate.lines(rng, self._WORDS, ("src/**/*.py", "**/*a**/*a", "build/"))
        path = "/".join(
            rng.choice(("a", "b", "src", "a" * 200, "b.py", "*", ".", "\n")) for _ in range(rng.randrange(1, 9))
        )
        return f"{glob}\x00{path}".encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> None:
        from rlm_lsp.sources import matches

        glob, _, path = data.decode("utf-8", "surrogatepass").rpartition("\0")
        matches(glob, path)


TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (Settings, Budgets, Cards, Labels, Measurements, Networks, TritonIr, Http, Globs)
}


def one_line(text: str) -> None:
    """A message must be a line."""
    assert "\n" not in text, f"a message of several lines: {text[:200]!r}"
    assert len(text) < 20_000, f"a message of {len(text)} characters"


def run(name: str, inputs: int, seed: int, first: int = 0, until: float | None = None) -> Report:
    """Read ``inputs`` inputs of a target, from number ``first`` on, or until a time of ``time.monotonic``."""
    report = Report(name)
    # Files in memory where the system has that: most targets write each input to one.
    folder = Path(tempfile.mkdtemp(dir=_MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None))
    begun = time.process_time()
    try:
        target = TARGETS[name](folder)
        rng = random.Random()
        for number in range(first, first + inputs):
            if until is not None and time.monotonic() > until:
                break
            rng.seed(f"{seed}/{number}")
            try:
                data = target.make(rng)
            except RecursionError:  # changes have nested the document deeper than json.dumps can write
                continue
            problem = _read(target, data, report)
            report.inputs += 1
            if problem is not None and len(report.failures) < _SHOWN_FAILURES:
                report.failures.append(f"--target {name} --seed {seed} --first {number} --inputs 1: {problem}")
    finally:
        shutil.rmtree(folder)
    report.seconds = time.process_time() - begun
    return report


def _read(target: Target, data: bytes, report: Report) -> str | None:
    """What is wrong with how a target read an input, None if nothing is."""
    started = time.process_time()
    problem = None
    try:
        target.read(data)
    except RlmError as error:
        report.refused += 1
        if "\n" in str(error):
            problem = f"a message of several lines: {str(error)[:200]!r}"
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{type(error).__name__}: {str(error)[:200]} ({Path(frame.filename).name}:{frame.lineno})"
    seconds = time.process_time() - started
    report.slowest = max(report.slowest, seconds)
    if problem is None and seconds > _SLOW_SECONDS:
        problem = f"took {seconds:.1f} s"
    return problem


def _atheris(name: str, arguments: Sequence[str]) -> None:
    """Let atheris mutate the inputs of a target; it stops at the first failure."""
    atheris: Any = importlib.import_module("atheris")

    folder = Path(tempfile.mkdtemp(dir=_MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None))
    target = TARGETS[name](folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    rng = random.Random(0)
    for number in range(200):
        (corpus / str(number)).write_bytes(target.make(rng))

    def once(data: bytes) -> None:
        problem = _read(target, data, Report(name))
        if problem is not None:
            raise AssertionError(problem)

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], once)
    atheris.Fuzz()


def main(show: Callable[[str], None] = print) -> None:
    """Print a line of JSON per target; the exit status is 1 if an input failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs, over all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--target", choices=[*TARGETS, "all"], default="all")
    parser.add_argument("--atheris", nargs=argparse.REMAINDER, help="mutate by coverage; what follows is for libFuzzer")
    arguments = parser.parse_args()
    if arguments.atheris is not None:
        _atheris(arguments.target, arguments.atheris)
        return
    chosen = list(TARGETS) if arguments.target == "all" else [arguments.target]
    weight = sum(TARGETS[name].share for name in chosen)
    failed = False
    for name in chosen:
        count = round(arguments.inputs * TARGETS[name].share / weight)
        report = run(name, count, arguments.seed, arguments.first)
        failed |= bool(report.failures)
        show(json.dumps(asdict(report)))
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
