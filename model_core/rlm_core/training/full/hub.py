"""Published models by name: their files are fetched from the Hugging Face hub, or taken from a folder.

Input: ``hf:owner/name``, ``hf:owner/name@revision`` or a folder. Output: a folder that :mod:`.published` can read.

Only JSON, SentencePiece and safetensors files of a repository are fetched, and the regress-lm checkpoint of a model in
:data:`KNOWN`: no code, and no other pickle. Files are stored in the cache of ``huggingface_hub``, under its names, so
``HF_ENDPOINT``, ``HF_HOME`` and ``HF_TOKEN`` have their usual meaning. Large files are downloaded here, not by the
library: its recent releases discard what has arrived when a download fails. Every failure is one line that says what
to do.
"""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from rlm_core.errors import ModelError
from rlm_core.inference.card import checksum

SCHEME = "hf:"
EXTRA = "pip install '.[rlm]'"
CONFIG = "config.json"
MODEL_TYPE = "regresslm"
_CONTINUE = "run the command again: it continues where it stopped"
_SAFE_SUFFIXES = (".json", ".safetensors", ".model")
_FOLDERS = ("", "encoder_tokenizer")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_REVISION = re.compile(r"[\w./-]+", re.ASCII)
_COMMIT = re.compile("[0-9a-f]{40}")
_SHA256 = re.compile("[0-9a-f]{64}")
_WRITE_ERRORS = {errno.ENOSPC, errno.EFBIG, errno.EACCES, errno.EROFS, getattr(errno, "EDQUOT", errno.ENOSPC)}
_UNAUTHORIZED = 401
_SHOWN_DIGITS = 12

Progress = Callable[[int, int], None]  # takes the bytes that have arrived, and the bytes of all files


@dataclass(frozen=True, slots=True)
class CheckpointFormat:
    """The facts that a regress-lm checkpoint omits: its encoder's base on the hub, and the format of its numbers.

    Attributes:
        encoder: hub name of the T5Gemma model that was trained.
        exponent_digits, mantissa_digits: of a number.
        special: names of the tokens for special values.
        decoder_layers: layers of the decoder.
        max_tokens: longest text.
    """

    encoder: str
    exponent_digits: int
    mantissa_digits: int
    special: tuple[str, ...]
    decoder_layers: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A published model that can be installed by its name alone.

    Attributes:
        license: its SPDX identifier.
        required: files that it cannot be converted without.
        revision: the commit that is installed unless the user names another one; None: the newest.
        sha256: checksums of files of that commit.
        checkpoint: the format of its regress-lm checkpoint; None: the model is described by its ``config.json``.
    """

    license: str
    required: tuple[str, ...]
    revision: str | None = None
    sha256: Mapping[str, str] = field(default_factory=dict)
    checkpoint: CheckpointFormat | None = None


_GEMMA_FILES = (CONFIG, "ieee_vocab.json", "model.safetensors", "encoder_tokenizer/tokenizer.json")
_GEMMA_SHA256 = {
    "model.safetensors": "7e9df42926babb54c4e47c14a8fd1daecdf54e382f62b07d63d6c7c5fa9f000c",
    "encoder_tokenizer/tokenizer.json": "7794135caa3ea73918949c902a781cc61dab674a4b59c17d85931c77c1114cbd",
    "encoder_tokenizer/tokenizer.model": "61a7b147390c64585d6c3543dd6fc636906c9af3865a5548f27f31aee1d4c8e2",
}
# The two GemmaS repositories hold the same files.
KNOWN: Mapping[str, KnownModel] = {
    "akhauriyash/RLM-GemmaS-Code-v0": KnownModel(
        "MIT", _GEMMA_FILES, "0c927733af21f156d61743c4a40d03d13e65c16b", _GEMMA_SHA256
    ),
    "akhauriyash/RegressLM-gemma-s-RLM-table3": KnownModel(
        "MIT", _GEMMA_FILES, "5e5002672f870399ce012896332363e271582509", _GEMMA_SHA256
    ),
    "Srizzle/triton-demo": KnownModel(
        "Apache-2.0",
        ("best_checkpoint.pt",),
        checkpoint=CheckpointFormat("google/t5gemma-2-270m-270m", 1, 5, ("NAN",), decoder_layers=12, max_tokens=8192),
    ),
}


@dataclass(frozen=True, slots=True)
class Fetched:
    """A folder with the files of a model, and where they come from.

    Attributes:
        folder: of the files.
        name: ``owner/name`` on the hub, or the path of the user's folder.
        revision: commit on the hub; None for a folder of the user's.
        license: as the hub names it, where it is known.
    """

    folder: Path
    name: str
    revision: str | None
    license: str | None


@dataclass(frozen=True, slots=True)
class _RemoteFile:
    """A file of a repository; ``sha256`` is that of the table of known models, else the hub's, for large files."""

    name: str
    size: int
    blob: str | None
    sha256: str | None


