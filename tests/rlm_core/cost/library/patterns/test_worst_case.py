"""Worst cases of regular expressions: reported patterns of measured class, and hostile ones."""

from __future__ import annotations

import math
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlm_core.cost.library.patterns.worst_case import WorstCase, worst_case

# Patterns of advisories and their fixes. The class was measured with CPython 3.11, with the text of the report or a
# worse one.
_REPORTED = [
    pytest.param(
        "search",
        r"""(?:.*,)*[ \t]*([^ \t]+)[ \t]+realm=(["']?)([^"']*)\2""",
        0,
        math.inf,
        id="CVE-2020-8492 urllib.request",
    ),
    pytest.param("match", r"^(([a-z])+.)+[A-Z]([a-z])+$", 0, math.inf, id="OWASP Java class name"),
    pytest.param(
        "match",
        r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
        0,
        math.inf,
        id="OWASP email",
    ),
    pytest.param("match", r"^[a-zA-Z]+(([\'\,\.\- ][a-zA-Z ])?[a-zA-Z]*)*$", 0, math.inf, id="RegExLib name"),
    pytest.param("match", r"^\[(,.*)*\]$", 0, math.inf, id="CVE-2009-3277"),
    pytest.param("match", r'^([^"]+)(?:\\([^"]+))*$', 0, math.inf, id="CVE-2009-3275"),
    pytest.param(
        "match", r"^\b_((?:__|[\s\S])+?)_\b|^\*((?:\*\*|[\s\S])+?)\*(?!\*)", 0, math.inf, id="CVE-2015-8854 marked"
    ),
    pytest.param(
        "search",
        r"^https?://(?:(?:[A-Z0-9]+(?:-*[A-Z0-9]+)*\.)+[A-Z]{2,6}|localhost|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?::\d+)?(?:/?|/\S+)$",
        re.IGNORECASE,
        math.inf,
        id="CVE-2009-3695 Django URL",
    ),
    pytest.param(
        "findall",
        r'(?:;|^)\s*([^\(\)<>@,;:\\"/\[\]\?=\{\}\ \t]+)\s*=\s*((?:[^\(\)<>@,;:\\"/\[\]\?=\{\}\ \t]+|"(?:\\.|[^"])*"))',
        0,
        math.inf,
        id="CVE-2024-24762 python-multipart",
    ),
    pytest.param("match", r"(x+x+)+y", 0, math.inf, id="regular-expressions.info"),
    pytest.param(
        "match",
        r"""^([-/:,#%.'"\s!\w]|\w-\w|'[\s\w]+'\s*|"[\s\w]+"|\([\d,%\.\s]+\))*$""",
        0,
        math.inf,
        id="CVE-2020-6817 bleach",
    ),
    pytest.param("match", r"[+-]?(\d+)*\.\d+%?", 0, math.inf, id="CVE-2021-27291 Pygments ODIN"),
    pytest.param("match", r"\s*#?\s*$", 0, 2, id="CVE-2018-1061 difflib"),
    pytest.param("match", r"\+OK.*(<[^>]+>)", 0, 2, id="CVE-2018-1060 poplib"),
    pytest.param(
        "match",
        r"^(\d\d?)(?:\s+|[-\/])(\w+)(?:\s+|[-\/])(\d+)(?:(?:\s+|:)(\d\d?):(\d\d)(?::(\d\d))?)?\s*([-+]?\d{2,4}|(?![APap][Mm]\b)[A-Za-z]+)?\s*(?:\(\w+\))?\s*$",
        re.IGNORECASE,
        3,
        id="bpo-38804 http.cookiejar",
    ),
    pytest.param(
        "search", r"""(?:^|,)[ \t]*([^ \t]+)[ \t]+realm=(["']?)([^"']*)\2""", 0, 2, id="CVE-2021-3733 urllib.request"
    ),
    pytest.param(
        "match",
        r"^(?:\s*(?:,\s*)?([^ \t\r\n=]+)\s*=\s*\"?((?<=\")(?:[^\\\"]|\\.)*?(?=\")|(?<!\")[^ \t\r\n,]+(?!\"))\"?)(.*)$",
        0,
        4,
        id="CVE-2021-21240 httplib2",
    ),
    pytest.param("match", r"^-?[0-9]+(.[0-9]+)?$", 0, 2, id="CVE-2021-3842 nltk"),
    pytest.param("match", r"<\s*/?\s*([^\s>]+)", 0, 2, id="nltk issue 2596"),
    pytest.param("match", r"\s*(\d+)\s*(\S+) (.*)", 0, 2, id="CVE-2022-42969 py"),
    pytest.param(
        "match",
        r"^(?P<namever>(?P<name>.+?)-(?P<ver>.+?))(-(?P<build>\d[^-]*))?-(?P<pyver>.+?)-(?P<abi>.+?)-(?P<plat>.+?)\.whl$",
        0,
        5,
        id="CVE-2022-40898 wheel",
    ),
    pytest.param(
        "match", r"^(?:(.*)@)?((?:[^\[\]%:/?#]|%[a-fA-F0-9]{2})*)(?::([0-9]{0,5}))?$", 0, 2, id="CVE-2021-33503 urllib3"
    ),
    pytest.param("match", r"(.+?)\((.*)\)", re.DOTALL, 2, id="CVE-2023-26112 configobj"),
    pytest.param(
        "match",
        r"^(?P<lead>(?:\(|<|&lt;)*)(?P<middle>.*?)(?P<trail>(?:\.|,|\)|>|\n|&gt;)*)$",
        0,
        2,
        id="CVE-2020-28493 Jinja2",
    ),
    pytest.param("findall", r"<.*?>|((?:\w[-\w]*|&.*?;)+)", re.DOTALL, 2, id="CVE-2019-14232 Django"),
    pytest.param("search", r"\d+ hdrcharset=([^\n]+)\n", 0, 2, id="CVE-2024-6232 tarfile"),
    pytest.param("search", r"\bSmartWatch *\( *([^;]+) *; *([^;]+) *;", 0, 4, id="CVE-2020-5243 uap-core"),
    pytest.param("search", r"^[\s\u200c]+|[\s\u200c]+$", 0, 2, id="Stack Overflow outage 2016"),
    pytest.param(
        "search",
        r"[\u001B\u009B][[\]()#;?]*(?:(?:(?:[a-zA-Z\d]*(?:;[-a-zA-Z\d\/#&.:=?%@~_]*)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~]))",
        0,
        2,
        id="CVE-2021-3807 ansi-regex",
    ),
    pytest.param(
        "search", r"""(?:charset|encoding)\s*=\s*['"]? *([\w\-]+)""", re.IGNORECASE, 2, id="CVE-2017-16098 charset"
    ),
    pytest.param("match", r"\s*(?:#\s*)?$", 0, 1, id="difflib, fixed"),
    pytest.param("match", r"\+OK.[^<]*(<.*>)", 0, 1, id="poplib, fixed"),
    pytest.param(
        "match",
        r"^(\d\d?)(?:\s+|[-\/])(\w+)(?:\s+|[-\/])(\d+)(?:(?:\s+|:)(\d\d?):(\d\d)(?::(\d\d))?)?(?:\s*([-+]?\d{2,4}|(?![APap][Mm]\b)[A-Za-z]+))?(?:\s*(?:\(\w+\)))?\s*$",
        re.IGNORECASE,
        1,
        id="http.cookiejar, fixed",
    ),
    pytest.param(
        "search",
        r"^https?://(?:(?:[A-Z0-9](?:[A-Z0-9-]{0,61}[A-Z0-9])?\.)+[A-Z]{2,6}|localhost|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?::\d+)?(?:/?|/\S+)$",
        re.IGNORECASE,
        1,
        id="Django URL, fixed",
    ),
    pytest.param(
        "match",
        r"^(?P<namever>(?P<name>[^\s-]+?)-(?P<ver>[^\s-]*?))(-(?P<build>\d[^\s-]*))?-(?P<pyver>[^\s-]+?)-(?P<abi>[^\s-]+?)-(?P<plat>\S+)\.whl$",
        0,
        1,
        id="wheel, fixed",
    ),
    pytest.param(
        "search", r"""(?:^|,)[ \t]*([^ \t,]+)[ \t]+realm=(["']?)([^"']*)\2""", 0, 1, id="urllib.request, fixed"
    ),
    pytest.param(
        "search",
        r"^\s*v?(?:(?:(?P<epoch>[0-9]+)!)?(?P<release>[0-9]+(?:\.[0-9]+)*)(?P<pre>[-_\.]?(?P<pre_l>(a|b|c|rc|alpha|beta|pre|preview))[-_\.]?(?P<pre_n>[0-9]+)?)?(?P<post>(?:-(?P<post_n1>[0-9]+))|(?:[-_\.]?(?P<post_l>post|rev|r)[-_\.]?(?P<post_n2>[0-9]+)?))?(?P<dev>[-_\.]?(?P<dev_l>dev)[-_\.]?(?P<dev_n>[0-9]+)?)?)(?:\+(?P<local>[a-z0-9]+(?:[-_\.][a-z0-9]+)*))?\s*$",
        re.IGNORECASE,
        1,
        id="packaging version",
    ),
    pytest.param("match", r'(.*?)(["\\\x00-\x1f])', re.MULTILINE | re.DOTALL, 1, id="json STRINGCHUNK"),
    pytest.param("match", r"^\+(?:[0-9] ?){6,14}[0-9]$", 0, 1, id="is-my-json-valid phone"),
    pytest.param("match", r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$", 0, 1, id="IPv4"),
    pytest.param("findall", r" *, *", 0, 2, id="CVE-2017-16119 fresh"),
    pytest.param("match", r"^(([^=;]+))\s*=\s*([^\n\r\0]*)", 0, 2, id="CVE-2017-15010 tough-cookie"),
    pytest.param("match", r"^data:(?P<type>.*?),(?P<data>.*?)(?:#(?P<hash>.*))?$", 0, 3, id="CVE-2021-33502 url"),
    pytest.param("search", r"\033\[(\d+)*m", 0, math.inf, id="CVE-2021-23424 ansi-html"),
    pytest.param("search", r"\033\[(\d+)?m", 0, 1, id="ansi-html, fixed"),
    pytest.param("search", r"rgba\([ \n\r\t]*(.+?)[ \n\r\t]*\)", 0, 3, id="CVE-2021-21236 CairoSVG"),
    pytest.param("match", r"rgba\((.+?)\)", 0, 1, id="CairoSVG, fixed"),
    pytest.param("search", r"((\r\n|\r|\n)+) *$", 0, math.inf, id="CVE-2021-32839 sqlparse"),
    pytest.param("match", r"((\r|\n)+) *$", 0, 1, id="sqlparse, fixed"),
    pytest.param("match", r"^(\s|\/\*.*?\*\/)*[\(\w]", 0, math.inf, id="CVE-2020-7760 codemirror"),
    pytest.param("match", r"^(?:\s|\/\*(?:[^*]|\*(?!\/))*\*\/)*[\(\w]", 0, 1, id="codemirror, fixed"),
    pytest.param("match", r"^-?\D*[\d,]+\.\d{2}$", 0, 2, id="CVE-2021-22880 money"),
    pytest.param("match", r"^-?[^\d,]*[\d,]+\.\d{2}$", 0, 1, id="money, fixed"),
    pytest.param("match", r"^(.*,)+(.+)?$", 0, math.inf, id="CVE-2017-18077 brace-expansion"),
    pytest.param("match", r"^(?:(?:\r\n)?\s)*([^:]+|\[[^\]]+\])(?::(\d+))?(?:(?:\r\n)?\s)*$", 0, math.inf, id="hawk"),
    pytest.param("match", r"^([^:\s]+|\[[^\]]+\])(?::(\d+))?$", 0, 1, id="CVE-2022-29167 hawk, fixed"),
]


@pytest.mark.parametrize(("method", "pattern", "flags", "degree"), _REPORTED)
def test_reported_patterns_have_their_class(method: str, pattern: str, flags: int, degree: float) -> None:
    worst = worst_case(pattern, method, flags)
    assert (1 if worst is None else worst.degree) == degree


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a*)*b", "([a-z]+)*!", "(?:x+x+)+y", "(a|b+)+c", "^(\\w+\\s?)*$",
     "(?:ab?|bc?|a)*x", "(a*b*)*c", "(a{1,5})+b", r"(.*,)*x$", r"(?:a?b?)+$",
     r"(?:a|a)*?$", r"(?=(a+)+b)", r"(?i:(AB?|a)+)$", "((a)*)*b", r"(?:a+){9,20}b", r"(\w\w?)+\b!", rb"(a+)+$"],
)  # fmt: skip
def test_nested_ways_are_exponential(pattern: str | bytes) -> None:
    worst = worst_case(pattern, "match")
    assert worst is not None
    assert worst.is_exponential


