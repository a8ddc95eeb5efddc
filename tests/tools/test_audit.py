"""``tools/audit.sh``: vulnerabilities are listed; a registry that cannot answer is one line and another exit status."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.paths import REPOSITORY

NO_SERVICE = """npm warn audit 405 Method Not Allowed - POST https://registry.example/-/npm/v1/security/advisories/bulk

npm error audit endpoint returned an error
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
"""
UNREACHABLE = """Traceback (most recent call last):
  File "connection.py", line 198, in _new_conn
requests.exceptions.ConnectionError: HTTPSConnectionPool(host='pypi.example', port=443): Max retries exceeded
"""
NOT_FOUND = (
    "WARNING:pip_audit: hash\nERROR:pip_audit._cli:urllib3: Dependency not found on PyPI and could not be audited\n"
)
FOUND = "Found 1 known vulnerability in 1 package\nName Version ID\nurllib3 1.0 CVE-1\n"
NPM_FOUND = "# npm audit report\n\nws  8.0.0\nSeverity: high\n\n1 high severity vulnerability\n"


def audit(report: str, status: int) -> subprocess.CompletedProcess[str]:
    tool = ["sh", "-c", f"printf %s {shlex.quote(report)}; exit {status}"]
    command = [str(REPOSITORY / "tools" / "audit.sh"), "the tool", *tool]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (NO_SERVICE, "405 Method Not Allowed"),
        (UNREACHABLE, "ConnectionError"),
        (NOT_FOUND, "could not be audited"),
        ("", "no reason given"),
    ],
)
def test_a_registry_without_an_audit_service_is_one_line(report: str, reason: str) -> None:
    done = audit(report, 1)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("the tool: nothing was looked up: the registry has no audit service or cannot be reached (")
    assert reason in line


@pytest.mark.parametrize("report", [FOUND, NPM_FOUND])
def test_vulnerabilities_are_listed(report: str) -> None:
    done = audit(report, 1)
    assert (done.returncode, done.stdout, done.stderr) == (1, report, "")


def test_nothing_found_is_success() -> None:
    done = audit("found 0 vulnerabilities\n", 0)
    assert (done.returncode, done.stdout) == (0, "found 0 vulnerabilities\n")
