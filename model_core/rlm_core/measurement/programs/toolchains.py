"""How a program of each language is compiled and run: one table, and the part of it that is installed.

In commands ``{source}`` is the program's file, ``{build}`` the folder that compiling writes to, ``{entry}`` the class
that has ``main``, ``{root}`` the first of the folders that the toolchain lives in. A word that is the name of one of
``needs`` becomes its path.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_core import no_telemetry
from rlm_core.processes import find_program

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_ASK_SECONDS = 60
_PYTHON_ROOTS = "import os, sys; print(sys.prefix, sys.base_prefix, os.path.realpath(sys.executable), sep='\\n')"
_PROJECT = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net$(BundledNETCoreAppTargetFrameworkVersion)</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
    <EnableDefaultCompileItems>false</EnableDefaultCompileItems>
  </PropertyGroup>
  <ItemGroup><Compile Include="{source}" /></ItemGroup>
</Project>
"""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One way to run programs of a language.

    ``version`` is a command whose first number with a dot is the version; ``roots`` one that prints the folders in
    which the toolchain lives, needed where its programs are links or proxies. ``probe`` must end with status 0.
    ``files`` are written to the build folder first.
    """

    language: str
    name: str
    suffixes: tuple[str, ...]
    needs: tuple[str, ...]
    run: tuple[str, ...]
    compile: tuple[str, ...] = ()
    version: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    probe: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    flags: str = ""


def _native(language: str, name: str, suffixes: tuple[str, ...], flags: str, end: str = "") -> Toolchain:
    compile_ = (name, *flags.split(), "-o", "{build}/program", "{source}", *end.split())
    return Toolchain(
        language, name, suffixes, (name,), ("{build}/program",), compile_, (name, "--version"), flags=flags
    )


_CPP = (".cpp", ".cc", ".cxx")
_DOTNET = (
    ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
    ("DOTNET_NOLOGO", "1"),
    ("DOTNET_SKIP_FIRST_TIME_EXPERIENCE", "1"),
    ("MSBUILDDISABLENODEREUSE", "1"),
)
_IS_TYPED = "process.exit(process.features.typescript ? 0 : 1)"

# Of a language the first that is found is used.
TABLE = (
    Toolchain(
        "python",
        "cpython",
        (".py",),
        ("python",),
        ("python", "{source}"),
        version=("python", "--version"),
        roots=("python", "-c", _PYTHON_ROOTS),
    ),
    _native("c", "gcc", (".c",), "-O2", "-lm"),
    _native("c", "clang", (".c",), "-O2", "-lm"),
    _native("cpp", "g++", _CPP, "-O2 -std=gnu++20"),
    _native("cpp", "clang++", _CPP, "-O2 -std=gnu++20"),
    Toolchain(
        "java",
        "java",
        (".java",),
        ("javac", "java"),
        ("java", "-cp", "{build}", "{entry}"),
        ("javac", "-encoding", "UTF-8", "-d", "{build}", "{source}"),
        ("javac", "-version"),
    ),
    Toolchain(
        "javascript",
        "node",
        (".js", ".mjs", ".cjs"),
        ("node",),
        ("node", "{source}"),
        version=("node", "--version"),
    ),
    Toolchain(
        "typescript",
        "tsc",
        (".ts",),
        ("tsc", "node"),
        ("node", "{build}/{stem}.js"),
        ("tsc", "--noCheck", "--target", "es2022", "--module", "nodenext", "--outDir", "{build}", "{source}"),
        ("tsc", "--version"),
    ),
    Toolchain(
        "typescript",
        "node",
        (".ts", ".mts", ".cts"),
        ("node",),
        ("node", "{source}"),
        version=("node", "--version"),
        probe=("node", "-e", _IS_TYPED),
    ),
    Toolchain(
        "go",
        "go",
        (".go",),
        ("go",),
        ("{build}/program",),
        ("go", "build", "-o", "{build}/program", "{source}"),
        ("go", "version"),
        ("go", "env", "GOROOT"),
        environment=(("GO111MODULE", "off"), ("GOFLAGS", ""), ("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")),
    ),
    Toolchain(
        "rust",
        "rustc",
        (".rs",),
        ("rustc",),
        ("{build}/program",),
        ("{root}/bin/rustc", "--edition=2021", "-O", "-o", "{build}/program", "{source}"),
        ("rustc", "--version"),
        ("rustc", "--print", "sysroot"),
        flags="-O",
    ),
    Toolchain("ruby", "ruby", (".rb",), ("ruby",), ("ruby", "{source}"), version=("ruby", "--version")),
    Toolchain(
        "php",
        "php",
        (".php",),
        ("php",),
        ("php", "-d", "memory_limit=-1", "{source}"),
        version=("php", "--version"),
    ),
    Toolchain(
        "csharp",
        "dotnet",
        (".cs",),
        ("dotnet",),
        ("dotnet", "{build}/out/program.dll"),
        ("dotnet", "build", "{build}/program.csproj", "-c", "Release", "-o", "{build}/out", "--nologo", "-v", "q"),
        ("dotnet", "--version"),
        environment=_DOTNET,
        files=(("program.csproj", _PROJECT),),
    ),
    Toolchain(
        "csharp",
        "mono",
        (".cs",),
        ("mcs", "mono"),
        ("mono", "{build}/program.exe"),
        ("mcs", "-optimize+", "-out:{build}/program.exe", "{source}"),
        ("mono", "--version"),
    ),
    Toolchain(
        "kotlin",
        "kotlin",
        (".kt",),
        ("kotlinc", "java"),
        ("java", "-jar", "{build}/program.jar"),
        ("kotlinc", "{source}", "-include-runtime", "-d", "{build}/program.jar"),
        ("kotlinc", "-version"),
    ),
    Toolchain(
        "swift",
        "swift",
        (".swift",),
        ("swiftc",),
        ("{build}/program",),
        ("swiftc", "-O", "-o", "{build}/program", "{source}"),
        ("swiftc", "--version"),
        flags="-O",
    ),
    Toolchain(
        "scala",
        "scala",
        (".scala",),
        ("scalac", "java"),
        ("java", "-cp", "{build}:{root}/lib/*", "{entry}"),
        ("scalac", "-d", "{build}", "{source}"),
        ("scalac", "-version"),
    ),
)
LANGUAGES = tuple(dict.fromkeys(one.language for one in TABLE))


@dataclass(frozen=True, slots=True)
class InstalledToolchain:
    """A toolchain that this machine has: the paths of its programs, its version and the folders that it lives in."""

    toolchain: Toolchain
    programs: Mapping[str, Path]
    version: str
    roots: tuple[Path, ...]

    @property
    def runtime(self) -> str:
        """The runtime that measurements depend on, such as ``gcc-12.2.0 -O2``."""
        return f"{self.toolchain.name}-{self.version} {self.toolchain.flags}".strip()

    @property
    def environment(self) -> dict[str, str]:
        """Variables of its commands; PATH has its programs first."""
        folders = dict.fromkeys([*(str(path.parent) for path in self.programs.values()), *os.defpath.split(":")])
        return {"PATH": ":".join(filter(None, folders)), **no_telemetry.VARIABLES, **dict(self.toolchain.environment)}

    def command(self, words: Iterable[str], values: Mapping[str, str]) -> list[str]:
        """A command of the table with its paths."""
        known = {**values, "root": str(self.roots[0]) if self.roots else ""}
        return [str(self.programs.get(word, word.format_map(known))) for word in words]

    def files(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return the files to write into the build folder before compiling."""
        return {name: text.format_map(values) for name, text in self.toolchain.files}