def default_name(source: str) -> str:
    """The last part of a source, to name the installed model.

    Raises:
        ModelError: the source is spelled wrong.
    """
    if source.startswith(SCHEME):
        return _repository(source)[0].rpartition("/")[2]
    return Path(source).expanduser().absolute().name


def fetch(source: str, progress: Progress) -> Fetched:
    """Have the files of a model on this machine; for a repository, those that are missing are downloaded and verified.

    Raises:
        ModelError: there is no such model, a file is missing or wrong, or it cannot be downloaded or stored.
    """
    if not source.startswith(SCHEME):
        return _local(source)
    name, revision = _repository(source)
    known = KNOWN.get(name)
    return _download(name, revision or (known.revision if known else None), known, progress)


def _repository(source: str) -> tuple[str, str | None]:
    """Name and revision of a repository, the latter None where the user names none."""
    name, at, revision = source.removeprefix(SCHEME).partition("@")
    if not _REPOSITORY.fullmatch(name) or (at and not _REVISION.fullmatch(revision)):
        raise ModelError(f"{source}: write {SCHEME}owner/name or {SCHEME}owner/name@revision")
    return name, revision or None


def _local(source: str) -> Fetched:
    folder = Path(source).expanduser().absolute()
    if folder.is_file():
        raise ModelError(f"{source}: is a file; name its folder, or run rlm-lsp model convert for a single checkpoint")
    if not folder.is_dir():
        raise ModelError(f"{source}: no such folder; for a model on the hub, write {SCHEME}owner/name")
    if not (folder / CONFIG).is_file() and not any(folder.glob("*.pt")):
        raise ModelError(f"{source}: has no {CONFIG} and no *.pt; name the folder with all files of a published model")
    return Fetched(folder, str(folder), None, None)


def _download(name: str, revision: str | None, known: KnownModel | None, progress: Progress) -> Fetched:
    _need_library()
    import huggingface_hub

    with _quiet(), one_line_errors(name, revision, advice=_CONTINUE):
        info = huggingface_hub.HfApi().model_info(name, revision=revision, files_metadata=True)
        if not _COMMIT.fullmatch(str(info.sha)):
            raise ModelError(f"{name}: the hub names no commit; check HF_ENDPOINT")
        files = _wanted_files(name, info, known)
        total, done = sum(file.size for file in files), 0

        def report(arrived: int) -> None:
            progress(done + arrived, total)

        folder = Path()
        for file in files:
            path = _fetch_file(name, info.sha, file, report)
            done += file.size
            report(0)
            folder = path.parents[len(PurePosixPath(file.name).parts) - 1]
            if file.name == CONFIG and known is None:
                _check_model_type(name, path)
    license_ = known.license if known else getattr(info.card_data, "license", None)
    return Fetched(folder, name, info.sha, license_ if isinstance(license_, str) else None)


