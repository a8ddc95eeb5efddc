"""Recognises files that are solutions of programming problems, as online judges take them, and their judge.

Input: a parsed source text and its path. Only solutions are programs. A text counts when it says so (a ``# rlm:``
comment, a class ``Solution``, the link or the template of a judge), when its path names a judge, or when it needs
nothing but the standard library and either reads standard input in its ``main`` or is stored under the number or title
of a problem. Nothing is run.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePath

from tree_sitter import Node

from rlm_core.types import JudgeChoice

from . import languages
from .directives import Directive, find_directives
from .parsed import ParsedSource, name_text

PROGRAM, JUDGE = "program", "judge"
_SOLUTION = re.compile(r"Solution(?:\d\w*|_\w*)?\Z")
# Names of judges and of collections of their problems, in a folder or file.
_JUDGES = re.compile(
    r"(?<![a-z])(?:leet[-_ ]?code|leet[-_ ]?hub|neet[-_ ]?code|lint[-_ ]?code|at[-_ ]?coder|code[-_ ]?forces"
    r"|baek[-_ ]?joon|acmicpc|hacker[-_ ]?(?:rank|earth|cup)|project[-_ ]?euler|advent[-_ ]?of[-_ ]?code"
    r"|(?:boj|kattis|code[-_ ]?chef|spoj|cses|top[-_ ]?coder|luogu|yuki[-_ ]?coder|code[-_ ]?jam|interview[-_ ]?bit"
    r"|code[-_ ]?wars|usaco|swea|dmoj)(?![a-z]))|백준|프로그래머스"
)
# The judges that a model may know, by the id of their device: their names in a path or comment, and their links.
_NAMED_JUDGES = {
    "leetcode": r"leet[-_ ]?(?:code|hub)|@lc (?:app|code)=",
    "boj": r"baek[-_ ]?joon|acmicpc|(?<![a-z])boj(?![a-z])|bojhub|백준",
    "atcoder": r"at[-_ ]?coder|(?<![a-z])a[bgr]c[-_ ]?\d{3}(?!\d)",
}
_READING_JUDGE = "boj"  # whose solutions stand for all programs that read standard input
_SETTING = re.compile(r"(judge|runtime)=([\w.-]+)(?=[\s,]|\Z)")
# `abc123_d`, `1A`, `1753. title`, `0001-two-sum`; migrations are numbered too, so this needs more evidence.
_NUMBERED = re.compile(
    r"(?:abc|arc|agc)[-_ ]?\d{3}(?:[-_ ]?[a-h]\d?)?\Z|\d{1,4}[-_]?[a-z]\d?\Z"
    r"|(?:lc|leet|p|q|problem|no)?[-_ .]?\d{1,5}(?:\. ?|[-_ ]+)[^\W\d_]"
)
_TITLE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+\Z")
_TESTED = re.compile(r"(?:^|[._-])(?:test|tests|spec|stories|config)\Z|\.d\Z", re.ASCII)
_HEAD_BYTES = 64 * 1024
# The link of a problem, and the comments with which LeetCode's editors open a solution.
_LINK = re.compile(
    rb"leetcode(?:-cn)?\.(?:com|cn)/(?:problems|contest)|@lc (?:app|code)=|atcoder\.jp/contests/|codeforces\.com/"
    rb"(?:contest|problemset|gym)/|acmicpc\.net/problem/|kattis\.com/(?:contests/\w+/)?problems/|hackerrank\.com/"
    rb"(?:challenges|contests)/|codechef\.com/(?:problems|submit)|spoj\.com/problems/|onlinejudge\.org/"
    rb"|cses\.fi/problemset/|projecteuler\.net/problem|judge\.yosupo\.jp/problem"
    rb"|object will be instantiated and called as such:"
)
_PARAM = re.compile(rb"@param \{[\w<>\[\], |]+\} \w+\s")
_RETURN = re.compile(rb"@return \{[\w<>\[\], |]+\}")
# How programs read standard input.
_READS = {
    "c": rb"\b(?:scanf|getchar|gets|scanf_s|getline)\s*\(|\bstdin\b|\bread\s*\(\s*0",
    "cpp": rb"\bcin\b|\b(?:scanf|getchar|gets|scanf_s|getchar_unlocked)\s*\(|\bstdin\b|\bread\s*\(\s*0",
    "csharp": rb"\bConsole\s*\.\s*(?:Read\w*|In|OpenStandardInput)\b|(?<![.\w])ReadLine\s*\(",
    "go": rb"\bos\.Stdin\b|\bfmt\.Scan(?:f|ln)?\s*\(",
    "java": rb"\bSystem\s*\.\s*in\b",
    "javascript": rb"process\.stdin|/dev/stdin|\breadFileSync\s*\(\s*0|(?<![.\w])read[lL]ine\s*\(\s*\)",
    "kotlin": rb"\bread(?:ln|Line)(?:OrNull)?\s*\(|System\.`?in`?",
    "php": rb"\bSTDIN\b|php://stdin|\breadline\s*\(|\bfscanf\b",
    "python": rb"(?<![.\w])input\s*\(|\bsys\.stdin\b|\bopen\s*\(\s*0",
    "ruby": rb"(?<![.\w])gets\b|\bSTDIN\b|\$stdin\b|\$<|\bARGF\b|\breadlines\b",
    "rust": rb"\bstdin\s*\(|\bread_line\b|\bproconio\b",
    "scala": rb"\bStdIn\b|System\.in\b|(?<![.\w])read(?:Line|Int)\b",
    "swift": rb"\breadLine\s*\(",
}
_READS["typescript"] = _READS["javascript"]
# What commands read instead: their arguments.
_ARGUMENTS = re.compile(
    rb"\bargv\s*[\[+]|\bgetopt|\bos\.Args\b|\"flag\"|\benv::args|process\.argv|\bARGV\b|\$argv\b|argparse"
    rb"|\bargs\s*(?:\[|\.(?:length|Length|size|count)\b)|CommandLine\.arguments|getenv\s*\("
)
_MAIN = {
    "c": rb"\bmain\s*\(",
    "cpp": rb"\bmain\s*\(",
    "csharp": rb"\bMain\s*\(|\A(?![\s\S]*\bclass\b)",
    "go": rb"\bfunc\s+main\s*\(",
    "java": rb"\bvoid\s+main\s*\(",
    "kotlin": rb"\bfun\s+main\s*\(",
    "rust": rb"\bfn\s+main\s*\(",
    "scala": rb"\bdef\s+main\s*\(|\bextends\s+App\b|@main\b",
}
# Scripts start at their first line.
_INTERPRETED = frozenset({"javascript", "typescript", "php", "ruby", "swift", "python"})
# Imports other than the standard library of the language and what judges offer.
_PYTHON_MODULES = (
    rb"(?:array|ast|bisect|builtins|cmath|collections|copy|datetime|decimal|fractions|functools|heapq|io|itertools|math|numpy"
    rb"|operator|os|queue|random|re|sortedcontainers|statistics|string|sys|threading|time|timeit|typing|types|numba|networkx"
    rb"|scipy|atcoder|__future__|dataclasses|enum|pprint|textwrap|abc)\b"
)
_FOREIGN = {
    "c": rb'^[ \t]*#[ \t]*include[ \t]*(?:"(?!bits/)|<(?!bits/|sys/|(?:assert|complex|ctype|errno|float|inttypes'
    rb"|limits|locale|malloc|math|memory|search|setjmp|signal|std\w+|string|strings|time|uthash|utstring|unistd|wchar|wctype)\.h))",
    "cpp": rb'^[ \t]*#[ \t]*include[ \t]*(?:"(?!bits/|testlib|debug)|<(?!bits/|ext/|atcoder/|boost/|sys/)[\w+]+/)',
    "csharp": rb"^[ \t]*(?:global[ \t]+)?using[ \t]+(?:static[ \t]+)?(?!System\b|AtCoder\b|var\b|\()[\w.]+[ \t]*(?:;|=)"
    rb"|^[ \t]*namespace[ \t]+\w+\.",
    # Of the imports alone, see `_has_foreign_imports`.
    "go": rb'"(?!(?:bufio|bytes|cmp|container|context|errors|fmt|io|iter|maps|math|os|reflect|regexp|runtime|slices'
    rb'|sort|strconv|strings|sync|time|unicode|unsafe|github\.com/emirpasic/gods)(?:/|"))[^"\s]*"',
    "java": rb"^[ \t]*import[ \t]+(?:static[ \t]+)?(?!javax?\.|javafx\.util|org\.apache\.commons|lib\b)[\w.]+"
    rb"|^[ \t]*package[ \t]+\w+\.\w+\.\w+\.\w+",
    "kotlin": rb"^[ \t]*import[ \t]+(?!javax?\.|kotlin)[\w.]+|^[ \t]*package[ \t]+\w+\.\w+\.\w+",
    "scala": rb"^[ \t]*import[ \t]+(?!javax?\.|scala\.|[A-Z]|util\.|collection\.|io\.|math\.|annotation\.)[\w.]+",
    "rust": rb"^[ \t]*(?:pub[ \t]+)?(?:use[ \t]+(?:crate|super|self)\b|mod[ \t]+\w+[ \t]*;"
    rb"|use[ \t]+(?!::|std\b|core\b|alloc\b|proconio|itertools|rand\b|ac_library|num\b|petgraph|superslice|Solution)"
    rb"[a-z]\w*(?:::|;))",
    "swift": rb"^[ \t]*(?:@\w+[ \t]+)?import[ \t]+(?!Foundation\b|Glibc\b|Darwin\b|Swift\b|Collections\b|struct\b)\w+",
    "javascript": rb"\bfrom[ \t]*['\"](?!node:|fs['\"]|readline|os['\"]|@datastructures-js|lodash['\"])"
    rb"|^[ \t]*import[ \t]*['\"(]|\brequire\s*\(\s*(?!['\"](?:node:)?(?:fs|readline|os|util|assert|events|path|lodash"
    rb"|@datastructures-js/[\w-]+)['\"])|^[ \t]*export[ \t]+(?:\*|\{[^}]{0,2000}\}[ \t]*from)"
    rb"|\b(?:window|document|chrome)\.",
    "php": rb"^[ \t]*(?:use[ \t]+[\w\\]+|require(?:_once)?\b|include(?:_once)?\b|namespace[ \t]+\w+\\)",
    "ruby": rb"^[ \t]*(?:require_relative\b|require[ \t(]+['\"](?!set|prime|bigdecimal|matrix|algorithms"
    rb"|containers|json)|module[ \t]+[A-Z])",
    "python": rb"^[ \t]*(?:from[ \t]+(?:\.|(?!%b)\w)|import[ \t]+(?!%b))" % (_PYTHON_MODULES, _PYTHON_MODULES),
}  # fmt: skip
_FOREIGN["typescript"] = _FOREIGN["javascript"]
_GO_IMPORTS = re.compile(rb"^import[ \t]*(?:\([^)]{0,4000}\)|[^\n]*)", re.MULTILINE)
_COMPLEXITY = re.compile(rb"^[ \t/*#]*(?:time|space)(?: complexity)?\s*[:=]\s*O\(", re.MULTILINE | re.IGNORECASE)
_PACKAGE = re.compile(rb"^[ \t]*(?:package|namespace)\s", re.MULTILINE)
_RETURN_SIZE = re.compile(rb"\bint\s*\*\s*(?:returnSize|\w+ColSize|returnColumnSizes)\b|\bint\s+\w+Size\b")
_PLAIN_TYPE = re.compile(
    r"(?:number|string|boolean|bigint|void|TreeNode|ListNode|Node|null|undefined|_Node)(?:\[\])*"
    r"(?:\s*\|\s*(?:number|string|boolean|null|undefined|TreeNode|ListNode)(?:\[\])*)*\Z"
)
_MOST_TEMPLATE_FUNCTIONS = 8


def solution_class(name: str) -> bool:
    """Return whether a class has the name that LeetCode gives to the class of a solution."""
    return bool(_SOLUTION.match(name))


def is_solution(parsed: ParsedSource, path: PurePath | None = None) -> bool:
    """Return whether a text, stored under ``path``, looks like a solution of a programming problem.

    Raises:
        SourceError: the language is unknown.
    """
    source, language = parsed.source, parsed.language
    if is_marked(parsed):
        return True
    if b"Solution" in source and _has_solution_class(parsed):
        return True
    if language == "python" and path is None:
        return False
    if path is not None and (path.suffix.lower() in (".h", ".hh", ".hpp", ".hxx", ".jsx", ".tsx") or _is_test(path)):
        return False
    by_judge, by_number = path_evidence(path) if path is not None else (False, False)
    if language == "python":
        # A Python file has its functions as units: as a program it must be the whole solution.
        is_whole = by_judge or (by_number and (b"class " in source or _reads_input(source, language)))
        return is_whole and not _has_foreign_imports(source, language)
    head = source[:_HEAD_BYTES]
    if by_judge or (_LINK.search(head) is not None and not _looks_like_data(head)):
        return True
    if _has_foreign_imports(source, language):
        return False
    return by_number or _reads_input(source, language) or _is_template(parsed)


def is_marked(parsed: ParsedSource) -> bool:
    """Return whether a ``# rlm:`` comment asks for the file as a program; outside Python a budget does too."""
    if b"rlm:" not in parsed.source:
        return False
    only = parsed.language == "python"
    return any(
        d.keyword == PROGRAM or is_judge_directive(d) if only else d.keyword != "sizes" for d in find_directives(parsed)
    )


