"""The action for pull requests: its steps run in a shell, against a server that keeps comments as GitHub does."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.paths import REPOSITORY
from tests.rlm_lsp.findings.support import commit, write

pytestmark = [pytest.mark.timeout(120), pytest.mark.skipif(os.name == "nt", reason="the steps are for bash")]

ACTION = yaml.safe_load((REPOSITORY / "docs" / "ci" / "action.yml").read_text(encoding="utf-8"))
CHECK, POST, END = ACTION["runs"]["steps"]
CHEAP = "def work(n):\n    return n\n"
SLOW = "# rlm: memory < 1 B\ndef work(n):\n    return [sorted(range(n)) for _ in range(n * n)]\n"


@dataclass
class Comments:
    """The comments of a pull request, by their numbers."""

    url: str = ""
    bodies: dict[int, str] = field(default_factory=dict)


@pytest.fixture
def comments() -> Iterator[Comments]:
    """A server with GitHub's requests for comments."""
    kept = Comments(bodies={1: "Looks good."})

    class Handler(BaseHTTPRequestHandler):
        def answer(self, content: Any) -> None:
            assert self.headers["Authorization"] == "Bearer secret"
            data = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def body(self) -> str:
            text: str = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
            return text

        def do_GET(self) -> None:
            assert self.path.startswith("/repos/me/it/issues/7/comments?")
            rows = [{"id": number, "body": body} for number, body in kept.bodies.items()]
            self.answer(rows if self.path.endswith("page=1") else [])

        def do_POST(self) -> None:
            assert self.path == "/repos/me/it/issues/7/comments"
            kept.bodies[max(kept.bodies) + 1] = self.body()
            self.answer({})

        def do_PATCH(self) -> None:
            kept.bodies[int(self.path.removeprefix("/repos/me/it/issues/comments/"))] = self.body()
            self.answer({})

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    yield kept
    server.shutdown()
    server.server_close()


def run(step: dict[str, Any], folder: Path, comments: Comments, **inputs: str) -> tuple[int, dict[str, str]]:
    """The exit status and the outputs of a step."""
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    output = temporary / "output"
    output.write_text("")
    program = temporary / "bin" / "rlm-lsp"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rlm_lsp "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(temporary),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(temporary / "summary"),
        "GITHUB_API_URL": comments.url,
        "GITHUB_REPOSITORY": "me/it",
        "GITHUB_BASE_REF": "main",
        **inputs,
    }
    done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=environment, check=False)
    return done.returncode, dict(line.split("=", 1) for line in output.read_text().splitlines())


def test_one_comment_follows_the_pull_request(tmp_path: Path, comments: Comments) -> None:
    project = tmp_path / "project"
    project.mkdir()
    commit(project, {"a.py": CHEAP})

    def push(text: str, fail_on: str = "never") -> int:
        write(project, {"a.py": text})
        status, outputs = run(CHECK, project, comments, PATHS="a.py", BASE="HEAD", FAIL_ON=fail_on)
        assert status == 0
        assert run(POST, project, comments, TOKEN="secret", NUMBER="7", REPORT=outputs["report"])[0] == 0
        return run(END, project, comments, STATUS=outputs["status"])[0]

    assert push("def work(n):\n    return n + 0\n") == 0
    # No comment where there is nothing to say.
    assert list(comments.bodies) == [1]
    assert push(SLOW) == 0
    assert list(comments.bodies) == [1, 2]
    assert comments.bodies[2].startswith("<!-- rlm-lsp -->\n### Predicted costs\n")
    assert "`a.py:2` | peak memory of work is predicted to exceed its budget" in comments.bodies[2]
    assert push(SLOW, "warning") == 1
    assert push(CHEAP) == 0
    assert comments.bodies == {1: "Looks good.", 2: "<!-- rlm-lsp -->\n### Predicted costs\n\nNo findings.\n"}


def test_a_check_that_cannot_run_fails_the_job(tmp_path: Path, comments: Comments) -> None:
    commit(tmp_path, {"a.py": CHEAP})
    assert run(CHECK, tmp_path, comments, PATHS="a.py", BASE="gone", FAIL_ON="never")[0] == 2


def test_every_input_is_used_and_every_variable_is_an_input_or_comes_from_github() -> None:
    expressions = "".join(str(step.get("env", "")) for step in ACTION["runs"]["steps"])
    assert all(f"inputs.{name}" in expressions for name in ACTION["inputs"])
