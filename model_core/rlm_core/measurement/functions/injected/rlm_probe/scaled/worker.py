"""The process that calls functions with larger inputs: ``python -m rlm_probe.scaled.worker ORDER FIRST``.

ORDER is a file of JSON lines: a header, then a line per function with its examples, or with the name of the function of
the bench file that makes its inputs. The answers are lines of JSON on
what was standard output; standard output and errors themselves lead nowhere from then on, and standard input is closed.
``["import", module]`` and ``["begin", index]`` are said before something that could end the process,
``["done", index, result]`` after it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import resource
import sys
import time
import types
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..plain_data import NotPlainError, decode
from .bench import MakeInputs, load_bench
from .curve import CurveMeasurer, Limits, NoCurveError
from .guard import Guard

FORMAT = "rlm-scale-1"


def main() -> None:
    """Work through an order from one of its functions on."""
    order, first = Path(sys.argv[1]), int(sys.argv[2])
    answers = _Answers()
    lines = _lines(order)
    header = next(lines)
    _limit(header["memory"])
    sys.path[:] = [*header["path"], *(name for name in sys.path if name not in header["path"])]
    with suppress(OSError):
        os.chdir(header["folder"])
    warnings.simplefilter("ignore")
    guard = Guard()
    packages = tuple(header["packages"])
    work = [(index, line) for index, line in enumerate(lines) if index >= first]
    modules = {line["module"] for _, line in work if "bench" not in line}
    problems = _import_all(modules, set(header["crashing"]), answers)
    bench = load_bench(header["bench"]) if any("bench" in line for _, line in work) else {}
    functions = _functions(packages)
    gc.disable()
    gc.collect()
    gc.freeze()
    measurer = CurveMeasurer(
        guard, Limits(header["seconds_per_call"], header["seconds_per_function"]), frozenset(packages)
    )
    measurer.find_caches()
    ends = time.process_time() + header["seconds"]
    for index, line in work:
        if time.process_time() > ends:
            break
        answers.say("begin", index)
        began = time.process_time()
        if "bench" in line:
            result = _benched(bench.get(line["bench"]), measurer)
        else:
            result = _measured(line, functions, problems, packages, measurer)
        answers.say("done", index, {**result, "cpu": round(time.process_time() - began, 3)})
        gc.collect()
    answers.say("end")


class _Answers:
    """Says lines to the process that has started this one."""

    def __init__(self) -> None:
        self._file = os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        self._write = os.write  # kept, since a package may put another in its place

    def say(self, *words: object) -> None:
        data = json.dumps(words, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[self._write(self._file, data) :]


def _measured(
    line: dict[str, Any],
    functions: dict[tuple[str, str, int], types.FunctionType],
    problems: dict[str, str],
    packages: tuple[str, ...],
    measurer: CurveMeasurer,
) -> dict[str, Any]:
    if line["kind"] != "function":
        return {"why": f"is a {line['kind']}"}
    if "<locals>" in line["qualname"]:
        return {"why": "is inside another function"}
    if not line["examples"]:
        return {"why": f"not plain data: {line.get('why', '')}"}
    if line["module"] in problems:
        return {"why": problems[line["module"]]}
    function = functions.get((os.path.realpath(line["file"]), line["qualname"], line["line"]))
    if function is None:
        return {"why": "not found after import"}
    random.seed(0)
    examples, reasons = [], []
    for one in line["examples"]:
        try:
            examples.append(decode(one, packages))
        except (NotPlainError, RecursionError) as error:
            reasons.append(f"not rebuilt: {error}")
    if not examples:
        return {"why": reasons[0] if reasons else "no example"}
    try:
        return measurer.measure(function, examples).to_json()
    except NoCurveError as error:
        return {"why": str(error)}
    except RecursionError:
        return {"why": "too deep"}


def _benched(make_inputs: MakeInputs | str | None, measurer: CurveMeasurer) -> dict[str, Any]:
    """The curve of the function that a function of the bench file names, and where that function is."""
    if make_inputs is None or isinstance(make_inputs, str):
        return {"why": make_inputs or "not in the bench file"}
    try:
        function, curve = measurer.measure_bench(make_inputs)
    except NoCurveError as error:
        return {"why": str(error)}
    code = function.__code__
    place = {"file": os.path.realpath(code.co_filename), "qualname": code.co_qualname, "line": code.co_firstlineno}
    return {**curve.to_json(), **place, "module": function.__globals__.get("__name__", "")}


def _import_all(modules: set[str], crashing: set[str], answers: _Answers) -> dict[str, str]:
    """Import modules and return why some could not be."""
    problems: dict[str, str] = {}
    for name in sorted(modules):
        if name in crashing:
            problems[name] = "the import ends the process"
            continue
        answers.say("import", name)
        try:
            importlib.import_module(name)
        except BaseException as error:
            problems[name] = f"cannot be imported: {type(error).__name__}"
    return problems


def _functions(packages: tuple[str, ...]) -> dict[tuple[str, str, int], types.FunctionType]:
    """The functions of packages by file, qualified name and first line, decorated or not."""
    first = {name.partition(".")[0] for name in packages}
    found: dict[tuple[str, str, int], types.FunctionType] = {}
    real: dict[str, str] = {}
    for one in gc.get_objects():
        if type(one) is types.FunctionType and str(one.__globals__.get("__name__", "")).partition(".")[0] in first:
            code = one.__code__
            file = real.setdefault(code.co_filename, os.path.realpath(code.co_filename))
            found.setdefault((file, code.co_qualname, code.co_firstlineno), one)
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _limit(memory: int) -> None:
    """Limit memory; files cannot be written at all."""
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


if __name__ == "__main__":
    main()
