"""Baselines: the findings that a project has accepted and that ``rlm-lsp check`` no longer reports.

A finding is known by its file, unit, code and budget, not by its line, so that edits elsewhere do not bring it back.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from rlm_core.errors import DataError
from rlm_core.files import atomic_write, read_regular

from .finding import Finding

VERSION = 1
_MOST_BYTES = 2**26


def fingerprint(file: str, finding: Finding) -> str:
    """32 hexadecimal digits for a finding in a file, whose path is relative to the project and has ``/``."""
    parts = (file, finding.qualname, finding.code, finding.budget)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class _KnownFinding(msgspec.Struct):
    fingerprint: str
    file: str = ""
    unit: str = ""
    code: str = ""
    budget: str = ""


class _BaselineContent(msgspec.Struct):
    version: int
    findings: list[_KnownFinding]


class Baseline:
    """The known findings, each as often as it occurred."""

    def __init__(self, fingerprints: Iterable[str] = ()) -> None:
        self._left = Counter(fingerprints)

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Read what :func:`write` wrote.

        Raises:
            DataError: the file is missing or is not a baseline.
        """
        try:
            content = msgspec.json.decode(read_regular(path, _MOST_BYTES), type=_BaselineContent)
        except FileNotFoundError:
            raise DataError(f"{path}: no such baseline; write it with --update-baseline") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(f"{path}: is not a baseline ({error}); write it again with --update-baseline") from None
        if content.version != VERSION:
            raise DataError(f"{path}: a baseline of version {content.version}; write it again with --update-baseline")
        return cls(entry.fingerprint for entry in content.findings)

    def takes(self, fingerprint: str) -> bool:
        """Return whether a finding is in the baseline, and use up one of its entries."""
        if not self._left[fingerprint]:
            return False
        self._left[fingerprint] -= 1
        return True


def write(path: Path, rows: Iterable[tuple[str, Finding]]) -> int:
    """Write findings, each with its file, as the baseline at ``path``; returns their number.

    Raises:
        DataError: the file cannot be written.
    """
    entries = [
        _KnownFinding(fingerprint(file, finding), file, finding.qualname, finding.code, finding.budget)
        for file, finding in rows
    ]
    entries.sort(key=lambda entry: (entry.file, entry.unit, entry.code, entry.budget))
    text = json.dumps(msgspec.to_builtins(_BaselineContent(VERSION, entries)), indent=1) + "\n"
    try:
        with atomic_write(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); check the path") from None
    return len(entries)
