"""The data sets ("spaces") of arXiv 2509.26476: how its models are asked about each, and what their answers mean.

A published model reads the name of a space before the text, and its number is in the unit of that space. Which query of
ours a space can answer follows from what its rows were measured on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rlm_core.source.languages import by_name
from rlm_core.types import Basis, Metric

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
        """Whether a query is about what the space measured; one about networks must name the space."""
        named = basis != "network" or self.workload.get("space") == workload.get("space", "").lower()
        return (self.basis, self.metric) == (basis, metric) and language in self.languages and named

    def reading(self, text: str, language: str = "") -> str:
        """What a published model reads: the text behind its prefix; ``language`` as the data set writes it."""
        return self.prefix.format(space=self.name, language=language) + text


APPS = Space("APPS", "program", "memory", 1.0, ("python",))
CODENET = Space("CDSS", "program", "memory", 1024.0, _CODENET, prefix="# {space}\n# Language: {language}\n")
KERNELBOOK = Space("KBSS", "kernel", "latency", 1e-3, ("triton",), "nvidia-rtx-a6000")


def network_space(name: str) -> Space:
    """A space of neural networks, by the name in its prefix: validation accuracy in percent on CIFAR-10."""
    workload = {"space": name.lower(), "dataset": "cifar10"}
    return Space(name, "network", "accuracy", 0.01, ("onnx",), None, workload, "{space}\n\n", 4096)


# APPS comes first: it answers for Python programs with twice the rank correlation of CodeNet.
SPACES = (APPS, CODENET, KERNELBOOK, *(network_space(name) for name in ("NASBench101", "ENAS", "NASNet")))


def space_named(name: str) -> Space | None:
    """The space of that name, whatever its case; None for an unknown one."""
    return next((space for space in SPACES if space.name.lower() == name.lower()), None)


def codenet_language(language: str) -> str:
    """A language as the metadata of CodeNet write it."""
    return by_name(language).title
