"""``rlm-lsp model add``: a published model is installed whole, or nothing is changed and one line says why."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result
from huggingface_hub import constants, file_download
from rlm_core.errors import ModelError
from rlm_core.inference import model_store
from rlm_core.inference.model_store import ModelOrigin
from rlm_core.training.full import hub, published
from rlm_core.training.full.spaces import Space
from rlm_lsp.cli.app import app

from tests.rlm_core.training.full.hub_server import Hub, Repository, commit_of, serve
from tests.rlm_core.training.full.published_checkpoints import write_checkpoint

pytestmark = pytest.mark.extras

NAME = "someone/tiny-rlm"
SOURCE = f"hf:{NAME}"
PUBLISHED = "akhauriyash/RLM-GemmaS-Code-v0"
MIB = 2**20
PROGRAM = "from rlm_lsp.cli.app import main\nmain()"
WITHOUT_TORCH = f"import sys\nsys.modules['torch'] = None\n{PROGRAM}"


def full_disk(size: int) -> str:
    """The program on a disk that is full: no file of its process can be longer."""
    return f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n{PROGRAM}"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the layout of the published models."""
    folder = tmp_path_factory.mktemp("published") / "tiny-rlm"
    write_checkpoint(folder)
    return folder


@pytest.fixture
def server() -> Iterator[Hub]:
    config = json.dumps({"model_type": "regresslm"}).encode()
    with serve() as running:
        running.repositories[NAME] = Repository({"config.json": config, "model.safetensors": b"weights" * 100})
        yield running


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's models, in processes too."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return model_store.folder()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> list[ModelOrigin]:
    """Replaces the conversion by one that writes a card; the origins of what was converted."""
    origins: list[ModelOrigin] = []

    def install(folder: Path, out: Path, name: str, origin: ModelOrigin, spaces: Sequence[Space]) -> None:
        origins.append(origin)
        write_model(out, name, (folder / "model.safetensors").read_bytes())

    monkeypatch.setattr(published, "install", install)
    return origins


def write_model(directory: Path, name: str, weights: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "weights").write_bytes(weights)
    files = {"weights": hashlib.sha256(weights).hexdigest()}
    card = {"format": "rlm-full-1", "name": name, "trained": {}, "files": files}
    (directory / "card.json").write_text(json.dumps(card))


def fails(monkeypatch: pytest.MonkeyPatch, failure: Callable[[Path], object]) -> None:
    """Have the conversion write half a model and then fail."""

    def install(folder: Path, out: Path, name: str, origin: ModelOrigin, spaces: Sequence[Space]) -> None:
        (out / "half").write_bytes(b"a model")
        failure(out)

    monkeypatch.setattr(published, "install", install)


def raises(error: BaseException) -> Callable[[Path], object]:
    def failure(out: Path) -> object:
        raise error

    return failure


def add(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["model", "add", *map(str, arguments)])


