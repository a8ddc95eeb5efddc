"""``rlm-lsp check``: exit statuses, streams and options, with a predictor of tests; then with the model that ships."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner, Result
from rlm_core import Query, load
from rlm_core.inference.anchoring import AnchoredPredictor
from rlm_core.measurement import source_hash
from rlm_core.measurement.committed import export_committed
from rlm_core.queries.analysis import Analyser
from rlm_core.source.parsed import ParsedSource
from rlm_lsp.cli.app import app
from rlm_lsp.findings.checked_files import find_files
from rlm_lsp.findings.file_reader import FileReader
from rlm_lsp.findings.formats import FORMATS
from rlm_lsp.sources import SourceFile

from tests.notebooks import notebook_text
from tests.paths import REPOSITORY
from tests.rlm_core.measurement.test_store import measurement
from tests.rlm_lsp.findings.sarif_schema import SCHEMA
from tests.rlm_lsp.findings.support import LengthPredictor, commit, git, write

pytestmark = pytest.mark.timeout(120)

EXAMPLES = REPOSITORY / "examples"
# 31 characters: 31 µs.
FUNCTION = "def f(n):\n    return sum(n) + 1\n"
LONGER = "def f(n):\n    return sum(n) + sum(n) + sum(n) + sum(n) + 1\n"


def check(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def finding_lines(result: Result) -> list[str]:
    """The findings of a text, each on one line."""
    assert all(len(line) < 100 for line in result.stdout.splitlines())
    return result.stdout.replace("\n    ", " ").splitlines()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository as the working folder, and a predictor that knows lengths."""
    commit(tmp_path, {"pyproject.toml": '[tool.rlm-lsp.budgets]\n"hot/**" = "latency < 25 µs"\n'})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlm_core.loading.load_corrected", lambda model, threads, stored: LengthPredictor())
    return tmp_path


def test_a_finding_in_a_notebook_names_its_cell_in_every_format(project: Path) -> None:
    write(project, {"hot/a.ipynb": notebook_text("x = 1\n", f"\n{LONGER}")})
    (project / "hot" / "bad.ipynb").write_text("{")
    text = check(".")
    assert text.stdout.startswith("hot/a.ipynb:cell 3:2:5: ")
    assert "not checked: hot/bad.ipynb: is not a Jupyter notebook" in text.stderr
    [row] = json.loads(check(".", "--format", "json").stdout)
    assert (row["file"], row["cell"], row["line"], row["column"]) == ("hot/a.ipynb", 3, 2, 5)
    # Lines of a cell are not those of the file, which these formats show.
    [result] = json.loads(check(".", "--format", "sarif").stdout)["runs"][0]["results"]
    assert result["message"]["text"].startswith("cell 3, line 2: ")
    assert list(result["locations"][0]["physicalLocation"]) == ["artifactLocation"]
    assert re.match(r"::\w+ file=hot/a\.ipynb,line=1,.*::cell 3, line 2: ", check(".", "--format", "github").stdout)
    assert "hot/a.ipynb:cell 3:2" in check(".", "--format", "markdown").stdout
    assert "hot/a.ipynb:cell 3:2:5" in check(".", "--format", "junit").stdout


def test_functions_of_a_notebook_are_compared_with_a_revision(project: Path) -> None:
    same = "def same(n):\n    return sum(n) + 1\n"
    before, after = notebook_text(same, FUNCTION), notebook_text("x = 1\n", same, LONGER)
    commit(project, {"hot/a.ipynb": before})
    write(project, {"hot/a.ipynb": after})
    findings = json.loads(check(".", "--diff", "HEAD", "--format", "json").stdout)
    assert {(row["qualname"], row["cell"]) for row in findings} == {("f", 4)}


def test_a_link_out_of_a_walked_folder_is_noted_and_not_checked(project: Path) -> None:
    outside = project.parent / f"{project.name}-outside.py"
    outside.write_text(FUNCTION)
    write(project, {"hot/a.py": FUNCTION})
    (project / "hot" / "link.py").symlink_to(outside)
    result = check(".")
    assert "1 file" in result.stderr
    assert "link.py" not in result.stdout
    assert "not checked: hot/link.py: outside" in result.stderr