def is_judge_directive(directive: Directive) -> bool:
    """Return whether a directive names the judge of a program, such as ``judge=atcoder runtime=pypy``."""
    return directive.keyword.partition("=")[0] == JUDGE


def judge_of(parsed: ParsedSource, path: PurePath | None = None) -> JudgeChoice | None:
    """The judge that a solution, stored under ``path``, is written for; None without evidence.

    A ``# rlm: judge=`` comment says it. Otherwise a class ``Solution`` is LeetCode's, a path or comment may name a
    judge, and other programs that read standard input count as BOJ's, which run the same way.

    Raises:
        SourceError: the language is unknown.
    """
    for directive in find_directives(parsed):
        settings = dict(_SETTING.findall(directive.text)) if is_judge_directive(directive) else {}
        if JUDGE in settings:
            return JudgeChoice(settings[JUDGE].lower(), True, settings.get("runtime"))
    if b"Solution" in parsed.source and _has_solution_class(parsed):
        return JudgeChoice("leetcode")
    named = (_named_judge(part) for part in reversed(path.parts)) if path is not None else iter(())
    judge = next(filter(None, named), None) or _judge_in_comments(parsed)
    if judge is None and _reads_input(parsed.source, parsed.language):
        judge = _READING_JUDGE
    return JudgeChoice(judge) if judge is not None else None


