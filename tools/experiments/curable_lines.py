"""Lists the lines of public code that are said to have a cheaper way to write them, and lines that look like one.

    python -m tools.experiments.curable_lines --folders FOLDER...

Input: folders of Python files and notebooks. Output: a row of JSON per unit: the places that the hover names with their
cures, and the lines that a regular expression finds, which knows neither loops nor types: `iterrows`, a function
applied to rows, a subscript of `loc`, `concat` and `append` of tables, a compiled pattern. A reader says which of them
are a cause. Rows come in the order of a hash, so that no choice is made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rlm_core.errors import RlmError
from rlm_core.inference.cost_origins import curable_places
from rlm_core.queries.analysis import Analyser
from rlm_core.queries.file_units import file_units

_SEED = "curable-lines"
_TESTS = frozenset({"test", "tests", "testing", "conftest.py"})
_LOOKS = re.compile(
    r"\.iterrows\(|\.apply\(.*axis ?= ?(?:1|.columns)|\.(?:i?loc|i?at)\[|pd\.concat\(|\.append\(.*ignore_index"
    r"|re\.compile\("
)


def rows(folder: Path) -> Iterator[dict[str, object]]:
    """A row per unit of a folder that has a named place, or a line that looks like one."""
    analyser = Analyser()
    for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.ipynb")]):
        if _TESTS & set(path.relative_to(folder).parts) or path.name.startswith("test_"):
            continue
        try:
            texts = list(file_units(analyser, path))
        except (RlmError, OSError):
            continue
        for unit in (unit for text in texts for unit in text.units if unit.code.language == "python"):
            lines = unit.code.text.splitlines()
            looks = [number for number, line in enumerate(lines) if _LOOKS.search(line)]
            places = [
                {**asdict(origin.place), "cure": origin.cure, "loops": [loop.line for loop in origin.loops]}
                for origin in curable_places(unit.code)
            ]
            where = f"{path.relative_to(folder)}:{unit.unit.name.start_line + 1}"
            loops = any(re.match(r"\s*(?:async )?(?:for|while)\b", line) for line in lines)
            yield {"folder": folder.name, "where": where, "unit": unit.unit.qualname, "basis": unit.code.basis,
                   "places": places, "looks": looks, "loops": loops, "text": unit.code.text}  # fmt: skip


def main() -> None:
    """Print the rows of all folders."""
    parser = argparse.ArgumentParser(prog="python -m tools.experiments.curable_lines", description=__doc__)
    parser.add_argument("--folders", type=Path, nargs="+", required=True)
    found = [row for folder in parser.parse_args().folders for row in rows(folder)]
    found.sort(key=lambda row: hashlib.sha256(f"{_SEED}:{row['folder']}/{row['where']}".encode()).hexdigest())
    for row in found:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
