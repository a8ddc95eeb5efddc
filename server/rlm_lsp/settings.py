"""The server's settings: one typed model, read from the client's ``initializationOptions``.

Each field's ``help`` is its documentation; a field's JSON name is its camelCase form.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, get_args

from rlm_core import languages
from rlm_core.types import Metric


def _number(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"must be an integer from {low} to {high}")
        return value

    return read


def _names(known: tuple[str, ...]) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(item in known for item in value):
            raise ValueError(f"must be a list of {', '.join(known)}")
        return tuple(dict.fromkeys(value))

    return read


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError("must be a list of names")
    return tuple(dict.fromkeys(value))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be a non-empty string")
    return value


def _setting(default: Any, read: Callable[[Any], Any], text: str) -> Any:
    return field(default=default, metadata={"read": read, "help": text})


_METRICS: tuple[str, ...] = get_args(Metric)
_LANGUAGES = tuple(languages.LANGUAGES)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client may set; see each field's ``help``."""

    metrics: tuple[Metric, ...] = _setting(_METRICS, _names(_METRICS), "The metrics that hints and hovers show.")
    languages: tuple[str, ...] = _setting(_LANGUAGES, _names(_LANGUAGES), "The languages that get hints and hovers.")
    devices: tuple[str, ...] = _setting((), _texts, "The devices that kernels, modules and networks are asked for.")
    model: str = _setting("builtin", _text, "Directory of an exported model, or `builtin` for the one that ships.")
    threads: int = _setting(0, _number(0, 256), "Threads of the model; 0 leaves the choice to onnxruntime.")
    debounce_ms: int = _setting(150, _number(0, 10_000), "Pause after the last edit before the model runs, in ms.")

    @classmethod
    def from_options(cls, options: Any) -> tuple[Settings, list[str]]:
        """Settings from ``initializationOptions``, and a line for each that was not understood (its default holds)."""
        if options is None:
            return cls(), []
        if not isinstance(options, dict):
            return cls(), ["initializationOptions must be an object; all settings keep their defaults"]
        known = {_camel(entry.name): entry for entry in fields(cls)}
        problems = [f"unknown setting `{key}`; known: {', '.join(known)}" for key in options if key not in known]
        values: dict[str, Any] = {}
        for key, entry in known.items():
            if options.get(key) is None:
                continue
            try:
                values[entry.name] = entry.metadata["read"](options[key])
            except ValueError as error:
                problems.append(f"setting `{key}` {error}; its default holds")
        return cls(**values), problems


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)