def _wanted_files(name: str, info: Any, known: KnownModel | None) -> list[_RemoteFile]:
    """The files to fetch: first the configuration, which says whether the others are needed, last the largest."""
    pinned = known.sha256 if known and info.sha == known.revision else {}
    files: dict[str, _RemoteFile] = {}
    for sibling in info.siblings or ():
        path = PurePosixPath(sibling.rfilename)
        folder = "" if path.parent == PurePosixPath() else str(path.parent)
        is_safe = path.suffix in _SAFE_SUFFIXES and folder in _FOLDERS
        if (is_safe and not (known and known.checkpoint)) or (known and sibling.rfilename in known.required):
            digest = sibling.lfs.sha256 if sibling.lfs is not None else ""
            blob = digest if _SHA256.fullmatch(digest) else None  # it becomes the name of a file
            file = _RemoteFile(sibling.rfilename, sibling.size or 0, blob, pinned.get(sibling.rfilename, blob))
            files[file.name] = file
    required = known.required if known else (CONFIG,)
    if missing := [file for file in required if file not in files]:
        advice = "name another revision" if known else "name a published RLM"
        raise ModelError(f"{name}@{info.sha[:_SHOWN_DIGITS]}: has no {missing[0]} on the hub; {advice}")
    return sorted(files.values(), key=lambda file: (file.name != CONFIG, file.size, file.name))


def _check_model_type(name: str, path: Path) -> None:
    """Check the configuration of an unknown model before its weights are downloaded."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        model_type = config.get("model_type")
    except (OSError, ValueError, AttributeError):
        raise ModelError(f"{name}: its {CONFIG} cannot be read; name a published RLM") from None
    if model_type != MODEL_TYPE:
        raise ModelError(f"{name}: holds a {model_type} model, not {MODEL_TYPE}; name a published RLM")


def _fetch_file(name: str, commit: str, file: _RemoteFile, progress: Callable[[int], None]) -> Path:
    """The path of a file in the library's cache; its checksum is the expected one."""
    from huggingface_hub import hf_hub_download

    is_new = file.blob is not None and _fetch_blob(name, commit, file, progress)
    # A blob that is in the cache is only linked by the library.
    path = Path(hf_hub_download(name, file.name, revision=commit))
    if not is_new:
        _check(path, name, file)
    return path


def _fetch_blob(name: str, commit: str, file: _RemoteFile, progress: Callable[[int], None]) -> bool:
    """Download a large file to its place in the library's cache; False if it is there.

    What has arrived is kept next to it, as older releases of the library do, and is continued.
    """
    from huggingface_hub import constants, file_download, utils

    cache = Path(constants.HF_HUB_CACHE)
    repository = file_download.repo_folder_name(repo_id=name, repo_type="model")
    blob = cache / repository / "blobs" / str(file.blob)
    lock = cache / ".locks" / repository / f"{file.blob}.lock"
    for path in (blob, lock):
        path.parent.mkdir(parents=True, exist_ok=True)
    with utils.WeakFileLock(lock):
        if blob.exists():
            return False
        partial = blob.with_name(f"{blob.name}.incomplete")
        arrived = partial.stat().st_size if partial.exists() else 0
        if arrived > file.size:
            partial.unlink()
            arrived = 0
        free = shutil.disk_usage(blob.parent).free
        if free < file.size - arrived:
            raise ModelError(
                f"{cache}: has {free / 2**20:,.0f} MiB left, {name} needs {(file.size - arrived) / 2**20:,.0f} MiB; "
                "free some space, or set HF_HOME to a folder on another disk"
            )
        with _ReportingFile(partial, progress) as output:
            file_download.http_get(
                file_download.hf_hub_url(name, file.name, revision=commit),
                output,
                resume_size=arrived,
                headers=utils.build_hf_headers(),
                expected_size=file.size,
            )
        _check(partial, name, file)
        partial.replace(blob)
    return True


