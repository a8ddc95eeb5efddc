"""The wheel as a user gets it: small, without torch, and able to predict in a clean environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from rlm_lsp.findings.finding import DOCS

pytestmark = pytest.mark.timeout(600)

REPOSITORY = Path(__file__).parents[2]
MIB = 2**20


def run(*command: str | Path) -> str:
    """Run a command that must succeed, away from the repository; what it printed on stdout."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout


def copy_of_checkout(folder: Path) -> Path:
    """The tracked files and those that are not ignored, in another folder, with other times."""
    listed = ["git", "-C", str(REPOSITORY), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0"):
        source = REPOSITORY / name
        if name and source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(0o600)
            os.utime(target, (1_000_000_000, 1_000_000_000))
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as it would be published."""
    folder = tmp_path_factory.mktemp("dist")
    # hatchling is installed with the [dev] extra: no other environment is needed to build.
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, REPOSITORY)
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment in which nothing but the wheel is installed, with what it depends on."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    pip = (sys.executable, "-m", "pip", "--python", folder, "--disable-pip-version-check")
    run(*pip, "install", "--quiet", wheel)
    return folder


def test_the_wheel_has_the_same_bytes_from_another_folder_at_another_time(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = copy_of_checkout(tmp_path / "another checkout")
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    earlier = os.umask(0o077)
    try:
        # Without the source distribution in between, which must lose nothing.
        run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path / "dist", checkout)
    finally:
        os.umask(earlier)
    [again] = (tmp_path / "dist").glob("*.whl")
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def names_in(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 30 * MIB


def test_the_wheel_holds_all_of_both_packages_and_nothing_else(wheel: Path) -> None:
    folders = [REPOSITORY / "model_core" / "rlm_core", REPOSITORY / "server" / "rlm_lsp"]
    files = [(folder, path) for folder in folders for path in folder.rglob("*") if path.is_file()]
    expected = {path.relative_to(folder.parent).as_posix() for folder, path in files if path.suffix != ".pyc"}
    shipped = {name for name in names_in(wheel) if not name.split("/")[0].endswith(".dist-info")}
    assert shipped == expected | {f"rlm_lsp/{DOCS}"}
    assert {"rlm_core/py.typed", "rlm_lsp/py.typed", "rlm_core/queries/devices.toml"} <= shipped


def test_the_wheel_holds_the_licence(wheel: Path) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in names_in(wheel))


def test_a_clean_environment_is_small_and_without_torch(environment: Path) -> None:
    files = [path for path in environment.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < 250 * MIB
    installed = {path.name for path in environment.glob("lib/*/site-packages/*")}
    assert "onnxruntime" in installed
    assert not installed & {"torch", "pyarrow", "scipy", "transformers"}


def test_the_examples_are_predicted_in_a_clean_environment(environment: Path) -> None:
    printed = run(environment / "bin" / "rlm-lsp", "predict", REPOSITORY / "examples", "--format", "json")
    answered = [row for row in json.loads(printed) if row["abstained"] is None]
    assert {row["basis"] for row in answered} == {"call", "kernel", "module", "program"}
    assert len(answered) > 30
    assert all(0 <= row["low"] <= row["median"] <= row["high"] for row in answered)


def test_training_commands_say_what_is_missing_in_a_clean_environment(environment: Path) -> None:
    command = [str(environment / "bin" / "rlm-lsp"), "eval", "--data", "x.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is not installed; run: pip install '.[train]'" in done.stderr
