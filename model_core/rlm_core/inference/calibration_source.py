"""What a band's ``level`` says beyond the slice that calibrated it: a CPU's scale, measurements, a data sheet alone.

Who writes these words (``cpu_score``, ``adapt``, ``train``) and who reads them meet here; nothing heavy is imported.
"""

from __future__ import annotations

_SEPARATOR = "; "
_ADAPTED = "adapted to "
_SHEET = "#sheet"


def adapted_level(device: str) -> str:
    """The level of a band that rests on measurements on ``device``."""
    return _ADAPTED + device


def adapted_device(level: str) -> str | None:
    """The device of :func:`adapted_level`, None for any other level."""
    return level.removeprefix(_ADAPTED) if level.startswith(_ADAPTED) else None


def is_by_sheet(level: str) -> bool:
    """Whether a band is that of a device of which the data sheet alone is known."""
    return of_sheet_level(split(level)[0]) is not None


def sheet_level(level: str) -> str:
    """The level beside another that holds for devices of which the data sheet alone is known."""
    return level + _SHEET


def of_sheet_level(level: str) -> str | None:
    """The level beside a :func:`sheet_level`, None for any other level."""
    return level.removesuffix(_SHEET) if level.endswith(_SHEET) else None


def with_scale(level: str, ratio: float, date: str) -> str:
    """The level of a band whose latencies were multiplied by ``ratio`` for this CPU, by a score of that date."""
    return f"{level}{_SEPARATOR}scaled by {ratio:.2g} to this CPU (score of {date})"


def split(level: str) -> tuple[str, str]:
    """The calibrated slice, and what was done to the band since; empty when nothing was."""
    slice_name, _, note = level.partition(_SEPARATOR)
    return slice_name, note
