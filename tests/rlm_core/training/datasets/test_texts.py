"""Unlabelled texts from wheels: nothing that a model is judged on, and every function once."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rlm_core.errors import DataError
from rlm_core.source.canonical import canonical
from rlm_core.training.datasets.splits import TEST_PACKAGES, split_of
from rlm_core.training.datasets.texts import build_texts, read_texts


def modules(package: str, *splits: str, count: int = 2) -> list[str]:
    """Module names of a package that fall into some splits."""
    found = [f"{package}.m{number}" for number in range(400) if split_of(f"{package}/{package}.m{number}") in splits]
    return found[:count]


def function(name: str, lines: int = 3) -> str:
    body = "".join(f"    {name}_{number} = work({name}, {number})  # step\n" for number in range(lines))
    return f"def {name}(x):\n    '''What it does.'''\n{body}    return {name}_0\n"


def wheel(folder: Path, package: str, files: dict[str, str | bytes], name: str | None = None) -> Path:
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        archive.writestr(f"{package}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name or package}\n\n")
    return path


def path_of(module: str) -> str:
    return module.replace(".", "/") + ".py"


def built(folder: Path, *wheels: Path) -> list[str]:
    count = build_texts(wheels, folder / "texts.parquet", workers=1)
    texts = list(read_texts(folder / "texts.parquet"))
    assert count == len(texts)
    assert {language for _, language in texts} <= {"python"}
    return [text for text, _ in texts]


def names(texts: list[str]) -> set[str]:
    return {text.split("(")[0].removeprefix("def ") for text in texts}


def test_functions_come_canonical_and_once(tmp_path: Path) -> None:
    first, second = modules("pack", "train")
    source = function("one") + "\n" + function("two")
    path = wheel(tmp_path, "pack", {path_of(first): source, path_of(second): "# again\n" + function("one")})
    assert built(tmp_path, path) == [canonical(function(name), "python") for name in ("one", "two")]


def test_only_modules_of_the_training_split_are_read(tmp_path: Path) -> None:
    splits = ("train", "val", "cal", "test")
    files: dict[str, str | bytes] = {path_of(modules("pack", split, count=1)[0]): function(split) for split in splits}
    assert names(built(tmp_path, wheel(tmp_path, "pack", files))) == {"train"}


def test_a_package_is_split_as_its_module(tmp_path: Path) -> None:
    package = next(name for name in (f"pack{i}" for i in range(99)) if split_of(f"{name}/{name}") == "train")
    other = next(name for name in (f"pack{i}" for i in range(99)) if split_of(f"{name}/{name}") == "test")
    paths = [wheel(tmp_path, name, {f"{name}/__init__.py": function(name)}) for name in (package, other)]
    assert names(built(tmp_path, *paths)) == {package}


def test_packages_that_are_test_only_are_not_read(tmp_path: Path) -> None:
    name = sorted(TEST_PACKAGES)[0]
    [module] = modules("pack", "train", count=1)
    [kept] = modules("other", "train", count=1)
    paths = [
        wheel(tmp_path, "pack", {path_of(module): function("secret")}, name=name),
        wheel(tmp_path, "other", {path_of(kept): function("known")}),
    ]
    assert names(built(tmp_path, *paths)) == {"known"}


@pytest.mark.parametrize("folder", ["tests", "test", "_vendor", "vendored"])
def test_tests_and_vendored_copies_are_not_read(tmp_path: Path, folder: str) -> None:
    [module] = modules("pack", "train", count=1)
    files: dict[str, str | bytes] = {f"pack/{folder}/m{number}.py": function(f"f{number}") for number in range(9)}
    files[path_of(module)] = function("kept")
    assert names(built(tmp_path, wheel(tmp_path, "pack", files))) == {"kept"}


def test_tiny_huge_and_unreadable_texts_are_left_out(tmp_path: Path) -> None:
    first, second = modules("pack", "train")
    source = "def tiny():\n    pass\n\n" + function("huge", lines=900) + "\n" + function("kept")
    files: dict[str, str | bytes] = {path_of(first): source, path_of(second): b"def f():\n    return '\xff'\n" * 9}
    assert names(built(tmp_path, wheel(tmp_path, "pack", files))) == {"kept"}


def test_progress_counts_wheels(tmp_path: Path) -> None:
    paths = [wheel(tmp_path, name, {}) for name in ("a", "b")]
    seen: list[tuple[int, int]] = []
    assert (
        build_texts(paths, tmp_path / "out.parquet", workers=1, progress=lambda done, of: seen.append((done, of))) == 0
    )
    assert seen == [(1, 2), (2, 2)]
    assert list(read_texts(tmp_path / "out.parquet")) == []


def test_no_wheel_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no wheel in the source cache"):
        build_texts([], tmp_path / "out.parquet")


def test_a_broken_wheel_is_named(tmp_path: Path) -> None:
    (tmp_path / "half.whl").write_bytes(b"PK\x03\x04 half")
    with pytest.raises(DataError, match=r"half\.whl: not a wheel; delete it"):
        build_texts([tmp_path / "half.whl"], tmp_path / "out.parquet", workers=1)


@pytest.mark.parametrize("kind", ["missing", "text", "foreign"])
def test_what_is_no_file_of_texts_is_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "texts.parquet"
    if kind == "text":
        path.write_text("not parquet")
    elif kind == "foreign":
        pq.write_table(pa.table({"text": ["x"], "language": ["python"]}), path)
    with pytest.raises(DataError, match=r"texts\.parquet: not a"):
        list(read_texts(path))
