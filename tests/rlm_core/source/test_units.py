"""Python's units: which definitions become one, of which kind, and where they stand."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.errors import RlmError, SourceError
from rlm_core.source.canonical import canonical
from rlm_core.source.parsed import ParsedSource
from rlm_core.source.units import (
    MAX_FILE_BYTES,
    MAX_NESTED,
    accessor_of,
    cell_source,
    decode,
    find_units,
    is_stub,
    read_source,
)
from rlm_core.types import Span, Unit

TRITON = "import triton\nimport triton.language as tl\nfrom triton import jit\n"
TORCH = "import torch\nfrom torch import nn\n"


def units(source: str) -> list[Unit]:
    return find_units(ParsedSource(source.encode(), "python"))


def kinds(source: str) -> dict[str, str]:
    return {unit.qualname: unit.kind for unit in units(source)}


def test_deep_nests_of_functions_do_not_keep_texts_that_grow_with_the_square_of_their_depth() -> None:
    source = "".join(f"{' ' * depth}def f{depth}(n):\n" for depth in range(400)) + " " * 400 + "return n\n"
    found = units(source)
    assert [unit.name.start_line for unit in found] == list(range(MAX_NESTED + 1))
    assert sum(len(unit.text) for unit in found) < (MAX_NESTED + 1) * len(source)


@pytest.mark.parametrize(
    ("decorators", "accessor"),
    [
        ("", ""),
        ("@property", ""),
        ("@x.setter", "setter"),
        ("@x.deleter  # a comment", "deleter"),
        ("@final\n@deprecated(\n    'x.setter',\n)\n@x.setter", "setter"),
        ("@Base.x.getter", "getter"),
        ("@size.register(int)", ""),
        ("@xx.setter", ""),
    ],
)
@pytest.mark.parametrize("start", ["", "async "])
def test_the_accessor_of_a_function_is_in_its_decorators(decorators: str, accessor: str, start: str) -> None:
    body = "    @x.register\n    def y():\n        return n\n    return y\n"
    function = f"{decorators}\n{start}def x(self, n):\n{body}".lstrip()
    [unit, _] = units("class A:\n" + textwrap.indent(function, "    "))
    assert unit.qualname == "A.x"
    assert accessor_of(unit.qualname, unit.text) == accessor
    assert accessor_of(unit.qualname, canonical(unit.text, "python")) == accessor


def test_functions_methods_and_nested_functions_have_the_names_that_python_gives_them() -> None:
    source = "def f():\n    def g(): pass\n\nclass A:\n    class B:\n        def m(self):\n            def n(): pass\n"
    scope: dict[str, object] = {}
    exec(source, scope)
    assert list(kinds(source)) == ["f", "f.<locals>.g", "A.B.m", "A.B.m.<locals>.n"]
    assert scope["A"].B.m.__qualname__ == "A.B.m"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "source",
    [
        "def f(x): return x",
        "async def f(x):\n    await x",
        "@cache\ndef f(x):\n    return x",
        "@app.get('/')\n@retry(times=3)\nasync def f(x):\n    return x",
        "def f(\n    x: int,\n) -> int:\n    return x",
        "if True:\n    def f(x):\n        return x",
    ],
)
def test_every_spelling_of_a_function_is_a_function(source: str) -> None:
    assert kinds(source) == {"f": "function"}


def test_a_decorator_belongs_to_the_text_but_not_to_the_name() -> None:
    [unit] = units("x = 1\n\n@cache\ndef f(n):\n    return n\n")
    assert unit.text == "@cache\ndef f(n):\n    return n"
    assert (unit.span.start_line, unit.name.start_line) == (2, 3)


def test_a_method_keeps_the_indentation_of_its_first_line() -> None:
    [unit] = units("class A:\n    def f(self):\n        return 1\n")
    assert unit.text == "    def f(self):\n        return 1"


def test_the_header_ends_behind_the_signatures_colon() -> None:
    source = "def f(\n    a: dict[str, int] = {'x': 1},\n) -> int:  # why\n    return 1\n"
    [unit] = units(source)
    assert source.encode()[: unit.header.end_byte].endswith(b") -> int:")
    assert (unit.header.end_line, unit.header.end_column) == (2, 9)


def test_spans_count_lines_from_0_and_columns_in_bytes() -> None:
    source = "x = 'ä'\ndef größe(): return 'ä'\n".encode()
    [unit] = find_units(ParsedSource(source, "python"))
    assert source[unit.name.start_byte : unit.name.end_byte] == "größe".encode()
    assert (unit.name.start_line, unit.name.start_column, unit.name.end_column) == (1, 4, 4 + len("größe".encode()))


@pytest.mark.parametrize(
    "decorator",
    [
        "@triton.jit",
        "@jit",
        "@triton.jit()",
        "@triton.jit(do_not_specialize=['n'])",
        "@triton.autotune(configs=[], key=['n'])\n@triton.jit",
        "@triton.runtime.jit",
        "@triton.heuristics({})\n@triton.jit",
        "@ triton.jit",
    ],
)
def test_a_triton_kernel_is_known_by_its_decorator(decorator: str) -> None:
    assert kinds(f"{TRITON}\n{decorator}\ndef kernel(x, BLOCK: tl.constexpr):\n    pass\n") == {"kernel": "kernel"}


def test_a_function_next_to_a_kernel_is_a_function() -> None:
    source = f"{TRITON}\n@triton.jit\ndef kernel(x):\n    pass\n\ndef launch(x):\n    kernel[(1,)](x)\n"
    assert kinds(source) == {"kernel": "kernel", "launch": "function"}


@pytest.mark.parametrize("line", ["import numba\nfrom numba import jit", "import jax\nfrom jax import jit"])
def test_another_librarys_jit_is_no_triton_kernel(line: str) -> None:
    assert kinds(f"{line}\n\n@jit\ndef f(x):\n    return x\n") == {"f": "function"}


@pytest.mark.parametrize("base", ["nn.Module", "torch.nn.Module", "torch.nn.modules.Module"])
def test_a_pytorch_module_is_known_by_its_base(base: str) -> None:
    found = kinds(f"{TORCH}\nclass Net({base}):\n    def forward(self, x):\n        return x\n")
    assert found == {"Net": "module"}


@pytest.mark.parametrize(
    ("body", "is_unit"),
    [
        ("...", False),
        ('"""Doc."""', False),
        ("'''Doc.\n    \"more\".\n    '''\n    # nothing\n    ...", False),
        ("# abstract\n    raise NotImplementedError", False),
        ('"""Doc."""\n    raise NotImplementedError("later", 1)', False),
        ("pass", True),
        ("return ...", True),
        ('return "..."', True),
        ('x = 1\n    return """a"""', True),
        ('"""Doc."""\n    return """a"""', True),
        ("if x:\n        raise NotImplementedError\n    return f(x)", True),
    ],
)
def test_stubs_are_not_units(body: str, is_unit: bool) -> None:
    assert kinds(f"def f(x):\n    {body}\n\ndef g(x):\n    return f(x)\n").keys() == ({"f", "g"} if is_unit else {"g"})


@pytest.mark.timeout(10)
@pytest.mark.parametrize("filler", ["\n", "    # x\n", '    """"""\n', '    "a"\n', "    raise NotImplementedError(\n"])
def test_a_long_body_is_read_in_linear_time(filler: str) -> None:
    header, text = "def f(x):", f"def f(x):\n{filler * 50_000}    g()"
    span, top = Span(0, 0, 50_001, 7, 0, len(text)), Span(0, 0, 0, len(header), 0, len(header))
    assert not is_stub(Unit("function", "python", "f", text, span, top, top))


def test_only_the_other_methods_of_a_module_are_functions() -> None:
    methods = "".join(f"    def {name}(self, x):\n        return x\n" for name in ("__init__", "forward", "encode"))
    assert kinds(f"{TORCH}\nclass Net(nn.Module):\n{methods}\nclass Plain:\n{methods}") == {
        "Net": "module",
        "Net.encode": "function",
        "Plain.__init__": "function",
        "Plain.forward": "function",
        "Plain.encode": "function",
    }


def test_a_module_may_be_imported_by_name_and_have_other_bases() -> None:
    source = "from torch.nn import Module\n\nclass Net(Mixin, Module, metaclass=Meta):\n    pass\n"
    assert kinds(source) == {"Net": "module"}


def test_a_subclass_of_a_module_in_the_same_file_is_a_module() -> None:
    source = f"{TORCH}\nclass Base(nn.Module):\n    pass\n\nclass Net(Base):\n    pass\n\nclass Deep(Net):\n    pass\n"
    assert kinds(source) == {"Base": "module", "Net": "module", "Deep": "module"}


def test_a_module_without_torch_is_a_plain_class() -> None:
    assert kinds("import flax\n\nclass Net(flax.Module):\n    def f(self): pass\n") == {"Net.f": "function"}


def test_a_solution_class_is_a_program_and_its_methods_stay_functions() -> None:
    source = "import math\n\nclass Solution:\n    def f(self, n):\n        return n\n"
    assert kinds(source) == {"Solution": "program", "Solution.f": "function"}


def test_several_solutions_are_a_program_each() -> None:
    source = "class Solution:\n    pass\n\nclass Solution2:\n    pass\n\nclass Other:\n    pass\n"
    assert [(unit.qualname, unit.text) for unit in units(source)] == [
        ("Solution", "class Solution:\n    pass"),
        ("Solution2", "class Solution2:\n    pass"),
    ]


@pytest.mark.parametrize("source", ["X = 1\n", "# nothing\n", "class A:\n    x = 1\n", "'''Only a docstring.'''\n"])
def test_a_file_without_definitions_has_no_units(source: str) -> None:
    assert units(source) == []


def test_a_file_with_syntax_errors_gives_the_functions_that_parse() -> None:
    source = "def good(n):\n    return n\n\ndef (:\n\ndef also_good():\n    return 1\n"
    assert {"good", "also_good"} <= set(kinds(source))


@given(st.text())
def test_any_text_gives_units_whose_spans_lie_inside_it(source: str) -> None:
    data = source.encode()
    for unit in find_units(ParsedSource(data, "python")):
        assert (
            0 <= unit.span.start_byte <= unit.name.start_byte <= unit.name.end_byte <= unit.span.end_byte <= len(data)
        )


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), min_size=1, unique=True))
def test_units_come_in_the_order_in_which_they_start(names: list[str]) -> None:
    source = "".join(f"def f_{name}():\n    pass\n" for name in names)
    assert [unit.qualname for unit in units(source)] == [f"f_{name}" for name in names]


def test_a_python_file_may_declare_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes("# -*- coding: latin-1 -*-\ndef f(): return 'é'\n".encode("latin-1"))
    parsed = read_source(path)
    assert parsed.language == "python"
    assert "é" in parsed.source.decode()


@pytest.mark.parametrize(
    "codec",
    ["undefined", "punycode", "idna", "unicode_escape", "raw_unicode_escape", "rot13", "base64", "utf-7", "none"],
)
def test_a_codec_that_is_not_a_character_set_is_refused_in_one_line(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "a.py"
    path.write_text(f"# coding: {codec}\ndef f(): return '\\ud800'\n")
    with pytest.raises(SourceError, match="is not valid UTF-8; save it as UTF-8"):
        read_source(path)


@pytest.mark.parametrize("codec", ["cp1252", "koi8-r", "shift_jis", "euc-jp", "gb18030", "big5", "mac-roman", "cp949"])
def test_the_character_sets_of_python_are_read(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(f"# coding: {codec}\ndef f(): pass\n".encode(codec))
    assert b"def f" in read_source(path).source


def test_a_byte_order_mark_is_removed() -> None:
    assert decode(b"\xef\xbb\xbfint x;", "c", "a.c") == b"int x;"


def test_a_file_above_the_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 2**17)
    with pytest.raises(SourceError, match=r"2\.1 MiB is over the limit of 2 MiB"):
        read_source(path)


def test_a_pipe_named_like_a_source_file_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    os.mkfifo(path)
    with pytest.raises(SourceError, match="not a regular file"):
        read_source(path)


@pytest.mark.parametrize("name", ["a.py", "a.onnx"])
def test_a_link_out_of_the_folder_that_was_walked_is_not_followed(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    for parent in (tmp_path, folder / "inside"):
        (parent / f"real-{name}").write_text("def f():\n    pass\n")
    (folder / f"out-{name}").symlink_to(tmp_path / f"real-{name}")
    (folder / f"in-{name}").symlink_to(folder / "inside" / f"real-{name}")
    with pytest.raises(RlmError, match=f"out-{name}: .*outside {re.escape(str(folder))}"):
        read_source(folder / f"out-{name}", folder)
    if name == "a.py":
        assert b"def f" in read_source(folder / f"in-{name}", folder).source
        assert b"def f" in read_source(folder / f"out-{name}").source


@pytest.mark.parametrize("name", ["a.py", "a.xyz", "a"])
def test_a_missing_file_is_called_missing_whatever_its_suffix(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="no such file"):
        read_source(tmp_path / name)


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
    assert cell_source(cell).source == read


@given(st.binary(max_size=80), st.sampled_from([b"", b"%%bash\n", b"%%time\n", b"%x\n", b"\n!y\n"]))
def test_every_offset_and_every_line_stays(cell: bytes, before: bytes) -> None:
    cell = before + cell
    read = cell_source(cell).source
    assert len(read) == len(cell)
    assert [i for i, byte in enumerate(read) if byte in b"\r\n"] == [
        i for i, byte in enumerate(cell) if byte in b"\r\n"
    ]
