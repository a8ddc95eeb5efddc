"""Label files: one JSON object a line, plain or gzipped."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rlm_core.errors import DataError


def read_labels(path: Path, fields: Collection[str], kind: str) -> list[dict[str, Any]]:
    """The rows of a ``.jsonl`` or ``.jsonl.gz`` file of ``kind`` labels, each with all ``fields``.

    Raises:
        DataError: the file cannot be read, a line is not JSON, or a row lacks a field.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    rows: list[dict[str, Any]] = []
    number = 0
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for line in file:
                number += 1
                if not line.strip():
                    continue
                row = json.loads(line)
                lacking = sorted(set(fields) - set(row)) if isinstance(row, dict) else ["fields"]
                if lacking:
                    raise DataError(f"{path}:{number}: lacks {lacking[0]!r}; is this a file of {kind} labels?")
                rows.append(row)
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{number}: not JSON ({error.msg}); mend or remove the line") from None
    return rows
