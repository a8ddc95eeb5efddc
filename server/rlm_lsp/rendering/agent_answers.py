"""Renders predictions, ratios and findings for coding agents, in few words.

Input: predictions, ratios and findings of units. Output: a line for each, without Markdown tables, since an agent pays
for each word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlm_core.inference.ranking import KERNEL_CONFIDENCE, kernel_ratio
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.syntax_errors import first_error
from rlm_core.types import CostRatio, GrowthEstimate, Prediction

from . import labels, size_words
from .abstentions import reason
from .console import counted
from .escaping import printable
from .finding_messages import percent
from .growth_words import growth_form
from .launch_words import difference
from .prediction_cells import cost_rows

RATIOS_ARE_FOR = (
    "Small inputs are those of a project's tests; for larger ones look at the growth, or give the sizes in a comment"
    " above the function: `# rlm: sizes items=10k`, or as `sizes`."
)

_NAMED_PATHS = 10


def unit_lines(file: str, analysed: AnalysedUnit, predictions: Sequence[Prediction]) -> list[str]:
    """``a.py:3 f: latency 40 µs (10–160 µs), memory 1 KiB (≤3 KiB); grows about as n in values``, one per device.

    A unit of a text without a file is ``line 3, f``.
    """
    lines = []
    for row in cost_rows(file, analysed, predictions):
        where = f"{row.where} " if file else f"line{row.where.replace(':', ' ')}, "
        name = where + row.unit + (f" on {row.on}" if row.on else "")
        known = [f"{metric} {text}" for metric, text in row.costs.items() if text != "-"]
        if not known:
            lines.append(printable(f"{name}: no prediction because {row.note}"))
            continue
        lines.append(printable(f"{name}: {', '.join(known)}" + (f"; {row.note}" if row.note else "")))
    return lines


def broken_line(file: str, number: int, parsed: ParsedSource) -> str:
    """``a.py: 2 units with syntax errors left out (line 3: invalid syntax)``."""
    return printable(f"{file}: {counted(number, 'unit')} with syntax errors left out ({first_error(parsed)})")


def omitted_line(omitted: int, what: str) -> str:
    """``12 more units; raise the limit or name a folder or unit``."""
    return f"{counted(omitted, f'more {what}')}; raise `limit`, or name a file or a unit"


def unread_line(unread: Mapping[str, int], files: int, most: int) -> str:
    """``12 of 50 files were read, up to 300 units; predict the rest by path: a (30 files), b.py``."""
    left = sum(unread.values())
    named = list(unread.items())[:_NAMED_PATHS]
    paths = ", ".join(path if path.endswith(".py") else f"{path} ({counted(number, 'file')})" for path, number in named)
    rest = f" and {len(unread) - len(named)} more" if len(unread) > len(named) else ""
    return printable(
        f"{files - left:,} of {counted(files, 'file')} were read, up to {most:,} units; left out: {paths}{rest};"
        " name one as `path`, or ask for a `unit`; `rlm-lsp predict --top 20` in a shell reads all"
    )


def no_package_line(path: str, packages: Sequence[str]) -> str:
    """``.: not in a Python package ...; name one in it: petl``."""
    line = f"{path}: not in a Python package whose name and folder can be written in a command"
    return printable(f"{line}; name one in it: {_names(packages)}" if packages else line)


def progress_line(what: str, done: int, total: int) -> str:
    """``12 of 50 read``."""
    return f"{done:,} of {total:,} {what}"


def ratio_line(qualname: str, change: CostRatio, before: Prediction, after: Prediction) -> str:
    """``f: latency grows as n in a instead of n^2; for small inputs about 0.12× (80 % band 0.05–0.3×), lower ...``.

    Where it is unknown which of the two costs more, the line says so, with the band.

    The growth comes first, then the ratio with the inputs for which it holds, and the size at which it turns.
    ``before`` and ``after`` are the predictions for the two texts. Their medians are left out: the ratio is predicted
    by itself, so the three numbers need not agree.
    """
    name = f"{qualname}: {labels.METRIC_WORDS[change.metric]}"
    name += f" on {change.device}" if change.device and change.basis in ("kernel", "module", "network") else ""
    if change.basis == "kernel" and change.abstained is not None:
        return printable(f"{name} {_kernel_words(before, after)}")
    if change.ratio is None or not change.bands:
        why = reason(change.abstained) if change.abstained is not None else "the model abstains"
        return printable(f"{name}: no ratio because {why}")
    if labels.is_same(change):
        return printable(f"{name}: the same to the model")
    band = change.bands[0]
    above = change.above(1.0)
    old, new = before.growth, after.growth
    parts = []
    if old is not None and new is not None and _differ(old, new):
        parts.append(f"grows as {growth_form(new).replace('`', '')} instead of {old.growth_class}")
    at = f"{size_words.ratio_sizes(change)} " if change.basis == "call" else ""
    of_band = f"({band.coverage * 100:.0f} % band {labels.ratio_band(band)})"
    if change.direction is None:
        parts.append(f"{at}cannot tell which costs more{'' if labels.is_open_at_sizes(change) else f' {of_band}'}")
    else:
        probability = above if change.direction == "higher" else 1 - above
        parts.append(
            f"{at}{labels.about(change.ratio)} {of_band}, {change.direction} with {percent(probability)} probability"
        )
    if change.crossing is not None:
        parts.append(size_words.crossing_words(change.crossing))
    return printable(f"{name} {'; '.join(parts)}")


def _differ(old: GrowthEstimate, new: GrowthEstimate) -> bool:
    """Return whether two claims about usual inputs, or about the worst case, are of different classes."""
    are_alike = old.is_claim and new.is_claim and old.in_worst_case == new.in_worst_case
    return are_alike and old.growth_class != new.growth_class


def _kernel_words(before: Prediction, after: Prediction) -> str:
    """Which of two kernels is faster, where that is known, and what their launches do."""
    ratio = kernel_ratio(before, after)
    if ratio is None:
        words = "cannot tell which costs more"
    else:
        way = "higher" if ratio > 1 else "lower"
        words = f"about {labels.about(ratio)}, {way} with {percent(KERNEL_CONFIDENCE)} probability"
    at = f" at {labels.workload(after.workload)}" if after.workload else ""
    if before.launch is None or after.launch is None:
        sides = [side for side, one in (("first", before), ("second", after)) if one.launch is None]
        return f"{words}: the {' and the '.join(sides)} text does not fix what its launches do{at}; measure both"
    return f"{words}: {difference(before.launch, after.launch)}{at}{'; measure both' if ratio is None else ''}"


def not_at_sizes_line(names: Sequence[str], sizes: Mapping[str, float]) -> str:
    """``nothing supports a number at items=10k for f: some calls or types are of unknown cost``."""
    at = " ".join(f"{name}={labels.size(value)}" for name, value in sizes.items())
    return printable(
        f"nothing supports a number at {at} for {_names(names)}: some calls or types are of unknown cost; these numbers"
        " are for small inputs"
    )


def unpaired_line(unchanged: Sequence[str], new: Sequence[str]) -> str:
    """``unchanged: f, g; new: h``; empty where all units were compared."""
    parts = [f"{title}: {_names(names)}" for title, names in (("unchanged", unchanged), ("new", new)) if names]
    return printable("; ".join(parts))


def check_line(files: int, with_budget: int, compared: int, findings: int) -> str:
    """``12 files, 3 units with a budget, 0 compared: 1 finding``."""
    return (
        f"{counted(files, 'file')}, {counted(with_budget, 'unit')} with a budget, {compared:,} compared:"
        f" {counted(findings, 'finding')}"
    )


def finding_line(severity: str, file: str, line: int, message: str) -> str:
    """``warning: a.py:3: latency of `f` is predicted to ...``."""
    return printable(f"{severity}: {file}:{line}: {message}")


def missing_line(number: int, why: str, what: str = "prediction") -> str:
    """``2 predictions missing: the text is empty``."""
    return printable(f"{counted(number, what)} missing: {why}")


def measure_line(command: str) -> str:
    """Return the line that suggests the command that measures."""
    return f"Nothing was run. To measure, the user can run: {command}"


def _names(names: Sequence[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