def _named_judge(text: str) -> str | None:
    """The judge that a text names first."""
    found = _names_of_judges().search(text.lower())
    return found.lastgroup if found is not None else None


def _judge_in_comments(parsed: ParsedSource) -> str | None:
    head = parsed.source[:_HEAD_BYTES].decode("utf-8", "replace")
    # Few files name a judge, and asking for all comments is most of the work.
    if _named_judge(head) is None:
        return None
    comments = (node for node in parsed.comments() if node.start_byte < _HEAD_BYTES)
    return next(filter(None, (_named_judge(name_text(node)) for node in comments)), None)


@cache
def _names_of_judges() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{judge}>{names})" for judge, names in _NAMED_JUDGES.items()))


def path_evidence(path: PurePath) -> tuple[bool, bool]:
    """Return whether a path names a judge, and whether it has the form of the number or title of a problem."""
    stem, folders = path.stem.lower(), [part.lower() for part in path.parts[:-1]]
    names = [*folders, stem]
    by_judge = any(_JUDGES.search(name) for name in names)
    near = [*folders[-2:], stem]
    # LeetHub stores `two-sum/two-sum.js`.
    by_title = bool(folders) and folders[-1].endswith(stem) and _TITLE.match(stem) is not None
    return by_judge, by_title or stem in ("solution", "solutions") or stem.isdecimal() or any(
        _NUMBERED.match(name) for name in near
    )


