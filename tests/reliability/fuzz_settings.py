"""Fuzzed readers of settings: files, budgets, and globs."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from rlm_core.errors import RlmError

from . import fuzz_generators as generate
from .fuzz_target import Target, one_line


class Settings(Target):
    """The settings of a folder (TOML), of a client (JSON) and of the user's workspaces, and how they are resolved."""

    name = "settings"
    _WORDS = (
        *(
            "[",
            "]",
            "[[",
            "]]",
            "=",
            ".",
            '"',
            "'",
            '"""',
            "\n",
            "#",
            "{",
            "}",
            ",",
            " = ",
            "\\",
            "\\ud800",
            "\0",
            "\r",
        ),
        *("threads", "budgets", "severity", "device", "devices", "metrics", "tool.rlm-lsp", "exclude", "measure"),
        *("true", "1e999", "nan", "inf", "9" * 60, "0x", "1979-05-27T07:32:00Z", "25:61:61", "-", "_", "\ufeff", "ä"),
        *('"latency < 1 ms"', '["**/*a**"]', "{ }", "a.b.c.d", '"src/**" = "latency < 1 ms"'),
    )
    _TOML = (
        'metrics = ["latency"]\nlanguages = ["python", "java"]\nthreads = 2\ndebounce-ms = 100\n'
        'exclude = ["build/**"]\n'
        'devices = ["A100"]\n[budgets]\n"src/**/*.py" = "latency < 1 ms, memory < 10 MiB"\n'
        "[severity]\nwarning = 0.9\n[default-sizes]\nM = 4096\n",
        '[project]\nname = "x"\n[tool.rlm-lsp]\nmeasure = false\njudge = "atcoder"\n[tool.rlm-lsp.budgets]\n'
        '"*.py" = "latency < 1 s on x86-64 n=10"\n',
    )
    _JSON: Sequence[Any] = (
        {
            "metrics": ["latency"],
            "threads": 2,
            "debounceMs": 150,
            "budgets": {"src/**": "latency < 1 ms, memory < 10 MiB"},
            "severity": {"error": 0.99, "warning": 0.9},
            "defaultSizes": {"M": 4096, "dtype": "fp16"},
            "exclude": ["build/**"],
            "devices": ["A100"],
            "model": "builtin",
            "measure": True,
        },
        {"rlm-lsp": {"trace": {"server": "off"}}, "inlayHints": {"enabled": True}},
    )

    def make(self, rng: random.Random) -> bytes:
        kind = rng.randrange(4)
        if kind == 0:
            return b"J" + generate.json_bytes(rng, self._JSON)
        if kind == 1:
            return b"W" + generate.json_bytes(rng, [{str(self.folder): document} for document in self._JSON])
        text = generate.lines(rng, self._WORDS, self._TOML).encode("utf-8", "surrogatepass")
        return (b"T" if kind == 2 else b"P") + generate.broken(rng, text, 0.1)

    def read(self, data: bytes) -> None:
        from pathlib import PurePath

        from rlm_lsp.settings import files
        from rlm_lsp.settings.resolve import SettingsProblem, SettingsSource, resolve

        kind, content = data[:1], data[1:]
        problems: list[SettingsProblem] = []
        if kind == b"J":
            try:
                source = SettingsSource("client", json.loads(content))
            except (ValueError, RecursionError):  # such a message is answered by the reader of messages
                raise RlmError("not JSON") from None
        elif kind == b"W":
            self.file(files.WORKSPACES, content)
            source, problems = files.workspace_source(self.folder, self.folder / "config.toml")
        else:
            own, shared = self.folder / files.OWN_FILE, self.folder / files.SHARED_FILE
            (shared if kind == b"T" else own).unlink(missing_ok=True)
            self.file(files.OWN_FILE if kind == b"T" else files.SHARED_FILE, content)
            source, problems = files.folder_source(self.folder)
            config = files.folder_config(self.folder)
            if config is not None:
                config.line_of("budgets")
        settings, unresolved = resolve([source])
        for problem in (*problems, *unresolved):
            one_line(str(problem))
        settings.excludes(PurePath("src/a/b.py"))
        if problems or unresolved:
            raise RlmError("problems")


class Budgets(Target):
    """Budgets in settings and comments."""

    name = "budgets"
    _WORDS = (
        *(
            "latency",
            "memory",
            "accuracy",
            "<",
            ">",
            "≤",
            "<=",
            "=",
            ",",
            "ms",
            " s",
            "GiB",
            "%",
            "on",
            "device=",
            "n=",
        ),
        *(
            "1",
            "1e9",
            "1e999999999",
            "9" * 400,
            "-1",
            "0",
            ".",
            "nan",
            "µs",
            "μs",
            "\0",
            "\n",
            '"',
            "'",
            " ",
            "٣",
            "\ud800",
        ),
        *("# rlm:", "budget", "ignore", "judge=boj", "runtime=pypy", "//", "def f():\n    pass\n", "ẞ", "ﬀ"),
    )
    _SEEDS = (
        "latency < 1 ms, memory < 10 MiB",
        'latency < 2.5e-3 s on "my gpu" M=64 N=128, accuracy > 93 %',
        "# rlm: latency < 1 ms\ndef f(x):\n    return x\n",
        "# rlm: ignore memory\n# rlm: judge=atcoder runtime=pypy\ndef f(x):\n    return x\n\nclass A:\n"
        "    def g(self):\n        pass\n",
    )

    def make(self, rng: random.Random) -> bytes:
        return generate.lines(rng, self._WORDS, self._SEEDS).encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> None:
        from rlm_core.source.parsed import ParsedSource
        from rlm_core.source.units import find_units
        from rlm_lsp.budgets.comments import read_comments
        from rlm_lsp.budgets.syntax import parse, render

        text = data.decode("utf-8", "surrogatepass")
        written, mistakes = parse(text)
        for mistake in mistakes:
            assert 0 <= mistake.start <= mistake.end <= len(text)
        again, _ = parse(render([entry.budget for entry in written]))
        assert [entry.budget for entry in again] == [entry.budget for entry in written]
        if b"# rlm" in data:
            source = text.encode("utf-8", "replace")
            parsed = ParsedSource(source, "python")
            read_comments(parsed, find_units(parsed))


class Globs(Target):
    """Globs of settings, against paths."""

    name = "globs"
    _WORDS = (
        "*",
        "**",
        "?",
        "/",
        "a",
        "**/",
        "/**",
        "[",
        "]",
        "!",
        "\\",
        ".",
        "b.py",
        "\0",
        "\n",
        "{a,b}",
        "(",
        ")+",
        "ä",
    )

    def make(self, rng: random.Random) -> bytes:
        glob = generate.lines(rng, self._WORDS, ("src/**/*.py", "**/*a**/*a", "build/"))
        path = "/".join(
            rng.choice(("a", "b", "src", "a" * 200, "b.py", "*", ".", "\n")) for _ in range(rng.randrange(1, 9))
        )
        return f"{glob}\x00{path}".encode("utf-8", "surrogatepass")

    def read(self, data: bytes) -> None:
        from rlm_lsp.sources import matches

        glob, _, path = data.decode("utf-8", "surrogatepass").rpartition("\0")
        matches(glob, path)
