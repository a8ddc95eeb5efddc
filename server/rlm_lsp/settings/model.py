"""The one typed model of settings: names, kinds, defaults and documentation of each.

A field's ``help`` is its documentation and ``scope`` tells which sources may set it: ``folder`` settings may differ
from one workspace folder to the next; ``session`` settings hold for the whole server; ``machine`` settings decide what
runs or where source text goes, so that nothing that comes with a workspace may set them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePath
from typing import Any, Literal, get_args

from rlm_core.source import languages as language_table
from rlm_core.types import Metric

from rlm_lsp.budgets.rules import GlobBudgets
from rlm_lsp.budgets.syntax import Budget, parse
from rlm_lsp.sources import matches

from . import kinds
from .kinds import Kind

Scope = Literal["folder", "session", "machine"]
Severity = Literal["information", "warning", "error"]
LabelForm = Literal["band", "median", "median±"]
LogLevel = Literal["error", "warning", "info", "debug"]
MAX_LABEL = 25

_METRICS: tuple[Metric, ...] = get_args(Metric)
_LANGUAGES = tuple(language_table.LANGUAGES)
_MAX_TEXT, _MAX_COST = 500, 40


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting: ``key`` is its name in JSON and TOML, ``name`` that of the field."""

    key: str
    name: str
    kind: Kind
    scope: Scope
    help: str
    default: Any

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return f"RLM_LSP_{self.name.upper()}"


def _setting(default: Any, kind: Kind, text: str, scope: Scope = "folder") -> Any:
    metadata = {"kind": kind, "help": text, "scope": scope}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def _cost(metric: str, value: Any) -> float:
    """A cost with its unit as a budget has it, in SI units."""
    if not isinstance(value, str) or len(value) > _MAX_COST:
        raise ValueError("must be text with a unit, like `1 ms`, `1 MiB` or `50 %`")
    written, mistakes = parse(f"{metric} {'>' if metric == 'accuracy' else '<'} {value}")
    if mistakes or len(written) != 1 or written[0].budget.device or written[0].budget.workload:
        raise ValueError(f"`{value}` is no cost; write one like `1 ms`, `1 MiB` or `50 %`")
    return written[0].budget.value


def _glob(value: str) -> str:
    if not value.strip("/ ") or len(value) > _MAX_TEXT:
        raise ValueError(f"must be a glob of 1 to {_MAX_TEXT} characters, like `src/**/*.py`")
    return value


def _budgets(glob: str, value: Any) -> tuple[Budget, ...]:
    _glob(glob)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_TEXT:
        raise ValueError("must be a budget, like `latency < 1 ms, memory < 10 MiB`")
    written, mistakes = parse(value)
    if mistakes:
        raise ValueError(f"is not a budget: {mistakes[0].message}")
    return tuple(entry.budget for entry in written)


