"""The tables of languages: those of files, and those of data sets alone."""

from __future__ import annotations

import numpy as np
import pytest
from rlm_core.errors import SourceError
from rlm_core.source.canonical import canonical
from rlm_core.source.languages import LANGUAGES, TEXT_ONLY, by_name, by_path
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import find_units
from rlm_core.training.student.pretrain import synthetic_targets

pytestmark = pytest.mark.extras
SOURCE = "module Main where\n\nmain = do\n    x <- loc(y)\n    print x\n"


@pytest.mark.parametrize("name", TEXT_ONLY)
def test_a_language_of_data_sets_alone_has_texts_but_no_units(name: str) -> None:
    assert name not in LANGUAGES
    assert by_name(name).suffixes == ()
    assert find_units(ParsedSource(SOURCE.encode(), name)) == []
    text = canonical(SOURCE, name)
    assert text == "module Main where\nmain = do\n\tx <- loc(y)\n\tprint x"
    assert canonical(text, name) == text
    # Of its syntax nothing is known, so nothing is learned from it.
    assert np.isnan(synthetic_targets([(text, name)])).all()


@pytest.mark.parametrize("path", ["a.hs", "a.d", "a.ml", "a.pl", "a.f90"])
def test_no_file_is_in_a_language_of_data_sets_alone(path: str) -> None:
    assert by_path(path) is None


def test_an_unknown_language_is_refused_with_those_of_files() -> None:
    with pytest.raises(SourceError, match="unknown language 'cobol'; known: c, cpp, csharp, go"):
        by_name("cobol")
