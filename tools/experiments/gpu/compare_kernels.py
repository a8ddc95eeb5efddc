"""Measured kernels next to the shipped model's predictions for the same GPU and sizes.

    python -m tools.experiments.gpu.compare_kernels kernels.jsonl [--device h100] [--out kernels.json]

Rows are those of ``rlm-lsp bench triton``, whose files must be where they were. Prints a line for each kernel and
sizes, then Spearman (pooled, of the kernels' medians, and within kernels) and the share within the 80 % band, of each
package and of all.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import rlm_core
from rlm_core.measurement.gpu.measurements import measurements_of
from rlm_core.measurement.types import Measurement
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.devices import canonical_device
from rlm_core.source.units import read_source
from rlm_core.types import CodeText, Query
from scipy.stats import spearmanr

_LINE = "{:68} {:74} {:>10} {:>10} {:>21} {:>7} {}"


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--device", help="another GPU than that of the rows")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = [json.loads(line) for path in arguments.rows for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        if row["status"] != "ok":
            print(f"{row['path']} {row['case']}: {row['status']} {row.get('error', '')}")
    found = measurements_of(rows, {row["path"]: Path(row["path"]) for row in rows})
    for reason, count in found.left_out.items():
        print(f"{count} rows left out: {reason}")
    site = Path(os.path.commonpath([one.path for one in found.measurements] or ["/"]))
    compared = [entry for one in found.measurements if (entry := _compared(one, site, arguments.device)) is not None]
    if arguments.out:
        arguments.out.write_text(json.dumps(compared, indent=1) + "\n", encoding="utf-8")
    print(_LINE.format("kernel", "sizes", "measured", "predicted", "80 % band", "ratio", "inside"))
    for entry in compared:
        band = f"{entry['low']:.1f}–{entry['high']:.1f}"
        ratio = entry["predicted"] / entry["measured"]
        figures = (f"{entry['measured']:.1f}", f"{entry['predicted']:.1f}", band, f"{ratio:.2f}")
        print(_LINE.format(entry["kernel"], entry["sizes"], *figures, "yes" if entry["inside"] else "no"))
    packages = sorted({entry["kernel"].partition("/")[0] for entry in compared})
    for package in packages:
        _summary(package, [entry for entry in compared if entry["kernel"].startswith(f"{package}/")])
    if len(packages) > 1:
        _summary("all", compared)


_ANALYSER = Analyser()
_PREDICTOR = rlm_core.load()


def _compared(one: Measurement, site: Path, device: str | None) -> dict[str, Any] | None:
    """Measured and predicted microseconds of a kernel at some sizes."""
    workload = one.asked
    query = Query("latency", canonical_device(device or one.device), workload)
    prediction = _PREDICTOR.predict([_code(Path(one.path), one.qualname)], [[query]])[0][0]
    name = f"{Path(one.path).relative_to(site).with_suffix('')}:{one.qualname}"
    band = prediction.band
    if prediction.median is None or band is None:
        print(f"{name}: no prediction ({prediction.abstained})")
        return None
    return {
        "kernel": name,
        "sizes": " ".join(f"{size}={value}" for size, value in workload.items()),
        "device": query.device,
        "measured": 1e6 * one.median,
        "predicted": 1e6 * prediction.median,
        "low": 1e6 * band.low,
        "high": 1e6 * band.high,
        "inside": bool(band.low <= one.median <= band.high),
    }


def _code(path: Path, qualname: str) -> CodeText:
    """Return the text that the model reads of a unit of a file."""
    return next(found.code for found in _ANALYSER.analyse(read_source(path), path) if found.unit.qualname == qualname)


def _summary(name: str, compared: list[dict[str, Any]]) -> None:
    kernels = defaultdict(list)
    for entry in compared:
        kernels[entry["kernel"]].append((entry["measured"], entry["predicted"]))
    measured, predicted = (np.array([entry[key] for entry in compared]) for key in ("measured", "predicted"))
    medians = np.array([np.median(pairs, axis=0) for pairs in kernels.values()])
    within = [spearmanr(*np.transpose(pairs)).statistic for pairs in kernels.values() if len(pairs) > 2]
    error = np.abs(np.log10(predicted / measured))
    inside = np.mean([entry["inside"] for entry in compared])
    print(
        f"{name}: {len(compared)} rows of {len(kernels)} kernels:"
        f" Spearman {spearmanr(measured, predicted).statistic:.3f},"
        f" of the kernels' medians {spearmanr(*medians.T).statistic:.3f}, within kernels {np.nanmean(within):.3f};"
        f" inside the 80 % band {inside:.3f}; median factor of the error {10 ** np.median(error):.2f}"
    )


if __name__ == "__main__":
    main()
