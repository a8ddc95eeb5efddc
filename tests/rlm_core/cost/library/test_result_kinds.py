"""The kinds of what no table lists: functions, methods, attributes, and what stays unknown."""

from __future__ import annotations

import subprocess
import sys

import pytest
from rlm_core.cost import library
from rlm_core.cost.analysis import work_facts
from rlm_core.cost.domain.quantities import ONE
from rlm_core.cost.domain.values import UNKNOWN, Value
from rlm_core.cost.library import result_kinds
from rlm_core.cost.library.result_kinds import FILE, NEW, SELF, UNSTATED

from .calls import RecordingCall

_MOST_BYTES = 150_000
_KINDS = {
    "int", "float", "bool", "complex", "str", "bytes", "bytearray", "memoryview", "list", "tuple", "set", "frozenset",
    "dict", "deque", "iterator", NEW, SELF, UNSTATED,
}  # fmt: skip


def _object(name: str) -> Value:
    return Value("object", name=name)


def test_a_function_that_no_table_lists_has_a_result_and_no_cost() -> None:
    expected = {
        "shutil.get_terminal_size": _object("os.terminal_size"),
        "tarfile.TarInfo": _object("tarfile.TarInfo"),
        "zipfile.is_zipfile": Value("bool"),
        "linecache.getline": Value("str"),
        "time.strptime": _object("time.struct_time"),
        "datetime.datetime.fromordinal": _object("datetime.datetime"),
    }
    assert {name: library.function_result(name) for name in expected} == expected
    assert [name for name in expected if library.rule_for(name) is not None] == []


def test_a_method_is_that_of_the_class_or_of_its_bases() -> None:
    archive, parser = _object("zipfile.ZipFile"), _object("configparser.ConfigParser")
    assert library.method_result(archive, "namelist") == Value("list")
    assert library.method_result(archive, "getinfo") == _object("zipfile.ZipInfo")
    assert library.method_result(parser, "defaults") == library.method_result(
        _object("configparser.RawConfigParser"), "defaults"
    )
    assert library.method_result(Value("float"), "as_integer_ratio") == Value("tuple")
    assert library.method_result(_object("fractions.Fraction"), "limit_denominator") == _object("fractions.Fraction")


def test_attributes_are_those_of_instances_and_modules() -> None:
    assert library.attribute(Value("module", name="sys"), "platform") == Value("str", name="sys.platform")
    assert library.attribute(Value("module", name="os"), "O_RDWR") == Value("int", name="os.O_RDWR")
    assert library.attribute(_object("os.stat_result"), "st_size") == Value("int")
    assert library.attribute(Value("int"), "numerator") == Value("int")
    # A property of a class is not a value.
    assert library.attribute(Value("module", name="os.stat_result"), "st_size") is None


@pytest.mark.parametrize(
    "name",
    [
        "no_such_module.f",
        "shutil.no_such_function",
        "importlib.util.find_spec",  # or None
        "tempfile.TemporaryDirectory",  # `with` makes a text of it
        "asyncio.ensure_future",  # `await` makes what it waits for
        "copy.copy",
        "os.fdopen",  # depends on an argument
        "typing.NamedTuple",
    ],
)
def test_what_may_be_of_several_kinds_stays_unknown(name: str) -> None:
    assert library.function_result(name) is UNKNOWN


def test_a_method_of_an_unknown_value_stays_unknown() -> None:
    for receiver in (UNKNOWN, Value("class", name="Path"), Value("user-function"), Value("object", name="Own")):
        assert library.method_result(receiver, "namelist") is UNKNOWN
        assert library.attribute(receiver, "st_size") is None


def test_an_entry_without_a_result_has_the_stated_one() -> None:
    rule = library.rule_for("os.stat")
    assert rule is not None
    call = RecordingCall([Value("str")])
    assert rule(call) == _object("os.stat_result")
    assert call.seconds > 0
    assert not call.missed.terms


def test_a_call_through_a_class_of_what_no_table_lists_is_an_unknown_call() -> None:
    rule = library.method_rule("function", "fromkeys")
    assert rule is not None
    call = RecordingCall([Value("str")], receiver=Value("function", name="collections.Counter"))
    rule(call)
    assert call.missed == ONE


def test_every_kind_is_one_that_the_analysis_knows() -> None:
    for owner, (_, groups) in result_kinds._lines().items():
        for kind in (group.split()[0] for group in groups.split(";") if group):
            assert kind in _KINDS or "." in kind, f"{owner}: {kind}"


def test_the_file_is_small_and_is_not_read_before_it_is_needed() -> None:
    assert FILE.stat().st_size < _MOST_BYTES
    command = "from rlm_core.cost.library import result_kinds as r; print(r._lines.cache_info().currsize)"
    printed = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "0"


def test_what_is_done_with_the_result_of_an_unknown_call_is_known() -> None:
    facts = work_facts(
        "def f(path):\n    import tarfile\n    archive = tarfile.TarFile(path)\n"
        "    return len(archive.getnames()) + archive.offset\n"
    )
    assert facts is not None
    assert dict(facts.unknown) == {"tarfile.TarFile()": 1, "archive.getnames()": 1}
