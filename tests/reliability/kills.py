"""Kill -9 during every kind of write: afterwards the next reader finds a whole state, and nothing acknowledged is lost.

    python -m tests.reliability.kills [--kills 500] [--seed 1]

For each kill, a process of its own writes state after state of one kind with the code that writes it for users, and
says after each that it is done. It is killed at a random moment, or just before its n-th step in the file system
(opens, renames, removals, changes of permissions). Then the state is read as the next command would: it must be the
last that was acknowledged or the one after it, whole; another process must be able to write the next one; and no file
may be left that stops anything. What a killed writer leaves is hidden, ends in ``.partial``, and goes with a write a
day later.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import torch
from rlm_core import tables
from rlm_core.files import remove_abandoned
from rlm_core.inference.adaptation import cpu_score
from rlm_core.inference.card import CARD, checksum, read_card
from rlm_core.measurement.committed import export_committed, read_units
from rlm_core.measurement.store import Store
from rlm_core.training.datasets import measured
from rlm_core.training.student.train import _timed, times
from rlm_core.training.trainer import Trainer
from rlm_core.training.tuning.run import output_directory
from rlm_lsp.cli.measure_files import _write_labels
from rlm_lsp.cli.predict_rows import _answer_writer
from rlm_lsp.settings import files as settings_files

from tests.rlm_core.measurement.test_store import measurement

_EVENTS = frozenset({"open", "os.rename", "os.remove", "os.chmod", "os.mkdir", "os.rmdir", "os.truncate", "os.utime"})
_UNITS = 40  # of a batch: a state is whole only with all of them
_BUILTIN = Path(tables.__file__).parent / "builtin"


@dataclass(frozen=True)
class Kind:
    """A kind of write.

    Args:
        write: puts a state, whose number is given, into a folder.
        read: the number of the state in a folder, None where there is none yet; raises if it is not whole.
    """

    write: Callable[[Path, int], None]
    read: Callable[[Path], int | None]


def _batch(state: int) -> list[Any]:
    at = f"2026-11-{1 + state // 1440 % 28:02}T{state // 60 % 24:02}:{state % 60:02}:00+00:00"
    return [
        measurement(qualname=f"f{number}", median=float(state + 1), high=1e9, run=f"{state:06}", measured_at=at)
        for number in range(_UNITS)
    ]


def _the_same(numbers: list[float]) -> int:
    assert len(numbers) == _UNITS, f"{len(numbers)} of {_UNITS} units"
    assert len(set(numbers)) == 1, "parts of several states"
    return int(numbers[0]) - 1


def _write_store(folder: Path, state: int) -> None:
    Store(folder / "m.sqlite3", _refuse).add(_batch(state))


def _read_store(folder: Path) -> int | None:
    runs: dict[str, list[float]] = {}
    for one in Store(folder / "m.sqlite3", _refuse).all():
        runs.setdefault(one.run, []).append(one.median)
    return max(map(_the_same, runs.values()), default=None)


def _refuse(note: str) -> None:
    raise AssertionError(note)


def _write_committed(folder: Path, state: int) -> None:
    path = folder / "shapes" / "area.py"
    batch = [replace(one, path=str(path), file="shapes/area.py") for one in _batch(state)]
    export_committed(batch, folder / ".rlm", folder, _refuse)


def _read_committed(folder: Path) -> int | None:
    found = [unit.latency.p50 for unit in read_units(folder / ".rlm", _refuse) if unit.latency is not None]
    return _the_same(found) if found else None


def _write_table(folder: Path, state: int) -> None:
    with tables.row_writer(str(folder / "predicted.parquet"), {"value": float}) as append:
        for _ in range(_UNITS):
            append([{"value": float(state + 1)}])


def _read_table(folder: Path) -> int | None:
    path = folder / "predicted.parquet"
    return _the_same([row["value"] for row in tables.read_rows(str(path))]) if path.exists() else None


def _write_measured(folder: Path, state: int) -> None:
    row = {**dict.fromkeys(measured.LABELS.names), "run": str(state)}
    measured.write_labels([row] * _UNITS, folder / "l.parquet")


def _read_measured(folder: Path) -> int | None:
    path = folder / "l.parquet"
    return _the_same([int(one) + 1.0 for one in pq.read_table(path)["run"].to_pylist()]) if path.exists() else None


def _write_lines(folder: Path, state: int) -> None:
    _write_labels([{"value": state + 1.0}] * _UNITS, "jsonl", str(folder / "l.jsonl"), source=False)


def _read_lines(folder: Path) -> int | None:
    path = folder / "l.jsonl"
    return _the_same([json.loads(line)["value"] for line in path.open()]) if path.exists() else None


def _write_answers(folder: Path, state: int) -> None:
    with _answer_writer(str(folder / "answers.jsonl")) as write:
        for number in range(_UNITS):
            write([{"id": number, "value": state + 1.0}])


def _read_answers(folder: Path) -> int | None:
    path = folder / "answers.jsonl"
    return _the_same([json.loads(line)["value"] for line in path.open()]) if path.exists() else None


def _write_checkpoint(folder: Path, state: int) -> None:
    owner: Any = SimpleNamespace(processes=SimpleNamespace(main=True), out=folder)
    Trainer._write(owner, {"weights": torch.full((_UNITS, 200), state + 1.0)}, "checkpoint.pt")


def _read_checkpoint(folder: Path) -> int | None:
    path = folder / "checkpoint.pt"
    if not path.exists():
        return None
    return _the_same(torch.load(path, weights_only=True)["weights"].min(1).values.tolist())


def _write_times(folder: Path, state: int) -> None:
    with _timed(folder, f"stage {state}"):
        pass


def _read_times(folder: Path) -> int | None:
    return max((int(name.removeprefix("stage ")) for name in times(folder)), default=None)


def _write_score(folder: Path, state: int) -> None:
    numbers = dict.fromkeys(("interpreter", "allocation", "numpy", "overall"), state + 1.0)
    score = cpu_score.CpuScore(**numbers, spread=0.1, cpu=cpu_score.cpu_name(), date="2026-11-23")
    cpu_score.write(score, folder / "cpu.json")


def _read_score(folder: Path) -> int | None:
    path = folder / "cpu.json"
    found = cpu_score.read(path)
    assert found is not None or not path.exists()
    return None if found is None else int(found.overall) - 1


def _write_settings(folder: Path, state: int) -> None:
    settings_files._write(folder / "config.toml", "".join(f"model{number} = {state}\n" for number in range(_UNITS)))


def _read_settings(folder: Path) -> int | None:
    config = settings_files.read_config(folder / "config.toml")
    if config is None:
        return None
    assert config.error is None, config.error
    return _the_same([float(line.rpartition("=")[2]) + 1 for line in config.source.decode().splitlines()])


def _write_model(folder: Path, state: int) -> None:
    with output_directory(folder / f"model-{state}") as made:
        for path in _MODEL_FILES:
            shutil.copyfile(path, made.directory / path.name)
        card = json.loads((_BUILTIN / CARD).read_text(encoding="utf-8"))
        card["files"] = {path.name: checksum(made.directory / path.name) for path in _MODEL_FILES}
        (made.directory / CARD).write_text(json.dumps(card), encoding="utf-8")
        made.commit()


def _read_model(folder: Path) -> int | None:
    found = [path for path in folder.iterdir() if path.name.startswith("model-")]
    for path in found:
        read_card(path)  # the card, and the checksum of every file
    return max((int(path.name.removeprefix("model-")) for path in found), default=None)


_MODEL_FILES = sorted(path for path in _BUILTIN.iterdir() if path.suffix != ".json" and path.stat().st_size < 2**20)
KINDS = {
    "store": Kind(_write_store, _read_store),
    "committed": Kind(_write_committed, _read_committed),
    "export": Kind(_write_lines, _read_lines),
    "answers": Kind(_write_answers, _read_answers),
    "predictions": Kind(_write_table, _read_table),
    "data set": Kind(_write_measured, _read_measured),
    "checkpoint": Kind(_write_checkpoint, _read_checkpoint),
    "times of a run": Kind(_write_times, _read_times),
    "CPU score": Kind(_write_score, _read_score),
    "settings": Kind(_write_settings, _read_settings),
    "model": Kind(_write_model, _read_model),
}


def kill_once(name: str, folder: Path, seed: int) -> str:
    """Kill a writer of one kind in a folder that may have a state already; how it was killed.

    Raises:
        AssertionError: what is left is not a whole state, or not the one that it must be.
    """
    kind, chosen = KINDS[name], random.Random(seed)
    before = kind.read(folder)
    first = 0 if before is None else before + 1
    by_step = chosen.random() < 0.5 and name != "store"  # SQLite's steps are its own
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _write_until_killed(kind, folder, first, writing, chosen.randrange(1, 60) if by_step else None)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as said:
        assert said.read(1) == b"s", "the writer did not start"
        if not by_step:
            time.sleep(chosen.random() ** 2 * 0.06)
            os.kill(child, signal.SIGKILL)
        acknowledged = len(said.readall())
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the writer ended by itself: {status}"
    assert os.WTERMSIG(status) == signal.SIGKILL
    last = first + acknowledged - 1  # -1 + first: nothing was acknowledged
    found = kind.read(folder)
    expected = {last if last >= 0 else None, last + 1}
    assert found in expected, f"{name}: state {found} after {last} was acknowledged"
    for path in folder.rglob("*.partial"):
        assert path.name.startswith("."), path
    return "at a step" if by_step else "at a moment"


def _write_until_killed(kind: Kind, folder: Path, state: int, said: int, steps: int | None) -> None:
    try:
        os.write(said, b"s")
        if steps is not None:
            left = [steps]

            def count(event: str, _: object) -> None:
                if event in _EVENTS:
                    left[0] -= 1
                    if not left[0]:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
        while True:
            kind.write(folder, state)
            os.write(said, b"a")
            state += 1
    finally:
        os._exit(3)


def kills(count: int, seed: int, kinds: list[str] | None = None) -> Counter[tuple[str, str]]:
    """Kill so many writers, the kinds in turn; how many of each kind died how.

    Raises:
        AssertionError: something was lost or half-written.
    """
    torch.set_num_threads(1)
    names = kinds or list(KINDS)
    done: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as place:
        for number in range(count):
            name = names[number % len(names)]
            folder = Path(place) / name
            folder.mkdir(exist_ok=True)
            done[name, kill_once(name, folder, seed * 1_000_003 + number)] += 1
            if name == "model":
                for model in sorted(folder.glob("model-*"), key=lambda path: int(path.name[6:]))[:-2]:
                    shutil.rmtree(model)
        _check_what_is_left(Path(place), names)
    return done


def _check_what_is_left(place: Path, names: list[str]) -> None:
    """After all kills, a writer of each kind works, and after a day removes what the killed ones left."""
    for path in place.rglob("*"):
        if any(part.endswith(".partial") for part in path.relative_to(place).parts):
            os.utime(path, (0, 0))
    for name in names:
        kind, folder = KINDS[name], place / name
        following = (kind.read(folder) or 0) + 1
        kind.write(folder, following)
        assert kind.read(folder) == following
    for path in place.rglob("*.partial"):
        # A model has a new name each time.
        remove_abandoned(path.with_name(path.name[1:].rpartition(".partial")[0].rpartition(".")[0]))
        assert not path.exists(), path


def main() -> int:
    """Kill and print what was killed how."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    began = time.monotonic()
    done = kills(arguments.kills, arguments.seed)
    for (name, how), times_ in sorted(done.items()):
        print(f"{name:<16} {how:<12} {times_:>4}")
    print(f"{sum(done.values())} kills in {time.monotonic() - began:.0f} s: nothing lost, nothing half-written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
