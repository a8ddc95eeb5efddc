"""What a hover says about a unit, in plain words: a table of costs, then how far they can be trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.source import languages
from rlm_core.types import Band, Basis, Prediction, Unit

from . import abstentions
from . import values as render
from .measured import measured_value, measured_words

if TYPE_CHECKING:
    from rlm_core.inference.cost_ratio import Change

    from rlm_lsp.history.measured import Measured

MOST_ROWS = 24
MOST_NAMES = 3
_MEANING: Mapping[Basis, str] = {
    "call": "what one call costs with inputs like those in a project's own tests, which are often small",
    "program": "what the whole program costs on the tests of an online judge",
    "kernel": "how long one launch takes at these sizes on that GPU",
    "module": "how long one forward pass takes at these sizes on that GPU",
    "network": "the accuracy after training, and how long one batch takes on that device",
}
_ORIGINS = {
    "comment": "sizes from the comment at the kernel",
    "benchmark": "sizes from the benchmark in this file",
    "autotune": "usual sizes for the keys of its autotuning; `# rlm: sizes M=4096` above the kernel sets others",
    "default": "usual sizes, since the file names none; `# rlm: sizes M=4096` above the kernel sets others",
}


def hover_text(
    analysed: AnalysedUnit,
    predictions: Sequence[Prediction],
    *,
    markdown: bool,
    against_head: str = "",
    shares: Sequence[tuple[Prediction, float]] = (),
    measured: Sequence[Measured] = (),
) -> str:
    """The text of a hover, as Markdown or plain text.

    Args:
        analysed: the unit.
        predictions: at least one.
        markdown: whether the client shows Markdown.
        against_head: what :func:`head_words` says.
        shares: predictions with the share of comparable units that cost less.
        measured: what was measured of the unit, at most one a metric, or a metric, device and workload.
    """
    unit, basis = analysed.unit, predictions[0].basis
    answered = [prediction for prediction in predictions if prediction.bands]
    blocks = [f"{_title(unit, markdown)}: {render.BASIS_WORDS[basis]}"]
    if answered:
        rows = _rows(answered, measured)
        blocks.append(_table(rows) if markdown else _lines(rows))
    notes = [f"Against HEAD: {against_head}"] if against_head else []
    if len(answered) > MOST_ROWS:
        notes.append(f"{len(answered) - MOST_ROWS} more are not shown")
    notes += measured_words(measured, answered[:MOST_ROWS])
    notes += _asked(answered)
    if analysed.sizes is not None and answered:
        notes.append(_plain(_ORIGINS[analysed.sizes.origin], markdown))
    notes += [_share(prediction, share, unit.language) for prediction, share in shares]
    notes += _calibration(answered)
    notes += _scaled(answered)
    notes += _abstained(predictions)
    if any(prediction.truncated for prediction in predictions):
        notes.append("the text is long: the model read only its start and its end")
    if answered:
        notes.append(f"meaning: {_MEANING[basis]}; the 80 % band holds four costs in five")
    notes.append(f"predicted by model {predictions[0].model}; nothing was run")
    blocks.append("\n".join(f"- {note}" for note in notes) if markdown else "\n".join(notes))
    return "\n\n".join(blocks)


def head_words(state: str, changes: Sequence[Change]) -> str:
    """How a unit compares with what it was at git's ``HEAD``; ``state`` is that of ``HeadDiff``."""
    if state != "changed":
        return {"new": "new", "same": "unchanged"}[state]
    told = [
        f"{render.METRIC_WORDS[change.metric]} about {render.times(change.ratio)} ({_percent(change.bands[0])} band"
        f" {render.ratio_band(change.bands[0])})"
        for change in changes
        if change.ratio is not None and change.bands
    ]
    if told:
        return ", ".join(told)
    reasons = dict.fromkeys(abstentions.reason(change.abstained) for change in changes if change.abstained is not None)
    return f"changed, but the ratio cannot be predicted{''.join(f' because {reason}' for reason in list(reasons)[:1])}"


def _title(unit: Unit, markdown: bool) -> str:
    name = "this file" if unit.qualname == "<file>" else f"`{unit.qualname}`" if markdown else unit.qualname
    return f"**{name}**" if markdown else name


