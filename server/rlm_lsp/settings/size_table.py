"""The table of sizes in a project's configuration, written to be filled in.

Input: functions whose inputs have no known size. Output: a commented line for each in ``[tool.rlm-lsp.sizes]`` of
``pyproject.toml``, or ``[sizes]`` of ``rlm-lsp.toml``. Everything else in the file stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_core import DataError
from rlm_core.files import atomic_write

from .files import OWN_FILE, SHARED_FILE, ConfigFile, folder_config, read_config

if TYPE_CHECKING:
    from tomlkit.items import Table

_HEADING = 'Sizes at which costs are shown: fill in a value such as 500, "10k" or "2**20", and remove the first #.'
_ALL = 'A name alone is for all functions: orders = "10k"'


@dataclass(frozen=True, slots=True)
class UnknownSizes:
    """A function by its qualified name, and its inputs with a value to start from, None where none is known."""

    function: str
    inputs: Mapping[str, float | None]
    where: str

    @property
    def line(self) -> str:
        """The line of the table, without the ``#`` in front of it."""
        values = ", ".join(f"{_key(name)} = {_value(value)}" for name, value in self.inputs.items())
        return f"{json.dumps(self.function, ensure_ascii=False)} = {{ {values} }}  # {self.where}"


def _key(name: str) -> str:
    return name if name.replace("_", "a").isalnum() and name.isascii() else json.dumps(name, ensure_ascii=False)


def _value(value: float | None) -> str:
    return '"?"' if value is None else f"{round(value):_}"


@dataclass(frozen=True, slots=True)
class SizeTableFile:
    """The configuration file that gets the table."""

    path: Path

    @classmethod
    def above(cls, path: Path) -> SizeTableFile:
        """The file whose settings apply to a path, else its project's ``pyproject.toml``, else a new one."""
        start = path.resolve() if path.is_dir() else path.resolve().parent
        folders = [start, *start.parents]
        config = next(filter(None, map(folder_config, folders)), None)
        if config is not None:
            return cls(config.path)
        shared = next((folder / SHARED_FILE for folder in folders if (folder / SHARED_FILE).is_file()), None)
        root = next((folder for folder in folders if (folder / ".git").exists()), start)
        return cls(shared or root / OWN_FILE)

    @property
    def section(self) -> str:
        """The name of the table."""
        return "tool.rlm-lsp.sizes" if self.path.name == SHARED_FILE else "sizes"

    def add(self, entries: Sequence[UnknownSizes]) -> int:
        """Add lines for functions that the file does not name yet; the number of them.

        Raises:
            DataError: the file is not TOML, has something else in place of the table, or cannot be written.
        """
        # Imported on use: the server, which imports this package, never writes TOML.
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        config = read_config(self.path) or ConfigFile(self.path)
        if config.error is not None:
            raise DataError(f"{self.path}: {config.error}; fix it first")
        text = config.source.decode("utf-8-sig")
        new = [entry for entry in entries if json.dumps(entry.function, ensure_ascii=False) not in text]
        if not new:
            return 0
        try:
            document = tomlkit.parse(text)
            table = _table(document, self.section.split("."), self.path)
            if _HEADING not in text:
                table.add(tomlkit.comment(_HEADING))
                table.add(tomlkit.comment(_ALL))
            for entry in new:
                table.add(tomlkit.comment(entry.line))
            written = _set_apart(tomlkit.dumps(document), f"[{self.section}]", entries=new, before=text)
        except TOMLKitError as error:
            raise DataError(f"{self.path}: the table cannot be added ({error}); fix the file first") from None
        try:
            with atomic_write(self.path) as partial:
                partial.write_text(written, encoding="utf-8", newline="")
        except OSError as error:
            raise DataError(f"{self.path}: cannot be written ({error.strerror}); check its permissions") from None
        return len(new)


def _set_apart(written: str, header: str, *, entries: Sequence[UnknownSizes], before: str) -> str:
    """Put an empty line above a table that is new, and below its lines where another table follows."""
    last = f"# {entries[-1].line}\n"
    if header in before or last not in written:
        return written
    above, _, below = written.partition(header)
    listed, _, rest = below.partition(last)
    rest = f"\n{rest}" if rest.startswith("[") else rest
    return f"{above.rstrip()}\n\n{header}{listed}{last}{rest}".lstrip("\n")


def _table(document: Any, names: Sequence[str], path: Path) -> Table:
    """The table of a document, made where it is missing.

    Raises:
        DataError: something else is in its place.
    """
    import tomlkit
    from tomlkit.container import OutOfOrderTableProxy
    from tomlkit.items import Table

    inner: Any = document
    for place, name in enumerate(names):
        if name not in inner:
            inner.add(name, tomlkit.table(is_super_table=place < len(names) - 1))
        inner = inner[name]
        if not isinstance(inner, (Table, OutOfOrderTableProxy)):
            raise DataError(f"{path}: {'.'.join(names[: place + 1])} is not a table; write it as a table first")
    return inner  # type: ignore[no-any-return]
