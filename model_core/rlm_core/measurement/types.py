"""A measurement of a unit as it is stored, exported and shown."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from rlm_core.source.canonical import CanonicalForm, canonical
from rlm_core.types import BASIS_OF_KIND, Basis, Metric
from rlm_core.types import SizedCalls as SizedCalls
from rlm_core.types import SizeSpread as SizeSpread

Kind = Literal["function", "generator", "coroutine", "async generator", "program", "kernel", "module", "network"]
RESUMED: frozenset[Kind] = frozenset({"generator", "coroutine", "async generator"})
# What has a measurement for each device and workload, as it has a prediction for each.
BENCHED: frozenset[str] = frozenset({"kernel", "module", "network"})
# Names in a workload of what a measurement was made with, which no query asks for.
RUNTIME, TOOL = "runtime", "tool"
# A text beyond it is not kept: comparing it would take longer than it is worth.
MOST_TEXT = 100_000
# Bounds on what a measurement says about sizes: names, and rows of calls of about the same sizes.
MOST_SIZES, MOST_SIZED = 16, 12
SIZE_NAME, MOST_SIZE_NAME = r"^[^\W\d]\w*(?:\.\w+|\[\])*\Z", 200
"""The form of a size's name, as ``rows[]`` or ``self.queue``, and its length."""
MACHINES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric of one function under the tests of one run, in SI units: median, 10 % and 90 % quantile of its calls.

    ``calls`` were taken in ``tests`` tests, ``exceptions`` of them ended in one and are in no quantile. A generator or
    coroutine is measured a resume at a time. ``threads``: other threads were alive, whose memory may be in it.
    ``ok`` is false where the run's calibration was disturbed. ``source_hash`` is :func:`source_hash` of the text,
    ``source_sha1`` that of the lines ``line`` to ``last_line`` (1-based, decorators too) as the file has them. ``file``
    is relative to where the package is imported from; ``path`` is absolute, empty for what came from another machine.
    ``device`` names the processor and ``machine`` its kind, like x86-64. ``measured_at`` is UTC in ISO 8601.

    Of a program ``calls`` are its runs on one input, which ``workload`` names, ``exceptions`` those that failed, and
    ``package`` is the folder that was measured. Its memory is the peak resident set of its largest process.

    A kernel, module or network is measured by ``rlm-lsp bench``, in ``calls`` runs. Its ``workload`` is written as a
    query's, ``device`` is one of ``devices`` or what else the bench ran on, ``machine`` is empty, and
    ``source_sha1`` is of the text that the model reads, where others have the lines of the file.

    What another tool measured has its name as ``workload["tool"]``. Of a profile, ``median`` is the mean of the calls,
    and ``low`` and ``high`` span what profiling may have cost.

    ``text`` is :func:`measured_text` of the unit, empty where it is not kept; a change is predicted from it.
    ``cpu_score`` is that of the processor against the reference machine, 0 where it was not known.

    ``sizes`` are those of the calls' inputs by the names of the cost analysis, as far as they were taken; ``sized``
    are calls by sizes, from small to large. ``first`` is the first call of each process, their median, which pays for
    caches and imports; the quantiles have it too, ``sized`` only where there is no other.
    """

    source_hash: str
    source_sha1: str
    device: str
    machine: str
    workload: Mapping[str, str]
    metric: Metric
    median: float
    low: float
    high: float
    calls: int
    tests: int
    exceptions: int
    kind: Kind
    recursive: bool
    threads: bool
    ok: bool
    package: str
    version: str
    module: str
    qualname: str
    file: str
    line: int
    last_line: int
    measured_at: str
    run: str
    path: str = ""
    language: str = "python"
    cpu_score: float = 0.0
    text: str = ""
    sizes: Mapping[str, SizeSpread] = field(default_factory=dict)
    sized: tuple[SizedCalls, ...] = ()
    first: float | None = None

    @property
    def basis(self) -> Basis:
        """The basis whose predictions it is compared with."""
        return BASIS_OF_KIND.get(self.kind, "call")

    @property
    def asked(self) -> dict[str, str]:
        """The workload as a query has it: without what it was made with."""
        return {name: value for name, value in self.workload.items() if name not in (RUNTIME, TOOL)}


def source_hash(text: str, language: str = "python") -> str:
    """The identity of a unit's source text: the same for texts that differ only in what cannot change their cost.

    In Python these are comments, docstrings, layout, type hints and the names of local variables.
    """
    plain = canonical(text, language, CanonicalForm.NEUTRAL)
    return hashlib.blake2b(f"{language}\n{plain}".encode(), digest_size=16).hexdigest()


def measured_text(text: str, language: str = "python") -> str:
    """The text of a unit as it is kept with its measurements: without comments; empty if it is too long."""
    plain = canonical(text, language)
    return plain if len(plain) <= MOST_TEXT else ""


def sha1_of(text: str) -> str:
    """The hash by which label files confirm a text."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
