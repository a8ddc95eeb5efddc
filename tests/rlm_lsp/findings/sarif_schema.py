"""The part of SARIF 2.1.0 that we write, as a closed JSON schema: a property that is not here is refused.

Written from the rules of the OASIS Standard (sections in comments), since the committee's own schema is not ours to
ship: names, types, required properties and values of what ``rlm-lsp check --format sarif`` uses.
"""

from __future__ import annotations

from typing import Any


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


def _array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


_TEXT = {"type": "string"}
_POSITIVE = {"type": "integer", "minimum": 1}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}
_BAG = {"type": "object"}  # 3.8
_MESSAGE = _object(("text",), text=_TEXT)  # 3.11
_ARTIFACT = _object(  # 3.4
    ("uri",),
    uri={"type": "string", "pattern": r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?[A-Za-z0-9._~!$&'()*+,;=:@/%-]+$"},
    uriBaseId=_TEXT,
)
_REGION = _object(  # 3.30: lines and columns start at 1, the end column is behind the last character
    ("startLine",), startLine=_POSITIVE, startColumn=_POSITIVE, endLine=_POSITIVE, endColumn=_POSITIVE
)
_PHYSICAL = _object(("artifactLocation",), artifactLocation=_ARTIFACT, region=_REGION)  # 3.29
_LOCATION = _object(  # 3.28
    (),
    id={"type": "integer", "minimum": -1},
    physicalLocation=_PHYSICAL,
    logicalLocations=_array(_object((), fullyQualifiedName=_TEXT, kind=_TEXT), uniqueItems=True),  # 3.33
    message=_MESSAGE,
)
_RESULT = _object(  # 3.27
    ("message",),
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=_LEVEL,
    message=_MESSAGE,
    locations=_array(_LOCATION),
    relatedLocations=_array(_LOCATION, uniqueItems=True),
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
    properties=_BAG,
)
_RULE = _object(  # 3.49
    ("id",),
    id=_TEXT,
    name=_TEXT,
    shortDescription=_MESSAGE,
    help=_MESSAGE,
    defaultConfiguration=_object((), level=_LEVEL),  # 3.50
)
_DRIVER = _object(("name",), name=_TEXT, version=_TEXT, rules=_array(_RULE, uniqueItems=True))  # 3.19
_RUN = _object(  # 3.14
    ("tool",),
    tool=_object(("driver",), driver=_DRIVER),  # 3.18
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=_array(_RESULT),
)
SCHEMA = _object(  # 3.13
    ("version", "runs"),
    **{"$schema": {"type": "string", "pattern": "^https://.*sarif-schema-2.1.0.json$"}},
    version={"const": "2.1.0"},
    runs=_array(_RUN),
)
