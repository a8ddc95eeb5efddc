"""Selects the configurations of an autotuned kernel that are worth measuring: a hook for ``triton.autotune``.

    @triton.autotune(configs, key=["M"], prune_configs_by={"early_config_prune": early_config_prune("team.pruner")})

A kernel that was measured on other GPUs or sizes has a forest (:mod:`rlm_core.training.pruner_fit` fits it to rows of
``rlm-lsp bench triton``), which ranks a configuration by the sizes and the device's data sheet. A kernel without
measurements is ranked by a rule alone: blocks of whole warps of 64 to 512 threads in a seeded order, the others after
them. No forest that was fitted to other kernels did better than chance there (docs/benchmarking.md).
"""

from __future__ import annotations

import math
import random
import re
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlm_core.errors import ModelError
from rlm_core.inference import trees
from rlm_core.queries.devices import canonical_device, device_table

_SLICE = "prune"
_PARAMETERS, _SIZES = 16, 8
_BLOCK = re.compile(r"block_(?:size|dim)|threads", re.IGNORECASE)
_TILE = re.compile(r"tile_size", re.IGNORECASE)
_TRITON_TILE = re.compile(r"[XYZR]\d?_?BLOCK|BLOCK", re.IGNORECASE)
_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg", "num_buffers_warp_spec"})
_SHAPE = re.compile(r"(\d+(?:x\d+)*)(?: [a-z]\w*)?\Z")
NAMES: tuple[str, ...] = (
    *("threads", "tile", "work", "warps", "warp_use", "resident", "blocks", "waves", "first", "second", "aspect"),
    *(f"parameter{place}" for place in range(_PARAMETERS)),
    *(f"size{place}" for place in range(_SIZES)),
    *("bandwidth", "fp32", "multiprocessors", "balance", "year", "is_amd"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One configuration as numbers by name, with the sizes that it is for (log2) and the device."""

    config: Mapping[str, float]
    sizes: tuple[float, ...]
    device: str | None

    @property
    def warp(self) -> int:
        """Threads of a warp of the device."""
        return 64 if (self.device or "").startswith("amd-mi") else 32

    @property
    def threads(self) -> float:
        """Threads of a block: of ``num_warps`` warps, or the product of its block sizes."""
        if "num_warps" in self.config:
            return self.config["num_warps"] * self.warp
        return math.prod([value for name, value in self.config.items() if _BLOCK.match(name)])

    @property
    def tile(self) -> float:
        """Elements that a block works on."""
        if "num_warps" in self.config:
            return math.prod([value for name, value in self.config.items() if _TRITON_TILE.match(name)])
        return self.threads * math.prod([value for name, value in self.config.items() if _TILE.match(name)])


def features(choice: Choice) -> npt.NDArray[np.float32]:
    """Return the features of a choice. Shape ``(len(NAMES),)``; sizes and counts are log2, unknown is NaN."""
    card = device_table().get(choice.device or "")
    bandwidth, fp32 = (card.memory_bandwidth, card.fp32_flops) if card is not None else (None, None)
    units = card.multiprocessors if card is not None else None
    threads, tile = max(choice.threads, 1.0), max(choice.tile, 1.0)
    warps = math.ceil(threads / choice.warp)
    resident = max(1.0, 2048 // threads)
    blocks = 2 ** max(choice.sizes) / tile if choice.sizes else math.nan
    sides = [value for name, value in sorted(choice.config.items()) if _BLOCK.match(name) or _TRITON_TILE.match(name)]
    first, second = [*(_log(value) for value in sides), math.nan, math.nan][:2]
    own = [value for _, value in sorted(choice.config.items())]
    return np.array(
        (
            *(_log(threads), _log(tile), _log(tile / threads), _log(warps), warps * choice.warp / threads),
            *(resident * threads, _log(blocks), _log(blocks / (units * resident)) if units else math.nan),
            *(first, second, first - second),
            *_padded(own, _PARAMETERS),
            *_padded(list(choice.sizes), _SIZES),
            *(_log(bandwidth or math.nan), _log(fp32 or math.nan), float(units or math.nan)),
            _log(fp32 / bandwidth) if fp32 and bandwidth else math.nan,
            float(card.year or math.nan) if card is not None else math.nan,
            float(card.id.startswith("amd")) if card is not None else math.nan,
        ),
        np.float32,
    )


@dataclass(frozen=True, slots=True)
class Pruner:
    """Forests by the name of the kernel that each ranks configurations of."""

    forests: Mapping[str, trees.Forest] = field(default_factory=dict)

    def rank(self, kernel: str | None, choices: Sequence[Choice]) -> list[int]:
        """The places of ``choices``, the most promising first."""
        forest = self.forests.get(kernel or "")
        if forest is None:
            return _by_rule(choices)
        expected = forest.predict(np.stack([features(choice) for choice in choices]))
        return [int(place) for place in np.argsort(expected, kind="stable")]

    def save(self, path: Path) -> None:
        """Write the forests to a safetensors file."""
        trees.save({f"{_SLICE}/{kernel}": one for kernel, one in self.forests.items()}, {_SLICE: NAMES}, path)

    @classmethod
    def load(cls, path: Path) -> Pruner:
        """Read what :meth:`save` wrote.

        Raises:
            ModelError: the file is missing, corrupt, or was fitted to other features.
        """
        found = trees.load(path, {_SLICE: NAMES})
        return cls({key.partition("/")[2]: forest for key, forest in found.items()})


Hook = Callable[..., list[Any]]


def early_config_prune(
    pruner: Pruner | Path | str | None = None,
    *,
    kernel: str | None = None,
    share: float = 0.1,
    least: int = 1,
    device: str | None = None,
) -> Hook:
    """A hook for Triton's ``prune_configs_by={"early_config_prune": ...}``.

    Args:
        pruner: forests, or the file that holds them; None for the rule alone.
        kernel: the name of the kernel; may be left out where the pruner knows one kernel only.
        share: of the configurations that are kept, 0..1.
        least: configurations that are kept at least.
        device: its name; None asks PyTorch, which runs wherever Triton launches, for the current GPU.

    Raises:
        ModelError: the file cannot be used, or ``share`` is not above 0 and at most 1.
    """
    if not 0 < share <= 1 or least < 1:
        raise ModelError(f"share {share} and least {least}: keep a share above 0 and at most 1, and at least 1")
    loaded = pruner if isinstance(pruner, Pruner) else Pruner() if pruner is None else Pruner.load(Path(pruner))
    known = kernel if kernel is not None or len(loaded.forests) != 1 else next(iter(loaded.forests))

    def hook(configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        parameters = [numbers(config.all_kwargs()) for config in configs]
        given = {**named_args, **kwargs}
        where = canonical_device(device or _current_device() or "")
        choices = [Choice(one, sizes_of(given, one), where) for one in parameters]
        kept = max(least, math.ceil(share * len(configs)))
        return [configs[place] for place in loaded.rank(known, choices)[:kept]]

    return hook


def numbers(config: Mapping[str, Any]) -> dict[str, float]:
    """A configuration as numbers: texts by a hash, what is None left out."""
    return {name: _number(value) for name, value in config.items() if value is not None}


def sizes_of(arguments: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[float, ...]:
    """log2 of the sizes in a launch's arguments, by name: elements of tensors, and whole numbers above 0.

    ``arguments`` are those of a launch, or the texts of them in a row (``64x128 fp16``). What ``config`` sets is left
    out.
    """
    found = []
    for name, value in sorted(arguments.items()):
        if name in config or name in _OPTIONS:
            continue
        size = _size(value)
        if size > 0:
            found.append(math.log2(size))
    return tuple(found[:_SIZES])


def _size(value: Any) -> float:
    if hasattr(value, "numel"):
        return float(value.numel())
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    match = _SHAPE.match(value) if isinstance(value, str) else None
    return math.prod(float(side) for side in match[1].split("x")) if match is not None else 0.0


def _number(value: Any) -> float:
    try:
        return float({"True": 1, "False": 0}.get(value, value))
    except (TypeError, ValueError):
        return float(zlib.crc32(str(value).encode("utf-8", "replace")) % 997)


def _by_rule(choices: Sequence[Choice]) -> list[int]:
    """Whole warps of 64 to 512 threads first, each part in an order that is the same every time."""
    order = list(range(len(choices)))
    random.Random(len(choices)).shuffle(order)  # noqa: S311 (no secret)
    return sorted(order, key=lambda place: not _is_usual(choices[place]))


def _is_usual(choice: Choice) -> bool:
    return 64 <= choice.threads <= 512 and choice.threads % 32 == 0


def _current_device() -> str | None:
    """The GPU that PyTorch is on. Nothing is imported: whoever calls the hook has launched a kernel with PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name())


def _padded(values: list[float], length: int) -> list[float]:
    return (values + [math.nan] * length)[:length]


def _log(value: float) -> float:
    return math.log2(value) if value > 0 else math.nan
