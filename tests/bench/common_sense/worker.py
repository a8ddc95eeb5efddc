"""Measures one call in this interpreter: a JSON request on standard input, a JSON answer on standard output.

Runs without rlm-lsp, so that the interpreter of the measurement needs nothing but numpy. The time of a call is the
smallest of several repeats, and of wall and CPU time: other processes lengthen the wall time, threads of a library the
CPU time. Memory is the peak of tracemalloc above its level before the call.
"""

import contextlib
import gc
import io
import json
import sys
import time
import tracemalloc
import types

_ENOUGH, _BUDGET, _REPEATS = 0.02, 0.8, 15


def main() -> None:
    """Answer one request: source, setup, call, and whether to measure memory."""
    request = json.load(sys.stdin)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        answer = _measure(request)
    json.dump(answer, sys.stdout)


def _measure(request: dict[str, object]) -> dict[str, float]:
    module = types.ModuleType("measured")
    sys.modules["measured"] = module
    exec(compile(str(request["source"]), "measured.py", "exec"), module.__dict__)
    exec(str(request["setup"]), module.__dict__)
    program = f"def _repeat(_times):\n    for _ in _times:\n        {request['call']}\n"
    exec(program, module.__dict__)
    repeat = module.__dict__["_repeat"]
    answer = {"latency": _latency(repeat)}
    if request["memory"]:
        gc.collect()
        tracemalloc.start(1)
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        repeat(range(1))
        answer["memory"] = float(max(tracemalloc.get_traced_memory()[1] - before, 0))
    return answer


def _latency(repeat: types.FunctionType) -> float:
    calls, seconds = 1, _timed(repeat, 1)
    while seconds * calls < _ENOUGH and calls < 1_000_000:
        calls *= 4
        seconds = min(seconds, _timed(repeat, calls))
    began, done = time.perf_counter(), 1
    while done < _REPEATS and time.perf_counter() - began < _BUDGET:
        seconds = min(seconds, _timed(repeat, calls))
        done += 1
    return seconds


def _timed(repeat: types.FunctionType, calls: int) -> float:
    times = range(calls)
    wall, cpu = time.perf_counter(), time.process_time()
    repeat(times)
    return min(time.perf_counter() - wall, time.process_time() - cpu) / calls


if __name__ == "__main__":
    main()
