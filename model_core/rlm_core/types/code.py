"""What the model reads of a unit: its text, what it calls, its facts and measurements; and what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .measured import KnownCost, MeasuredCost
from .sizes import SizeValue
from .vocabulary import Basis, Metric
from .work import WorkFacts


@dataclass(frozen=True, slots=True)
class Callee:
    """A function that a unit calls: its source text and its depth in the call graph (1: called directly)."""

    text: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The online judge that a program is written for, by the id of its device, such as ``atcoder``.

    ``is_stated`` is whether a ``# rlm: judge=`` comment names it; otherwise the file looks like it. ``runtime`` is the
    interpreter that the comment names: ``cpython`` or ``pypy``.
    """

    judge: str
    is_stated: bool = False
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function that a call may run: its source text, what static analysis knows, and what was measured of it.

    ``is_changed``: it was measured, with another text.
    """

    text: str
    work: WorkFacts | None = None
    known: tuple[KnownCost, ...] = ()
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class CallSite:
    """Calls at one place: one of ``candidates`` runs, ``times`` in all by literal trip counts.

    ``loops`` and ``branches`` count what is around the place in its unit.
    """

    candidates: tuple[CalledFunction, ...]
    loops: int = 0
    branches: int = 0
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class MeasuredFunctions:
    """Functions with known costs; a file's units share them."""

    functions: tuple[CalledFunction, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash(self.functions))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a unit: functions of the workspace, and the numbers of other calls.

    ``outside`` counts calls of builtins, of containers and of other packages, ``unresolved`` calls of unknown objects.
    ``of_file`` and ``of_class`` are what was measured in the unit's file and class, ``of_package`` in its package's
    other files.
    """

    sites: tuple[CallSite, ...] = ()
    outside: int = 0
    unresolved: int = 0
    of_file: MeasuredFunctions = MeasuredFunctions()
    of_class: MeasuredFunctions = MeasuredFunctions()
    of_package: MeasuredFunctions = MeasuredFunctions()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Texts with calls are keys of caches, and a unit may call a hundred functions.
        parts = self.sites, self.outside, self.unresolved, self.of_file, self.of_class, self.of_package
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def functions(self) -> tuple[CalledFunction, ...]:
        """All candidates of all sites, site by site."""
        return tuple(function for site in self.sites for function in site.candidates)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class CodeText:
    """The predictor's input about one unit: its source, its callees, its language and basis.

    ``workloads`` are those that the unit's file wants to know about, each as pairs of name and value. They say what to
    ask; no number depends on them otherwise. The same is true of ``judge``, the judge of a program's file. ``work`` is
    what static analysis knows; None where there was none. ``measured`` is what was measured of the unit. No model reads
    it: it takes precedence over what they predict, see :mod:`rlm_core.inference.anchoring`. ``calls`` is where costs of
    callees come from; None where calls were not resolved. ``sizes`` are the known sizes of its inputs, for which
    :mod:`rlm_core.inference.sized_predictor` answers.
    """

    text: str
    language: str
    basis: Basis
    callees: tuple[Callee, ...] = ()
    workloads: tuple[tuple[tuple[str, str], ...], ...] = ()
    work: WorkFacts | None = None
    measured: tuple[Anchor, ...] = ()
    judge: JudgeChoice | None = None
    calls: Calls | None = None
    sizes: tuple[SizeValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Anchor:
    """A measured cost of a unit, and what was measured where the unit or what it calls has changed since, else None."""

    cost: MeasuredCost
    before: CodeText | None = None

    def __hash__(self) -> int:
        # Texts with measurements are keys of caches: measurements that differ nearly always differ in these.
        return hash((self.cost.metric, self.cost.median, self.before and self.before.text))


@dataclass(frozen=True, slots=True)
class Query:
    """The question about a unit: metric, device and workload (judge and date, sizes, dtype, data set).

    ``device=None`` and an empty workload ask for the model's defaults for the unit's basis.
    """

    metric: Metric
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)
