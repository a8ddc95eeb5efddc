"""Adapters on disk: one small JSON file per device, in the user's configuration folder. Reading one runs nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from platformdirs import user_config_path

from rlm_core.errors import DataError, ModelError
from rlm_core.files import atomic_write, read_regular
from rlm_core.source.canonical import canonical
from rlm_core.types import Basis, Metric

from .fit import MIN_MEASUREMENTS, Array, DeviceFit, Rest
from .sum_fit import MIN_NETWORKS

FORMAT = "rlm-adapter-3"
# latency and memory of the same code differ by device, accuracy does not.
METRICS: tuple[Metric, ...] = ("latency", "memory")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_DIGITS = 7
_MOST_BYTES = 2**28
_ARRAYS = ("centre", "weights")
_RESTS, _OF_REST = ("without_text", "without_row"), ("weights", "intercepts", "residuals")


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to answer about ``device`` for one basis and metric from the model's predictions for ``known`` devices.

    ``columns`` names what else of a text the fit reads; ``texts`` are the keys (:func:`text_key`) of those with several
    measurements, by number. ``date`` is YYYY-MM-DD, ``model`` the id of the weights that made the predictions.
    """

    device: str
    basis: Basis
    metric: Metric
    model: str
    date: str
    known: tuple[str, ...]
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    fit: DeviceFit


@lru_cache(1024)
def text_key(text: str, language: str) -> str:
    """A short name of a text, the same whatever its comments and layout."""
    plain = canonical(text, language).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(plain, digest_size=8).hexdigest()


def check_name(device: str) -> str:
    """A device's name, fit for a file name too.

    Raises:
        DataError: it is not.
    """
    if not _NAME.fullmatch(device):
        raise DataError(f"device {device!r}: use letters, digits, dots, dashes and underscores, for example my-phone-8")
    return device


def folder() -> Path:
    """The folder of this user's adapters."""
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
                **{name: _rounded(getattr(adapter.fit, name)) for name in _ARRAYS},
                "sum": adapter.fit.is_sum,
                "texts": list(adapter.texts),
                "text_of_row": adapter.fit.texts.tolist(),
                **{
                    name: {part: _rounded(getattr(rest, part)) for part in _OF_REST}
                    for name in _RESTS
                    if (rest := getattr(adapter.fit, name)) is not None
                },
            }
            for adapter in adapters
        ],
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as partial:
            partial.write_text(json.dumps(data) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); choose another --out") from None


def read_adapters(path: Path, model: str | None = None) -> list[Adapter]:
    """The adapters of one file; ``model`` is the id of the weights that they must rest on, None for any.

    Raises:
        ModelError: the file cannot be read, is not an adapter, or rests on other weights.
    """
    advice = "run rlm-lsp adapt again"
    try:
        data = json.loads(read_regular(path, _MOST_BYTES))
        if data.get("format") != FORMAT:
            raise ModelError(f"{path}: format {data.get('format')!r} is not {FORMAT}; {advice}")
        adapters = [_adapter(data, entry) for entry in data["fits"]]
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {advice}") from None
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError, DataError) as error:
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
    texts, own = tuple(map(str, entry["texts"])), np.array(entry["text_of_row"], np.int64)
    is_sum = bool(entry["sum"])
    n, width = len(own), len(known) * len(columns) if is_sum else len(known) + len(columns)
    counts = np.bincount(own, minlength=1)
    several = 0 if is_sum else (counts > 1).sum()
    if n < (MIN_NETWORKS if is_sum else MIN_MEASUREMENTS) or not known or not counts.all() or several != len(texts):
        raise ValueError("measurements, texts and devices do not agree")

    def array(data: dict[str, Any], name: str, *shape: int) -> Array:
        found = np.array(data[name], np.float64)
        if found.shape != shape or not np.isfinite(found).all():
            raise ValueError(f"{name} is not an array of {shape} finite numbers")
        return found

    def rest(name: str, parts: int, width: int) -> Rest:
        own = entry[name]
        return Rest(array(own, "weights", parts, width), array(own, "intercepts", parts), array(own, "residuals", n))

    fit = DeviceFit(
        len(known),
        array(entry, "centre", width),
        array(entry, "weights", width + len(texts)),
        float(array(entry, "intercept")),
        own,
        rest("without_text", len(counts) if len(counts) > 1 else n, width),
        rest("without_row", n, width + len(texts)) if texts else None,
        is_sum,
    )
    device = check_name(str(data["device"]))
    head = device, cast(Basis, basis), cast(Metric, metric), str(data["model"]), str(data["date"])
    return Adapter(*head, known, columns, texts, fit)


def _rounded(numbers: Array) -> list[Any]:
    digits: list[Any] = np.round(numbers, _DIGITS).tolist()
    return digits
