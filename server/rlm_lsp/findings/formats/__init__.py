"""The forms in which ``rlm-lsp check`` reports findings; each writer takes them one by one and gives pieces of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, get_args

from rlm_lsp.findings.finding import Severity

from . import github, junit, plain, sarif
from .report import Place, Region, Reported, region_of

Format = Literal["text", "json", "sarif", "github", "junit"]
FORMATS: tuple[Format, ...] = get_args(Format)
Writer = Callable[[Iterable[Reported], Severity], Iterator[str]]

WRITERS: dict[Format, Writer] = {
    "text": plain.write_text,
    "json": plain.write_json,
    "sarif": sarif.write,
    "github": github.write,
    "junit": junit.write,
}

__all__ = ["FORMATS", "WRITERS", "Format", "Place", "Region", "Reported", "Writer", "region_of"]
