"""The other commands: version, doctor, serve's options, data build, and what a missing extra says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rlm_core
from click.testing import CliRunner, Result
from rlm_lsp import __version__
from rlm_lsp.cli import eval as evaluation
from rlm_lsp.cli import options, train
from rlm_lsp.cli.app import COMMANDS, RENAMED, app

pytestmark = pytest.mark.timeout(120)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The score that `doctor` keeps must not scale what other tests predict."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"rlm-lsp {__version__}\n"


def test_doctor_shows_versions_the_model_and_a_self_test() -> None:
    result = run("doctor")
    assert result.exit_code == 0
    for word in ("python", "onnxruntime", "pygls", "processor", "model", "cold", "warm"):
        assert word in result.stdout


def test_doctor_fails_when_the_model_cannot_be_loaded(tmp_path: Path) -> None:
    result = run("doctor", "--model", tmp_path / "nothing")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("rlm-lsp: error: ")


def test_the_model_that_was_chosen_is_used_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, model = tmp_path / "work", tmp_path / "own"
    workspace.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(workspace)
    shutil.copytree(Path(rlm_core.__file__).parent / "builtin", model)
    assert run("model", "use", model).exit_code == 0
    shutil.rmtree(model)
    (workspace / "a.py").write_text("def f(n):\n    return sum(range(n))\n")
    (workspace / "rlm-lsp.toml").write_text('[budgets]\n"*.py" = "latency < 60 s"\n')
    for command in (["predict", "a.py"], ["check"], ["doctor"]):
        result = run(*command)
        assert result.exit_code == 2
        assert str(model) in result.stderr
        assert run(*command, "--model", "builtin").exit_code == 0
    monkeypatch.setenv("RLM_LSP_MODEL", "builtin")
    assert run("predict", "a.py").exit_code == 0


@pytest.mark.parametrize("address", ["2087", "localhost:", "localhost:http", ":2087", "localhost:70000"])
def test_serve_refuses_a_bad_address(address: str) -> None:
    result = run("serve", "--tcp", address)
    assert result.exit_code == 2
    assert "is not HOST:PORT" in result.stderr


HEAVY = ("torch", "pyarrow", "scipy", "tqdm", "numpy", "onnxruntime")
IMPORTED = f"print([name for name in {HEAVY} if name in sys.modules])"


def test_the_server_starts_without_heavy_imports() -> None:
    code = f"import sys, rlm_lsp.cli.app, rlm_lsp.cli.serve; {IMPORTED}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys; from rlm_lsp.cli.app import app; app(['--help'], standalone_mode=False);"
        f"print(sorted(name for name in sys.modules if name.startswith('rlm_lsp.cli.'))); {IMPORTED}"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    *_, imported, heavy = shown.splitlines()
    assert imported == "['rlm_lsp.cli.app', 'rlm_lsp.cli.options']"
    assert heavy == "[]"


def test_each_command_is_the_module_of_its_name_and_the_list_shows_it_in_one_line() -> None:
    help_lines = {line.strip() for line in run("--help").stdout.splitlines()}
    files = {path.stem for path in Path(options.__file__).parent.glob("*.py")}
    for name, line in COMMANDS.items():
        assert name.replace("-", "_") in files
        assert f"{name:<11}  {line}" in help_lines
        assert run(name, "--help").stdout.startswith(f"Usage: app {name} ")


@pytest.mark.parametrize("name", RENAMED)
def test_an_old_spelling_names_the_new_one_in_one_line(name: str) -> None:
    result = run(name, "--data", "x.parquet", "--out", "o")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"rlm-lsp: error: {name} was renamed; run: rlm-lsp {RENAMED[name]}\n"
    assert f"\n  {name} " not in run("--help").stdout
    command, *option = RENAMED[name].split()[:2]
    assert option[0] in run(command, "--help").stdout


@pytest.mark.parametrize("kind", ["nas", "counterfactual"])
def test_data_sets_whose_generators_are_tools_name_the_tool(kind: str, tmp_path: Path) -> None:
    result = run("data", "build", kind, "--out", tmp_path / "o.parquet")
    assert result.exit_code == 2
    assert result.stderr == (
        f"rlm-lsp: error: data build {kind} has moved; run in a checkout: python -m tools.{kind} --help\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["train", "--data", "x", "--out", "o"], "--config is missing; it is optional only with --teacher"),
        (["train", "--data", "x", "--out", "o", "--teacher", "t", "--accelerate"], "--accelerate does not apply"),
        (["tune", "--data", "x", "--refit", "--keep", "y"], "--keep does not apply to --refit"),
        (["tune", "--data", "x", "--refit", "--accelerate"], "--accelerate does not apply to --refit"),
        (["eval", "--data", "x", "--goals", "g.json"], "add --card FILE"),
        (["eval", "--data", "x", "--card", "c.md", "--split", "val"], "--card evaluates the test split"),
        (["model", "convert", "c.pt", "--out", "o", "--base", "3", "--numbers", "p10"], "--base does not apply to"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], reason: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert reason in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["--nothing"],
        ["predict", "--nothing"],
        ["predict", "a.py", "--format", "xml"],
        ["predict", "a.py", "--threads", "-1"],
        ["serve", "more"],
        ["data", "nothing"],
        ["data", "build", "--labels", "l.jsonl", "--out", "o.parquet"],
        ["data", "build", "nothing", "--labels", "l.jsonl", "--out", "o.parquet"],
        ["train", "--data", "x.parquet"],
        ["eval", "--data"],
        ["eval", "--data", "x.parquet", "--baselines", "more"],
    ],
)
def test_a_usage_error_is_one_line(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert re.fullmatch(r"rlm-lsp: error: .+\n", result.stderr)


@pytest.mark.parametrize("kind", ["functions", "leethub", "boj", "atcoder", "triton", "code-regression"])
def test_data_sets_from_labels_need_them(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    result = run("data", "build", kind, "--out", tmp_path / "o.parquet")
    assert result.exit_code == 2
    assert result.stderr == f"rlm-lsp: error: --labels is missing; name the labels of {kind}\n"
    assert not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("kind", ["functions", "triton", "code-regression", "texts"])
def test_only_labels_of_judges_have_languages_to_choose(kind: str) -> None:
    result = run("data", "build", kind, "--out", "o.parquet", "--languages", "python")
    assert result.exit_code == 2
    assert "--languages: only leethub, boj, atcoder have several languages" in result.stderr


def test_texts_without_a_wheel_are_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    result = run("data", "build", "texts", "--source-cache", tmp_path, "--out", tmp_path / "o.parquet")
    assert result.exit_code == 2
    assert result.stderr.startswith("rlm-lsp: error: no wheel in the source cache")


def test_train_takes_data_sets_and_texts() -> None:
    arguments = ["--data", "a", "b", "--texts", "t", "--texts", "u", "--config", "c", "--out", "o"]
    given = train.command.make_context("train", arguments).params
    assert (given["data"], given["texts"]) == ((Path("a"), Path("b")), (Path("t"), Path("u")))


@pytest.mark.parametrize("group", [[], ["data"]])
def test_a_group_without_a_command_shows_its_help(group: list[str]) -> None:
    result = run(*group)
    assert result.exit_code == 2
    assert result.stderr == run(*group, "--help").stdout


@pytest.mark.parametrize(
    "data",
    [
        ["--data", "a", "--data", "b", "--data", "c"],
        ["--data", "a", "b", "c"],
        ["--data=a", "b", "--split", "val", "--data", "c"],
    ],
)
def test_data_takes_several_files_and_may_be_repeated(data: list[str]) -> None:
    given = evaluation.command.make_context("eval", [*data, "--baselines"]).params
    assert given["data"] == (Path("a"), Path("b"), Path("c"))
    assert given["baselines"]


@pytest.mark.parametrize(
    "command",
    [
        ["train", "--data", "x.parquet", "--config", "c.toml", "--out", "o"],
        ["export", "--model", "m", "--out", "o"],
        ["eval", "--data", "x.parquet"],
        ["data", "build", "leethub", "--labels", "l.jsonl", "--out", "o.parquet"],
    ],
)
def test_a_missing_extra_is_one_line_with_the_way_out(command: list[str]) -> None:
    code = (
        "import sys; from rlm_lsp.cli.options import EXTRAS; sys.modules.update(dict.fromkeys(EXTRAS));"
        "from rlm_lsp.cli.app import main; main()"
    )
    found = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert re.fullmatch(r"rlm-lsp: error: \w+ is not installed; run: pip install '\.\[train\]'\n", found.stderr)


def test_a_mistyped_command_is_named() -> None:
    result = CliRunner().invoke(app, ["predit", "."])
    assert result.exit_code == 2
    assert result.stderr == "rlm-lsp: error: there is no command 'predit'; did you mean: rlm-lsp predict\n"
    assert "No such command 'zzz'" in CliRunner().invoke(app, ["zzz"]).stderr
