"""Data sets ("spaces") that converted models were trained on: how a model is asked, and what its answers mean.

Most are those of arXiv 2509.26476; users define others for their own checkpoints.

A published model reads the name of a space before the text, and its number is in the unit of that space. Which query
a space can answer follows from what its rows were measured on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from rlm_core.errors import DataError, SourceError
from rlm_core.queries.devices import SHEET_BASES, canonical_device, device_table
from rlm_core.source.languages import by_name
from rlm_core.types import METRICS_OF_BASIS, Basis, Metric

# The language of a CodeNet solution as its metadata write it, by our name; the texts of other languages are asked too.
_CODENET = (
    "c",
    "cpp",
    "csharp",
    "d",
    "fortran",
    "go",
    "haskell",
    "java",
    "javascript",
    "kotlin",
    "ocaml",
    "perl",
    "php",
    "python",
    "ruby",
    "rust",
    "scala",
    "swift",
)


@dataclass(frozen=True, slots=True)
class Space:
    """One data set.

    Attributes:
        name: as the data and the prefix write it.
        basis, metric: what its numbers measure.
        unit: SI units of 1 (CodeNet counts kilobytes, KernelBook milliseconds).
        languages: ours, whose texts it holds.
        device: of its measurements, None where the data do not say.
        workload: what else is fixed.
        prefix: what comes before the text; ``{space}`` and ``{language}`` are filled in.
        max_tokens: what its models were trained to read; longer texts lose their end.
    """

    name: str
    basis: Basis
    metric: Metric
    unit: float
    languages: tuple[str, ...]
    device: str | None = None
    workload: Mapping[str, str] = field(default_factory=dict)
    prefix: str = "{space}\n"
    max_tokens: int = 2048

    def answers(self, basis: str, metric: str, language: str, workload: Mapping[str, str]) -> bool:
        """Return whether a query is about what the space measured; one about networks must name the space."""
        named = basis != "network" or self.workload.get("space", "") == workload.get("space", "").lower()
        return (self.basis, self.metric) == (basis, metric) and language in self.languages and named

    def reading(self, text: str, language: str = "") -> str:
        """Return the input of a published model: the text after its prefix; ``language`` as the data set writes it."""
        return self.prefix.format(space=self.name, language=language) + text


APPS = Space("APPS", "program", "memory", 1.0, ("python",))
CODENET = Space("CDSS", "program", "memory", 1024.0, _CODENET, prefix="# {space}\n# Language: {language}\n")
KERNELBOOK = Space("KBSS", "kernel", "latency", 1e-3, ("triton",), "nvidia-rtx-a6000")


def network_space(name: str) -> Space:
    """A space of neural networks, by the name in its prefix: validation accuracy in percent on CIFAR-10."""
    workload = {"space": name.lower(), "dataset": "cifar10"}
    return Space(name, "network", "accuracy", 0.01, ("onnx",), None, workload, "{space}\n\n", 4096)


# APPS comes first, so it answers for Python programs: the authors and a reproduction rank those of APPS better.
SPACES = (APPS, CODENET, KERNELBOOK, *(network_space(name) for name in ("NASBench101", "ENAS", "NASNet")))


# makora-ai/triton-gpu-latency: one forward pass of the class ``ModelNew``. No public source names the GPU.
TRITON_LATENCY = Space(
    "triton-gpu-latency", "module", "latency", 1e-3, ("pytorch",), None, {"backend": "eager"}, "", 8192
)
NAMED_SPACES = (*SPACES, TRITON_LATENCY)
# Published models of other spaces than those of the paper, by their names on the hub.
_SPACES_OF_MODELS: Mapping[str, tuple[Space, ...]] = {"Srizzle/triton-demo": (TRITON_LATENCY,)}


def space_named(name: str, spaces: Sequence[Space] = SPACES) -> Space | None:
    """The space of that name, whatever its case; None for an unknown one."""
    return next((space for space in spaces if space.name.lower() == name.lower()), None)


def spaces_of(model: str, device: str | None) -> tuple[Space, ...]:
    """Return what a published model answers; ``device`` as for :func:`on_device`.

    Raises:
        DataError: as :func:`on_device`.
    """
    return on_device(_SPACES_OF_MODELS.get(model, SPACES), device, model)


def on_device(spaces: Sequence[Space], device: str | None, where: str) -> tuple[Space, ...]:
    """Return the spaces with the user's device where the data do not say on which one their latencies were measured.

    Args:
        spaces: of a model.
        device: by any of its names; None: the user names none.
        where: the model, for messages.

    Raises:
        DataError: a device is missing, unknown, of another kind, or without effect.
    """
    unnamed = [space for space in spaces if space.metric == "latency" and space.device is None]
    if not unnamed:
        if device is not None:
            raise DataError(f"--device {device}: does not apply to {where}; leave the option out")
        return tuple(spaces)
    if device is None:
        raise DataError(
            f"{where}: no public source names the GPU on which the data set {unnamed[0].name} was measured; name it "
            "with --device, such as --device H100"
        )
    return tuple(replace(own, device=_device(device, own.basis)) if own in unnamed else own for own in spaces)


def new_space(
    name: str,
    basis: Basis,
    metric: Metric,
    languages: Sequence[str],
    unit: float,
    device: str | None = None,
    prefix: str = "",
    max_tokens: int = 2048,
) -> Space:
    """Return the space of a user's own data set; the arguments are the fields of :class:`Space`.

    Raises:
        DataError: an argument is unknown, or the arguments do not fit together.
    """
    if metric not in METRICS_OF_BASIS[basis]:
        raise DataError(f"--metric {metric}: not a metric of {basis}; give {' or '.join(METRICS_OF_BASIS[basis])}")
    for language in languages:
        try:
            by_name(language)
        except SourceError as error:
            raise DataError(f"--language: {error}") from None
    if not 0 < unit < math.inf:
        raise DataError(f"--unit {unit:g}: not a positive number; give SI units (s, B, or a share) per 1 of its answer")
    if metric == "accuracy" and device is not None:
        raise DataError("--device: an accuracy has no device; leave the option out")
    if metric == "latency" and device is None:
        raise DataError("--metric latency: needs --device, where the latencies were measured, such as x86-64 or H100")
    known = None if device is None else _device(device, basis)
    space = Space(name, basis, metric, unit, tuple(languages), known, {}, prefix, max_tokens)
    try:
        space.reading("")
    except (LookupError, ValueError, AttributeError):
        raise DataError(
            f"--prefix {prefix}: only {{space}} and {{language}} are filled in; write other braces twice"
        ) from None
    return space


def _device(name: str, basis: str) -> str:
    """The id of a device."""
    known = canonical_device(name)
    if known is None:
        raise DataError(f"--device {name}: unknown; name the device of the measurements, such as x86-64 or H100")
    if basis in SHEET_BASES and device_table()[known].kind != "gpu":
        raise DataError(f"--device {name}: not a GPU, which a {basis} runs on; name the GPU, such as H100")
    return known


def codenet_language(language: str) -> str:
    """A language as the metadata of CodeNet write it."""
    return by_name(language).title
