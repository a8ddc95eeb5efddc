"""A line of the measurements that are committed with a project: a unit as it was measured on one device.

Its fields are checked when it is decoded, since anyone may have written it; measurements and lines are made of each
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, get_args

import msgspec

from rlm_core.source.languages import LANGUAGES
from rlm_core.source.units import accessor_of
from rlm_core.types import BASIS_OF_KIND, Metric

from .types import (
    MOST_SIZE_NAME,
    MOST_SIZED,
    MOST_SIZES,
    RUNTIME,
    SIZE_NAME,
    TOOL,
    Kind,
    Measurement,
    SizedCalls,
    SizeSpread,
)

_RUN = "committed"
_DIGITS = 4
_METRICS: tuple[Metric, ...] = ("latency", "memory")
_CALLED = frozenset(kind for kind in get_args(Kind) if BASIS_OF_KIND.get(kind, "call") == "call")

_Amount = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
_Spread = tuple[_Amount, _Amount, _Amount]
_SizeName = Annotated[str, msgspec.Meta(pattern=SIZE_NAME, max_length=MOST_SIZE_NAME)]
_Sizes = Annotated[dict[_SizeName, _Amount], msgspec.Meta(max_length=MOST_SIZES)]


class CommittedCalls(msgspec.Struct, frozen=True, omit_defaults=True):
    """Calls with inputs of about the same sizes, and their median in seconds or bytes."""

    sizes: _Sizes
    p50: _Amount
    calls: _Count
    scaled: bool = False


class CommittedCost(msgspec.Struct, frozen=True, omit_defaults=True):
    """Quantiles of one metric over calls, in seconds or bytes, and the sizes of the calls' inputs.

    ``sizes`` are the least, median and largest value of each. Lines that older versions wrote have none.
    """

    p10: _Amount
    p50: _Amount
    p90: _Amount
    calls: _Count
    first: _Amount | None = None
    sizes: Annotated[dict[_SizeName, _Spread], msgspec.Meta(max_length=MOST_SIZES)] = {}
    sized: Annotated[tuple[CommittedCalls, ...], msgspec.Meta(max_length=2 * MOST_SIZED)] = ()

    def __post_init__(self) -> None:
        if not self.p10 <= self.p50 <= self.p90:
            raise ValueError("p10, p50 and p90 must rise")
        if not all(least <= median <= most for least, median, most in self.sizes.values()):
            raise ValueError("the three values of a size must rise")


class CommittedUnit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: a unit as it was measured on one device; ``file`` is relative to the folder that holds ``.rlm``."""

    file: _Name
    unit: _Name
    device: _Name
    runtime: Annotated[str, msgspec.Meta(max_length=1000)]
    date: str
    tests: _Count
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    kind: Kind = "function"
    language: str = "python"
    workload: Annotated[dict[str, str], msgspec.Meta(max_length=64)] = {}
    cpu_score: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 0.0
    latency: CommittedCost | None = None
    memory: CommittedCost | None = None
    text: str = ""
    tool: Annotated[str, msgspec.Meta(max_length=100)] = ""

    def __post_init__(self) -> None:
        datetime.fromisoformat(self.date)
        if self.file[0] == "/" or ".." in self.file.split("/") or "\\" in self.file or self.file[1:2] == ":":
            raise ValueError("`file` must be relative to the project")
        if self.language not in LANGUAGES:
            raise ValueError(f"unknown language {self.language!r}")

    @property
    def key(self) -> tuple[str, ...]:
        """The key of a unit and its query. Only the newest lines of a key are kept, and lines are sorted by it."""
        workload = (f"{name}={value}" for name, value in sorted(self.workload.items()))
        accessor = accessor_of(self.unit, self.text)
        return self.file, self.unit, accessor, self.kind, self.runtime, self.device, self.tool, *workload

    def measurements(self, root: Path) -> Iterator[Measurement]:
        """The measurements of a line in a project folder."""
        parts = PurePosixPath(self.file).with_suffix("").parts
        modules = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
        path = str(root / self.file)
        for metric in _METRICS:
            cost: CommittedCost | None = getattr(self, metric)
            if cost is None:
                continue
            yield Measurement(
                source_hash=self.hash,
                source_sha1="",
                device=self.device,
                machine="",
                workload={**self.workload, RUNTIME: self.runtime} | ({TOOL: self.tool} if self.tool else {}),
                metric=metric,
                median=cost.p50,
                low=cost.p10,
                high=cost.p90,
                calls=cost.calls,
                tests=self.tests,
                exceptions=0,
                kind=self.kind,
                recursive=False,
                threads=False,
                ok=True,
                package=modules[0],
                version="",
                module=("." if self.kind in _CALLED else "/").join(modules),
                qualname=self.unit,
                file=self.file,
                line=0,
                last_line=0,
                measured_at=self.date,
                run=_RUN,
                path=path,
                language=self.language,
                cpu_score=self.cpu_score,
                text=self.text,
                sizes={name: SizeSpread(*spread) for name, spread in cost.sizes.items()},
                sized=tuple(SizedCalls(calls.sizes, calls.p50, calls.calls, calls.scaled) for calls in cost.sized),
                first=cost.first,
            )


def is_committed(measurement: Measurement) -> bool:
    """Return whether a measurement came with a project."""
    return measurement.run == _RUN


def committed_units(measurements: Iterable[Measurement], root: Path) -> Iterator[CommittedUnit]:
    """The lines of the measurements below a project folder: the metrics of a text of a unit share one."""
    found: dict[tuple[object, ...], CommittedUnit] = {}
    for one in sorted(measurements, key=lambda one: (moment(one.measured_at), one.run, one.metric)):
        file = _file(one, root)
        if file is None or not one.ok or one.metric not in _METRICS:
            continue
        cost = _cost(one)
        unit = CommittedUnit(
            file,
            one.qualname,
            one.device,
            one.workload.get(RUNTIME, ""),
            one.measured_at,
            one.tests,
            one.source_hash,
            one.kind,
            one.language,
            one.asked,
            _short(one.cpu_score),
            text=one.text,
            tool=one.workload.get(TOOL, ""),
        )
        key = unit.key, unit.hash
        known = found.get(key)
        costs: dict[str, Any] = {one.metric: cost}
        if known is not None:
            costs = {"latency": known.latency, "memory": known.memory, **costs}
            # A line may have a latency without a score, and a memory with one.
            costs |= {"cpu_score": unit.cpu_score or known.cpu_score, "text": unit.text or known.text}
        found[key] = msgspec.structs.replace(unit, **costs)
    yield from found.values()


def _cost(one: Measurement) -> CommittedCost:
    return CommittedCost(
        _short(one.low),
        _short(one.median),
        _short(one.high),
        one.calls,
        _short(one.first) if one.first is not None else None,
        {
            name: (_short(spread.least), _short(spread.median), _short(spread.most))
            for name, spread in sorted(one.sizes.items())
        },
        tuple(
            CommittedCalls(
                {name: _short(size) for name, size in sorted(row.sizes.items())},
                _short(row.median),
                row.calls,
                row.scaled,
            )
            for row in one.sized
        ),
    )


def _file(one: Measurement, root: Path) -> str | None:
    """The file of a measurement below a project folder; None where it is not below it."""
    if one.path:
        path = Path(one.path)
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else None
    # From another machine: the file is known relative to where it is imported from.
    for start in ("", "src/"):
        if (root / start / one.file).is_file():
            return f"{start}{one.file}"
    return None


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def moment(date: str) -> float:
    """An ISO date as a number that orders dates of any time zone."""
    return datetime.fromisoformat(date).timestamp()
