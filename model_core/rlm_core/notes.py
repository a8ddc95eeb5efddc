"""What a band's ``level`` says beyond the slice that calibrated it: a CPU's scale, or a device's own measurements.

Writers (``cpu_score``, ``adapt``) and readers (rendering) of these words meet here; nothing heavy is imported.
"""

from __future__ import annotations

_SEPARATOR = "; "
_ADAPTED = "adapted to "


def adapted_level(device: str) -> str:
    """The level of a band that rests on measurements on ``device``."""
    return _ADAPTED + device


def adapted_device(level: str) -> str | None:
    """The device of :func:`adapted_level`, None for any other level."""
    return level.removeprefix(_ADAPTED) if level.startswith(_ADAPTED) else None


def with_scale(level: str, ratio: float, date: str) -> str:
    """The level of a band whose latencies were multiplied by ``ratio`` for this CPU, by a score of that date."""
    return f"{level}{_SEPARATOR}scaled by {ratio:.2g} to this CPU (score of {date})"


def split(level: str) -> tuple[str, str]:
    """The calibrated slice, and what was done to the band since; empty when nothing was."""
    slice_name, _, note = level.partition(_SEPARATOR)
    return slice_name, note
