"""git, started in one way: with a limit on its time and its output, and never the program of a working folder.

Nothing in the repository is run: no hooks, filters, textconv or file-system monitor; nothing is fetched but by
:func:`clone`. A repository in which git does not finish in time is not asked again for a while, and after a few of them
none is: a pipe that its configuration includes would cost the same wait at every command.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import DataError
from .processes import end_group, find_program

TIMEOUT = 10.0
_CLONE_SECONDS, _STALLED_SECONDS = 3600.0, 60
_LATE_SECONDS, _MOST_LATE = 600.0, 3  # how long a repository is not asked after a time-out; of how many repositories
# Blobs are requested in batches, so that neither process waits for the other with a full pipe.
_BATCH = 256
_BATCH_BYTES = 16 * 2**20  # of blobs that one process reads
_OUT_BYTES = 32 * 2**20
_PIECE_BYTES = 64 * 2**10
_END_SECONDS = 5.0
# Removed from the environment: in a git hook they name another repository.
_LOCATIONS = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    }
)
_SWITCHES = (
    "--no-pager",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
)

_late: dict[Path, float] = {}  # when git did not finish in time, by repository


class GitError(DataError):
    """git is missing, did not finish in time, printed too much, or failed."""


def run(
    repository: Path, arguments: Sequence[str], stdin: bytes = b"", accept: Sequence[int] = (0,)
) -> tuple[int, bytes]:
    """Run git in a repository; its exit status and its output.

    Raises:
        GitError: see there; also for an exit status that is not in ``accept``.
    """
    with running(repository, arguments, stdin, accept, _OUT_BYTES) as output:
        out = b"".join(output)
    return output.status, out


def read_blobs(repository: Path, names: Sequence[str], most: int) -> Iterator[tuple[str, bytes | None]]:
    """The contents of blobs by id or ``COMMIT:PATH``, none of which has a line break, in their order.

    None for what the repository lacks, for what is not a blob and for one of more than ``most`` bytes.

    Raises:
        GitError: see there.
    """
    for start in range(0, len(names), _BATCH):
        part = names[start : start + _BATCH]
        _, out = run(repository, ["cat-file", "--batch-check=%(objecttype) %(objectsize)"], _lines(part))
        batch: list[tuple[str, bool]] = []  # names, and whether they are read
        left = _BATCH_BYTES
        for name, about in zip(part, out.removesuffix(b"\n").split(b"\n"), strict=True):
            size = _size_of_blob(about, most)
            if size is not None and size > left:
                yield from _read_batch(repository, batch)
                batch, left = [], _BATCH_BYTES
            batch.append((name, size is not None))
            left -= size or 0
        yield from _read_batch(repository, batch)


def clone(address: str, target: Path) -> None:
    """Clone a repository over HTTPS, without a working tree.

    Raises:
        GitError: see there.
    """
    switches = ["-c", "http.lowSpeedLimit=1000", "-c", f"http.lowSpeedTime={_STALLED_SECONDS}"]
    arguments = ["clone", "--quiet", "--bare", "--", address, str(target)]
    command, environment = [*_command(), *switches, *arguments], {"GIT_ALLOW_PROTOCOL": "https"}
    with _start(command, environment, address, "clone", b"", (0,), _OUT_BYTES, _CLONE_SECONDS) as output:
        for _ in output:
            pass


def _lines(names: Sequence[str]) -> bytes:
    return os.fsencode("".join(f"{name}\n" for name in names))


def _size_of_blob(line: bytes, most: int) -> int | None:
    """The size of an object; None for what is not a blob of at most ``most`` bytes."""
    words = line.split()
    is_blob = len(words) == 2 and words[0] == b"blob" and words[1].isdigit()
    return size if is_blob and (size := int(words[1])) <= most else None


def _read_batch(repository: Path, batch: Sequence[tuple[str, bool]]) -> Iterator[tuple[str, bytes | None]]:
    names = [name for name, is_read in batch if is_read]
    contents: dict[str, bytes | None] = {}
    if names:
        _, out = run(repository, ["cat-file", "--batch"], _lines(names))
        contents = dict(zip(names, _blobs(out, len(names)), strict=True))
    yield from ((name, contents.get(name)) for name, _ in batch)


def _blobs(out: bytes, count: int) -> list[bytes | None]:
    """The contents in the output of ``cat-file --batch``: for each a header line with its size, then its bytes."""
    blobs: list[bytes | None] = []
    offset = 0
    while len(blobs) < count and offset < len(out):
        end = out.index(b"\n", offset)
        words = out[offset:end].rsplit(b" ", 2)
        offset = end + 1
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            blobs.append(out[offset : offset + size] if words[1] == b"blob" else None)
            offset += size + 1
        else:
            blobs.append(None)
    return blobs + [None] * (count - len(blobs))


def _command() -> list[str]:
    program = find_program("git")
    if program is None:
        raise GitError("git was not found; install it and add it to the PATH")
    return [program, *_SWITCHES]


def _environment() -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LOCATIONS}
    return kept | {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        # Not known to git before 2.44. No transport is allowed either, whatever the repository's configuration says.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


class _Output:
    """The output of a process, in pieces, and its exit status at the end."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._left = stream, limit
        self.status = 0
        self.is_too_long = False

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._stream.read(_PIECE_BYTES):
            self._left -= len(piece)
            if self._left < 0:
                self.is_too_long = True
                return
            yield piece


