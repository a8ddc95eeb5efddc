"""``python -m tools.experiments.backtracking_patterns FOLDER... --out FILE``: worst cases of the patterns in real code.

Input: folders with Python files. All literal patterns that are passed to functions of ``re`` are judged, and each
accusation from ``--least`` on is measured: a child process matches the text that the judgement names, at growing
lengths, and the time gives the class. Output: one JSON line per accusation, and the counts of both classes.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rlm_core.cost.library.patterns.worst_case import METHODS, WorstCase, worst_case

_CALL = re.compile(rb"\bre\.(?:compile|match|fullmatch|search|findall|finditer|subn?|split)\(")
_FUNCTIONS = ("compile", "finditer", "sub", "subn", "split", *METHODS)
_MOST_BYTES = 600_000
_CHILD = """
import json, re, sys, time
pattern, flags, method, parts, suffix, is_bytes, counts = json.load(sys.stdin)
compiled = re.compile(pattern.encode("latin-1") if is_bytes else pattern, flags)
for count in counts:
    text = "".join(once + many * count for once, many in parts) + suffix
    data = text.encode("latin-1") if is_bytes else text
    times = []
    for _ in range(2):
        start = time.process_time()
        getattr(compiled, method)(data)
        times.append(time.process_time() - start)
    print(len(text), count, min(times), flush=True)
    if min(times) > 1:
        break
"""
_SHORT, _LONG = range(2, 60), [int(8 * 2 ** (step / 2)) for step in range(30)]
_LEAST_SECONDS = 3e-4  # shorter times are noise
_SLOW = 0.3  # seconds for a few dozen repetitions, which only exponential growth takes


def literal_patterns(folder: Path) -> Iterator[tuple[str | bytes, int, str, str]]:
    """The patterns of a folder's files, with flags, method and location; compiled ones are searched for."""
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes()
        if not _CALL.search(data) or len(data) > _MOST_BYTES:
            continue
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
                continue
            owner, name = node.func.value, node.func.attr
            first = node.args[0]
            if (
                isinstance(owner, ast.Name)
                and owner.id == "re"
                and name in _FUNCTIONS
                and isinstance(first, ast.Constant)
                and isinstance(first.value, str | bytes)
            ):
                given = [word.value for word in node.keywords if word.arg == "flags"]
                flags = sum({flag for part in [*node.args[1:], *given] for flag in _flags(part)})
                method = {"compile": "search"}.get(name, name if name in METHODS else "findall")
                yield first.value, flags, method, f"{path}:{node.lineno}"


def _flags(node: ast.expr) -> Iterator[int]:
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(getattr(re, part.attr, None), re.RegexFlag):
            yield int(getattr(re, part.attr))


def measured_degree(pattern: str | bytes, flags: int, method: str, worst: WorstCase) -> float:
    """Return the degree that the times show at growing lengths; infinity for exponential growth."""
    rows = _times(pattern, flags, method, worst, _SHORT, 10)
    slow = [row for row in rows if row[2] > _LEAST_SECONDS]
    if len(slow) > 3 and (len(rows) < len(_SHORT) or slow[-1][2] > _SLOW):
        # The seconds multiply by the same factor for each repetition; those of a polynomial by ever smaller ones.
        middle = len(slow) // 2
        early, late = _rate(slow[0], slow[middle]), _rate(slow[middle], slow[-1])
        if late > 0.8 * early:
            return math.inf
    rows = [row for row in _times(pattern, flags, method, worst, _LONG, 30) if row[2] > _LEAST_SECONDS]
    if len(rows) < 3:
        return 1.0
    return math.log(rows[-1][2] / rows[-3][2]) / math.log(rows[-1][0] / rows[-3][0])


def _rate(early: tuple[float, float, float], late: tuple[float, float, float]) -> float:
    return math.log(late[2] / early[2]) / max(late[1] - early[1], 1)


def _times(
    pattern: str | bytes, flags: int, method: str, worst: WorstCase, counts: range | list[int], limit: float
) -> list[tuple[float, float, float]]:
    """Length, repetitions and seconds of the matches that end within a limit together."""
    is_bytes = isinstance(pattern, bytes)
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    job = json.dumps([text, flags, method, worst.parts, worst.suffix, is_bytes, list(counts)])
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        output, _ = child.communicate(job, timeout=limit)
    except subprocess.TimeoutExpired:
        child.kill()
        output, _ = child.communicate()
    rows = [line.split() for line in output.splitlines()]
    return [(float(length), float(count), float(seconds)) for length, count, seconds in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--least", type=float, default=3.0, help="the smallest degree that is measured")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    patterns: dict[tuple[str | bytes, int, str], str] = {}
    for folder in options.folders:
        for pattern, flags, method, location in literal_patterns(folder):
            patterns.setdefault((pattern, flags, method), location)
    counts: Counter[tuple[float, float]] = Counter()
    with options.out.open("w", encoding="utf-8") as file:
        for (pattern, flags, method), location in patterns.items():
            worst = worst_case(pattern, method, flags)
            if worst is None or worst.degree < options.least:
                counts[worst.degree if worst is not None else 1.0, math.nan] += 1
                continue
            degree = measured_degree(pattern, flags, method, worst)
            counts[worst.degree, round(degree) if math.isfinite(degree) else degree] += 1
            row = {"pattern": repr(pattern), "flags": flags, "method": method, "location": location}
            judged = {"judged": str(worst.degree), "measured": f"{degree:.2f}", "text": [worst.parts, worst.suffix]}
            file.write(json.dumps(row | judged) + "\n")
            file.flush()
    for (judged_degree, measured), count in sorted(counts.items(), key=str):
        print(f"judged {judged_degree:g}, measured {measured:g}: {count}")


if __name__ == "__main__":
    main()
