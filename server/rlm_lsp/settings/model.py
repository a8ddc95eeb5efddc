"""The one typed model of the settings: names, kinds of value, defaults and documentation.

A field's ``help`` is its documentation, and ``scope`` decides which sources may set it: ``folder`` settings may differ
between workspace folders; ``session`` settings apply to the whole server; ``machine`` settings decide what runs or
where source text goes, so nothing that comes with a workspace may set them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import PurePath
from typing import Any, Literal, get_args

from rlm_core.inference.query_selection import QuerySelection
from rlm_core.queries.size_comments import MOST_SIZE, is_size_name, read_quantity
from rlm_core.source import languages as language_table
from rlm_core.types import LEAST_GROWTH, Metric, WaitKind

from rlm_lsp.budgets.rules import GlobBudgets
from rlm_lsp.budgets.syntax import Budget, parse
from rlm_lsp.sources import matches

from . import kinds
from .kinds import Kind

Scope = Literal["folder", "session", "machine"]
Severity = Literal["information", "warning", "error"]
LabelForm = Literal["band", "median", "median±"]
HintsShown = Literal["relevant", "all"]
LogLevel = Literal["error", "warning", "info", "debug"]
JudgeSetting = Literal["automatic", "leetcode", "boj", "atcoder"]
FallbackSetting = Literal["none", "builtin"]
MAX_LABEL = 25

_METRICS: tuple[Metric, ...] = get_args(Metric)
_LANGUAGES = tuple(language_table.LANGUAGES)
_WAITS = tuple(kind.value for kind in WaitKind if kind is not WaitKind.TIME)
_MAX_TEXT, _MAX_COST = 500, 40


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """One setting: ``key`` is its name in JSON and TOML, ``name`` the name of the field.

    ``default`` is as a source would write it.
    """

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


def _setting(default: Any, kind: Kind, text: str, scope: Scope = "folder", written: str | None = None) -> Any:
    """A setting; ``written`` is the default as a source would write it, where that is not the value itself."""
    metadata = {"kind": kind, "help": text, "scope": scope, "written": default if written is None else written}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def _cost(metric: str, value: Any) -> float:
    """The SI value of a cost that is written as in a budget."""
    if not isinstance(value, str) or len(value) > _MAX_COST:
        raise ValueError("must be text with a unit, like `1 ms`, `1 MiB` or `50 %`")
    written, mistakes = parse(f"{metric} {'>' if metric == 'accuracy' else '<'} {value}")
    if mistakes or len(written) != 1 or written[0].budget.device or written[0].budget.workload:
        raise ValueError(f"`{value}` is not a cost; write one like `1 ms`, `1 MiB` or `50 %`")
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


def _function_sizes(name: str, value: Any) -> float | Mapping[str, float]:
    """A size by name, or a table of them for the files of a glob or for one function."""
    if isinstance(value, Mapping):
        if not name.strip("/ ") or len(name) > _MAX_TEXT:
            raise ValueError(f"must be a glob or a qualified name of 1 to {_MAX_TEXT} characters")
        return {str(inner): _function_size(str(inner), size) for inner, size in value.items()}
    return _function_size(name, value)


def _function_size(name: str, value: Any) -> float:
    if not is_size_name(name):
        raise ValueError("is not the name of an input, like `orders`, `rows[]` or `self.queue`")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError("must be a size, like `500`, `10k` or `2**20`")
    if isinstance(value, str):
        return read_quantity(value)
    if not 0 <= value <= MOST_SIZE:
        raise ValueError("must be a size from 0 to 1e15")
    return float(value)


def _wait_length(kind: str, value: Any) -> float:
    return _cost("latency", value)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one workspace folder; see each field's ``help``. Costs are in SI units."""

    metrics: tuple[Metric, ...] = _setting(_METRICS, kinds.names(_METRICS), "Metrics to predict and show.")
    languages: tuple[str, ...] = _setting(_LANGUAGES, kinds.names(_LANGUAGES), "Languages that get predictions.")
    devices: tuple[str, ...] = _setting(
        (),
        kinds.texts(),
        "Devices to predict kernels, modules and networks for, such as `A100` or `pixel-3` (empty: the model's default"
        " device).",
    )
    judge: JudgeSetting = _setting(  # noqa: RUF009
        "automatic",
        kinds.choice(*get_args(JudgeSetting)),
        "Online judge to predict programs for (`automatic`: the one that a file looks like). A `# rlm: judge=` comment"
        " in the file takes precedence.",
        "session",
    )
    model: str = _setting(
        "builtin",
        kinds.text(),
        "Model to use: the name or directory of an installed model, the address of a model server such as"
        " `https://gpu-box:8765`, or `builtin`.",
        "machine",
    )
    fallback: FallbackSetting = _setting(  # noqa: RUF009
        "none",
        kinds.choice(*get_args(FallbackSetting)),
        "What answers queries that the model was not trained for: `builtin` is the built-in model. Hovers name"
        " the model of each number.",
        "machine",
    )
    threads: int = _setting(0, kinds.integer(0, 256), "Number of threads for the model (0: automatic).", "session")
    debounce_ms: int = _setting(
        150,
        kinds.integer(0, 10_000),
        "Time to wait after the last edit before the model runs, in milliseconds.",
        "session",
    )
    exclude: tuple[str, ...] = _setting(
        (),
        kinds.checked_texts("globs", _glob),
        "Files that get no predictions, as globs relative to the workspace folder, such as `tests/**`.",
    )
    hints: bool = _setting(True, kinds.switch(), "Show inlay hints after signatures.")
    label: LabelForm = _setting(  # noqa: RUF009
        "band",
        kinds.choice(*get_args(LabelForm)),
        "What a hint shows: the 80 % `band`, the `median`, or the median and its distance to the ends of the band"
        " (`median±`).",
    )
    max_label: int = _setting(MAX_LABEL, kinds.integer(5, MAX_LABEL), "Maximum length of a hint, in characters.")
    hints_shown: HintsShown = _setting(  # noqa: RUF009
        "relevant",
        kinds.choice(*get_args(HintsShown)),
        "Which functions get a hint: `relevant` ones (expensive, over or near a budget, changed since `HEAD`, waiting,"
        " growing faster than n log n, or measured), or `all`. The others still have a hover.",
    )
    hints_min_latency: float = _setting(
        5e-5,
        kinds.checked_text("a latency such as `100 µs`", partial(_cost, "latency")),
        "Predicted median latency from which a function gets a hint.",
        written="50 µs",
    )
    hints_min_memory: float = _setting(
        2.0**20,
        kinds.checked_text("a size such as `1 MiB`", partial(_cost, "memory")),
        "Predicted median peak memory from which a function gets a hint.",
        written="1 MiB",
    )
    code_lens: bool = _setting(True, kinds.switch(), "Show a code lens above programs, modules and networks.")
    notice: bool = _setting(
        True,
        kinds.switch(),
        "Show one message to a new user: what a prediction means, or that a file has nothing to show a hint for; and"
        " offer once per machine to score its CPU. Never shown when `CI` is set.",
        "session",
    )
    changes: bool = _setting(True, kinds.switch(), "Show predicted changes in cost since git `HEAD`, such as `▲ 2.1×`.")
    change_confidence: float = _setting(
        0.9,
        kinds.number(0.5, 0.99),
        "Show a change when its probability of exceeding `changeRatio` is at least this high.",
    )
    change_ratio: float = _setting(1.5, kinds.number(1, 1000), "Smallest ratio of costs that counts as a change.")
    growth_confidence: float = _setting(
        LEAST_GROWTH,
        kinds.number(LEAST_GROWTH, 0.99),
        "Report that a cost grows faster with its inputs than at `HEAD` when both growth classes have at least this"
        " probability.",
    )
    diagnostics: bool = _setting(True, kinds.switch(), "Report exceeded and malformed budgets, and waits in loops.")
    change_diagnostics: bool = _setting(
        False,
        kinds.switch(),
        "Also report regressions, faster growth and loops that may not end since `HEAD`, the first two as hints. Inlay"
        " hints and hovers show them anyway, and `rlm-lsp check --diff` always reports them.",
    )
    budgets: tuple[GlobBudgets, ...] = _setting(
        (),
        kinds.table(
            "a table of glob and budget, such as `src/**/*.py` = `latency < 1 ms`",
            (),
            {"type": "string", "examples": ["latency < 1 ms, memory < 10 MiB"]},
            _budgets,
        ),
        "Budgets by file glob, relative to the workspace folder, such as `latency < 1 ms, memory < 10 MiB`. A `# rlm:`"
        " comment above a function takes precedence.",
    )
    budget_confidence: float = _setting(
        0.8, kinds.number(0.5, 0.99), "Lowest probability of exceeding a budget at which it is reported."
    )
    severity: Mapping[Severity, float] = _setting(
        {"information": 0.5, "warning": 0.9, "error": 0.975},
        kinds.table(
            "a table of severity and probability",
            get_args(Severity),
            {"type": "number", "minimum": 0.5, "maximum": 1},
            _probability,
        ),
        "Lowest probability of an exceeded budget with each severity; 1 disables the severity.",
    )
    default_sizes: Mapping[str, str] = _setting(
        {},
        kinds.table(
            "a table of name and size or type",
            (),
            {"type": ["string", "integer"], "examples": [4096, "64x128", "fp16"]},
            _size,
        ),
        "Sizes for Triton kernels whose file names none, by name of the kernel's argument, such as M = 8192 or"
        " dtype = `bf16`.",
    )
    sizes: Mapping[str, float | Mapping[str, float]] = _setting(
        {},
        kinds.table(
            "a table of the name of an input and its size, or of a glob or function and such a table",
            (),
            {"type": ["string", "number", "object"], "examples": [10_000, "10k", {"orders": "10k"}]},
            _function_sizes,
        ),
        "Sizes at which the costs of functions are shown, by name of the input, such as orders = `10k`; for the files"
        " of a glob or for one function as a table, such as `shop.cart.total` = { orders = 10000 }. A `# rlm: sizes`"
        " comment takes precedence.",
    )
    waits: Mapping[WaitKind, float] = _setting(
        {},
        kinds.table(
            "a table of what is waited for and a latency, such as database = `1 ms`",
            _WAITS,
            {"type": "string", "examples": ["1 ms", "50 ms"]},
            _wait_length,
        ),
        "How long one wait takes, by what is waited for, such as database = `1 ms` or network = `50 ms`. Latencies then"
        " include these waits, as often as the text of a function says; a timeout in the text bounds each. Without an"
        " entry, a wait is shown and no number includes it.",
    )
    token_file: str | None = _setting(
        None,
        kinds.text(),
        "File that contains the token for the model server. `RLM_LSP_TOKEN` takes precedence. The token itself is not a"
        " setting.",
        "machine",
    )
    measure: bool = _setting(
        True,
        kinds.switch(),
        "Offer to measure functions. A measurement runs your code, and only when you ask for it.",
        "machine",
    )
    log_level: LogLevel = _setting(  # noqa: RUF009
        "info",
        kinds.choice(*get_args(LogLevel)),
        "Lowest level of messages in the client's log.",
        "session",
    )

    @property
    def selection(self) -> QuerySelection:
        """The queries that the settings select."""
        judge = None if self.judge == "automatic" else self.judge
        return QuerySelection(self.metrics, self.devices, judge=judge)

    def excludes(self, path: PurePath) -> bool:
        """Return whether the file at ``path``, relative to its workspace folder, gets no predictions."""
        return any(matches(glob, path.as_posix()) for glob in self.exclude)

    def budgets_of(self, path: PurePath) -> tuple[GlobBudgets, ...]:
        """The budgets of the file at ``path``, relative to its workspace folder, in order of precedence."""
        return tuple(entry for entry in self.budgets if matches(entry.glob, path.as_posix()))


def camel(name: str) -> str:
    """A name in camelCase: ``max_label`` and ``max-label`` are ``maxLabel``."""
    return re.sub(r"[-_](\w)", lambda match: match[1].upper(), name)


def _entries() -> dict[str, SettingEntry]:
    return {
        camel(entry.name): SettingEntry(
            camel(entry.name),
            entry.name,
            entry.metadata["kind"],
            entry.metadata["scope"],
            entry.metadata["help"],
            entry.metadata["written"],
        )
        for entry in fields(Settings)
    }


ENTRIES: Mapping[str, SettingEntry] = _entries()