def test_findings_are_lines_and_the_status_is_1(project: Path) -> None:
    write(project, {"hot/a.py": LONGER, "b.py": FUNCTION})
    result = check()
    assert result.exit_code == 1
    [line] = finding_lines(result)
    assert line.startswith("hot/a.py:1:5: warning: latency of f is predicted to exceed its budget of 25 µs (9")
    assert line.endswith(" (budget at pyproject.toml:2) [over-budget]")
    assert result.stderr.startswith("rlm-lsp: 2 files, 1 unit with a budget; 1 finding (1 warning); ")


@pytest.mark.parametrize(("fail_on", "status"), [("information", 1), ("warning", 1), ("error", 0)])
def test_the_status_is_that_of_the_mildest_finding_that_counts(project: Path, fail_on: str, status: int) -> None:
    write(project, {"hot/a.py": LONGER})
    result = check("--fail-on", fail_on)
    assert result.exit_code == status
    assert len(finding_lines(result)) == 1


def test_without_findings_the_status_is_0_and_without_budgets_a_note_says_so(project: Path) -> None:
    write(project, {"hot/a.py": "def f(): pass\n"})
    result = check()
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no budget found" not in result.stderr
    write(project, {"cold.py": FUNCTION})
    assert "no budget found; write `rlm: latency < 1 ms` above a function" in check("cold.py").stderr


def test_a_confidence_takes_the_place_of_the_setting(project: Path) -> None:
    write(project, {"hot/a.py": FUNCTION})
    assert check().stdout == ""
    result = check("--confidence", "0.6", "--fail-on", "information")
    assert result.exit_code == 1
    assert ": information: " in result.stdout


def test_excluded_files_are_left_out(project: Path) -> None:
    write(project, {"hot/a.py": LONGER, "hot/b.py": LONGER})
    result = check("--exclude", "hot/a.py", "--exclude", "/b.py")
    assert [line.partition(":")[0] for line in finding_lines(result)] == ["hot/b.py"]


def test_a_difference_reports_regressions_that_fail_only_where_the_user_asks(project: Path) -> None:
    commit(project, {"a.py": FUNCTION})
    write(project, {"a.py": LONGER})
    result = check("--diff", "HEAD")
    assert result.exit_code == 0
    assert [line.rpartition("[")[2] for line in finding_lines(result)] == ["regression]"]
    assert (
        "1 compared with HEAD: 1 slower, 0 faster, 0 unchanged or unknown; 1 finding (1 information)" in result.stderr
    )
    assert check("--diff", "HEAD", "--fail-on", "information").exit_code == 1
    assert check().exit_code == 0


