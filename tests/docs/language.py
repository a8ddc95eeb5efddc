"""Finds wording that a technical writer would change: archaic or private phrases, and a package name that is not ours.

Input: files of the repository. Output: one line per phrase, with its place and what to write instead. Prose is read
from Markdown and help files as it is, and from programs only where people read it: comments, docstrings and string
literals of several words.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

_COUNTED = (
    r"(?:rows?|tokens?|units|texts|lines?|objects?|points?|figures?|cases?|numbers?|floats?|weights?|forests?|characters?"
    r"|entry|entries|columns?|threads?|M?iB|steps)"
)
_PER = (
    r"(?:unit|second|minute|line|slice|task|metric|finding|measurement|value|text|device|batch|step|group|file|test|run"
    r"|level|function|kernel|language|node|query|token|package|program|problem|row|core)"
)
# Pattern of a phrase -> what to write. Case does not matter; a blank matches any white space.
PHRASES = {
    r"\banew\b": "again, re-",
    r"\bdear(?:er|est)\b": "more expensive, most expensive",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\b(?:told|tells|tell of)\b": "reports, shows, describes; features of a model",
    r"\bgo(?:es)? before\b": "takes precedence over, precedes",
    r"\bwhat (?:came|comes|has come) of\b": "the result of",
    r"\bwhat it is good for\b": "its purpose, its accuracy",
    r"\bof (?:now|before)\b(?! (?:the|a|an|it|its|this|that)\b)": "current, previous",
    r"(?<!there )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|different\b|better\b|worse\b|matter\b)\w+": (
        "is not a"
    ),
    r"\bof (?:its|their) own\b": "own, separate",
    r"\bof (?:yours|ours|theirs|mine)\b": "your, our, their",
    r"\bbeside\b": "next to, alongside",
    r"\b(?:nobody|somebody)\b": "the user, no program",
    r"\b(?:stands?|stood) (?:in (?!for)|on|above|below|behind|there|between|at|after|before)": "is",
    r"\b(?:may|must|can|should) stand\b(?! for)": "may be",
    r"\blies? (?:in|on (?!either)|at|near|outside|inside|below|above|beyond|there|elsewhere)\b": "is",
    r"\bbudgets? (?:that )?(?:is|are|was|were|has been) passed\b": "exceeded",
    r"\bpass(?:es|ed)? (?:its|the|a|their) budgets?\b": "exceeds its budget",
    r"\bfour (?:\w+ )?(?:in|out of) five\b": "80 %",
    rf"\b{_COUNTED} an? {_PER}\b": "per",
    r"\bcosts? (?:only )?(?:itself|themselves|one line|its own row)\b": "affects only",
    r"\bmildest\b": "lowest severity",
    r"\blearnt\b": "learned",
    r"\btalks nonsense\b": "sends an unexpected response",
    r"\b(?:hearken|heed|whither|hither|thereof|wherein|whereof|nought|naught|aught)\b": "plain English",
    r"\bpip install [\"']?rlm-lsp": "pip install . (the name is not registered to this project)",
}
_PATTERNS = {
    re.compile(pattern.replace(" ", r"\s+").replace(r"(?<!there\s+)", r"(?<!there\s)"), re.IGNORECASE): advice
    for pattern, advice in PHRASES.items()
}
_CODE = re.compile(r"``[^`]+``|`[^`\n]+`")
_COMMENT_TS = re.compile(r"/\*.*?\*/|(?<![:\w])//[^\n]*", re.DOTALL)
_COMMENT_LUA = re.compile(r"--[^\n]*")
_STRING = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\])*`", re.DOTALL)
_INSERTED = re.compile(r"\$\{[^}]*\}")
_PROSE = re.compile(r"\w+\W+\w+\W+\w+")


def problems(text: str, place: str, line: int = 1) -> list[str]:
    """One entry per phrase of a text that begins in ``line`` of ``place``, in order."""
    found = []
    for pattern, advice in _PATTERNS.items():
        for match in pattern.finditer(text):
            number = line + text.count("\n", 0, match.start())
            found.append((match.start(), f"{place}:{number}: {' '.join(match[0].split())!r}: {advice}"))
    return [problem for _, problem in sorted(found)]


def problems_of(path: Path, place: str) -> list[str]:
    """The phrases of a file; which of its text is prose depends on the kind of the file."""
    source = path.read_text(encoding="utf-8")
    return [problem for line, text in _prose(source, path) for problem in problems(text, place, line)]


def _prose(source: str, path: Path) -> Iterator[tuple[int, str]]:
    """The texts for people in a file, each with the line in which it begins."""
    match path.suffix:
        case ".py":
            yield from _of_python(source)
        case ".ts" | ".mjs":
            yield from _of_matches(source, _COMMENT_TS)
        case ".lua":
            yield from _of_matches(source, _COMMENT_LUA)
        case ".json":
            for number, line in enumerate(source.splitlines(), 1):
                yield number, json.loads(f"[{value}]")[0] if (value := _json_string(line)) else ""
        case _:
            yield 1, source


def _of_python(source: str) -> Iterator[tuple[int, str]]:
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    # Comments on successive lines are one text.
    for first in (line for line in comments if line - 1 not in comments):
        last = first
        while last + 1 in comments:
            last += 1
        yield first, _CODE.sub("CODE", "\n".join(comments[line].lstrip("#") for line in range(first, last + 1)))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _PROSE.search(node.value):
            yield node.lineno, _CODE.sub("CODE", node.value)


def _of_matches(source: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    code = comment.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    for match in (*comment.finditer(source), *_STRING.finditer(code)):
        if _PROSE.search(match[0]):
            text = re.sub(r"\n\s*(?:\*|//)\s*", "\n", _INSERTED.sub("VALUE", _CODE.sub("CODE", match[0].strip("`"))))
            yield source.count("\n", 0, match.start()) + 1, text


def _json_string(line: str) -> str:
    """The string value of a line of formatted JSON, with its quotes; empty where there is none."""
    found = re.fullmatch(r"\s*(?:\"[^\"]*\": )?(?P<value>\"(?:\\.|[^\"\\])*\"),?", line)
    return found["value"] if found and _PROSE.search(found["value"]) else ""
