"""Full disks and folders that cannot be written: one line, and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rlm_core.errors import RlmError

from tests.warm_server import COLD, warm_command

from .kills import KINDS

pytestmark = pytest.mark.extras

_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
_EXAMPLES = Path(__file__).parents[2] / "examples"


def _limit_files(size: int) -> None:
    """Let this process write no file beyond a size, as on a full disk: each write beyond it fails."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@_POSIX
@pytest.mark.parametrize("name", KINDS)
def test_a_full_disk_at_any_byte_leaves_the_last_state(tmp_path: Path, name: str) -> None:
    kind, failed = KINDS[name], 0
    kind.write(tmp_path, 0)
    for size in (0, 1, 40, 150, 700, 5_000, 20_000, 100_000, 500_000):
        reading, writing = os.pipe()
        state = (kind.read(tmp_path) or 0) + 1
        if (child := os.fork()) == 0:
            _limit_files(size)
            try:
                kind.write(tmp_path, state)
                os.write(writing, b"written")
            except (RlmError, OSError) as error:
                os.write(writing, f"told: {error}".encode())
            except BaseException as error:
                os.write(writing, f"raised: {error!r}".encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as said:
            answer = said.read().decode()
        os.waitpid(child, 0)
        found = kind.read(tmp_path)
        if answer == "written":
            assert found == state
        else:
            assert answer.startswith("told: "), answer
            assert "\n" not in answer
            assert found == state - 1
            failed += 1
    assert failed
    left = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.suffix == ".partial")
    assert left == []


@_POSIX
def test_a_report_that_does_not_fit_on_the_disk_is_one_line_and_the_old_one_stays(tmp_path: Path) -> None:
    command = ("check", str(_EXAMPLES / "functions.py"), "--format", "sarif", "--output")
    out = tmp_path / "out"
    out.write_text("old")
    done = subprocess.run(
        [*COLD, *command, str(out)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: _limit_files(100),
        # Under the limit, Python 3.11 leaves parts of its bytecode, which break every later import.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert str(out) in done.stderr.splitlines()[-1]
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


@_POSIX
@pytest.mark.parametrize(
    "command",
    [("predict", str(_EXAMPLES / "functions.py")), ("check", str(_EXAMPLES)), ("measure", "list"), ("doctor",)],
    ids=lambda command: command[0],
)
def test_a_home_that_cannot_be_written_stops_no_command_with_a_traceback(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    # A file in place of the folders, since no permission stops root.
    (home := tmp_path / "home").write_text("")
    folders = {f"XDG_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA", "STATE")}
    done = subprocess.run(
        [*warm_command(), *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **folders, "HOME": str(home)},
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1) or len(done.stderr.strip().splitlines()) == 1, done.stderr
