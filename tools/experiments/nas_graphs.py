"""Checks the ONNX graphs of every NAS label file: the checker on all, onnxruntime on a sample, counts against labels.

    python -m tools.experiments.nas_graphs --labels DIR [--run 100] [--files FILE ...]

Prints one row per file: architectures, those that pass ``onnx.checker`` with shape inference, those that run and give
finite numbers, and how many rows agree with each column of parameters or operations (to the digits that it prints).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from tqdm import tqdm

from tools.nas.counts import Counts, count
from tools.nas.labels import FILES, read_entries
from tools.nas.spaces import Architecture, build
from tools.nas.writer import with_weights, with_weights_as_inputs

# column -> the count that it stands for, and its unit
COLUMNS = {
    "nasbench101_20k.csv.gz": {"params": ("parameters", 1.0)},
    "nasbench101_sample100.csv.gz": {"params": ("parameters", 1.0)},
    "nasbenchmacro_cifar10_accuracy.csv.gz": {"params": ("parameters", 1.0), "flops": ("macs", 1.0)},
    "accelnasbench_mnasnet.csv.gz": {"params_m": ("parameters", 1e6), "macs_m": ("thop_operations", 1e6)},
}


def main() -> None:
    """Check all files and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=Path, required=True)
    parser.add_argument("--run", type=int, default=100, help="networks of each file to run in onnxruntime")
    parser.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES), metavar="FILE")
    arguments = parser.parse_args()
    print("file | architectures | checked | run | agreement | seconds")
    made: dict[Architecture, Counts] = {}
    for name in arguments.files:
        if (arguments.labels / name).exists():
            print(check(arguments.labels / name, arguments.run, made), flush=True)


def check(path: Path, runs: int, made: dict[Architecture, Counts]) -> str:
    """One row of the table; architectures in ``made`` are not checked again."""
    started = time.perf_counter()
    entries = read_entries(path)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = COLUMNS.get(path.name, {})
    agree = dict.fromkeys(columns, 0)
    for entry, row in zip(tqdm(entries, desc=path.name, leave=False), rows, strict=True):
        key = entry.architecture
        if key not in made:
            model = build(key)
            onnx.checker.check_model(with_weights_as_inputs(model), full_check=True)
            made[key] = count(model)
        for column, (counted, unit) in columns.items():
            agree[column] += same(row[column], getattr(made[key], counted) / unit)
    own = list(dict.fromkeys(entry.architecture for entry in entries))
    sample = random.Random(0).sample(own, min(runs, len(own)))
    ran = sum(runs_finite(build(architecture)) for architecture in sample)
    agreement = ", ".join(f"{column} {agree[column]}/{len(rows)}" for column in columns) or "-"
    seconds = time.perf_counter() - started
    return f"{path.name} | {len(own)} | {len(own)} | {ran}/{len(sample)} | {agreement} | {seconds:.0f}"


def same(label: str, counted: float) -> bool:
    """Return whether a printed number is the counted one, rounded to six significant digits as in labels."""
    return float(label) == counted or float(f"{counted:.6g}") == float(label)


def runs_finite(model: onnx.ModelProto) -> bool:
    """Return whether onnxruntime runs the model with random weights and all outputs are finite."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    full = with_weights(model)
    session = onnxruntime.InferenceSession(full.SerializeToString(), options, providers=["CPUExecutionProvider"])
    random_numbers = np.random.default_rng(0)
    feeds = {
        value.name: random_numbers.standard_normal(value.shape, np.float32)
        if value.type == "tensor(float)"
        else random_numbers.integers(0, 1000, value.shape)
        for value in session.get_inputs()
    }
    return all(np.isfinite(output).all() for output in session.run(None, feeds))


if __name__ == "__main__":
    main()
