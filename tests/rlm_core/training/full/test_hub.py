"""Fetching published models: a hub on the loopback interface, and everything that goes wrong."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from huggingface_hub import constants, file_download
from rlm_core.errors import ModelError
from rlm_core.training.full import hub
from rlm_core.training.full.hub import CheckpointFormat, KnownModel, fetch

from .hub_server import Hub, Repository, commit_of, serve

NAME = "someone/tiny-rlm"
SOURCE = f"hf:{NAME}"
WEIGHTS, TOKENIZER = "model.safetensors", "encoder_tokenizer/tokenizer.json"
SIZE, CHUNK = 20_000, 1_000


def content(seed: int, size: int = SIZE) -> bytes:
    return random.Random(seed).randbytes(size)


def files() -> dict[str, bytes]:
    """A repository like those of the published models, with code and pickles as well."""
    return {
        "README.md": b"# A model",
        "config.json": json.dumps({"model_type": "regresslm"}).encode(),
        "ieee_vocab.json": b"{}",
        "tokenizer_config.json": b"{}",
        "modeling_regresslm.py": b"raise SystemExit",
        "pytorch_model.bin": content(1, 100),
        "training.pt": content(2, 100),
        "runs/trainer_state.json": b"{}",
        TOKENIZER: b'{"version": "1.0"}',
        "encoder_tokenizer/tokenizer.model": content(3, 5_000),
        "encoder_tokenizer/tokenizer_code.py": b"raise SystemExit",
        WEIGHTS: content(4),
    }


DATA_FILES = {
    "config.json",
    "ieee_vocab.json",
    "tokenizer_config.json",
    TOKENIZER,
    "encoder_tokenizer/tokenizer.model",
    WEIGHTS,
}


@pytest.fixture
def server() -> Iterator[Hub]:
    with serve() as running:
        running.repositories[NAME] = Repository(files())
        yield running


@pytest.fixture
def cache(server: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of this process, which uses the hub; the library reads small chunks and waits for nothing."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", CHUNK)
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda seconds: None))
    return server.use(monkeypatch, tmp_path)


def known(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Make the model a known one."""
    usual = {"license": "MIT", "required": ("config.json", WEIGHTS, TOKENIZER), "revision": commit_of("first")}
    monkeypatch.setattr(hub, "KNOWN", {NAME: KnownModel(**{**usual, **fields})})


def quiet(done: int, total: int) -> None:
    """Show nothing."""


def fetched_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def blobs(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("models--*/blobs/*"))


def refused(source: str = SOURCE) -> str:
    """The line of an error."""
    with pytest.raises(ModelError) as caught:
        fetch(source, quiet)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_data_files_are_fetched_and_no_code_and_no_pickles(server: Hub, cache: Path) -> None:
    fetched = fetch(SOURCE, quiet)
    assert (fetched.name, fetched.revision, fetched.license) == (NAME, commit_of("first"), "mit")
    assert fetched_files(fetched.folder) == {name: body for name, body in files().items() if name in DATA_FILES}
    asked = " ".join(request.path for request in server.requests)
    for name in files().keys() - DATA_FILES:
        assert name not in asked


def test_what_is_in_the_cache_is_not_downloaded_again(server: Hub, cache: Path) -> None:
    first = fetch(SOURCE, quiet)
    server.requests.clear()
    assert fetch(SOURCE, quiet) == first
    assert [request.path for request in server.requests] == [f"/api/models/{NAME}"]


def test_progress_counts_all_bytes(server: Hub, cache: Path) -> None:
    calls: list[tuple[int, int]] = []
    fetch(SOURCE, lambda done, total: calls.append((done, total)))
    total = sum(len(files()[name]) for name in DATA_FILES)
    assert {total for _, total in calls} == {total}
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1] == (total, total)
    assert len(calls) > SIZE // CHUNK


def test_a_connection_that_is_cut_is_continued_at_once(server: Hub, cache: Path) -> None:
    server.cuts = iter([len(content(3, 5_000)), 7_500])
    fetched = fetch(SOURCE, quiet)
    assert (fetched.folder / WEIGHTS).read_bytes() == content(4)
    assert [request.range for request in server.transfers()] == [None, None, "bytes=7000-"]


def test_a_second_call_continues_where_the_first_one_stopped(server: Hub, cache: Path) -> None:
    server.cuts = chain([5_000, 7_500], repeat(0))
    message = refused()
    assert message.startswith(f"{NAME}: could not be fetched from the hub (")
    assert message.endswith("); run the command again: it continues where it stopped")
    digest = hashlib.sha256(content(4)).hexdigest()
    assert f"{digest}.incomplete" in blobs(cache)
    assert digest not in blobs(cache)
    server.cuts = iter(())
    server.requests.clear()
    calls: list[int] = []
    fetched = fetch(SOURCE, lambda done, total: calls.append(done))
    assert [request.range for request in server.transfers()] == ["bytes=7000-"]
    assert (fetched.folder / WEIGHTS).read_bytes() == content(4)
    assert not [name for name in blobs(cache) if name.endswith(".incomplete")]


