"""Files of packages: found from a file's path, scanned once, and read as they are on disk or in the editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlm_core.errors import TooComplexError
from rlm_core.queries import package_files
from rlm_core.queries.package_files import Overlay, PackageFiles, context_of, package_of, path_of
from rlm_core.source.module_index import ModuleIndex, index_module
from rlm_core.source.parsed import ParsedSource

from tests.nested_folders import nested_folders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a package with a module and a package in it."""
    (tmp_path / "package" / "deep").mkdir(parents=True)
    for name, text in {
        "__init__.py": "from .work import run\n",
        "work.py": "class Work:\n    def run(self):\n        return self\n",
        "deep/__init__.py": "",
        "deep/inner.py": "def inner(n):\n    return n\n",
    }.items():
        (tmp_path / "package" / name).write_text(text)
    return tmp_path


def files_of(overlay: Overlay = lambda path: None) -> PackageFiles:
    return PackageFiles(overlay)


@pytest.mark.parametrize(
    ("file", "dotted"),
    [
        ("package/work.py", "package.work"),
        ("package/__init__.py", "package"),
        ("package/deep/inner.py", "package.deep.inner"),
        ("script.py", "script"),
    ],
)
def test_a_file_has_a_dotted_name_below_the_folder_of_its_package(root: Path, file: str, dotted: str) -> None:
    assert package_of(root / file) == (root, dotted)
    assert path_of(root, dotted) == (root / file if file != "script.py" else None)


def test_modules_are_loaded_from_the_own_package_and_each_once_per_analysis(root: Path) -> None:
    loaded: list[ModuleIndex] = []
    files = PackageFiles(lambda path: None, loaded.append)
    for _ in range(2):
        work = files.load(root, "package.deep.inner", "package.work")
        assert work is not None
        assert list(work.units) == ["Work.run"]
    assert loaded == [work]
    assert files.load(root, "package.work", "package.missing") is None
    assert files.load(root, "package.work", "other.work") is None
    assert files.load(None, "package.work", "package.work") is None
    files.start()
    assert files.load(root, "package.work", "package.work") is work
    assert loaded == [work, work]


def test_modules_beyond_the_bytes_of_an_analysis_are_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_files, "_LOADED_BYTES", 2 * package_files._LEAST_BYTES)
    files = files_of()
    for _ in range(2):  # also of those that are remembered
        files.start()
        loaded = [files.load(root, "package", f"package.{name}") for name in ("work", "deep", "deep.inner")]
        assert [index is not None for index in loaded] == [True, True, False]
    files.start()
    assert files.load(root, "package", "package.deep.inner") is not None


def test_a_module_that_is_too_complex_uses_up_more_of_an_analysis(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: ParsedSource, dotted: str, *, is_package: bool) -> ModuleIndex:
        if dotted == "package.work":
            raise TooComplexError("too complex to analyse")
        return index_module(source, dotted, is_package=is_package)

    monkeypatch.setattr(package_files, "index_module", refuse)
    monkeypatch.setattr(package_files, "_LOADED_BYTES", package_files._COMPLEX_BYTES)
    files = files_of()
    for _ in range(2):  # also where it is remembered
        files.start()
        assert files.load(root, "package", "package.work") is None
        assert files.load(root, "package", "package.deep.inner") is None
    files.start()
    assert files.load(root, "package", "package.deep.inner") is not None


def test_a_module_that_is_too_complex_is_parsed_again_when_its_file_has_changed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def refuse(source: ParsedSource, dotted: str, **rest: bool) -> ModuleIndex:
        parsed.append(dotted)
        raise TooComplexError("too complex to analyse")

    monkeypatch.setattr(package_files, "index_module", refuse)
    files = files_of()
    for _ in range(3):
        files.start()
        assert files.load(root, "package", "package.work") is None
    assert parsed == ["package.work"]
    (root / "package" / "work.py").write_text("def run(n):\n    return n\n")
    files.start()
    assert files.load(root, "package", "package.work") is None
    assert parsed == ["package.work"] * 2


def test_remembered_modules_are_limited_by_their_bytes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_files, "_INDEXED_BYTES", 5 * package_files._LEAST_BYTES)
    for number in range(4):
        (root / "package" / f"m{number}.py").write_text("#" * 2 * package_files._LEAST_BYTES)
    files = files_of()
    for number in range(4):
        files.start()
        assert files.load(root, "package", f"package.m{number}") is not None
    assert len(files._indices) == 2


def test_no_more_of_a_package_is_scanned_than_the_limit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "package" / "other.py").write_text("class Other:\n    def walk(self):\n        return self\n")
    monkeypatch.setattr(package_files, "_SCANNED_BYTES", 60)
    names = files_of().names(root, "package.work")
    assert names.files("walk")
    assert not names.files("run")


def test_names_are_scanned_again_when_files_may_have_changed(root: Path) -> None:
    files = files_of()
    assert list(files.names(root, "package.work").files("run") or ()) == ["package.work"]
    before = files.structure(None)
    (root / "package" / "more.py").write_text("class More:\n    def run(self):\n        return self\n")
    (root / "package" / "work.py").unlink()
    assert list(files.names(root, "package.work").files("run") or ()) == ["package.work"]
    files.refresh()
    assert list(files.names(root, "package.work").files("run") or ()) == ["package.more"]
    assert files.structure(None) > before


def test_the_text_in_the_editor_counts_and_its_changes_concern_other_files(root: Path) -> None:
    path = root / "package" / "work.py"
    edited = {path: b"class Work:\n    def other(self):\n        return self\n"}
    files = files_of(edited.get)
    names = files.names(root, "package.work")
    assert list(names.files("other") or ()) == ["package.work"]
    assert not names.files("run")
    index = files.load(root, "package.deep.inner", "package.work")
    assert index is not None
    before = files.structure(None), files.structure(path)
    files.note(path, "package.work", edited[path], index, names)
    assert (files.structure(None), files.structure(path)) == before
    text = b"LIMIT = 3\n" + edited[path]
    files.note(path, "package.work", text, index_module(ParsedSource(text, "python"), "package.work"), names)
    assert (files.structure(None), files.structure(path)) == (before[0] + 1, before[1])


@pytest.mark.parametrize("change", ["import os\n", "LIMIT = 3\n", "class A(int):\n    pass\n", "def g():\n    pass\n"])
def test_the_context_of_a_module_is_everything_but_the_bodies_of_its_functions(change: str) -> None:
    def context(text: str) -> int:
        return context_of(index_module(ParsedSource(text.encode(), "python")))

    plain = "def f(n):\n    return n\n"
    assert context(plain) == context(plain.replace("return n", "return [n] * n"))
    assert context(plain) != context(change + plain)


def test_a_package_may_have_more_folders_than_python_recurses(root: Path) -> None:
    with nested_folders(root / "package") as deepest:
        (deepest / "below.py").write_text("class Below:\n    def sink(self):\n        return self\n")
        assert files_of().names(root, "package.work").files("sink")
