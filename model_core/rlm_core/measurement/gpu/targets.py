"""GPUs to compile for without having one: ``cuda:90``, ``hip:gfx942`` -> what Triton and inductor ask a driver.

Figures are the makers' public ones for the usual card of each architecture; no torch and no driver is touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rlm_core.errors import DataError


@dataclass(frozen=True, slots=True)
class Target:
    """An architecture and its usual card: bytes of shared memory a block, of L2, of memory; registers a unit."""

    backend: str
    arch: int | str
    device: str
    multiprocessors: int
    shared: int
    l2: int
    memory: int
    warp: int = 32
    threads: int = 2048

    @property
    def name(self) -> str:
        """As the user writes it."""
        return f"{self.backend}:{self.arch}"


_MIB, _GIB = 2**20, 2**30
TARGETS = {
    target.name: target
    for target in (
        Target("cuda", 70, "nvidia-v100", 80, 98304, 6 * _MIB, 16 * _GIB),
        Target("cuda", 75, "nvidia-t4", 40, 65536, 4 * _MIB, 16 * _GIB, threads=1024),
        Target("cuda", 80, "nvidia-a100-sxm4-80gb", 108, 166912, 40 * _MIB, 80 * _GIB),
        Target("cuda", 86, "nvidia-rtx-a6000", 84, 101376, 6 * _MIB, 48 * _GIB, threads=1536),
        Target("cuda", 89, "nvidia-l40s", 142, 101376, 96 * _MIB, 48 * _GIB, threads=1536),
        Target("cuda", 90, "nvidia-h100-sxm", 132, 232448, 50 * _MIB, 80 * _GIB),
        Target("cuda", 100, "nvidia-b200", 148, 232448, 126 * _MIB, 180 * _GIB),
        Target("cuda", 120, "nvidia-rtx-5090", 170, 101376, 96 * _MIB, 32 * _GIB, threads=1536),
        Target("hip", "gfx90a", "amd-mi250x", 110, 65536, 8 * _MIB, 64 * _GIB, 64),
        Target("hip", "gfx942", "amd-mi300x", 304, 65536, 4 * _MIB, 192 * _GIB, 64),
        Target("hip", "gfx950", "amd-mi355x", 256, 163840, 4 * _MIB, 288 * _GIB, 64),
        Target("hip", "gfx1100", "amd-rx-7900-xtx", 96, 65536, 6 * _MIB, 24 * _GIB, 32),
    )
}


def target_named(text: str) -> Target:
    """The target that ``text`` stands for; ``sm_90`` and ``gfx942`` are understood too.

    Raises:
        DataError: the target is unknown.
    """
    plain = text.strip().lower()
    if match := re.fullmatch(r"sm_?(\d+)a?", plain):
        plain = f"cuda:{match[1]}"
    elif plain.startswith("gfx"):
        plain = f"hip:{plain}"
    if plain not in TARGETS:
        raise DataError(f"--target {text!r} is not known; take one of {', '.join(TARGETS)}")
    return TARGETS[plain]