def test_a_storage_without_ranges_is_read_from_the_start(server: Hub, cache: Path) -> None:
    server.cuts = chain([5_000, 7_500], repeat(0))
    refused()
    server.cuts, server.takes_ranges = iter(()), False
    assert (fetch(SOURCE, quiet).folder / WEIGHTS).read_bytes() == content(4)


def test_wrong_bytes_are_removed_and_fetched_again(server: Hub, cache: Path) -> None:
    right = hashlib.sha256(content(4)).hexdigest()
    server.repositories[NAME].files[WEIGHTS] = content(5)
    server.repositories[NAME].digests[WEIGHTS] = right
    wrong = hashlib.sha256(content(5)).hexdigest()
    assert refused() == (
        f"{NAME}: {WEIGHTS} is not the published file (SHA-256 {wrong[:12]}..., expected {right[:12]}...) and was "
        "removed from the cache; run the command again"
    )
    assert not [name for name in blobs(cache) if name.startswith(right)]
    server.repositories[NAME] = Repository(files())
    assert (fetch(SOURCE, quiet).folder / WEIGHTS).read_bytes() == content(4)


@pytest.mark.parametrize("file", [WEIGHTS, TOKENIZER])
def test_a_known_model_has_the_files_that_are_known(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    right = hashlib.sha256(files()[file]).hexdigest()
    known(monkeypatch, sha256={file: right})
    server.repositories[NAME].files[file] = b"changed"
    assert f"{NAME}: {file} is not the published file" in refused()
    server.repositories[NAME] = Repository(files())
    assert (fetch(SOURCE, quiet).folder / file).read_bytes() == files()[file]


@pytest.mark.parametrize("file", [WEIGHTS, TOKENIZER])
def test_a_file_that_was_damaged_in_the_cache_is_replaced(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    known(monkeypatch, sha256={file: hashlib.sha256(files()[file]).hexdigest()})
    damaged = fetch(SOURCE, quiet).folder / file
    damaged.resolve().write_bytes(b"damaged")
    assert "is not the published file" in refused()
    assert not damaged.exists()
    assert (fetch(SOURCE, quiet).folder / file).read_bytes() == files()[file]


def test_a_known_model_is_pinned_unless_the_user_names_a_revision(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, sha256={TOKENIZER: hashlib.sha256(files()[TOKENIZER]).hexdigest()})
    assert fetch(SOURCE, quiet).license == "MIT"
    assert server.requests[0].path == f"/api/models/{NAME}/revision/{commit_of('first')}"
    server.repositories[NAME] = Repository(files() | {TOKENIZER: b"newer"}, commit_of("second"))
    assert "has no revision" in refused()
    newer = fetch(f"{SOURCE}@main", quiet)
    assert newer.revision == commit_of("second")
    assert (newer.folder / TOKENIZER).read_bytes() == b"newer"


def test_only_the_checkpoint_of_a_regress_lm_model_is_fetched(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = CheckpointFormat("google/t5gemma-2-270m-270m", 1, 5, ("NAN",), 12, 8192)
    known(monkeypatch, required=("training.pt",), revision=None, checkpoint=form)
    assert fetched_files(fetch(SOURCE, quiet).folder) == {"training.pt": files()["training.pt"]}


def test_the_token_is_for_the_hub_only(server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.token = "hf_ours"
    monkeypatch.setenv("HF_TOKEN", "hf_ours")
    fetch(SOURCE, quiet)
    assert {request.authorization for request in server.requests if request.server == "hub"} == {"Bearer hf_ours"}
    assert {request.authorization for request in server.transfers()} == {None}


def test_requests_are_for_the_model_alone_and_say_nothing_about_the_machine(server: Hub, cache: Path) -> None:
    fetch(SOURCE, quiet)
    for request in server.requests:
        assert request.path.startswith((f"/api/models/{NAME}", f"/{NAME}/resolve/", "/cdn/"))
        assert "torch" not in request.user_agent


def test_a_gated_model_says_how_to_get_in(server: Hub, cache: Path) -> None:
    server.repositories[NAME].gated = True
    assert refused() == (
        f"{NAME}: gated; accept its terms at https://huggingface.co/{NAME}, then run `hf auth login` or set HF_TOKEN"
    )


@pytest.mark.parametrize("token", [None, "hf_ours"])
def test_a_repository_that_does_not_exist(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    if token is not None:
        monkeypatch.setenv("HF_TOKEN", token)
    expected = "someone/else: not on the hub or private; check the name, or run `hf auth login`"
    assert refused("hf:someone/else") == expected


def test_a_revision_that_does_not_exist(server: Hub, cache: Path) -> None:
    expected = f"{NAME}: the hub has no revision older; take one that https://huggingface.co/{NAME} lists"
    assert refused(f"{SOURCE}@older") == expected


def test_a_token_that_the_hub_refuses(server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.token = "hf_ours"
    monkeypatch.setenv("HF_TOKEN", "hf_theirs")
    assert refused() == f"{NAME}: the hub refuses the token; run `hf auth login`, or correct HF_TOKEN"


def test_offline_mode_asks_nothing(server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refused()
    assert not server.requests


def test_a_known_model_without_its_tokenizer_is_not_downloaded(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch)
    del server.repositories[NAME].files[TOKENIZER]
    assert refused() == f"{NAME}@{commit_of('first')[:12]}: has no {TOKENIZER} on the hub; name another revision"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, "has no config.json on the hub; name a published RLM"),
        (b'{"model_type": "llama"}', "holds a llama model, not regresslm; name a published RLM"),
        (b"[]", "its config.json cannot be read; name a published RLM"),
        (b"{", "its config.json cannot be read; name a published RLM"),
    ],
)
def test_the_weights_of_other_models_are_not_downloaded(
    server: Hub, cache: Path, config: bytes | None, expected: str
) -> None:
    del server.repositories[NAME].files["config.json"]
    if config is not None:
        server.repositories[NAME].files["config.json"] = config
    assert expected in refused()
    assert not server.transfers()


def test_names_from_the_hub_lead_nowhere_else(
    server: Hub, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = server.repositories[NAME]
    repository.files |= {"../../../../evil.json": b"{}", "encoder_tokenizer/../../evil.json": b"{}"}
    listing = json.dumps(repository.siblings()).replace(repository.digest(WEIGHTS), "../../evil")
    monkeypatch.setattr(Repository, "siblings", lambda repository: json.loads(listing))
    fetched = fetch(SOURCE, quiet)
    assert (fetched.folder / WEIGHTS).read_bytes() == content(4)
    assert not list(tmp_path.rglob("*evil*"))
    assert "evil" not in " ".join(request.path for request in server.requests)


def test_a_disk_that_is_too_full_is_seen_before_the_download(
    server: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(cache.parent)._replace(free=6_000)
    monkeypatch.setattr("rlm_core.training.full.hub.shutil.disk_usage", lambda path: usage)
    assert refused() == (
        f"{cache}: has 0 MiB left, {NAME} needs 0 MiB; free some space, or set HF_HOME to a folder on another disk"
    )
    assert len(server.transfers()) == 1


@pytest.mark.parametrize("source", ["hf:", "hf:tiny", "hf:a/b/c", f"{SOURCE}@", f"{SOURCE}@a b", "hf:someone/ä"])
def test_a_source_that_is_spelled_wrong(source: str) -> None:
    assert refused(source) == f"{source}: write hf:owner/name or hf:owner/name@revision"


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    fetched = fetch(str(tmp_path), quiet)
    assert (fetched.folder, fetched.name, fetched.revision, fetched.license) == (tmp_path, str(tmp_path), None, None)


def test_a_folder_that_holds_no_model(tmp_path: Path) -> None:
    (tmp_path / "file.pt").touch()
    assert "is a file; name its folder" in refused(str(tmp_path / "file.pt"))
    assert fetch(str(tmp_path), quiet).folder == tmp_path
    (tmp_path / "file.pt").unlink()
    assert "has no config.json and no *.pt; name the folder" in refused(str(tmp_path))
    assert "no such folder; for a model on the hub, write hf:owner/name" in refused("someone/tiny-rlm")


@pytest.mark.parametrize(
    ("source", "name"),
    [(SOURCE, "tiny-rlm"), (f"{SOURCE}@refs/pr/1", "tiny-rlm"), ("/models/tiny-rlm", "tiny-rlm"), ("tiny/", "tiny")],
)
def test_a_model_is_named_after_its_source(source: str, name: str) -> None:
    assert hub.default_name(source) == name


def test_known_models_are_pinned_by_whole_commits_and_checksums() -> None:
    for model in hub.KNOWN.values():
        assert model.revision is None or len(bytes.fromhex(model.revision)) == 20
        assert all(len(bytes.fromhex(digest)) == 32 for digest in model.sha256.values())
        assert model.checkpoint or model.sha256.keys() >= {WEIGHTS, TOKENIZER}


def test_the_module_needs_no_torch_and_no_library_of_the_hub_until_it_is_used() -> None:
    code = (
        "import sys, rlm_core.training.full.hub\nprint([n for n in ('torch', 'huggingface_hub') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert refused().endswith("; run pip install '.[rlm]'")