@contextmanager
def running(
    repository: Path, arguments: Sequence[str], stdin: bytes, accept: Sequence[int], limit: int
) -> Iterator[_Output]:
    """Run git in a repository and read at most ``limit`` bytes of what it prints; afterwards it has ended.

    Raises:
        GitError: see there.
    """
    now = time.monotonic()
    late = [where for where, at in _late.items() if now - at < _LATE_SECONDS]
    if repository in late or len(late) >= _MOST_LATE:
        raise GitError(
            f"{late[-1]}: git did not finish in time and is not asked again for now; check its configuration"
        )
    # Without a working tree the folder is the repository itself.
    bare = [] if (repository / ".git").exists() else ["--git-dir=."]
    command = [*_command(), "-C", str(repository), *bare, *arguments]
    try:
        with _start(command, {}, str(repository), arguments[0], stdin, accept, limit, TIMEOUT) as output:
            yield output
    except _LateError:
        _late[repository] = time.monotonic()
        raise


class _LateError(GitError):
    pass


@contextmanager
def _start(
    command: Sequence[str],
    environment: Mapping[str, str],
    where: str,
    what: str,
    stdin: bytes,
    accept: Sequence[int],
    limit: int,
    seconds: float,
) -> Iterator[_Output]:
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_environment(), **environment},
            start_new_session=True,
        )
    except OSError as error:
        raise GitError(f"{where}: git cannot be run ({error.strerror}); check its installation") from None
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors: list[bytes] = []
    is_late = threading.Event()

    def end() -> None:
        if process.poll() is None:
            is_late.set()
            end_group(process)

    threads = (
        threading.Thread(target=_write, args=(process.stdin, stdin), daemon=True),
        threading.Thread(target=_read_first, args=(process.stderr, errors), daemon=True),
    )
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    for thread in (*threads, timer):
        thread.start()
    output = _Output(process.stdout, limit)
    try:
        yield output
        if not output.is_too_long:
            process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            end_group(process)
        for thread in threads:
            thread.join(_END_SECONDS)
        process.stdout.close()
    output.status = process.returncode
    if is_late.is_set():
        raise _LateError(f"{where}: git {what} did not finish within {seconds:.0f} s; try again")
    if output.is_too_long:
        raise GitError(f"{where}: git {what} prints more than {limit // 2**20} MiB; name another revision")
    if output.status not in accept:
        lines = b"".join(errors).decode("utf-8", errors="replace").strip().splitlines()
        raise GitError(f"{where}: git {what} failed ({(lines or ['no reason given'])[0]})")


def _write(stream: IO[bytes], content: bytes) -> None:
    with suppress(OSError), stream:
        stream.write(content)


def _read_first(stream: IO[bytes], into: list[bytes]) -> None:
    """Read all that a process prints and keep the first piece."""
    with suppress(OSError), stream:
        while piece := stream.read(_PIECE_BYTES):
            if not into:
                into.append(piece)
