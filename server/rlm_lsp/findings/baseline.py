"""Baselines: the findings that a project knows and does not want to hear of again.

A finding is known by its file, unit, code and budget, not by its line, so that edits elsewhere do not bring it back.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError

from .finding import Finding

VERSION = 1


def fingerprint(file: str, finding: Finding) -> str:
    """32 hexadecimal digits for a finding in a file, whose path is relative to the project and has ``/``."""
    parts = (file, finding.qualname, finding.code, finding.budget)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Baseline:
    """The known findings, each as often as it was found."""

    def __init__(self, fingerprints: Iterable[str] = ()) -> None:
        self._left = Counter(fingerprints)

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Read what :func:`write` wrote.

        Raises:
            DataError: the file is missing or is no baseline.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["version"] != VERSION:
                raise DataError(
                    f"{path}: a baseline of version {data['version']}; write it anew with --update-baseline"
                )
            found = [entry["fingerprint"] for entry in data["findings"]]
            if not all(isinstance(entry, str) for entry in found):
                raise TypeError
        except FileNotFoundError:
            raise DataError(f"{path}: no such baseline; write it with --update-baseline") from None
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}: is not a baseline; write it anew with --update-baseline") from None
        return cls(found)

    def takes(self, found: str) -> bool:
        """Whether a finding is known; one that is known once is taken once."""
        if not self._left[found]:
            return False
        self._left[found] -= 1
        return True


def write(path: Path, rows: Iterable[tuple[str, Finding]]) -> int:
    """Keep findings, each with its file, as the baseline at ``path``; how many they are.

    Raises:
        DataError: the file cannot be written.
    """
    entries: list[dict[str, Any]] = [
        {
            "fingerprint": fingerprint(file, finding),
            "file": file,
            "unit": finding.qualname,
            "code": finding.code,
            "budget": finding.budget,
        }
        for file, finding in rows
    ]
    entries.sort(key=lambda entry: (entry["file"], entry["unit"], entry["code"], entry["budget"]))
    try:
        path.write_text(json.dumps({"version": VERSION, "findings": entries}, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); check the path") from None
    return len(entries)
