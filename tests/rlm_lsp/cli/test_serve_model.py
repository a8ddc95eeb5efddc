"""``rlm-lsp serve-model``: what it refuses to start with, and a real process that is asked, stopped and killed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rlm_core.serving.client import RemotePredictor
from rlm_core.types import Abstention, AbstentionCode
from rlm_lsp.cli.app import app

from tests.paths import REPOSITORY
from tests.rlm_core.serving.support import AT_ONCE, LATENCY, TOKEN, LengthPredictor, call, serving, wait_until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RLM_LSP_TOKEN", "RLM_LSP_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@contextmanager
def process(*options: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a separate process and its address; killed at the end if it still runs."""
    command = [sys.executable, "-m", "tests.rlm_core.serving.serve_length", "serve-model", *map(str, options)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, text=True, stdin=pipe, stdout=pipe, stderr=pipe) as started:
        try:
            assert started.stderr is not None
            line = started.stderr.readline()
            assert line.startswith("rlm-lsp: serving length-1 on http"), line
            yield started, line.split()[-1]
        finally:
            started.kill()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "gpu-box"])
def test_other_machines_may_ask_only_with_a_token(host: str) -> None:
    result = run("serve-model", "--host", host)
    assert result.exit_code == 2
    assert result.stderr == (
        f"rlm-lsp: error: --host {host}: other machines need a token; give --token-file or set RLM_LSP_TOKEN\n"
    )


def test_a_bad_token_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short")
    result = run("serve-model", "--token-file", tmp_path / "token")
    assert result.exit_code == 2
    assert "token: holds no token (one line of 16 or more visible characters)" in result.stderr


def test_a_certificate_needs_its_key(tmp_path: Path) -> None:
    result = run("serve-model", "--certificate", tmp_path / "cert.pem")
    assert result.exit_code == 2
    assert result.stderr == "rlm-lsp: error: serve-model: --certificate and --key go together; give both or neither\n"


def test_a_certificate_that_is_none_and_a_port_that_is_taken_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_core.load", lambda model, threads=0: LengthPredictor())
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (tmp_path / "pem").write_text("none")
    result = run("serve-model", "--certificate", tmp_path / "pem", "--key", tmp_path / "pem")
    assert "pem: not a certificate and key (" in result.stderr
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        result = run("serve-model", "--port", str(port))
    assert result.exit_code == 2
    assert result.stderr == (
        f"rlm-lsp: error: --host 127.0.0.1 --port {port}: cannot listen (Address already in use); choose others\n"
    )


def test_a_host_that_is_not_here_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm_core.load", lambda model, threads=0: LengthPredictor())
    monkeypatch.setattr("signal.signal", lambda *_: None)
    (tmp_path / "token").write_text(TOKEN)
    result = run("serve-model", "--host", "gpu-box.invalid", "--token-file", tmp_path / "token")
    assert result.stderr.startswith("rlm-lsp: error: --host gpu-box.invalid --port 8765: cannot listen (")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("serve-model")
    assert result.exit_code == 2
    assert result.stderr == "rlm-lsp: error: uvicorn is not installed; run: pip install '.[serve]'\n"


def test_it_serves_and_ends_after_the_requests_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    options = ("--port", "0", "--token-file", tmp_path / "token", "--max-texts", "7")
    with process(*options) as (server, url), ThreadPoolExecutor(1) as threads:
        remote = RemotePredictor(url, token=TOKEN, patience=AT_ONCE)
        held = threads.submit(remote.predict, [call("hold")], [LATENCY])
        assert server.stdout is not None
        assert server.stdin is not None
        assert server.stdout.readline() == "held\n"
        server.terminate()
        wait_until(lambda: not listens(url))
        server.stdin.write("go on\n")
        server.stdin.flush()
        [[answer]] = held.result()
        assert server.wait(100) == 0
        assert server.stderr is not None
        assert server.stderr.read() == ""
    assert answer.median == pytest.approx(4e-6)


def test_ctrl_c_ends_it_quietly() -> None:
    with process("--port", "0") as (server, url):
        remote = RemotePredictor(url, patience=AT_ONCE)
        assert remote.predict([call("x")], [LATENCY])[0][0].abstained is None
        server.send_signal(signal.SIGINT)
        assert server.wait(100) == 130
        assert server.stderr is not None
        assert server.stderr.read() == ""


def listens(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=100).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_killed_server_is_abstained_for_and_used_again_when_it_is_back() -> None:
    with process("--port", "0") as (server, url):
        remote = RemotePredictor(url, patience=AT_ONCE)
        assert remote.predict([call("x")], [LATENCY])[0][0].abstained is None
        server.kill()
        server.wait(100)
        [[answer]] = remote.predict([call("x")], [LATENCY])
        details = {"url": url, "problem": "it cannot be reached (Connection refused)"}
        assert answer.abstained == Abstention(AbstentionCode.SERVER_UNAVAILABLE, details)
    with process("--port", url.rpartition(":")[2]):
        assert remote.predict([call("x")], [LATENCY])[0][0].abstained is None


def test_a_client_on_the_command_line_names_the_address_as_its_model(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def f(n):\n    return n\n")
    with serving(LengthPredictor()) as url:
        result = run("predict", tmp_path / "code.py", "--model", url, "--format", "json")
        rows = json.loads(result.stdout)
        gone = url
    assert result.exit_code == 0
    assert {row["metric"] for row in rows} == {"latency", "memory"}
    assert all(row["median"] > 0 for row in rows)
    result = run("predict", tmp_path / "code.py", "--model", gone)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"rlm-lsp: error: {gone}: the model server does not answer: it cannot be reached")