@pytest.mark.parametrize(
    "pattern",
    ["a+", r"\w+@\w+\.com", "(ab)+", "(a|b)+", r"(\d+,)*\d+", "(a{1,3}){1,3}", "(", "", r"(?:[^,]+,)+",
     r"Use one of:\s+(?P<output>(\S\s*)*)", r"^(?:RESTRICT|CASCADE|SET NULL|NO ACTION|SET DEFAULT)$", r"(ab|ac)+$",
     r"(a+)+", r"(?:\\.|[^\"\\])*\"", r"^(\w+)(\.\w+)*$", r"(?>a+)+b", r"(?:a++)+b", r"(?:a|a){0,8}b",
     r"\w{1,255}$", r"(a+)+.*", r"(?:(?!-->).)*-->", r"(?:a|b|ab){2}c", r"(x)?(?(1)(a+)+$|b)",
     # Backtracking by one character finds the end at once.
     r"\[((\\]|[^\[\]]|\\])*)\]"],
)  # fmt: skip
def test_usual_patterns_have_no_bad_case_in_a_match(pattern: str) -> None:
    assert worst_case(pattern, "match") is None


@pytest.mark.parametrize(
    ("pattern", "degrees"),
    [
        (r"\s+$", (1, 1, 2, 2)),
        (r"^\s+$", (1, 1, 1, 1)),
        (r"a+b", (1, 1, 2, 2)),
        (r"(?:a+)+", (1, math.inf, 1, 1)),
        (r"^\s*|\s*$", (1, 1, 1, 2)),
        (r"a.*b", (1, 1, 2, 2)),
        (r"a*a*a*b", (3, 3, 4, 4)),
    ],
)
def test_the_function_decides_where_a_match_begins_and_ends(pattern: str, degrees: tuple[float, ...]) -> None:
    judged = [worst_case(pattern, method) for method in ("match", "fullmatch", "search", "findall")]
    assert tuple(1 if worst is None else worst.degree for worst in judged) == degrees