def _rows(predictions: Sequence[Prediction], measured: Sequence[Measured]) -> list[dict[str, str]]:
    """The cells of each prediction by column; a column that says the same everywhere, or nothing, is left out."""
    common = _common(predictions)
    rows = []
    for prediction in predictions[:MOST_ROWS]:
        own = {name: value for name, value in prediction.workload.items() if (name, value) not in common}
        cells = {"": render.METRIC_WORDS[prediction.metric]}
        cells["device"] = prediction.device or "" if ("device", prediction.device) not in common else ""
        cells["at"] = render.workload(own)
        cells["median"] = render.median(prediction)
        cells["measured"] = next((measured_value(one) for one in measured if one.answers(prediction)), "")
        for band in prediction.bands:
            cells[f"{_percent(band)} band"] = render.band(prediction.metric, band, prediction.floor)
        rows.append(cells)
    columns = dict.fromkeys(name for cells in rows for name in cells)
    kept = [name for name in columns if any(cells.get(name) for cells in rows)]
    return [{name: cells.get(name, "") for name in kept} for cells in rows]


def _table(rows: Sequence[Mapping[str, str]]) -> str:
    # Padded: some editors show it as it is.
    cells = [list(rows[0]), *(list(row.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = (map(str.ljust, line, widths) for line in cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _lines(rows: Sequence[Mapping[str, str]]) -> str:
    found = []
    for cells in rows:
        of = cells[""] + (f" on {cells['device']}" if cells.get("device") else "")
        of += f" at {cells['at']}" if cells.get("at") else ""
        values = (f"{name} {text}" for name, text in cells.items() if name not in ("", "device", "at") and text)
        found.append(f"{of}: {', '.join(values)}")
    return "\n".join(found)


def _common(predictions: Sequence[Prediction]) -> set[tuple[str, str | None]]:
    """The device and the parts of the workload that all predictions share."""
    asked = [{("device", one.device), *one.workload.items()} for one in predictions]
    return set.intersection(*asked) if asked else set()


def _asked(predictions: Sequence[Prediction]) -> list[str]:
    """Device and workload, as far as they are the same for all predictions."""
    common = dict(_common(predictions))
    device = common.pop("device", None)
    workload = render.workload({name: value for name, value in common.items() if value and value != device})
    words = [f"on {device}"] if device else []
    words += [workload if device else f"at {workload}"] if workload else []
    return [", ".join(words)] if words else []


def _share(prediction: Prediction, share: float, language: str) -> str:
    title, kind = languages.LANGUAGES[language].title, abstentions.KINDS[prediction.basis]
    start = f"{render.METRIC_WORDS[prediction.metric]}: more than {share * 100:.0f} % of the {title} {kind}"
    above = f" above {render.quantity(prediction.metric, prediction.floor)}" if prediction.floor > 0 else ""
    return f"{start}{above} that the model learned from"


def _calibration(predictions: Sequence[Prediction]) -> list[str]:
    """On what the bands rest, once for all metrics and devices that rest on the same."""
    several = len({prediction.device for prediction in predictions if prediction.device}) > 1
    found: dict[str, dict[str, None]] = {}
    for prediction in predictions:
        words = abstentions.calibration(prediction.basis, prediction.bands[0])
        name = render.METRIC_WORDS[prediction.metric]
        name += f" on {prediction.device}" if several and prediction.device else ""
        found.setdefault(words, {})[name] = None
    return [f"{_joined(list(names))}: {words}" for words, names in found.items()]


def _joined(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _scaled(predictions: Sequence[Prediction]) -> Iterable[str]:
    """What was done to the numbers for this machine, nothing where nothing was."""
    for prediction in predictions:
        note = abstentions.scaling(prediction.bands[0].source)
        if note:
            yield f"{render.METRIC_WORDS[prediction.metric]}: {note}"


def _abstained(predictions: Sequence[Prediction]) -> list[str]:
    """Why there is no prediction, once a reason."""
    notes = (
        f"{render.METRIC_WORDS[prediction.metric]}: no prediction because {abstentions.reason(prediction.abstained)}"
        for prediction in predictions
        if prediction.abstained is not None
    )
    return list(dict.fromkeys(notes))


def _percent(band: Band) -> str:
    return f"{band.coverage * 100:.0f} %"


def _plain(text: str, markdown: bool) -> str:
    return text if markdown else text.replace("`", "")
