"""A small full model in the layout of the published ones: it is written, installed and served as a user does it.

``python -m tests.full_models FOLDER`` serves it from a new folder as it was published, and once more after it was
calibrated; it prints both as JSON (id and address) and ends with its stdin. The weights of the checkpoint
are random and then fitted to numbers around :data:`TYPICAL` bytes, whatever the text, so that hints and tables look as
they do with a real model. It needs the [rlm] and [serve] extras.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "tiny-rlm"
TYPICAL = 20 * 2.0**20
PROGRAM = """\
# rlm: program
import sys

n = int(sys.stdin.readline())
values = list(map(int, sys.stdin.readline().split()))
print(sum(sorted(values)[:n]))
"""
_FACTOR = 1.3  # of one standard deviation
_STEPS, _ROWS, _TOKENS = 120, 32, 16
_PROGRAMS = 40
_REPOSITORY = Path(__file__).parents[1]


def write_checkpoint(folder: Path) -> None:
    """Write the files of the checkpoint into a folder, as its authors would publish them."""
    # Its users that start processes alone need no torch.
    import numpy as np
    import torch
    from rlm_core.training.full.regress_lm import ieee

    from tests.rlm_core.training.full import published_checkpoints as checkpoints

    exponent_digits, mantissa_digits = checkpoints.DIGITS
    numbers = ieee(exponent_digits=exponent_digits, mantissa_digits=mantissa_digits)
    ids = {name: index for index, name in enumerate(checkpoints.NUMBER_TOKENS)}
    model = checkpoints.reference().train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    random = np.random.default_rng(0)
    for _ in range(_STEPS):
        values = (TYPICAL * _FACTOR ** random.standard_normal(_ROWS)).tolist()
        wanted = torch.tensor([[ids[numbers.names[token]] for token in numbers.encode(value)] for value in values])
        start = torch.cat([wanted.new_zeros(_ROWS, 1), wanted[:, :-1]], 1)
        text = torch.from_numpy(random.integers(4, 256, (_ROWS, _TOKENS)))
        logits = model(input_ids=text, decoder_input_ids=start, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    checkpoints.write_checkpoint(folder, model=model.eval())


def write_rows(path: Path) -> None:
    """Write a data set of measured programs, to calibrate the model on."""
    import numpy as np
    from rlm_core.training.datasets import schema

    random = np.random.default_rng(1)
    empty: dict[str, object] = dict.fromkeys(schema.SCHEMA.names)
    schema.write_rows(
        (
            {
                **empty,
                "id": str(number),
                "text": f"n = int(input())\nprint(n + {number})\n",
                "callees": [],
                "language": "python",
                "basis": "program",
                "metric": "memory",
                "workload": {},
                "value": TYPICAL * _FACTOR ** random.standard_normal(),
                "group": f"problem-{number}",
                "family": "ours",
                "split": "cal",
                "source": "measured",
            }
            for number in range(_PROGRAMS)
        ),
        path,
    )


def write_published_rows(path: Path) -> None:
    """Write a data set in the schema of the published ones: Python programs, C++ solutions and kernels."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(2)
    kinds = (("APPS", "{}"), ("CDSS", "{'language': 'C++', 'p_id': 'p1'}"), ("KBSS", "{}"))
    rows = [
        {
            "identifier": f"{space}_{number}",
            "space": space,
            "input": f"x = {number}\n" * int(random.integers(1, 9)),
            "target": float(random.lognormal(8)),
            "metric_type": "latency_ms" if space == "KBSS" else "memory_bytes",
            "metadata": metadata,
        }
        for number in range(_PROGRAMS)
        for space, metadata in kinds
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)


def install(folder: Path) -> Path:
    """Write the checkpoint and install it, for a user whose data are in the folder; returns the model's directory."""
    write_checkpoint(folder / NAME)
    _run(folder, "model", "add", str(folder / NAME))
    return folder / "data" / "rlm-lsp" / "models" / NAME


def calibrate(folder: Path) -> None:
    """Calibrate the model that is installed in the folder."""
    write_rows(folder / "rows.parquet")
    _run(folder, "model", "calibrate", NAME, "--data", str(folder / "rows.parquet"))


@contextmanager
def serving(model: Path) -> Iterator[tuple[str, str]]:
    """Serve a model; yields its id and the address."""
    command = _command("serve-model", "--model", str(model), "--port", "0", "--threads", "1")
    with subprocess.Popen(command, env=_env(model.parent), text=True, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            assert line.startswith("rlm-lsp: serving "), line + server.stderr.read()
            _, _, name, _, address = line.split()
            yield name, address
        finally:
            server.kill()


def _run(folder: Path, *arguments: str) -> None:
    subprocess.run(_command(*arguments), env=_env(folder), check=True, stdout=subprocess.DEVNULL)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "rlm_lsp", *arguments]


def _env(folder: Path) -> dict[str, str]:
    paths = os.pathsep.join(str(_REPOSITORY / name) for name in ("model_core", "server"))
    own = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA", "STATE")}
    return {**os.environ, **own, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


@contextmanager
def serving_both(folder: Path) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Install the model and serve it, then calibrate it and serve it once more; yields both ids and addresses."""
    model = install(folder)
    with serving(model) as uncalibrated:
        calibrate(folder)
        with serving(model) as calibrated:
            yield uncalibrated, calibrated


if __name__ == "__main__":
    with serving_both(Path(sys.argv[1]).resolve()) as served:
        print(json.dumps(served), flush=True)
        sys.stdin.read()
