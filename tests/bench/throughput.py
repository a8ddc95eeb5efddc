"""How fast ``rlm-lsp predict`` is over a large code base: Python's own standard library, without its tests.

Run ``python tests/bench/throughput.py`` in an environment with rlm-lsp. Prints units and tokens a second and the peak
resident memory of the command, which runs in a process of its own. Tokens are those of the canonical texts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import rlm_core
from rlm_core.analysis import Analyser
from rlm_core.canonical import canonical
from rlm_core.errors import SourceError
from rlm_core.onnx_predictor import TOKENIZER
from rlm_core.tokenizer import Tokenizer
from rlm_core.units import read_source
from rlm_lsp.sources import find_sources

_LEFT_OUT = shutil.ignore_patterns("test", "tests", "idle_test", "site-packages", "__pycache__", "*.so")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "stdlib"
        shutil.copytree(sysconfig.get_path("stdlib"), folder, ignore=_LEFT_OUT, symlinks=True)
        units, tokens = _count(folder)
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "rlm_lsp", "predict", "--format", "jsonl", folder], stdout=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
    # Files that are no valid UTF-8 on purpose make the status 2.
    if os.waitstatus_to_exitcode(status) not in (0, 2):
        sys.exit("rlm-lsp predict failed")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(
        f"{units:,} units, {tokens:,} tokens in {seconds:.1f} s: {units / seconds:,.0f} units/s,"
        f" {tokens / seconds:,.0f} tokens/s, peak memory {peak / 2**20:,.0f} MiB, {os.cpu_count()} cores"
    )


def _count(folder: Path) -> tuple[int, int]:
    tokenizer = Tokenizer.load(Path(rlm_core.__file__).parent / "builtin" / TOKENIZER)
    analyser = Analyser()
    units = tokens = 0
    for file in find_sources([folder], lambda error: None):
        try:
            source, language = read_source(file.path)
        except SourceError:
            continue
        for unit in analyser.analyse(source, language, file.path):
            units += 1
            tokens += len(tokenizer.encode(canonical(unit.code.text, language), language))
    return units, tokens


if __name__ == "__main__":
    main()
