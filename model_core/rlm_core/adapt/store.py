"""Adapters on disk: one small JSON file a device, in the user's configuration folder. Reading one runs nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from platformdirs import user_config_path

from ..errors import DataError, ModelError
from ..types import Basis, Metric
from .fit import MIN_MEASUREMENTS, Array, DeviceFit

FORMAT = "rlm-adapter-1"
# latency and memory of the same code differ by device, accuracy does not.
METRICS: tuple[Metric, ...] = ("latency", "memory")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_DIGITS = 7
_ARRAYS = ("centre", "weights", "loo_weights", "loo_intercepts", "residuals")


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to answer about ``device`` for one basis and metric from the model's predictions for ``known`` devices.

    ``columns`` names what else of a text the fit reads; ``date`` is YYYY-MM-DD, ``model`` the id of the weights that
    made the predictions.
    """

    device: str
    basis: Basis
    metric: Metric
    model: str
    date: str
    known: tuple[str, ...]
    columns: tuple[str, ...]
    fit: DeviceFit


def check_name(device: str) -> str:
    """A device's name, fit for a file name too.

    Raises:
        DataError: it is not.
    """
    if not _NAME.fullmatch(device):
        raise DataError(f"device {device!r}: use letters, digits, dots, dashes and underscores, for example my-phone-8")
    return device


def folder() -> Path:
    """Where this user's adapters are kept."""
    return user_config_path("rlm-lsp") / "devices"


def adapter_path(device: str) -> Path:
    """The file of a device's adapter.

    Raises:
        DataError: the name is not fit for a file.
    """
    return folder() / f"{check_name(device)}.json"


def write_adapters(adapters: Sequence[Adapter], path: Path) -> None:
    """Write the adapters of one device, all of the same model and date; a file that is there is replaced as a whole.

    Raises:
        DataError: the file cannot be written.
    """
    first = adapters[0]
    data = {
        "format": FORMAT,
        "device": first.device,
        "model": first.model,
        "date": first.date,
        "fits": [
            {
                "basis": adapter.basis,
                "metric": adapter.metric,
                "n": adapter.fit.n,
                "known": list(adapter.known),
                "columns": list(adapter.columns),
                "intercept": adapter.fit.intercept,
                **{name: np.round(getattr(adapter.fit, name), _DIGITS).tolist() for name in _ARRAYS},
            }
            for adapter in adapters
        ],
    }
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(data) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another --out") from None


def read_adapters(path: Path, model: str | None = None) -> list[Adapter]:
    """The adapters of one file; ``model`` is the id of the weights that they must rest on, None for any.

    Raises:
        ModelError: the file cannot be read, is not an adapter, or rests on other weights.
    """
    advice = "run rlm-lsp adapt again"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data.get("format") != FORMAT:
            raise ModelError(f"{path}: format {data.get('format')!r} is not {FORMAT}; {advice}")
        adapters = [_adapter(data, entry) for entry in data["fits"]]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {advice}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, DataError) as error:
        raise ModelError(f"{path}: corrupt ({type(error).__name__}: {error}); {advice}") from None
    rests_on = str(data["model"])
    if model is not None and rests_on != model:
        raise ModelError(f"{path}: rests on the model {rests_on}, but {model} is in use; {advice}")
    return adapters


def _adapter(data: dict[str, Any], entry: dict[str, Any]) -> Adapter:
    basis, metric = entry["basis"], entry["metric"]
    if basis not in get_args(Basis) or metric not in METRICS:
        raise ValueError(f"no such basis and metric: {basis!r}, {metric!r}")
    known, columns = tuple(map(str, entry["known"])), tuple(map(str, entry["columns"]))
    arrays: dict[str, Array] = {name: np.array(entry[name], np.float64) for name in _ARRAYS}
    n, width = len(arrays["residuals"]), len(known) + len(columns)
    shapes = {"centre": (width,), "weights": (width,), "loo_weights": (n, width), "loo_intercepts": (n,)}
    if n < MIN_MEASUREMENTS or not known or any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("sizes of the arrays do not agree")
    intercept = float(entry["intercept"])
    if arrays["residuals"].ndim != 1 or not all(np.isfinite(a).all() for a in (*arrays.values(), np.array(intercept))):
        raise ValueError("numbers are not finite")
    fit = DeviceFit(
        len(known),
        arrays["centre"],
        arrays["weights"],
        intercept,
        arrays["loo_weights"],
        arrays["loo_intercepts"],
        arrays["residuals"],
    )
    device = check_name(str(data["device"]))
    return Adapter(
        device, cast(Basis, basis), cast(Metric, metric), str(data["model"]), str(data["date"]), known, columns, fit
    )