def _is_test(path: PurePath) -> bool:
    return _TESTED.search(path.stem.lower()) is not None


def _looks_like_data(head: bytes) -> bool:
    """Return whether a text has so many links that it downloads or lists problems."""
    return len(_LINK.findall(head)) > 8


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    # On first use: most sessions see few languages, and the server should start fast.
    return re.compile(pattern, re.MULTILINE)


def _has_foreign_imports(source: bytes, language: str) -> bool:
    """Return whether a file needs more than its language's standard library and the libraries of judges."""
    if language == "go":
        source = b"\n".join(_GO_IMPORTS.findall(source))
    return _compiled(_FOREIGN[language]).search(source) is not None


def _reads_input(source: bytes, language: str) -> bool:
    """Return whether a program takes its input from standard input rather than from arguments."""
    if not _compiled(_READS[language]).search(source) or _ARGUMENTS.search(source):
        return False
    return language in _INTERPRETED or _compiled(_MAIN[language]).search(source) is not None


def _has_solution_class(parsed: ParsedSource) -> bool:
    node_type = languages.by_name(parsed.language).class_node
    for statement in parsed.root.named_children:
        for node in (statement, *statement.named_children):
            name = node.child_by_field_name("name") or node.child_by_field_name("type")
            if name is None and node.type == node_type:
                name = next((child for child in node.named_children if "identifier" in child.type), None)
            if node.type == node_type and solution_class(name_text(name)):
                return True
    return False


