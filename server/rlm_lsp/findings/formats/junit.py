"""JUnit XML: a test case a finding, failed where the finding fails the check; one that passed when there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from rlm_lsp.findings.finding import Severity
from rlm_lsp.rendering.console import PROGRAM

from .report import Reported, fails

# What XML 1.0 does not allow, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(found: Iterable[Reported], fail_on: Severity) -> Iterator[str]:
    """A whole document; the counts stand at its head, so it is written when all findings are known."""
    cases: list[str] = []
    failed = 0
    for reported in found:
        failed += fails(reported.finding, fail_on)
        cases.append(_case(reported, fail_on))
    if not cases:
        cases.append(f'  <testcase classname="{PROGRAM}" name="check" time="0"/>\n')
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0" skipped="0" time="0"'
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield f'<testsuites name="{PROGRAM}" {counts}>\n <testsuite name="{PROGRAM} check" {counts}>\n'
    yield from cases
    yield " </testsuite>\n</testsuites>\n"


def _case(reported: Reported, fail_on: Severity) -> str:
    finding, place = reported.finding, reported.place
    name = " ".join(word for word in (finding.qualname, finding.metric, finding.code) if word)
    where = f"{place.name}:{place.region.line}:{place.region.column}"
    text = f"{where}: {finding.severity}: {finding.message}"
    start = f"  <testcase classname={_attribute(place.name)} name={_attribute(name)} file={_attribute(place.name)}"
    start += f' line="{place.region.line}" time="0">\n'
    if fails(finding, fail_on):
        kind, message = _attribute(finding.code), _attribute(finding.message)
        return f"{start}   <failure type={kind} message={message}>{_text(text)}</failure>\n  </testcase>\n"
    return f"{start}   <system-out>{_text(text)}</system-out>\n  </testcase>\n"


def _text(value: str) -> str:
    return escape(_FORBIDDEN.sub("\ufffd", value))


def _attribute(value: str) -> str:
    return quoteattr(_FORBIDDEN.sub("\ufffd", value))
