"""The forms of a report: each is what the programs that read it expect."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rlm_core.types import GrowthEstimate, Span, Wait, WaitKind, WorkFacts
from rlm_lsp.findings.finding import CODES, SEVERITIES, Finding
from rlm_lsp.findings.formats import FORMATS, WRITERS, Format, LocatedFinding, Location, TextRegion, region_of
from rlm_lsp.history.comparison import GrowthRise
from rlm_lsp.rendering.escaping import printable
from rlm_lsp.settings.model import Severity

from .sarif_schema import SCHEMA

SPAN = Span(0, 0, 0, 1, 0, 1)
REGION = TextRegion(3, 5, 3, 9)
# What JSON, XML, URIs and workflow commands have to escape, and what XML cannot say at all.
_TEXTS = st.text("aµ😀 \"'<>&%:,;=]\n\r\t\0\x0b\x1b\x9b\u202e\ufffe\ud800", max_size=20)
_NAMES = st.text('aµ😀 /.%:,=#?&<"\n\x1b\udcff', min_size=1, max_size=12).filter(lambda name: not name.startswith("/"))


def location(name: str = "src/a b.py", region: TextRegion = REGION) -> Location:
    return Location(name, name, region)


def located(**changes: Any) -> LocatedFinding:
    fields: dict[str, Any] = {
        "code": "over-budget",
        "severity": "warning",
        "message": "50 % over: it is\nslow",
        "span": SPAN,
        "qualname": "A.f",
        "metric": "latency",
        "budget": "latency < 1 ms",
        "probability": 0.93,
    }
    return LocatedFinding(
        Finding(**fields | changes), location(), (("the budget", location("pyproject.toml")),), "0" * 32
    )


@st.composite
def anything(draw: st.DrawFn) -> LocatedFinding:
    lines = sorted(draw(st.tuples(st.integers(1, 9), st.integers(1, 9))))
    columns = sorted(draw(st.tuples(st.integers(1, 9), st.integers(1, 9))))
    where = location(draw(_NAMES), TextRegion(lines[0], columns[0], lines[1], columns[1]))
    finding = Finding(
        draw(st.sampled_from(CODES)),
        draw(st.sampled_from(SEVERITIES)),
        draw(_TEXTS),
        SPAN,
        draw(_TEXTS),
        draw(st.none() | st.just("memory")),
        draw(_TEXTS),
        draw(st.none() | st.floats(0, 1)),
    )
    others = draw(st.lists(st.tuples(_TEXTS, st.just(where)), max_size=2))
    return LocatedFinding(finding, where, tuple(others), "f" * 32)


def written(form: Format, found: Sequence[LocatedFinding], fail_on: Severity = "warning") -> str:
    return "".join(WRITERS[form](iter(found), fail_on))


def sarif(found: Sequence[LocatedFinding]) -> dict[str, Any]:
    log: dict[str, Any] = json.loads(written("sarif", found))
    jsonschema.validate(log, SCHEMA, jsonschema.Draft202012Validator)
    return log


@settings(max_examples=30)
@given(st.lists(anything(), max_size=4))
def test_sarif_is_valid_whatever_is_found(found: list[LocatedFinding]) -> None:
    [run] = sarif(found)["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [result["ruleId"] for result in run["results"]] == [entry.finding.code for entry in found]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]]
    assert [unquote(uri, errors="surrogateescape") for uri in uris] == [entry.location.name for entry in found]


def test_the_schema_refuses_what_the_standard_does_not_know() -> None:
    log = sarif([located()])
    changes: list[dict[str, Any]] = [{"level": "information"}, {"rule": "x"}, {"locations": {}}, {"message": "m"}]
    for change in changes:
        log["runs"][0]["results"][0] |= change
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(log, SCHEMA)
        log = sarif([located()])


def test_sarif_says_where_what_and_how_sure() -> None:
    [result] = sarif([located()])["runs"][0]["results"]
    [location] = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a%20b.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "A.f"}]
    assert result["properties"] == {"metric": "latency", "budget": "latency < 1 ms", "probability": 0.93}
    assert result["relatedLocations"][0]["message"]["text"] == "the budget"
    levels = [sarif([located(severity=name)])["runs"][0]["results"][0]["level"] for name in SEVERITIES]
    assert levels == ["note", "warning", "error"]


def test_a_file_outside_the_project_has_a_whole_uri(tmp_path: Path) -> None:
    path = tmp_path / "a b.py"
    entry = LocatedFinding(located().finding, location(str(path)), (), "0" * 32)
    [result] = sarif([entry])["runs"][0]["results"]
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert urlsplit(artifact["uri"]).scheme == "file"
    assert "uriBaseId" not in artifact


def test_text_has_a_line_for_each_finding_and_names_a_budget_elsewhere() -> None:
    assert written("text", [located()]) == (
        "src/a b.py:3:5: warning: 50 % over: it is slow (budget at pyproject.toml:3) [over-budget]\n"
    )


@settings(max_examples=30)
@given(st.lists(anything(), max_size=4))
def test_json_is_an_array_of_objects(found: list[LocatedFinding]) -> None:
    rows = json.loads(written("json", found))
    assert [row["message"] for row in rows] == [entry.finding.message for entry in found]
    assert [row["line"] for row in rows] == [entry.location.region.line for entry in found]


def test_json_and_sarif_have_the_growth_and_the_facts() -> None:
    rise = GrowthRise("latency", GrowthEstimate("n", 0.9), GrowthEstimate("n^2", 0.8, ("xs",)))
    work = WorkFacts(waits=(Wait(WaitKind.NETWORK, 1, "get"),), endless=2)
    entry = located(code="growth", rise=rise, work=work, first_line=9)
    [row] = json.loads(written("json", [entry]))
    assert row["growth_before"] == {"class": "n", "probability": 0.9, "sizes": [], "in_worst_case": False}
    assert row["growth"] == {"class": "n^2", "probability": 0.8, "sizes": ["xs"], "in_worst_case": False}
    assert (row["waits"][0]["line"], row["endless"], row["causes"]) == (11, 12, [])
    properties = sarif([entry])["runs"][0]["results"][0]["properties"]
    assert {name: properties[name] for name in ("growth", "growth_before", "waits", "endless")} == {
        name: row[name] for name in ("growth", "growth_before", "waits", "endless")
    }
    assert "causes" not in properties


@settings(max_examples=30)
@given(st.lists(anything(), max_size=4))
def test_github_gets_one_command_a_line(found: list[LocatedFinding]) -> None:
    lines = written("github", found).split("\n")
    assert len(lines) == len(found) + 1
    for line, entry in zip(lines, found, strict=False):
        command, _, message = line.removeprefix("::").partition("::")
        kind, _, properties = command.partition(" ")
        assert kind == {"information": "notice"}.get(entry.finding.severity, entry.finding.severity)
        read = dict(part.split("=", 1) for part in properties.split(","))
        assert unescaped(read["file"]) == shown(entry.location.name)
        assert ("col" in read) == (entry.location.region.line == entry.location.region.end_line)
        assert unescaped(message) == shown(entry.finding.message)


def shown(text: str) -> str:
    """What GitHub's format keeps of a text: line ends, but no other character that controls a terminal."""
    return "".join(part if part in "\r\n" else printable(part) for part in re.split(r"([\r\n])", text))