def _probability(severity: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.5 <= value <= 1:
        raise ValueError("must be a probability from 0.5 to 1")
    return float(value)


def _size(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError("must be a size or a type, like `4096`, `64x128` or `fp16`")
    text = str(value)
    if not re.fullmatch(r"[A-Za-z_]\w{0,63}", name) or not re.fullmatch(r"\w{1,64}", text):
        raise ValueError("must be a size or a type, like `4096`, `64x128` or `fp16`")
    return text


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one workspace folder; see each field's ``help``. Costs are in SI units."""

    metrics: tuple[Metric, ...] = _setting(_METRICS, kinds.names(_METRICS), "The metrics that are predicted and shown.")
    languages: tuple[str, ...] = _setting(_LANGUAGES, kinds.names(_LANGUAGES), "The languages that get predictions.")
    devices: tuple[str, ...] = _setting(
        (),
        kinds.texts(),
        "The devices that kernels, modules and networks are asked for, like `A100` or `pixel-3`; empty for the model's"
        " own.",
    )
    model: str = _setting(
        "builtin",
        kinds.text(),
        "Directory of an exported model, address of a model server like `https://gpu-box:8765`, or `builtin`.",
        "machine",
    )
    threads: int = _setting(
        0, kinds.integer(0, 256), "Threads of the model; 0 leaves the choice to onnxruntime.", "session"
    )
    debounce_ms: int = _setting(
        150, kinds.integer(0, 10_000), "Pause after the last edit before the model runs, in milliseconds.", "session"
    )
    exclude: tuple[str, ...] = _setting(
        (),
        kinds.checked_texts("globs", _glob),
        "Files that get no predictions, as globs below the workspace folder, like `tests/**`.",
    )
    hints: bool = _setting(True, kinds.switch(), "Show inlay hints after signatures.")
    label: LabelForm = _setting(  # noqa: RUF009
        "band",
        kinds.choice(*get_args(LabelForm)),
        "What a hint shows: the 80 % `band`, the `median`, or the median and the distance to the ends (`median±`).",
    )
    max_label: int = _setting(MAX_LABEL, kinds.integer(5, MAX_LABEL), "The longest label of a hint, in characters.")
    hide_below: Mapping[Metric, float] = _setting(
        {},
        kinds.table(
            "a table of metric and cost, like latency = `1 ms`",
            _METRICS,
            {"type": "string", "examples": ["1 ms", "1 MiB"]},
            _cost,
        ),
        "Hide a hint's metric where its median is below this cost, like `1 ms` for latency and `1 MiB` for memory.",
    )
    code_lens: bool = _setting(True, kinds.switch(), "Show a code lens above programs, modules and networks.")
    notice: bool = _setting(
        True,
        kinds.switch(),
        "Say once, with a user's first hint, what a prediction stands for; never where `CI` is set.",
        "session",
    )
    changes: bool = _setting(True, kinds.switch(), "Show how costs changed against git's `HEAD`, like `▲ 2.1×`.")
    change_confidence: float = _setting(
        0.8, kinds.number(0.5, 0.99), "Show a change when it passes `changeRatio` with at least this probability."
    )
    change_ratio: float = _setting(1.25, kinds.number(1, 1000), "The least ratio of costs that counts as a change.")
    diagnostics: bool = _setting(True, kinds.switch(), "Report budgets that are passed and regressions against `HEAD`.")
    budgets: tuple[GlobBudgets, ...] = _setting(
        (),
        kinds.table(
            "a table of glob and budget, like `src/**/*.py` = `latency < 1 ms`",
            (),
            {"type": "string", "examples": ["latency < 1 ms, memory < 10 MiB"]},
            _budgets,
        ),
        "Budgets of the files that globs below the workspace folder mean, like `latency < 1 ms, memory < 10 MiB`; a"
        " `# rlm:` comment above a function goes before.",
    )
    budget_confidence: float = _setting(
        0.8, kinds.number(0.5, 0.99), "Report a budget when it is passed with at least this probability."
    )
    severity: Mapping[Severity, float] = _setting(
        {"information": 0.5, "warning": 0.9, "error": 0.975},
        kinds.table(
            "a table of severity and probability",
            get_args(Severity),
            {"type": "number", "minimum": 0.5, "maximum": 1},
            _probability,
        ),
        "The probability from which a finding has a severity; 1 for never.",
    )
    default_sizes: Mapping[str, str] = _setting(
        {},
        kinds.table(
            "a table of name and size or type",
            (),
            {"type": ["string", "integer"], "examples": [4096, "64x128", "fp16"]},
            _size,
        ),
        "Sizes of Triton kernels whose file names none, by the name of the kernel's argument, like M = 8192 or"
        " dtype = `bf16`.",
    )
    token_file: str | None = _setting(
        None,
        kinds.text(),
        "File that holds the token of the model server; `RLM_LSP_TOKEN` goes before. The token itself is no setting.",
        "machine",
    )
    measure: bool = _setting(
        True,
        kinds.switch(),
        "Offer to measure a function. Measuring runs your code, and only after you asked for it.",
        "machine",
    )
    log_level: LogLevel = _setting(  # noqa: RUF009
        "info", kinds.choice(*get_args(LogLevel)), "The least important messages that the client's log gets.", "session"
    )

    def excludes(self, path: PurePath) -> bool:
        """Whether the file at ``path``, relative to its workspace folder, gets no predictions."""
        return any(matches(glob, path.as_posix()) for glob in self.exclude)

    def budgets_of(self, path: PurePath) -> tuple[GlobBudgets, ...]:
        """The budgets of the file at ``path``, relative to its workspace folder, in order of precedence."""
        return tuple(entry for entry in self.budgets if matches(entry.glob, path.as_posix()))


def camel(name: str) -> str:
    """A name in camelCase: ``hide_below`` and ``hide-below`` are ``hideBelow``."""
    return re.sub(r"[-_](\w)", lambda match: match[1].upper(), name)


def _entries() -> dict[str, Entry]:
    defaults = Settings()
    return {
        camel(entry.name): Entry(
            camel(entry.name),
            entry.name,
            entry.metadata["kind"],
            entry.metadata["scope"],
            entry.metadata["help"],
            getattr(defaults, entry.name),
        )
        for entry in fields(Settings)
    }


ENTRIES: Mapping[str, Entry] = _entries()
