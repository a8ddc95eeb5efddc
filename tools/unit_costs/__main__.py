"""``python -m tools.unit_costs``: measures the unit costs of Python's primitives and library functions on this machine.

It writes the numbers into the tables of ``rlm_core/cost/library``, next to their snippets, or with ``--out`` into a
JSON file. The shipped costs are the geometric mean of two machines, at the scale of the first (two-core x86-64 of AMD
and of Intel, CPython 3.12): ``--merge FILE`` measures nothing and joins the file of another machine with them. A new
entry begins as ``cost NAME = 0``, or ``0 + 0 * n``, and ``--missing`` measures it together with some known ones, which
say how fast this machine is: it writes seconds at the scale of the others. ``--kinds`` measures nothing either:
it writes what typeshed says of functions that no table lists.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from rlm_core.cost.library.result_kinds import FILE as KINDS
from rlm_core.cost.library.statements import FOLDER
from rlm_core.cost.library.unit_costs import table
from rlm_core.errors import DataError
from rlm_core.files import atomic_write

from .entries import Entry, all_entries, written
from .measuring import MACHINE, Cost, interpreter, measure, rounded, version_of
from .merging import merged, slowness

_REFERENCES = 60  # known costs that say how fast a machine is


def main() -> None:
    """Measure and write the costs."""
    parser = argparse.ArgumentParser(prog="python -m tools.unit_costs", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PREFIX", help="measure only the entries whose names start with this")
    parser.add_argument("--missing", action="store_true", help="measure only the entries without a cost")
    parser.add_argument("--out", type=Path, help="JSON file to write (default: the tables)")
    parser.add_argument("--python", default=None, help="interpreter to measure (default: python3.12)")
    parser.add_argument("--merge", type=Path, metavar="FILE", help="join the costs in this file, and measure nothing")
    parser.add_argument(
        "--kinds",
        action="store_true",
        help="renew the kinds of what no table lists, for the owners in the file, and measure nothing",
    )
    arguments = parser.parse_args()
    if arguments.kinds:
        from .result_kinds import result_kinds, stub_modules  # needs mypy

        # The owners that the file has are those that real code asks for.
        owners = {line.partition(":")[0].partition("(")[0] for line in KINDS.read_text(encoding="utf-8").splitlines()}
        with atomic_write(KINDS) as path:
            path.write_text(result_kinds(stub_modules(), owners), encoding="utf-8")
        return
    python = arguments.python or interpreter()
    entries = all_entries()
    known = {entry.name: _known(entry.name, entry.law) for entry in entries}
    if arguments.merge is not None:
        other = json.loads(arguments.merge.read_text(encoding="utf-8"))["costs"]
        _write(arguments.out, merged(known, other, entries), python)
        return
    wanted = [entry for entry in entries if entry.name.startswith(arguments.only or "")]
    slower = 1.0
    if arguments.missing:
        measured = [entry for entry in entries if _is_measured(known[entry.name])]
        wanted = [entry for entry in wanted if not _is_measured(known[entry.name])]
        references, _ = _measured(measured[:: max(len(measured) // _REFERENCES, 1)], python)
        slower = slowness(known, references, entries)
        print(f"this machine is {slower:.2f} times as slow as the reference", flush=True)
    costs, failures = _measured(wanted, python, slower)
    _write(arguments.out, costs, python)
    sys.exit(1 if failures else 0)


def _measured(entries: list[Entry], python: str, slower: float = 1.0) -> tuple[dict[str, Cost], int]:
    """Return the costs of entries at the scale of a machine that is faster by a factor, and how many failed."""
    costs: dict[str, Cost] = {}
    for entry in entries:
        try:
            [(_, cost)] = measure([entry], python)
        except DataError as error:
            print(error, file=sys.stderr)
            continue
        scaled: Cost = {**cost, **{part: rounded(float(cost[part]) / slower) for part in ("fixed", "each")}}
        costs[entry.name] = scaled
        print(f"{entry.name:36} {scaled['fixed']:.3e} + {scaled['each']:.3e} * {scaled['law']}", flush=True)
    return costs, len(entries) - len(costs)


def _is_measured(cost: Cost) -> bool:
    return bool(cost["fixed"] or cost["each"])


def _known(name: str, law: str) -> Cost:
    cost = table()[name]
    return {"fixed": cost.fixed, "each": cost.each, "law": "n" if law == "1" else law}


def _write(out: Path | None, costs: Mapping[str, Cost], python: str) -> None:
    version = version_of(python)
    if out is not None:
        head = {"machine": MACHINE, "python": version, "date": date.today().isoformat()}
        with atomic_write(out) as path:
            path.write_text(json.dumps({**head, "costs": dict(sorted(costs.items()))}, indent=0), encoding="utf-8")
        return
    measured = f'let MEASURED = "{MACHINE}, Python {version}, {date.today().isoformat()}"'
    for file in sorted(FOLDER.glob("*.txt")):
        text = file.read_text(encoding="utf-8")
        changed = written(text, costs)
        if file.name == "primitives.txt":
            changed = re.sub(r"(?m)^let MEASURED = .*$", measured, changed)
        if changed != text:
            with atomic_write(file) as path:
                path.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
