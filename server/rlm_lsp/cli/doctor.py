"""``rlm-lsp doctor``: versions, the model and its size, the CPU and its score, and a timed self-test."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click
import rlm_core
from rlm_core import CodeText, loading
from rlm_core.inference.adaptation import cpu_score
from rlm_core.inference.model_store import BUILTIN, builtin
from rlm_core.inference.query_selection import queries_for

from rlm_lsp import __version__
from rlm_lsp.rendering import console
from rlm_lsp.rendering import labels as render
from rlm_lsp.rendering.hint_label import label

from . import options

_SELF_TEST = "def total(numbers):\n    return sum(n * n for n in numbers) + {}\n"
_WARM_ROUNDS = 5
_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp")


@click.command()
@options.model
@options.threads
@click.option("--score-cpu", is_flag=True, help="Measure this CPU, and scale latencies of functions to it from now on.")
def command(model: str, threads: int, score_cpu: bool) -> None:
    """Show versions, the model, the CPU and a self-test.

    Predictions stay as they are, unless --score-cpu measures this CPU.
    """
    console.line(f"rlm-lsp      {__version__} ({Path(__file__).parents[1]})")
    console.line(f"python       {platform.python_version()} ({sys.executable})")
    for package in ("onnxruntime", "pygls", "tree-sitter"):
        console.line(f"{package:<12} {_version(package)}")
    console.line(f"processor    {_processor()}")
    started = time.perf_counter()
    predictor = rlm_core.load(model, threads=threads)
    loaded = time.perf_counter()
    _print_model(predictor.model_id, model)
    times = []
    for number in range(1 + _WARM_ROUNDS):
        # A new text each time, as after an edit: a known text would be answered from the cache.
        code = CodeText(_SELF_TEST.format(number), "python", "call")
        before = time.perf_counter()
        [predictions] = predictor.predict([code], [queries_for(predictor, code)])
        times.append((time.perf_counter() - before) * 1e3)
    console.line(
        f"self-test    load {(loaded - started) * 1e3:.0f} ms, cold {times[0]:.1f} ms, warm {min(times[1:]):.1f} ms"
    )
    console.line(f"             a small function: {label(predictions) or 'no prediction'}")
    _print_score(score_cpu)


def _print_model(model_id: str, model: str) -> None:
    if loading.is_remote(model):
        console.line(f"model        {model_id} ({model})")
        return
    directory = builtin() if model == BUILTIN else Path(model)
    sizes = {path.name: path.stat().st_size for path in sorted(directory.iterdir()) if path.is_file()}
    console.line(f"model        {model_id} ({directory}, {sum(sizes.values()) / 2**20:.1f} MiB)")
    for name, size in sizes.items():
        console.line(f"             {name} {size / 2**20:.2f} MiB")


def _print_score(measure: bool) -> None:
    path = cpu_score.default_path()
    before = cpu_score.read(path)
    score = cpu_score.measure() if measure else before
    if score is None:
        console.line("cpu score    not measured: latencies of functions are those of the reference machine")
        console.line("             (rlm-lsp doctor --score-cpu measures this CPU)")
        return
    if measure:
        cpu_score.write(score, path)
    console.line(
        f"cpu score    {score.overall:.2f} times the reference, within a factor of {10**score.spread:.2f}"
        f" ({score.date}; --score-cpu measures again)"
    )
    parts = (("interpreter", score.interpreter), ("allocation", score.allocation), ("numpy", score.numpy))
    console.line("             " + ", ".join(f"{name} {value:.2f}" for name, value in parts))
    used = "are" if cpu_score.enabled() else f"would be ({cpu_score.SWITCH} is off)"
    earlier = f"; before: {_factor(before)}" if measure else ""
    console.line(f"             latencies of functions {used} multiplied by {_factor(score)}{earlier}")


def _factor(score: cpu_score.CpuScore | None) -> str:
    """Return the factor of latencies, as text."""
    return render.ratio_digits(1 / score.overall) if score is not None else "1"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    flags = ""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                flags = ", ".join(flag for flag in _FLAGS if flag in value.split())
    except OSError:
        pass  # not Linux: the name has to do
    return f"{cpu_score.cpu_name()}, {os.cpu_count()} cores" + (f", {flags}" if flags else "")
