"""``python -m tools.unit_costs``: measures the unit costs of Python's primitives and library functions on this machine.

The shipped table is the geometric mean of two machines, at the scale of the first (two-core x86-64 of AMD and of Intel,
CPython 3.12). With ``--only PREFIX`` the other entries of the file stay as they are; ``--merge FILE`` measures nothing
and joins the table of another machine with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from rlm_core.cost.library.unit_costs import TABLE
from rlm_core.errors import DataError
from rlm_core.files import atomic_write

from tools.counterfactual.measuring import MACHINE, interpreter

from . import all_entries
from .measuring import Cost, measure
from .merging import merged


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.unit_costs", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PREFIX", help="measure only the entries whose names start with this")
    parser.add_argument("--missing", action="store_true", help="measure only the entries that the file does not have")
    parser.add_argument("--out", type=Path, default=TABLE, help="file to write (default: the shipped table)")
    parser.add_argument("--python", default=None, help="interpreter to measure (default: python3.12)")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="join the table in this file, and measure nothing")
    arguments = parser.parse_args()
    python = arguments.python or interpreter()
    entries = all_entries()
    old = json.loads(arguments.out.read_text(encoding="utf-8"))["costs"] if arguments.out.exists() else {}
    if arguments.merge is not None:
        other = json.loads(arguments.merge.read_text(encoding="utf-8"))["costs"]
        _write(arguments.out, merged(old, other, entries), python)
        return
    chosen = [
        entry
        for entry in entries
        if (arguments.only is None or entry.name.startswith(arguments.only))
        and not (arguments.missing and entry.name in old)
    ]
    names = {entry.name for entry in entries}
    costs: dict[str, Cost] = {name: cost for name, cost in old.items() if name in names}
    failures = 0
    for entry in chosen:
        try:
            [(_, cost)] = measure([entry], python)
        except DataError as error:
            failures += 1
            print(error, file=sys.stderr)
            continue
        costs[entry.name] = cost
        print(f"{entry.name:36} {cost['fixed']:.3e} + {cost['each']:.3e} * {cost['law']}", flush=True)
    _write(arguments.out, costs, python)
    sys.exit(1 if failures else 0)


def _write(out: Path, costs: Mapping[str, Cost], python: str) -> None:
    command = [python, "-c", "import platform; print(platform.python_version())"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    head = {"machine": MACHINE, "python": version, "date": date.today().isoformat()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(costs[name])}" for name in sorted(costs))
    fields = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    with atomic_write(out) as path:
        path.write_text(f'{{{fields}, "costs": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
