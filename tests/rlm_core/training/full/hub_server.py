"""A server on the loopback interface that answers downloads as the Hugging Face hub does, without Xet.

Large files are redirected to a second server, which has another origin as the hub's storage has, and takes ranges.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import huggingface_hub.constants
import pytest

LARGE = (".safetensors", ".pt", ".bin", ".model")


def blob_id(content: bytes) -> str:
    """40 hexadecimal digits."""
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def commit_of(name: str) -> str:
    """40 hexadecimal digits."""
    return blob_id(name.encode())


@dataclass
class Repository:
    """A repository with one commit, which the branch ``main`` names.

    Attributes:
        files: contents by name.
        commit: its only one.
        license: in its card.
        gated: only its metadata can be read.
        digests: SHA-256 that the hub states, where it is not that of the content.
    """

    files: dict[str, bytes]
    commit: str = commit_of("first")
    license: str = "mit"
    gated: bool = False
    digests: dict[str, str] = field(default_factory=dict)

    def digest(self, name: str) -> str:
        return self.digests.get(name, hashlib.sha256(self.files[name]).hexdigest())

    def siblings(self) -> list[dict[str, Any]]:
        return [
            {"rfilename": name, "size": len(content), "blobId": blob_id(content)}
            | (
                {"lfs": {"sha256": self.digest(name), "size": len(content), "pointerSize": 130}}
                if is_large(name)
                else {}
            )
            for name, content in self.files.items()
        ]


def is_large(name: str) -> bool:
    return name.endswith(LARGE)


@dataclass(frozen=True)
class Request:
    """What a server was asked; ``server`` is ``hub`` or ``cdn``."""

    server: str
    method: str
    path: str
    range: str | None
    authorization: str | None
    user_agent: str


@dataclass
class Hub:
    """Both servers.

    Attributes:
        repositories: by name.
        requests: all that came.
        cuts: for each transfer of a large file, the bytes after which its connection is closed; whole ones follow.
        takes_ranges: whether the storage answers with parts of files.
        token: the only one that is accepted, with None also none.
    """

    endpoint: str
    cdn: str
    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    cuts: Iterator[int] = field(default_factory=lambda: iter(()))
    takes_ranges: bool = True
    token: str | None = None

    def environment(self, folder: Path) -> dict[str, str]:
        """The variables with which a process uses this hub, and an empty cache in ``folder``."""
        return {
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(folder),
            "HF_HUB_OFFLINE": "0",
            "HF_TOKEN": "",
            "NO_PROXY": "127.0.0.1",
        }

    def use(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
        """Have this process use this hub, and an empty cache in ``folder``, which is returned."""
        constants = huggingface_hub.constants
        monkeypatch.setattr(constants, "ENDPOINT", self.endpoint)
        template = f"{self.endpoint}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "token"))
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        return folder / "hub"

    def transfers(self) -> list[Request]:
        """The requests for the bytes of large files."""
        return [request for request in self.requests if request.server == "cdn"]


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    name: str

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silence."""

    def _answer(self) -> None:
        headers, path = self.headers, unquote(self.path.split("?")[0])
        request = Request(
            self.name, self.command, path, headers["Range"], headers["Authorization"], headers["User-Agent"] or ""
        )
        self.hub.requests.append(request)
        if self.name == "cdn":
            self._send_range(path.rsplit("/", 1)[1], request.range)
        elif self.hub.token is not None and request.authorization not in (None, f"Bearer {self.hub.token}"):
            self._send(401, headers={"X-Error-Message": "Invalid credentials in Authorization header"})
        elif path.startswith("/api/models/"):
            name, _, revision = path.removeprefix("/api/models/").partition("/revision/")
            if (repository := self._repository(name, revision or "main")) is not None:
                card = {"cardData": {"license": repository.license}, "gated": "manual" if repository.gated else False}
                body = {"id": name, "sha": repository.commit, "siblings": repository.siblings(), **card}
                self._send(200, json.dumps(body).encode())
        else:
            name, _, rest = path[1:].partition("/resolve/")
            revision, _, file = rest.partition("/")
            if (repository := self._repository(name, revision)) is not None:
                self._send_file(repository, file)

    def _repository(self, name: str, revision: str) -> Repository | None:
        repository = self.hub.repositories.get(name)
        if repository is None and self.headers["Authorization"] is None:
            self._send(401, headers={"X-Error-Message": "Invalid username or password."})
        elif repository is None:
            self._send(404, headers={"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif revision not in ("main", repository.commit):
            self._send(404, headers={"X-Error-Code": "RevisionNotFound"})
            return None
        return repository

    def _send_file(self, repository: Repository, file: str) -> None:
        headers = {"X-Repo-Commit": repository.commit}
        if repository.gated:
            self._send(401, headers={**headers, "X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif file not in repository.files:
            self._send(404, headers={**headers, "X-Error-Code": "EntryNotFound"})
        elif not is_large(file):
            self._send(200, repository.files[file], {**headers, "ETag": f'"{blob_id(repository.files[file])}"'})
        else:
            digest, size = repository.digest(file), len(repository.files[file])
            linked = {"X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(size)}
            self._send(302, headers={**headers, **linked, "Location": f"{self.hub.cdn}/cdn/{digest}"})

    def _send_range(self, digest: str, wanted: str | None) -> None:
        repositories = self.hub.repositories.values()
        [content, *_] = [r.files[name] for r in repositories for name in r.files if r.digest(name) == digest]
        start = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted and self.hub.takes_ranges else 0
        headers = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        self._send(206 if start else 200, content[start:], headers, next(self.hub.cuts, None))

    def _send(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, cut: int | None = None
    ) -> None:
        self.send_response(status)
        always = {"Content-Length": str(len(body)), "X-HF-Warning": "token; Set a token for higher rate limits."}
        for name, value in {**always, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:cut])


@contextmanager
def serve() -> Iterator[Hub]:
    """A hub without repositories, for the duration of the block."""
    handlers = {name: type(f"{name}Handler", (_Handler,), {"name": name}) for name in ("hub", "cdn")}
    servers = {name: ThreadingHTTPServer(("127.0.0.1", 0), handler) for name, handler in handlers.items()}
    endpoint, cdn = (f"http://127.0.0.1:{server.server_port}" for server in servers.values())
    hub = Hub(endpoint, cdn)
    for handler in handlers.values():
        handler.hub = hub  # type: ignore[attr-defined]
    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}) for server in servers.values()
    ]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server, thread in zip(servers.values(), threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()
