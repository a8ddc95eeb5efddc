"""Cells of notebooks: what IPython alone understands, and units placed as in their cell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.queries.analysis import Analyser
from rlm_core.source.notebook_cells import plain

HELPER = b"def helper(n):\n    return [n * i for i in range(n)]\n"
CALLER = b"# \xc3\xa4\nlimit = 3\ndef caller(n):\n    return helper(n)"


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        (b"%matplotlib inline\nx = 1\n", b"#matplotlib inline\nx = 1\n"),
        (b"if True:\n    !ls -l\n", b"if True:\n    #ls -l\n"),
        (b"?len\n", b"#len\n"),
        (b"%%timeit -n 3\nf(x)\n", b"#%timeit -n 3\nf(x)\n"),
        (b"%%bash\nfor f in *; do\r\n  echo \xc3\xa4\ndone", b"      \n              \r\n         \n    "),
        (b"x = (a\n% b)\n", b"x = (a\n% b)\n"),
        (b"x = 5 % 3\n", b"x = 5 % 3\n"),
    ],
)
def test_lines_for_ipython_are_comments_and_cells_in_other_languages_blank(cell: bytes, read: bytes) -> None:
    assert plain(cell) == read


@given(st.binary(max_size=80), st.sampled_from([b"", b"%%bash\n", b"%%time\n", b"%x\n", b"\n!y\n"]))
def test_every_offset_and_every_line_stays(cell: bytes, before: bytes) -> None:
    cell = before + cell
    read = plain(cell)
    assert len(read) == len(cell)
    assert [i for i, byte in enumerate(read) if byte in b"\r\n"] == [
        i for i, byte in enumerate(cell) if byte in b"\r\n"
    ]


def test_a_unit_stands_where_it_does_in_its_cell_and_knows_the_others() -> None:
    [nothing, [helper], empty, [caller]] = Analyser().analyse_cells([b"%load_ext x", HELPER, b"", CALLER])
    assert nothing == empty == []
    assert [helper] == Analyser().analyse(HELPER, "python")
    [alone] = Analyser().analyse(CALLER, "python")
    assert caller.unit == alone.unit
    assert alone.code.callees == ()
    assert [callee.text for callee in caller.code.callees] == [helper.unit.text]


def test_the_newest_definition_of_a_name_is_the_one_that_is_called() -> None:
    again = b"def helper(n):\n    return n\n"
    [_, [caller], [newest]] = Analyser().analyse_cells([HELPER, CALLER, again])
    assert [callee.text for callee in caller.code.callees] == [newest.unit.text]


def test_a_half_written_cell_leaves_the_others_alone() -> None:
    analyser = Analyser()
    whole = analyser.analyse_cells([HELPER, b"f(1)", CALLER])
    broken = analyser.analyse_cells([HELPER, b'f(("""', CALLER])
    assert broken == whole


def test_equal_cells_have_equal_units() -> None:
    first, second = Analyser().analyse_cells([HELPER, HELPER])
    assert first == second