def _is_template(parsed: ParsedSource) -> bool:
    """Return whether a text has the form of a judge's template: bare functions of plain types and nothing else."""
    source, language = parsed.source, parsed.language
    if language in ("go", "java") and _PACKAGE.search(source) is not None:
        return False
    if _COMPLEXITY.search(source):
        return True
    if language == "go":
        # Only judges take a file without a package; of Java, beginners have such files too.
        return b"func " in source
    if language == "java":
        return False
    if language == "cpp":
        return b"#" not in source and (b"class " in source or b"vector<" in source)
    if language == "c":
        return b"main" not in source and b"static " not in source and _RETURN_SIZE.search(source) is not None
    if language == "ruby":
        return _PARAM.search(source) is not None and _RETURN.search(source) is not None
    if language not in ("javascript", "typescript") or b"export" in source or b"require" in source:
        return False
    statements = [node for node in parsed.root.named_children if "comment" not in node.type]
    functions = [function for node in statements for function in _functions(node)]
    if not 0 < len(functions) <= _MOST_TEMPLATE_FUNCTIONS or len(functions) < len(statements):
        return False
    if language == "javascript":
        return _PARAM.search(source) is not None and _RETURN.search(source) is not None
    return all(_has_plain_types(function) for function in functions)


def _functions(statement: Node) -> list[Node]:
    if statement.type in ("function_declaration", "generator_function_declaration"):
        return [statement]
    if statement.type in ("lexical_declaration", "variable_declaration"):
        values = [child.child_by_field_name("value") for child in statement.named_children]
        return [value for value in values if value is not None and "function" in value.type]
    return []


def _has_plain_types(function: Node) -> bool:
    """Return whether a TypeScript function has only numbers, strings, their arrays, and nodes of trees and lists."""
    parameters, result = function.child_by_field_name("parameters"), function.child_by_field_name("return_type")
    if parameters is None or result is None or not parameters.named_children:
        return False
    types = [result, *(child.child_by_field_name("type") for child in parameters.named_children)]
    return all(node is not None and _PLAIN_TYPE.match(name_text(node).lstrip(": ")) for node in types)
