"""A first run of a model that did not ship with the program, in a child process with limits of time and memory.

A file that passes all checks can still ask for more memory than there is, or never end. The child loads the model and
predicts a few texts; what goes wrong there is one line here. ``python -m rlm_core.inference.model_trial DIRECTORY`` is
the child.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from rlm_core.errors import ModelError, RlmError
from rlm_core.types import CodeText

from .card import CARD, checksum

# Loading and a few predictions take 2 s; a busy machine may need ten times as long.
TRIAL_SECONDS = 60.0
_MEMORY_BYTES = 8 * 2**30
_ADVICE = "export the model again, or use another one"
_REFUSED = 3
_SAMPLES = (
    CodeText("def add(a, b):\n    return a + b\n", "python", "call"),
    CodeText("def total(items):\n" + "    total += sum(items)\n" * 400 + "    return total\n", "python", "call"),
    CodeText("n = int(input())\nprint(sum(range(n)))\n", "python", "program"),
    CodeText("int main() { int n = 1; return n; }\n", "cpp", "program"),
)


def try_model(directory: Path, seconds: float = TRIAL_SECONDS) -> None:
    """Load a model and predict with it in a child process; a model that passed is not tried again by this process.

    Raises:
        ModelError: it cannot be used, ends the child or takes too long.
    """
    try:
        state = checksum(directory / CARD)
    except OSError as error:
        raise ModelError(f"{directory / CARD}: cannot be read ({error.strerror}); {_ADVICE}") from None
    _try_once(directory.resolve(), state, seconds)


@lru_cache(maxsize=64)
def _try_once(directory: Path, state: str, seconds: float) -> None:
    """``state`` is the checksum of the card, which has those of the other files."""
    command = [sys.executable, "-P", "-m", __name__, str(directory)]
    try:
        child = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace"},
        )
    except subprocess.TimeoutExpired:
        raise ModelError(f"{directory}: the model does not answer within {seconds:g} s; {_ADVICE}") from None
    except OSError as error:
        raise ModelError(f"{directory}: the model cannot be tried ({error.strerror}); check {sys.executable}") from None
    if child.returncode == _REFUSED:
        raise ModelError(" ".join(child.stdout.decode("utf-8", "replace").split())[:1000])
    if child.returncode != 0:
        how = f"signal {-child.returncode}" if child.returncode < 0 else f"exit status {child.returncode}"
        raise ModelError(f"{directory}: the model ends the process that tries it ({how}); {_ADVICE}")


def _limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _MEMORY_BYTES if most == resource.RLIM_INFINITY else min(_MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    # Should the parent be killed meanwhile, the child ends all the same.
    resource.setrlimit(resource.RLIMIT_CPU, (int(TRIAL_SECONDS), int(TRIAL_SECONDS) + 1))


def _main(directory: Path) -> int:
    from .student import OnnxPredictor

    _limit()
    try:
        model = OnnxPredictor(directory, threads=1)
        model.predict(_SAMPLES, [model.default_queries(code.basis, code.language) for code in _SAMPLES])
    except RlmError as error:
        print(error)
    except Exception as error:
        print(f"{directory}: the model cannot be run ({type(error).__name__}: {str(error)[:120]}); {_ADVICE}")
    else:
        return 0
    return _REFUSED


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1])))
