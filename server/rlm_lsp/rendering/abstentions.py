"""Sentences for typed facts: why a query has no prediction, and what a band was calibrated on.

Reasons are clauses in lower case, ready to follow "no prediction because". The hover, the command line, ``check`` and
JSON output all take them from here. :func:`shown` is the boundary around what is shown of a unit: where rendering
fails, the reason takes the place of the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rlm_core.boundary import guarded
from rlm_core.inference.guarded import text_alone, without_answer
from rlm_core.queries.analysis import AnalysedUnit
from rlm_core.queries.judges import JUDGES
from rlm_core.source import languages
from rlm_core.types import Abstention, AbstentionCode, Band, Basis, CalibrationSource, CodeText, Prediction

from . import labels
from .escaping import printable

if TYPE_CHECKING:
    from rlm_core.queries.kernel_sizes import UnitSizes

KINDS: Mapping[str, str] = {
    "call": "functions",
    "program": "programs",
    "kernel": "kernels",
    "module": "modules",
    "network": "networks",
}
# What is held out as a whole when bands are checked.
_GROUPS: Mapping[str, str] = {
    "call": "packages",
    "program": "problems",
    "kernel": "kernels",
    "module": "modules",
    "network": "architectures",
}
_ORIGINS: Mapping[str, str] = {
    "comment": "sizes from the comment at the {kind}",
    "benchmark": "sizes from the benchmark in this file",
    "call": "sizes from line {line}: `{call}`",
    "layers": "sizes from the layers, with a typical batch, picture or sequence; set others with"
    " `# rlm: sizes {example}` above the class",
    "autotune": "typical sizes for the autotuning keys; set others with `# rlm: sizes M=4096` above the kernel",
    "default": "typical sizes because the file names none; set others with `# rlm: sizes {example}` above the {place}",
}
_MOST_CALL = 60
_REASONS: Mapping[AbstentionCode, str] = {
    AbstentionCode.TASK_NOT_TRAINED: "the model was not trained on the {metric} of {units}",
    AbstentionCode.DEVICE_NOT_TRAINED: "the model was not trained on device {device}; for {kinds} it knows {known}",
    AbstentionCode.SETTING_NOT_TRAINED: "the model was not trained on {metric} with {workload}",
    AbstentionCode.EMPTY_TEXT: "the text is empty",
    AbstentionCode.INVALID_DATE: "the workload date '{date}' is not a date; write it like 2026-01-31",
    AbstentionCode.UNLIKE_TRAINING_DATA: "the text is unlike the training data (distance {distance}, limit {limit})",
    AbstentionCode.SIZES_UNKNOWN: "the tensor sizes are unknown; {remedy}",
    AbstentionCode.TOO_FEW_GROUPS: "{groups} held-out groups of {kinds} are too few for calibration ({needed} needed)",
    AbstentionCode.RATIO_NOT_CALIBRATED: "the model was not calibrated on changes in the {metric} of {kinds}",
    AbstentionCode.NO_NUMBER: "the model does not produce a number for this text",
    AbstentionCode.NOT_AT_SIZES: "nothing supports a number at {sizes} for {unit}: the text has calls, types or inputs"
    " of unknown cost, and no measurement covers these sizes",
    AbstentionCode.ADAPTER_UNUSABLE: "the adapter of this device cannot be used: {problem}",
    AbstentionCode.TEXT_TOO_LONG: "the text and what it calls are longer than the server's limit of {limit} characters",
    AbstentionCode.REQUEST_TOO_LARGE: "the text and its queries take {size} bytes; the server's limit is {limit}",
    AbstentionCode.SERVER_UNAVAILABLE: "the model server {url} does not answer: {problem}",
    AbstentionCode.MAY_NOT_END: "a call may not end",
    AbstentionCode.UNKNOWN_CALL: "it gets no inputs, and what {call} costs is not known",
    AbstentionCode.MODEL_FAILED: "the model failed on this text ({error}); see the server's log",
    AbstentionCode.ANALYSIS_FAILED: "the analysis of this text failed ({error})",
    AbstentionCode.TOO_COMPLEX: "the text is too complex to analyse",
    AbstentionCode.SIZES_FIXED: "the file fixes the sizes of its inputs; export the network with {sizes}",
    AbstentionCode.BATCH_NOT_MEASURED: "networks were measured on {device} with batches of {least} to {most}, not"
    " {batch}",
    AbstentionCode.OPEN_SIZES: "the sizes of {share} of the operators depend on values; export the network with fixed"
    " sizes",
    AbstentionCode.OTHER_IMAGE_SIZE: "accuracies on {dataset} are known for images of {usual} pixels; this network"
    " takes {side}",
    AbstentionCode.TOO_LARGE: "the network has {gmacs} GMACs; the measured ones have up to {most}",
    AbstentionCode.OPERATOR_NOT_MEASURED: "much of the work is in operators that few networks measured on {device}"
    " have: {operators}",
    AbstentionCode.BEYOND_MEASURED: "{metric} was measured on {device} for cells of NAS-Bench-201 on images of 32"
    " pixels, which have less work in {operators}",
}


_UNLIKE_NETWORKS = "only networks like those of NAS benchmarks have this number (distance {distance}, limit {limit})"
_ONE_BATCH = "networks were measured on {device} with batch {least}, not {batch}"
_LESS_WORK = (
    "{metric} was measured on {device} for cells of NAS-Bench-201 on images of 32 pixels, which all have more work"
)
_OWN_WORDS = frozenset({"kinds", "units", "remedy"})
_Shown = TypeVar("_Shown")


def reason(abstention: Abstention, quote: Callable[[str], str] = str) -> str:
    """Return why there is no prediction, as a clause in lower case; ``quote`` escapes names and other outside text."""
    details = dict(abstention.details)
    basis, language = details.get("basis", ""), languages.LANGUAGES.get(details.get("language", ""))
    details["kinds"] = KINDS.get(basis, quote(basis))
    # The language of other units follows from their kind.
    named = basis in ("call", "program") or language is None
    title = language.title if language is not None else quote(details.get("language", ""))
    details["units"] = f"{title} {details['kinds']}" if named else details["kinds"]
    if "judge" in details:
        details["units"] += f" on {quote(details['judge'])}"
    if abstention.code is AbstentionCode.DEVICE_NOT_TRAINED and details["others"] != "0":
        details["known"] += f" and {details['others']} more"
    if abstention.code is AbstentionCode.SETTING_NOT_TRAINED:
        details["workload"] = (details["workload"] or "no workload") + (
            f" on device {details['device']}" if details["device"] else ""
        )
    if abstention.code is AbstentionCode.SIZES_UNKNOWN:
        example = details.get("example", "arg0=4096x4096")
        place = "class" if basis == "module" else "kernel"
        has_comments = basis and details["language"] != "ttir"
        in_comment = f"write `# rlm: sizes {_in_code(example)}` above the {place}"
        details["remedy"] = in_comment if has_comments else f"set them in the workload, for example {quote(example)}"
    template = _REASONS[abstention.code]
    if abstention.code is AbstentionCode.UNLIKE_TRAINING_DATA and basis == "network":
        template = _UNLIKE_NETWORKS
    if abstention.code is AbstentionCode.BATCH_NOT_MEASURED and details["least"] == details["most"]:
        template = _ONE_BATCH
    if abstention.code is AbstentionCode.BEYOND_MEASURED and not details["operators"]:
        template = _LESS_WORK
    sentence = template.format_map(
        {name: value if name in _OWN_WORDS else quote(value) for name, value in details.items()}
    )
    if abstention.known_device is not None:
        known = quote(abstention.known_device)
        return f"the known device {known}, on which the answer rests, has no prediction: {sentence}"
    return sentence


def failed_analysis(failure: str) -> str:
    """Return the clause that a number is from the text alone since the analysis failed; empty if it did not.

    ``failure`` is that of an :class:`rlm_core.queries.analysis.AnalysedUnit`.
    """
    return f"from the text alone: its analysis failed ({failure})" if failure else ""


def other_judge(code: CodeText, prediction: Prediction) -> str | None:
    """Return the clause that a program was predicted for another judge than it looks like; None if it was not."""
    looks, answered = code.judge, JUDGES.get(prediction.device or "")
    if looks is None or looks.judge not in JUDGES or answered is None or looks.judge == answered.id:
        return None
    if prediction.abstained is not None:
        return None
    return f"predicted for {answered.title}; the file looks like a program for {JUDGES[looks.judge].title}"


def calibration(basis: Basis, band: Band) -> str:
    """Describe what a band was calibrated on, as a clause without subject."""
    source, rows = band.source, f"{band.rows:,} measurements"
    if source.uncalibrated:
        return "uncalibrated, bands are the model's own intervals and were checked on nothing"
    if source.adapted_device is not None:
        texts = f"{band.groups:,} text{'' if band.groups == 1 else 's'}"
        return f"bands from {rows} of {texts} on {source.adapted_device}, each left out in turn"
    if source.by_data_sheet:
        on = f"{band.groups:,} devices, each left out of training in turn"
        return f"known by its data sheet only, bands checked on {on} ({rows} of {KINDS[basis]})"
    on = f"{band.groups:,} {_GROUPS[basis]} that the model had not seen"
    return f"bands checked on {on} ({rows} of {_task(source.task, basis)})"


def sizes_origin(sizes: UnitSizes, kind: str) -> str:
    """Return the source of the sizes of a ``kernel`` or ``module``, as a clause without verb."""
    is_module = kind == "module"
    first = " ".join(f"{name}={size}" for name, size in sizes.workloads[0].items())
    call = sizes.call if len(sizes.call) <= _MOST_CALL else sizes.call[: _MOST_CALL - 1] + "…"
    return _ORIGINS[sizes.origin].format(
        kind=kind,
        place="class" if is_module else "kernel",
        example=_in_code(first) if is_module else "M=4096",
        line=sizes.line,
        call=_in_code(call),
    )


def _in_code(text: str) -> str:
    """Text for a code span of one backtick."""
    return printable(text).replace("`", "'")


def scaling(source: CalibrationSource) -> str:
    """Describe how latencies were scaled to this machine; empty if they were not."""
    scale = source.cpu_scale
    return (
        f"scaled by {labels.ratio_digits(scale.ratio)} to this CPU (score of {scale.date})" if scale is not None else ""
    )


def _task(task: str, basis: Basis) -> str:
    """A calibration task in words: ``Python functions``, ``programs in all languages``."""
    name, _, setting = task.partition("@")
    parts = name.split("/")
    fixed = parts[0] == "fixed"
    # Bands that take work facts or calls into account are named after their kind first.
    parts = parts[1:] if parts[0] in ("fixed", "facts", "calls", "measured-calls") else parts
    if basis in ("kernel", "module", "network"):
        device = parts[3] if len(parts) > 3 else setting.partition("/")[0]
        words = KINDS[basis] + (f" on {device}" if device else "")
    elif len(parts) > 2 and parts[1] in languages.LANGUAGES:
        words = f"{languages.LANGUAGES[parts[1]].title} {KINDS[basis]}"
        words += f" on {JUDGES[parts[3]].title}" if len(parts) > 3 and parts[3] in JUDGES else ""
    else:
        words = f"{KINDS[basis]} in all languages"
    words = f"{words} whose text fixes the cost" if fixed else words
    return words if len(parts) > 1 else f"{words}, all metrics together"


def shown(
    analysed: AnalysedUnit,
    predictions: Sequence[Prediction],
    show: Callable[[AnalysedUnit, Sequence[Prediction]], _Shown],
) -> _Shown:
    """Return what ``show`` renders for a unit; if it raises, what it renders for the text alone with the reason."""

    def reason(error: Exception) -> _Shown:
        alone = replace(analysed, code=text_alone(analysed.code), sizes=None, failure=type(error).__name__)
        return show(alone, [without_answer(prediction, error) for prediction in predictions])

    return guarded(f"what is shown of {analysed.unit.qualname}", lambda: show(analysed, predictions), reason)
