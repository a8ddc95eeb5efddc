"""The time of a function as another tool has written it, before the function is looked up in the project."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rlm_core.folders import is_left_out

Tool = Literal["cProfile", "pytest-benchmark", "CodSpeed"]


@dataclass(frozen=True, slots=True)
class FunctionTiming:
    """Seconds of a call: median, 10 % and 90 % quantile of ``calls`` calls in ``runs`` benchmarks or profiles.

    The function starts at the 1-based ``line`` of ``file`` and has the name ``name``; where ``line`` is 0, ``name`` is
    its qualified name. A profile has no quantiles: ``median`` is the mean of its calls, and ``low`` and ``high`` what
    the mean is for the highest and the lowest cost of profiling.
    """

    file: Path
    name: str
    line: int
    median: float
    low: float
    high: float
    calls: int
    runs: int = 1
    is_recursive: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The timings of a file that a tool has written, and what was left out, counted by reason.

    ``measured_at`` is in seconds since the epoch. ``device`` and ``runtime`` (``cpython-3.12``) are empty where the
    file does not name them.
    """

    tool: Tool
    timings: tuple[FunctionTiming, ...]
    measured_at: float
    device: str = ""
    runtime: str = ""
    left_out: dict[str, int] = field(default_factory=dict)


def is_of_project(path: Path, root: Path) -> bool:
    """Return whether an absolute path is below a project's folder, and not among its dependencies or hidden folders."""
    if not path.is_relative_to(root):
        return False
    inner = path.parents[: len(path.relative_to(root).parts) - 1]
    return not any(map(is_left_out, inner))
