"""GPU architectures of ``architectures.toml``: what limits the programs that a multiprocessor runs at once."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).with_name("architectures.toml")


@dataclass(frozen=True, slots=True)
class Architecture:
    """Limits of a multiprocessor: bytes of shared memory, threads, programs, 32-bit registers; bytes of the cache."""

    name: str
    shared_memory: float
    threads: int
    programs: int
    registers: int
    warp: int
    cache: float


@cache
def _architectures() -> tuple[tuple[str, Architecture], ...]:
    """The beginnings of device ids with their architecture, longer ones first."""
    table: Any = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    pairs = []
    for name, entry in table.items():
        limits = entry["limits"]
        architecture = Architecture(
            name, limits["shared_kib"] * 1024.0, limits["threads"], limits["programs"], limits["registers"] * 1024,
            limits["warp"], limits["cache_mib"] * 2.0**20,
        )  # fmt: skip
        pairs += [(device, architecture) for device in entry["devices"]]
    return tuple(sorted(pairs, key=lambda pair: -len(pair[0])))


@lru_cache(256)
def architecture_of(device: str) -> Architecture | None:
    """The architecture of a device by its id; None for one that is not in the table."""
    return next((known for start, known in _architectures() if device.startswith(start)), None)
