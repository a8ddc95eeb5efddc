"""Models whose card has one value changed: loaded and asked, they answer or are refused in one line.

``python -m tests.reliability.hostile_cards --cards 400 --seed 1``. The weights are those that ship. No child process
tries the model first: what is checked is what the child would meet.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rlm_core.errors import RlmError
from rlm_core.inference.card import CARD
from rlm_core.inference.model_store import builtin, summary
from rlm_core.inference.student import OnnxPredictor
from rlm_core.types import CodeText

from . import fuzz_generators as generate

_CODES = (
    CodeText("def f(items):\n    return sorted(items)\n", "python", "call"),
    CodeText("n = int(input())\nprint(sum(range(n)))\n", "python", "program"),
)


@dataclass(slots=True)
class Report:
    """How many cards were used and refused, and what else happened."""

    cards: int = 0
    used: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def run(cards: int, seed: int) -> Report:
    """Change one value of the shipped card, ``cards`` times."""
    report = Report()
    shipped = json.loads((builtin() / CARD).read_text(encoding="utf-8"))
    with _directory() as directory:
        for number in range(cards):
            rng = random.Random(f"{seed}/{number}")
            card: Any = copy.deepcopy(shipped)
            # A table in turn: most values of the card are edges of slices.
            part = list(card)[number % len(card)]
            card[part] = generate.changed(rng, card[part])
            (directory / CARD).write_bytes(generate.dumps(card))
            report.cards += 1
            try:
                summary(directory)
                model = OnnxPredictor(directory, threads=1)
                queries = [model.default_queries(code.basis, code.language) for code in _CODES]
                model.predict(_CODES, queries)
                model.compare([(_CODES[0], _CODES[0])], queries[:1])
                report.used += 1
            except RlmError as error:
                report.refused += 1
                if "\n" in str(error):
                    report.failures.append(f"{seed}/{number} {part}: several lines")
            except Exception as error:
                frame = traceback.extract_tb(error.__traceback__)[-1]
                place = f"{Path(frame.filename).name}:{frame.lineno}"
                report.failures.append(f"{seed}/{number} {part}: {type(error).__name__}: {str(error)[:100]} ({place})")
    return report


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory with links to the files that ship, to be given a card."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        for file in builtin().iterdir():
            if file.is_file() and file.name != CARD:
                try:
                    (directory / file.name).hardlink_to(file)
                except OSError:  # another file system
                    (directory / file.name).write_bytes(file.read_bytes())
        yield directory


def main() -> None:
    """Print a line of JSON; the exit status is 1 if a card ended in a traceback."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cards", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    report = run(arguments.cards, arguments.seed)
    print(json.dumps(asdict(report)))
    raise SystemExit(bool(report.failures))


if __name__ == "__main__":
    main()
