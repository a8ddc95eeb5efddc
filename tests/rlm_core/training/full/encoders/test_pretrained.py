"""Finding checkpoints: folders, a hub on the loopback interface, and everything that goes wrong."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
import torch
from rlm_core.errors import ModelError
from rlm_core.training.full.encoders.base import load_encoder
from rlm_core.training.full.encoders.pretrained import T5GemmaSettings, find_checkpoint
from rlm_core.training.full.encoders.t5gemma import T5GemmaEncoder

from . import checkpoints as tiny

COMMIT = hashlib.sha1(b"a commit", usedforsecurity=False).hexdigest()
OPEN, GATED = "someone/tiny-t5gemma", "someone/gated-t5gemma"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(tiny.first(), tmp_path_factory.mktemp("base"))


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's protocol as a download needs: one open model, one gated one."""

    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silence."""

    def _answer(self) -> None:
        path = self.path.split("?")[0]
        self.asked.append(path)
        files = {file.name: file.read_bytes() for file in self.folder.iterdir()}
        names = [{"type": "file", "path": n, "rfilename": n, "size": len(b), "oid": "0" * 40} for n, b in files.items()]
        if GATED in path:
            self._send(403, b"", {"X-Error-Code": "GatedRepo", "X-Error-Message": "restricted"})
        elif OPEN not in path:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif "/revision/" in path and path.endswith(("/main", COMMIT)):
            self._send(200, json.dumps({"id": OPEN, "sha": COMMIT, "siblings": names}).encode())
        elif "/tree/" in path and path.endswith(COMMIT):
            self._send(200, json.dumps(names).encode())
        elif "/resolve/" in path:
            name = path.rsplit("/", 1)[1]
            self._send(200, files[name], {"ETag": f'"{name}"', "X-Repo-Commit": COMMIT})
        else:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def asked(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub of this machine and an empty cache; the paths that were asked for."""
    handler = type("OwnHub", (Hub,), {"folder": base, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    _use_hub(monkeypatch, server.server_port, tmp_path / "cache")
    yield handler.asked  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def _use_hub(monkeypatch: pytest.MonkeyPatch, port: int, cache: Path) -> None:
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        f"http://127.0.0.1:{port}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_hub_name_is_fetched_once_and_its_commit_kept(asked: list[str], base: Path, tmp_path: Path) -> None:
    encoder = T5GemmaEncoder(T5GemmaSettings(OPEN, mode="frozen", max_tokens=64))
    assert encoder.settings.base == OPEN
    assert encoder.settings.revision == COMMIT
    assert encoder.settings.fingerprint == load(base).settings.fingerprint
    encoder.save(tmp_path / "saved")
    asked.clear()
    again = load_encoder(tmp_path / "saved")
    assert asked == []
    assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), again.parameters(), strict=True))


def test_a_gated_model_says_how_to_get_in(asked: list[str]) -> None:
    with pytest.raises(ModelError, match=rf"{GATED}: gated; accept its terms at https://\S+, then run `hf auth login`"):
        find_checkpoint(GATED)


def test_a_model_that_does_not_exist_is_one_clear_line(asked: list[str]) -> None:
    with pytest.raises(ModelError, match="someone/nothing: no such folder, and not on the hub or private"):
        find_checkpoint("someone/nothing")
    with pytest.raises(ModelError, match="has no revision older"):
        find_checkpoint(OPEN, "older")


def test_no_network_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    _use_hub(monkeypatch, port, tmp_path)
    with pytest.raises(ModelError, match="the hub cannot be reached"):
        find_checkpoint(OPEN)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=rf"HF_HUB_OFFLINE is set\); connect once, or run `hf download {OPEN}`"):
        find_checkpoint(OPEN, COMMIT)


def test_a_path_that_is_no_folder_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such folder, and no hub name"):
        find_checkpoint(str(tmp_path / "missing"))
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="is a file"):
        find_checkpoint(str(tmp_path / "file"))


def load(folder: Path) -> T5GemmaEncoder:
    return T5GemmaEncoder(T5GemmaSettings(str(folder), mode="frozen", max_tokens=64))


def _copy(folder: Path, target: Path) -> Path:
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_a_folder_that_is_no_checkpoint_is_one_clear_line(base: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        load(tmp_path)
    _copy(base, tmp_path)
    config = (tmp_path / "config.json").read_text()
    for text, message in (
        ("{", "not JSON"),
        ("3", "not a model"),
        ("{}", "holds a None model"),
        (json.dumps(json.loads(config) | {"dropout_rate": "much"}), "config.json: .*dropout_rate.*; fetch"),
    ):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ModelError, match=message):
            load(tmp_path)
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="the tokenizer cannot be read"):
        load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match=r"model\.safetensors: cannot be read"):
        load(tmp_path)


def test_pickled_weights_are_refused(base: Path, tmp_path: Path) -> None:
    _copy(base, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"holds no \*\.safetensors"):
        load(tmp_path)
    torch.save({"weight": torch.ones(1)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="pickled, which could run code"):
        load(tmp_path)


def test_code_of_a_model_is_never_run(base: Path, tmp_path: Path) -> None:
    _copy(base, tmp_path)
    ran = tmp_path / "ran"
    (tmp_path / "modeling_own.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    own = {"auto_map": {"AutoConfig": "modeling_own.Config", "AutoModel": "modeling_own.Model"}}
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | own | {"model_type": "regress_lm"}))
    with pytest.raises(ModelError, match="needs code from its own repository, which is never run here"):
        load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | own))
    assert load(tmp_path).width == 32
    assert not ran.exists()


@pytest.mark.parametrize("module", ["transformers", "accelerate", "peft"])
def test_a_missing_package_names_the_extra(base: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModelError, match=rf"need {module} \(.+\); run pip install '\.\[rlm\]'"):
        T5GemmaEncoder(T5GemmaSettings(str(base), mode="lora", max_tokens=64))


def test_a_transformers_without_the_encoder_says_so(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = tiny.write(tiny.second(), tmp_path)
    monkeypatch.setitem(sys.modules, "transformers.models.t5gemma2.modeling_t5gemma2", None)
    with pytest.raises(ModelError, match=r"has no text encoder for t5gemma2; run pip install -U transformers"):
        load(second)