def add_in_process(
    server: Hub, home: Path, *arguments: str, program: str = PROGRAM
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, "model", "add", *arguments]
    environment = os.environ | server.environment(home)
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def tree(folder: Path) -> dict[str, bytes | None]:
    """All below a folder, also what is hidden."""
    below = sorted(folder.rglob("*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in below}


def refusal(stderr: str, status: int) -> str:
    """The one line of a failure."""
    assert status == 2
    [line] = stderr.splitlines()
    assert line.startswith("rlm-lsp: error: ")
    return line.removeprefix("rlm-lsp: error: ")


def test_a_published_model_is_installed_from_the_hub(
    server: Hub, models: Path, tmp_path: Path, checkpoint: Path
) -> None:
    files = {path.relative_to(checkpoint).as_posix(): path for path in checkpoint.rglob("*") if path.is_file()}
    server.repositories[NAME] = Repository({name: path.read_bytes() for name, path in files.items()})
    done = add_in_process(server, tmp_path / "hf", SOURCE)
    assert (done.returncode, done.stderr) == (0, "")
    directory = models / "tiny-rlm"
    summary = model_store.summary(directory)
    assert summary.kind == "full"
    assert all(file.state == "ok" for file in model_store.verify(summary))
    assert [path.name for path in models.iterdir()] == ["tiny-rlm"]
    size = f"{summary.size / MIB:.1f}"
    assert done.stdout.splitlines() == [
        f"model        {summary.model_id} (full, {size} MiB)",
        f"directory    {directory}",
        f"source       {NAME}@{commit_of('first')}",
        "license      mit",
        "next         rlm-lsp predict FILE --model tiny-rlm",
        "next         rlm-lsp model use tiny-rlm",
        "next         rlm-lsp model show tiny-rlm",
    ]


def test_a_published_model_is_installed_from_a_folder(models: Path, checkpoint: Path) -> None:
    result = add(checkpoint, "--name", "ours")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"source       {checkpoint}\n" in result.stdout
    assert "license      unknown; read the terms of its source" in result.stdout
    assert all(file.state == "ok" for file in model_store.verify(model_store.summary(models / "ours")))
    missing = checkpoint.parent / "without tokenizer"
    missing.mkdir()
    for path in checkpoint.iterdir():
        (missing / path.name).symlink_to(path)
    (missing / "encoder_tokenizer").unlink()
    before = tree(models)
    result = add(missing, "--name", "ours", "--force")
    assert "encoder_tokenizer/tokenizer.json: cannot be read" in refusal(result.stderr, result.exit_code)
    assert tree(models) == before


def test_the_conversion_knows_where_the_model_comes_from(
    server: Hub, models: Path, fake: list[ModelOrigin], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.use(monkeypatch, tmp_path)
    assert add(f"{SOURCE}@main").exit_code == 0
    assert fake == [ModelOrigin(NAME, commit_of("first"), "mit")]


def test_a_model_is_only_replaced_on_request(
    server: Hub, models: Path, fake: list[ModelOrigin], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.use(monkeypatch, tmp_path)
    write_model(models / "tiny-rlm", "old", b"old")
    before = tree(models)
    result = add(SOURCE)
    assert refusal(result.stderr, result.exit_code) == (
        f"{models / 'tiny-rlm'}: already exists; give another --name, or replace it with --force"
    )
    assert tree(models) == before
    assert not server.requests
    assert add(SOURCE, "--force").exit_code == 0
    assert sorted(tree(models)) == ["tiny-rlm", "tiny-rlm/card.json", "tiny-rlm/weights"]
    assert (models / "tiny-rlm" / "weights").read_bytes() == b"weights" * 100
    assert add(SOURCE, "--name", "other").exit_code == 0
    assert sorted(path.name for path in models.iterdir()) == ["other", "tiny-rlm"]


def test_a_link_to_a_model_is_replaced_and_the_model_stays(
    checkpoint: Path, models: Path, fake: list[ModelOrigin], tmp_path: Path
) -> None:
    write_model(tmp_path / "elsewhere", "old", b"old")
    models.mkdir(parents=True)
    (models / "tiny-rlm").symlink_to(tmp_path / "elsewhere")
    assert add(checkpoint, "--force").exit_code == 0
    assert [path.name for path in models.iterdir()] == ["tiny-rlm"]
    assert not (models / "tiny-rlm").is_symlink()
    assert (tmp_path / "elsewhere" / "weights").read_bytes() == b"old"


@pytest.mark.parametrize("is_installed", [True, False])
@pytest.mark.parametrize(
    ("failure", "status", "line"),
    [
        pytest.param(raises(ModelError("bad input; fix it")), 2, "bad input; fix it", id="bad model"),
        pytest.param(raises(OSError(28, "No space left on device")), 2, "cannot be written (No space left", id="full"),
        pytest.param(raises(KeyboardInterrupt()), 130, "", id="Ctrl-C"),
        # The new model cannot be moved to its place, after the old one was moved away.
        pytest.param(lambda out: out.rename(out.with_name(".moved")), 2, "cannot be written", id="moved away"),
    ],
)
def test_a_conversion_that_fails_changes_nothing(
    models: Path,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_installed: bool,
    failure: Callable[[Path], object],
    status: int,
    line: str,
) -> None:
    fails(monkeypatch, failure)
    if is_installed:
        write_model(models / "tiny-rlm", "old", b"old")
    before = tree(models)
    result = add(checkpoint, "--force")
    assert result.exit_code == status
    assert line in result.stderr
    assert len(result.stderr.splitlines()) == (status == 2)
    assert {name: body for name, body in tree(models).items() if not name.startswith(".moved")} == before


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a file that is always full")
def test_a_disk_that_is_full_in_the_conversion_changes_nothing(
    models: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(out: Path) -> None:
        (out / "weights").symlink_to("/dev/full")
        (out / "weights").write_bytes(bytes(MIB))

    fails(monkeypatch, write)
    result = add(checkpoint)
    message = refusal(result.stderr, result.exit_code)
    assert message.endswith("cannot be written (No space left on device); free some space there")
    assert not tree(models)


def test_a_connection_that_is_cut_for_good_is_one_line(
    server: Hub, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server.use(monkeypatch, tmp_path)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 100)
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda seconds: None))
    server.cuts = chain([300], repeat(0))
    result = add(SOURCE)
    message = refusal(result.stderr, result.exit_code)
    assert message.startswith(f"{NAME}: could not be fetched from the hub (")
    assert message.endswith("run the command again: it continues where it stopped")
    assert capfd.readouterr() == ("", "")  # of the library's own handlers
    assert not models.exists()


def test_a_disk_that_is_full_in_the_download_is_one_line(server: Hub, models: Path, tmp_path: Path) -> None:
    server.repositories[NAME].files["model.safetensors"] = bytes(2 * MIB)
    done = add_in_process(server, tmp_path, SOURCE, program=full_disk(MIB))
    assert refusal(done.stderr, done.returncode) == (
        f"{tmp_path / 'hub'}: cannot be written (File too large); free some space there, or set HF_HOME to another "
        "folder"
    )
    assert not models.exists()
    # What has arrived is used once there is room.
    server.requests.clear()
    done = add_in_process(server, tmp_path, SOURCE)
    assert [request.range for request in server.transfers()] == [f"bytes={MIB}-"]


def test_a_disk_that_is_full_for_the_weights_is_one_line(
    server: Hub, models: Path, tmp_path: Path, checkpoint: Path
) -> None:
    done = add_in_process(server, tmp_path, str(checkpoint), program=full_disk(40_000))
    message = refusal(done.stderr, done.returncode)
    assert "cannot be written" in message
    assert "File too large" in message
    assert not tree(models)


def test_without_torch_nothing_is_downloaded(server: Hub, models: Path, tmp_path: Path) -> None:
    done = add_in_process(server, tmp_path, SOURCE, program=WITHOUT_TORCH)
    assert refusal(done.stderr, done.returncode) == "torch is not installed; run: pip install '.[rlm]'"
    assert not server.requests
    assert not models.exists()


def _gated(server: Hub) -> None:
    server.repositories[NAME].gated = True


def _wrong_bytes(server: Hub) -> None:
    server.repositories[NAME].digests["model.safetensors"] = "0" * 64


def _published(server: Hub) -> None:
    revision = hub.KNOWN[PUBLISHED].revision
    assert revision is not None
    names = ("config.json", "ieee_vocab.json", "model.safetensors", "encoder_tokenizer/tokenizer.json")
    server.repositories[PUBLISHED] = Repository(dict.fromkeys(names, b"{}"), revision)


def _published_without_tokenizer(server: Hub) -> None:
    _published(server)
    del server.repositories[PUBLISHED].files["encoder_tokenizer/tokenizer.json"]


def _nothing(server: Hub) -> None:
    """Leave the hub as it is."""


@pytest.mark.parametrize(
    ("source", "change", "expected"),
    [
        (
            SOURCE,
            _gated,
            "gated; accept its terms at https://huggingface.co/someone/tiny-rlm, then run `hf auth login`",
        ),
        (SOURCE, _wrong_bytes, "model.safetensors is not the published file"),
        ("hf:someone/else", _nothing, "someone/else: not on the hub or private; check the name"),
        (f"{SOURCE}@older", _nothing, "the hub has no revision older"),
        (f"hf:{PUBLISHED}", _published, "tokenizer.json is not the published file"),
        (f"hf:{PUBLISHED}", _published_without_tokenizer, "has no encoder_tokenizer/tokenizer.json on the hub"),
        ("hf:tiny", _nothing, "write hf:owner/name or hf:owner/name@revision"),
        (".", _nothing, "has no config.json and no *.pt; name the folder with all files of a published model"),
        (
            "hf:Srizzle/triton-demo",
            _nothing,
            "Srizzle/triton-demo: no public source names the GPU on which the data set",
        ),
        ("nowhere", _nothing, "no such folder; for a model on the hub, write hf:owner/name"),
    ],
)
def test_what_cannot_be_fetched_is_one_line(
    server: Hub,
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    change: Callable[[Hub], None],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    change(server)
    done = add_in_process(server, tmp_path / "hf", source)
    assert expected in refusal(done.stderr, done.returncode)
    assert done.stdout == ""
    assert not models.exists()


def test_a_name_that_is_no_folder_is_refused_at_once(server: Hub, models: Path) -> None:
    for name in ("../evil", ".hidden", "builtin"):
        result = add(SOURCE, "--name", name)
        assert "use letters, digits, dots" in refusal(result.stderr, result.exit_code)
    assert not server.requests


def test_a_known_checkpoint_is_converted_for_the_users_device(
    server: Hub, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.use(monkeypatch, tmp_path)
    name = "Srizzle/triton-demo"
    server.repositories[name] = Repository({"best_checkpoint.pt": b"weights", "README.md": b""})
    converted: list[tuple[list[str], str, list[str | None]]] = []

    def install(folder: Path, out: Path, name: str, origin: ModelOrigin, spaces: Sequence[Space]) -> None:
        files = sorted(path.name for path in folder.iterdir())
        converted.append((files, origin.source, [space.device for space in spaces]))
        write_model(out, name, b"weights")

    monkeypatch.setattr(published, "install", install)
    for options, expected in (
        ((), "no public source names the GPU on which the data set triton-gpu-latency was measured; name it with"),
        (("--device", "abacus"), "--device abacus: unknown"),
    ):
        result = add(f"hf:{name}", *options)
        assert expected in refusal(result.stderr, result.exit_code)
    result = add(SOURCE, "--device", "H100")
    assert f"--device H100: does not apply to {NAME}" in refusal(result.stderr, result.exit_code)
    assert not server.requests
    assert not models.exists()
    assert add(f"hf:{name}", "--device", "h100 pcie").exit_code == 0
    assert converted == [(["best_checkpoint.pt"], name, ["nvidia-h100-pcie"])]
    assert [path.name for path in models.iterdir()] == ["triton-demo"]