def test_a_baseline_hides_what_it_knows(project: Path) -> None:
    write(project, {"hot/a.py": LONGER})
    updated = check("--baseline", "known.json", "--update-baseline")
    assert (updated.exit_code, updated.stdout) == (0, "")
    assert "known.json: 1 known finding written" in updated.stderr
    write(project, {"hot/a.py": "import os\n\n\n" + LONGER})
    known = check("--baseline", "known.json")
    assert (known.exit_code, known.stdout) == (0, "")
    assert "0 findings; 1 known" in known.stderr
    write(project, {"hot/b.py": LONGER})
    new = check("--baseline", "known.json")
    assert new.exit_code == 1
    assert [line.partition(":")[0] for line in finding_lines(new)] == ["hot/b.py"]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--update-baseline"], "--update-baseline needs a file; add --baseline FILE"),
        (["--update-baseline", "--baseline", "b.json", "--diff", "HEAD"], "would drop all other findings"),
        (["--baseline", "b.json"], "b.json: no such baseline"),
        (["--diff", "v9"], "has no revision 'v9'"),
        (["--output", "no/such/folder"], "no/such/folder: cannot be written"),
        (["missing.py"], "missing.py: no such file; check the path"),
        (["--confidence", "7"], "Invalid value for '--confidence'"),
        (["--format", "xml"], "Invalid value for '--format'"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(project: Path, arguments: list[str], what: str) -> None:
    write(project, {"hot/a.py": LONGER})
    result = check(*arguments)
    assert result.exit_code == 2
    [line] = [line for line in result.stderr.splitlines() if line.startswith("rlm-lsp: error: ")]
    assert what in line
    assert "Traceback" not in result.output


def test_a_model_that_cannot_be_loaded_writes_no_half_report(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(project)
    write(project, {"hot/a.py": LONGER})
    result = check("--format", "sarif", "--output", "out.sarif", "--model", "nothing")
    assert result.exit_code == 2
    assert result.stderr.startswith("rlm-lsp: error: nothing")
    assert not (project / "out.sarif").exists()


def test_reports_go_to_a_file(project: Path) -> None:
    write(project, {"hot/a.py": LONGER})
    for form in FORMATS:
        result = check("--format", form, "--output", f"out.{form}")
        assert (result.exit_code, result.stdout) == (1, "")
        assert check("--format", form).stdout == (project / f"out.{form}").read_text(encoding="utf-8")
    [row] = json.loads((project / "out.json").read_text())
    assert (row["file"], row["code"], row["metric"], row["unit"]) == ("hot/a.py", "over-budget", "latency", "s")
    assert row["median"] == pytest.approx(len(LONGER.rstrip()) * 1e-6)
    assert row["low"] < row["median"] < row["high"]
    jsonschema.validate(json.loads((project / "out.sarif").read_text()), SCHEMA)
    assert (
        (project / "out.github").read_text().startswith("::warning file=hot/a.py,line=1,endLine=1,col=5,endColumn=5,")
    )
    assert ElementTree.parse(project / "out.junit").getroot().get("failures") == "1"


def test_what_git_ignores_is_not_checked(project: Path) -> None:
    write(project, {"hot/a.py": LONGER, ".gitignore": "hot/\n"})
    assert check().stdout == ""
    git(project, "add", "--force", "hot/a.py")
    assert check().exit_code == 1


# From here on with the model that ships.


def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budgets: str) -> None:
    monkeypatch.chdir(tmp_path)
    for path in EXAMPLES.iterdir():
        write(tmp_path, {path.name: path.read_bytes()})
    write(tmp_path, {"rlm-lsp.toml": f'[budgets]\n"*" = "{budgets}"\n'})


def test_shipped_model_finds_impossible_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped(tmp_path, monkeypatch, "latency < 1 ns")
    result = check("--format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    jsonschema.validate(log, SCHEMA)
    results = log["runs"][0]["results"]
    # One example waits for the network, in a loop: its budget is about computing alone.
    assert {entry["level"] for entry in results if not entry["ruleId"].startswith("wait")} == {"error"}
    assert len(results) > 10
    files = {entry["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for entry in results}
    assert {"functions.py", "Solution.java"} <= files


def test_shipped_model_finds_nothing_over_generous_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped(tmp_path, monkeypatch, "latency < 1000000 s, memory < 1000000 GiB")
    (tmp_path / "orders.py").unlink()  # it waits for the network, which no budget includes
    result = check()
    assert (result.exit_code, result.stdout) == (0, "")


def test_shipped_model_reports_the_regressions_that_it_is_sure_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = "def total():\n    result = 0\n    for n in range(1_000):\n        result += n\n    return result\n"
    config = "change-ratio = 1.01\nchange-confidence = 0.5\n[severity]\ninformation = 0.5\n"
    commit(tmp_path, {"a.py": before, "rlm-lsp.toml": config})
    write(tmp_path, {"a.py": before.replace("    result = 0\n", "    # from nothing\n    result = 0\n")})
    assert check("--diff", "HEAD").stdout == ""
    after = before.replace("1_000", "100_000")
    write(tmp_path, {"a.py": after})
    rows = json.loads(check("--diff", "HEAD", "--format", "json").stdout)
    [(earlier,), (later,)] = (Analyser().analyse(ParsedSource(text.encode(), "python")) for text in (before, after))
    ratios = load().compare([(earlier.code, later.code)], [[Query("latency")]])
    assert ratios is not None
    [[latency]] = ratios
    assert latency.above(1.01) >= 0.5
    [row] = rows
    assert (row["code"], row["metric"], row["ratio"]) == ("regression", "latency", pytest.approx(latency.ratio))
    # What the input decides has no finding, however clear it seems.
    write(tmp_path, {"a.py": after.replace("total():", "total(values):").replace("range(100_000)", "values")})
    assert json.loads(check("--diff", "HEAD", "--format", "json").stdout) == []


def test_a_wait_in_a_loop_is_reported_with_its_line_and_taken_by_a_baseline(project: Path) -> None:
    commit(project, {"a.py": "import requests\ndef f(u):\n    return u\n"})
    write(project, {"a.py": "import requests\ndef f(us):\n    return [requests.get(u) for u in us]\n"})
    result = check("--diff", "HEAD", "--format", "json")
    [row] = [row for row in json.loads(result.stdout) if row["code"].startswith("wait")]
    assert (row["code"], row["severity"], row["docs"]) == ("wait-in-loop", "information", "docs/ci.md#wait-in-loop")
    assert row["message"].startswith("f waits for the network for each item of us (line 3, requests.get): ")
    assert [(wait["kind"], wait["line"], wait["call"]) for wait in row["waits"]] == [("network", 3, "requests.get")]
    fingerprints = {"version": 1, "findings": [{"fingerprint": row["fingerprint"]}]}
    (project / "known.json").write_text(json.dumps(fingerprints))
    known = check("--diff", "HEAD", "--format", "json", "--baseline", "known.json")
    assert "wait-in-loop" not in {row["code"] for row in json.loads(known.stdout)}


def test_a_budget_that_does_not_cover_a_wait_is_reported(project: Path) -> None:
    write(project, {"a.py": "import requests\n# rlm: latency < 1 s\ndef f(u):\n    return requests.get(u)\n"})
    result = check("a.py")
    assert result.exit_code == 0
    assert finding_lines(result) == [
        "a.py:3:5: information: the budget of f, 1 s, covers computing only:"
        " it does not include the wait for the network (line 4) [wait]"
    ]


MEASURED = "def f(n):\n    return n\n"


def test_a_budget_is_judged_on_what_was_measured_and_committed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AnchoredPredictor(LengthPredictor())
    monkeypatch.setattr("rlm_core.loading.load_corrected", lambda model_name, threads, stored: model)
    write(project, {"hot/slow.py": MEASURED, "hot/fast.py": LONGER})
    its = measurement(source_hash=source_hash(LONGER), text=LONGER, path=str(project / "hot" / "fast.py"))
    slow = "def f(n):\n    return n\n"
    other = measurement(
        source_hash=source_hash(slow),
        text=slow,
        path=str(project / "hot" / "slow.py"),
        low=90e-6,
        median=100e-6,
        high=110e-6,
    )
    export_committed([its, other], project / ".rlm", project, pytest.fail)
    [line] = finding_lines(check("hot"))
    assert line.startswith(
        "hot/slow.py:1:5: error: latency of f exceeds its budget of 25 µs (over 99 % probability if measured again):"
        " measured 100 µs (90–110 µs) on a processor, "
    )
    [row] = json.loads(check("hot", "--format", "json").stdout)
    assert (row["source"], row["median"], row["committed"]) == ("measured", 1e-4, True)
    # The other one passes because of what was committed: a reviewer must see it.
    said = "2 budgets judged by committed measurements"
    assert f"; {said}; " in check("hot").stderr
    assert check("hot", "--format", "github").stdout.endswith(f"::notice::{said}\n")
    assert check("hot", "--format", "markdown").stdout.endswith(f"\n\n{said}.\n")
    assert said not in check("hot", "--no-measured").stderr
    # The text alone says the opposite.
    [line] = finding_lines(check("hot", "--no-measured"))
    assert line.startswith("hot/fast.py:1:5: warning: latency of f is predicted to exceed its budget")
    # An edit carries the measurement over: this one makes the text twice as long.
    write(project, {"hot/slow.py": "def f(n):\n    return n + n + n + n + n + n + n\n"})
    [row] = json.loads(check("hot", "--format", "json").stdout)
    assert row["source"] == "anchored"
    assert row["median"] == pytest.approx(1e-4 * 43 / 22, rel=0.05)


def test_a_budget_glob_that_matches_no_file_is_reported_in_one_line(project: Path) -> None:
    budgets = "".join(f'"{glob}" = "latency < 1 s"\n' for glob in ("hot/**", "cold/*.py", "hto/**"))
    config = f"[tool.rlm-lsp.budgets]\n{budgets}"
    write(project, {"pyproject.toml": config, "hot/a.py": FUNCTION, "cold/b.py": FUNCTION, "c.py": FUNCTION})
    for paths in ((), ("hot/a.py",), ("c.py",)):
        notes = [line for line in check(*paths).stderr.splitlines() if "no file matches" in line]
        assert notes == [
            "rlm-lsp: pyproject.toml: the budgets of 'hto/**' have no effect: no file matches; check the glob"
        ]


def test_the_same_input_gives_the_same_bytes_in_any_order_and_process(tmp_path: Path) -> None:
    texts = {f"{name}.py": f"def {name}(xs):\n    return [x for x in xs]\n" for name in "abc"}
    commit(tmp_path, {**texts, "rlm-lsp.toml": "change-confidence = 0.5\n"})
    write(
        tmp_path,
        {name: text.replace("x for x in xs", "x for x in xs for y in xs for z in xs") for name, text in texts.items()},
    )
    write(tmp_path, {"d.py": "# rlm: memory < 1 B\ndef d(n):\n    return list(range(n))\n"})
    names = sorted([*texts, "d.py"])
    outputs = set()
    for seed, threads, paths in (("1", "1", names), ("2", "2", names[::-1]), ("3", "2", ["."])):
        command = [sys.executable, "-m", "rlm_lsp", "check", "--diff", "HEAD", "--format", "json", "--threads", threads]
        run = subprocess.run(
            [*command, *paths],
            cwd=tmp_path,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=False,
        )
        assert run.returncode == 1, run.stderr
        outputs.add(run.stdout)
    [output] = outputs
    found = {(row["file"], row["code"]) for row in json.loads(output)}
    assert ("d.py", "over-budget") in found
    assert any(code in ("regression", "growth") for _, code in found)


def test_a_wait_whose_length_the_settings_give_is_part_of_the_budget(project: Path) -> None:
    write(project, {"hot/a.py": "def f(session, user):\n    session.refresh(user)\n"})
    assert "wait" in [row["code"] for row in json.loads(check(".", "--format", "json").stdout)]
    write(project, {"rlm-lsp.toml": '[waits]\ndatabase = "1 ms"\n[budgets]\n"hot/**" = "latency < 25 µs"\n'})
    assert all(row["code"] != "wait" for row in json.loads(check(".", "--format", "json").stdout))


def test_both_texts_of_a_comparison_have_waits_of_the_same_length(project: Path) -> None:
    once = "def f(session, user):\n    session.refresh(user)\n"
    commit(project, {"rlm-lsp.toml": '[waits]\ndatabase = "1 ms"\n', "a.py": once})
    write(project, {"a.py": once + "    session.commit()\n"})
    reader = FileReader(find_files([project], diff="HEAD"))
    [text] = reader.read(SourceFile(project / "a.py")).texts
    [case] = text.cases
    assert case.before is not None
    assert case.before.work is not None
    assert [wait.each for wait in case.before.work.waits] == [0.001]
