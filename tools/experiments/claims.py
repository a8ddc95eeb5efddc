"""Lists what is claimed of functions in folders of source text: exponential growth, loops and recursions without end.

    python -m tools.experiments.claims FOLDER... [--least 0.5] [--jsonl OUT]

A claim is for a person to read: whether it is true shows only in the code. The last line counts functions and claims.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import rlm_core
from rlm_core.errors import RlmError
from rlm_core.inference.growth import GROWTH, GrowthHead
from rlm_core.queries.analysis import AnalysedUnit, Analyser
from rlm_core.source.parsed import ParsedSource

_BUILTIN = Path(rlm_core.__file__).parent / "builtin"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about a function, with its probability; ``line`` is 1-based."""

    kind: str
    file: str
    line: int
    unit: str
    probability: float
    what: str


def claims_of(path: Path) -> tuple[int, list[Claim]]:
    """The number of functions of a file, and what is claimed of them with any probability."""
    head = GrowthHead(_BUILTIN / GROWTH)
    try:
        units = Analyser().analyse(ParsedSource(path.read_bytes(), "python"), path)
    except (OSError, RlmError):
        return 0, []
    functions = [unit for unit in units if unit.unit.kind == "function"]
    return len(functions), [claim for unit in functions for claim in _claims(path, unit, head)]


def _claims(path: Path, analysed: AnalysedUnit, head: GrowthHead) -> Iterator[Claim]:
    unit, work = analysed.unit, analysed.code.work
    for metric, growth in head.estimates(analysed.code).items():
        if growth.growth_class == "2^n":
            sizes = ", ".join(growth.sizes)
            yield Claim(
                "2^n", str(path), unit.span.start_line + 1, unit.qualname, growth.probability, f"{metric} in {sizes}"
            )
    if work is not None and work.endless is not None:
        line = unit.span.start_line + 1
        yield Claim("endless", str(path), line, unit.qualname, 1.0, f"line {line + work.endless}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--least", type=float, default=0.5, help="least probability of a claim that is listed")
    parser.add_argument("--jsonl", type=Path, help="also write the claims to this file")
    options = parser.parse_args(arguments)
    paths = [
        path for folder in options.folders for path in (sorted(folder.rglob("*.py")) if folder.is_dir() else [folder])
    ]
    functions, claims = 0, []
    with ProcessPoolExecutor(2) as pool:
        for count, found in pool.map(claims_of, paths, chunksize=8):
            functions += count
            for claim in found:
                if claim.probability >= options.least:
                    claims.append(claim)
                    text = f"{claim.file}:{claim.line} {claim.unit}: {claim.kind}, {claim.what}"
                    print(f"{text} ({claim.probability:.0%})", flush=True)
    if options.jsonl is not None:
        options.jsonl.write_text("".join(json.dumps(asdict(claim)) + "\n" for claim in claims), "utf-8")
    kinds = {kind: sum(claim.kind == kind for claim in claims) for kind in ("2^n", "endless")}
    print(
        f"{functions:,} functions of {len(paths):,} files: {kinds['2^n']} claims of 2^n, {kinds['endless']} of endless"
    )


if __name__ == "__main__":
    main()