def test_flags_change_the_worst_case() -> None:
    assert worst_case("(a|AB?)+$", "match") is None
    assert worst_case("(a|AB?)+$", "match", re.IGNORECASE) is not None
    assert worst_case("(.|\\n)+$", "match") is None
    assert worst_case("(.|\\n)+$x", "match", re.DOTALL) is not None
    assert worst_case("^ +$", "search") is None
    assert worst_case("^ +$", "search", re.MULTILINE) is None
    assert worst_case("(a +)+ $", "match", re.VERBOSE) is not None


def _seconds(pattern: str, worst: WorstCase, repetitions: int) -> float:
    compiled, text = re.compile(pattern), worst.text(repetitions)
    times = []
    for _ in range(3):
        start = time.process_time()
        compiled.match(text)
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.parametrize("pattern", ["(a+)+$", r"^(\w+\s?)*$", r"(?:ab?|bc?|a)*x"])
def test_the_named_text_takes_python_long(pattern: str) -> None:
    worst = worst_case(pattern, "match")
    assert worst is not None
    few = next(count for count in range(2, 40) if _seconds(pattern, worst, count) > 1e-3)
    assert _seconds(pattern, worst, few + 4) > 6 * _seconds(pattern, worst, few)


@given(st.text("ab()+*?|[]{}0123456789,\\w^$", max_size=60))
def test_any_pattern_is_read_in_bounded_time(pattern: str) -> None:
    start = time.process_time()
    worst_case(pattern)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    "pattern",
    ["(" * 5000, "(a+" * 400, "(" * 190 + "a+" + ")+" * 190, "a{1,5}" * 2000, "(?:|a)" * 150, ".*" * 250 + "x",
     "(?:.*a)*" * 60, "(?=.*a)" * 80, "(a*)*" * 100, "(?:a|b|c|d|e|f)*" * 40, "(?:.|\n)*x" * 20, "(?:a{0,99}){0,99}b"],
)  # fmt: skip
def test_a_hostile_pattern_is_read_in_bounded_time(pattern: str) -> None:
    start = time.process_time()
    worst_case(pattern)
    assert time.process_time() - start < 8
