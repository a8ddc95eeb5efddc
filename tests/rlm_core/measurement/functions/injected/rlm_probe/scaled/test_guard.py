"""The guard stops effects in a real process, whatever the function does about the error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rlm_core.measurement.functions.run import INSIDE

CHILD = """
import json, sys
sys.path.insert(0, {inside!r})
from rlm_probe.scaled.guard import EffectError, Guard
import os, pathlib, socket, subprocess, threading, time, tempfile, email, shutil, urllib.request
guard = Guard()
caught = "nothing"
guard.arm()
try:
    {code}
except EffectError:
    caught = "effect"
except BaseException as error:
    caught = type(error).__name__
guard.disarm()
print(json.dumps([caught, guard.refused]))
"""


def outcome(code: str) -> tuple[str, str]:
    command = [sys.executable, "-c", CHILD.format(inside=str(INSIDE), code=code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    caught, refused = json.loads(done.stdout)
    return caught, refused


@pytest.mark.parametrize(
    "code",
    [
        "open({path!r}, 'w')",
        "open({path!r}, 'a+b')",
        "pathlib.Path({path!r}).write_text('x')",
        "os.open({path!r}, os.O_CREAT | os.O_WRONLY)",
        "os.mkdir({path!r})",
        "os.remove('/tmp/nothing')",
        "os.rename('/tmp/nothing', '/tmp/other')",
        "subprocess.run(['true'])",
        "os.system('true')",
        "os.fork()",
        "os.kill(os.getpid(), 0)",
        "socket.socket().connect(('127.0.0.1', 9))",
        "socket.getaddrinfo('localhost', 80)",
        "urllib.request.urlopen('http://127.0.0.1:9')",
        "threading.Thread(target=print).start()",
        "time.sleep(0)",
        "os.environ.update(A='1')",
        "os.chdir('/')",
        "tempfile.mkdtemp()",
        "shutil.rmtree('/tmp/nothing')",
        "open('/etc/hostname')",
        "os.listdir('/')",
    ],
)
def test_effects_are_refused(code: str, tmp_path: object) -> None:
    path = f"{tmp_path}/file"
    caught, refused = outcome(code.replace("{path!r}", repr(path)))
    assert caught == "effect"
    assert refused


def test_a_function_that_catches_everything_is_found_out() -> None:
    caught, refused = outcome("exec('try:\\n    time.sleep(0)\\nexcept BaseException:\\n    pass')")
    assert (caught, refused) == ("nothing", "time.sleep")


def test_a_late_import_may_read_and_set_the_environment_but_not_write(tmp_path: Path) -> None:
    place = str(tmp_path)
    (tmp_path / "late.py").write_text("import os\nos.environ['A'] = '1'\nos.listdir('/')\n")
    assert outcome(f"sys.path.append({place!r}); import late") == ("nothing", "")
    (tmp_path / "later.py").write_text(f"open({place!r} + '/file', 'w')\n")
    assert outcome(f"sys.path.append({place!r}); import later") == ("effect", "open for writing")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(
    "code", ["import colorsys", "open(os.__file__)", "sorted(range(9))", "exec('1 + 1')", "json.loads('[]')"]
)
def test_computing_and_importing_pass(code: str) -> None:
    assert outcome(code) == ("nothing", "")