def find_toolchain(language: str, python: str) -> InstalledToolchain | None:
    """The first toolchain of a language that this machine has; ``python`` is the interpreter for Python programs."""
    return next((found for one in TABLE if one.language == language and (found := _find(one, python))), None)


def wanted(language: str) -> str:
    """Return what to install to measure programs of a language, such as ``gcc or clang``."""
    return " or ".join(" and ".join(one.needs) for one in TABLE if one.language == language)


def _find(toolchain: Toolchain, python: str) -> InstalledToolchain | None:
    programs = {}
    for name in toolchain.needs:
        path = find_program(python if name == "python" else name)
        if path is None:
            return None
        programs[name] = Path(path).absolute()
    bare = InstalledToolchain(toolchain, programs, "", ())
    if toolchain.probe and _said(bare, toolchain.probe) is None:
        return None
    version = _VERSION.search(_said(bare, toolchain.version) or "")
    if version is None:
        return None  # a proxy without a toolchain behind it, for instance
    roots = [_home_of(path.resolve()) for path in programs.values()]
    if toolchain.roots:
        lines = (_said(bare, toolchain.roots) or "").splitlines()
        roots = [path.parents[1] if path.is_file() else path for path in map(Path, lines) if path.exists()] + roots
    return InstalledToolchain(toolchain, programs, version[0], tuple(dict.fromkeys(roots)))


def _home_of(program: Path) -> Path:
    """The folder that a program lives in with its libraries; packages of npm may be next to one another."""
    if "node_modules" in program.parts:
        return Path(*program.parts[: program.parts.index("node_modules") + 1])
    return program.parents[1]


def _said(found: InstalledToolchain, command: tuple[str, ...]) -> str | None:
    """Return the output of a command, or None if it fails."""
    try:
        done = subprocess.run(
            found.command(command, {}), capture_output=True, text=True, timeout=_ASK_SECONDS, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None