@settings(max_examples=30)
@given(st.lists(anything(), max_size=4), st.sampled_from(FORMATS))
def test_no_format_has_a_character_that_controls_a_terminal(found: list[LocatedFinding], form: Format) -> None:
    assert not [c for c in written(form, found) if unicodedata.category(c) == "Cc" and c not in "\t\r\n"]


def unescaped(text: str) -> str:
    for code, character in (("%3A", ":"), ("%2C", ","), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, character)
    return text


@settings(max_examples=30)
@given(st.lists(anything(), max_size=4), st.sampled_from(SEVERITIES))
def test_junit_counts_what_fails(found: list[LocatedFinding], fail_on: Severity) -> None:
    root = ElementTree.fromstring(written("junit", found, fail_on))
    [suite] = root
    failing = [entry for entry in found if SEVERITIES.index(entry.finding.severity) >= SEVERITIES.index(fail_on)]
    assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure")) == len(failing)
    assert int(suite.get("tests", "")) == len(suite) == max(len(found), 1)


@settings(max_examples=30)
@given(st.lists(anything(), min_size=1, max_size=4))
def test_markdown_has_a_row_for_each_finding_and_shows_texts_as_they_are(found: list[LocatedFinding]) -> None:
    text = written("markdown", found)
    assert text.startswith("<!-- rlm-lsp -->\n")
    page = MarkdownIt("gfm-like", {"linkify": False}).render(text.partition("\n")[2])
    rows = re.findall(r"<tr>\n<td>(.*)</td>\n<td>(.*)</td>\n<td>(.*)</td>\n</tr>", page)
    assert [severity for severity, _, _ in rows] == [entry.finding.severity for entry in found]
    assert not re.search("<(a|img|em|strong) ?", "".join(message for _, _, message in rows))


def test_markdown_without_findings_says_so() -> None:
    assert written("markdown", []) == "<!-- rlm-lsp -->\n### Predicted costs\n\nNo findings.\n"


def test_junit_without_findings_has_one_case_that_passed() -> None:
    [case] = ElementTree.fromstring(written("junit", [])).iter("testcase")
    assert list(case) == []


@pytest.mark.parametrize("form", FORMATS)
def test_writers_take_findings_one_by_one(form: Format) -> None:
    taken: list[int] = []

    def endless() -> Any:
        for number in range(3):
            taken.append(number)
            yield located()

    pieces = WRITERS[form](endless(), "error")
    first = next(pieces)
    assert first
    assert len(taken) == (3 if form == "junit" else 0 if form == "sarif" else 1)


@given(st.text("aµ😀\t", max_size=9), st.text("xµ😀", min_size=1, max_size=9))
def test_columns_count_characters(before: str, covered: str) -> None:
    source = f"\n{before}{covered}\n".encode()
    start, end = 1 + len(before.encode()), 1 + len((before + covered).encode())
    region = region_of(source, Span(1, start - 1, 1, end - 1, start, end))
    assert (region.line, region.column, region.end_column) == (2, len(before) + 1, len(before + covered) + 1)