class _ReportingFile(io.BufferedWriter):
    """A file to append to that reports its length after each write."""

    def __init__(self, path: Path, report: Callable[[int], None]) -> None:
        super().__init__(io.FileIO(path, "a"))
        self._report = report

    def write(self, content: Any) -> int:
        """Append bytes."""
        written = super().write(content)
        self._report(self.tell())
        return written


def _check(path: Path, name: str, file: _RemoteFile) -> None:
    """Compare a file with its checksum, and remove it from the cache where it differs."""
    if file.sha256 is None or (digest := checksum(path)) == file.sha256:
        return
    with suppress(OSError):
        for wrong in (path.resolve(), path):  # the blob and the link to it
            wrong.unlink(missing_ok=True)
    raise ModelError(
        f"{name}: {file.name} is not the published file (SHA-256 {digest[:_SHOWN_DIGITS]}..., expected "
        f"{file.sha256[:_SHOWN_DIGITS]}...) and was removed from the cache; run the command again"
    )


def _need_library() -> None:
    try:
        importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise ModelError(f"models on the hub need huggingface_hub ({error}); run {EXTRA}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Switch the library's messages and bars off for the duration of the block: what fails is reported in one line."""
    from huggingface_hub import utils
    from huggingface_hub.utils import logging as messages

    level, had_bars = messages.get_verbosity(), not utils.are_progress_bars_disabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        messages.set_verbosity(messages.CRITICAL)
        utils.disable_progress_bars()
        try:
            yield
        finally:
            messages.set_verbosity(level)
            if had_bars:
                utils.enable_progress_bars()


@contextmanager
def one_line_errors(
    name: str, revision: str | None, *, folder: bool = False, advice: str = "try again"
) -> Iterator[None]:
    """Report what the library raises about a repository in one line. It must be installed.

    Args:
        name: of the repository.
        revision: that was asked for.
        folder: the user may have meant a folder.
        advice: what to do about a failed transfer.

    Raises:
        ModelError: the block raised an exception.
    """
    from huggingface_hub import constants, errors

    page, no_folder = f"https://huggingface.co/{name}", "no such folder, and " if folder else ""
    unknown = f"{name}: {no_folder}not on the hub or private; check the name, or run `hf auth login`"
    try:
        yield
    except ModelError:
        raise
    except errors.HFValidationError:
        raise ModelError(
            f"{name}: {no_folder}no hub name (owner/model); check the {'path' if folder else 'name'}"
        ) from None
    except errors.GatedRepoError:
        raise ModelError(
            f"{name}: gated; accept its terms at {page}, then run `hf auth login` or set HF_TOKEN"
        ) from None
    except errors.RevisionNotFoundError:
        raise ModelError(f"{name}: the hub has no revision {revision}; take one that {page} lists") from None
    except errors.RepositoryNotFoundError:
        raise ModelError(unknown) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise ModelError(
            f"{name}: not in the local cache, and the hub cannot be reached (no network, or HF_HUB_OFFLINE is set); "
            f"connect once, or run `hf download {name}` elsewhere and give its folder"
        ) from None
    except Exception as error:  # whatever else a transfer can raise is for the user to know, in one line
        code = error.errno if isinstance(error, OSError) else None
        if code is not None and code in _WRITE_ERRORS:
            raise ModelError(
                f"{constants.HF_HUB_CACHE}: cannot be written ({os.strerror(code)}); free some space there, or set "
                "HF_HOME to another folder"
            ) from None
        response = getattr(error, "response", None)
        if response is not None and response.status_code == _UNAUTHORIZED:
            # The hub answers so for what does not exist, too; the library knows only of hubs at an https address.
            has_token = "authorization" in response.request.headers
            refused = f"{name}: the hub refuses the token; run `hf auth login`, or correct HF_TOKEN"
            raise ModelError(refused if has_token else unknown) from None
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelError(f"{name}: could not be fetched from the hub ({reason}); {advice}") from None
