"""The kinds of results that are read from typeshed: of a module that has not changed in years."""

from __future__ import annotations

import pytest

pytest.importorskip("mypy")

from rlm_core.cost.library.result_kinds import FILE

from tools.unit_costs.result_kinds import result_kinds, stub_modules


def test_modules_are_public_and_are_still_in_python() -> None:
    names = stub_modules()
    assert {"os.path", "zipfile", "xml.etree.ElementTree"} <= set(names)
    assert not {"_thread", "imp", "asyncore", "encodings.utf_8", "annotationlib"} & set(names)


def test_what_the_annotations_state_of_a_module_is_what_the_file_has() -> None:
    lines = result_kinds(["fractions", "zipfile", "logging.handlers"]).splitlines()
    assert [line for line in lines if line.startswith(("module zipfile:", "fractions.Fraction("))] == [
        line
        for line in FILE.read_text(encoding="utf-8").splitlines()
        if line.startswith(("module zipfile:", "fractions.Fraction("))
    ]
    stated = dict(line.split(":", 1) for line in lines if not line.startswith("#"))
    archive = dict(group.split(maxsplit=1) for group in stated["zipfile.ZipFile"].split(";"))
    assert archive["list"].split() == [".filelist", "infolist", "namelist"]
    assert archive["zipfile.ZipInfo"] == "getinfo"
    # An archive that is opened may be of either kind, and a name is a text or None.
    assert "open" not in stated["zipfile.ZipFile"].split()
    # Tables state what a logger does; the bases of a handler are those of its class.
    assert "logging.handlers.RotatingFileHandler(logging.handlers.BaseRotatingHandler)" in stated
