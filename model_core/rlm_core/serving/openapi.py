"""The server's OpenAPI 3.1 document, made from the messages' dataclasses, and a page that shows it.

The page is plain HTML with its style inside: it works on a machine that reaches nothing else, and runs no script.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from . import wire
from .typed_json import schemas

_PROBLEMS = {
    "400": "The body is not a request; the line says where and what was expected.",
    "401": "The token is missing or wrong.",
    "408": "The request did not arrive in time.",
    "413": "The request holds more than one may; /v3/info has the limits.",
    "415": "The body is not declared as application/json.",
    "503": "Too many texts wait; ask again after Retry-After seconds.",
    "504": "The model was too slow.",
}
_EXAMPLE = {
    "questions": [
        {
            "text": "def f(n):\n    return sum(range(n))",
            "language": "python",
            "basis": "call",
            "queries": [{"metric": "latency"}, {"metric": "memory"}],
        }
    ]
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#8881;padding:.8rem;overflow:auto}td,th{padding:.2rem .8rem .2rem 0;vertical-align:top;"
    "text-align:left}:root{color-scheme:light dark}"
)


def document(*, with_token: bool) -> dict[str, Any]:
    """The OpenAPI document of a server that wants a token or not."""
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "rlm-lsp model server",
            "version": wire.program_version(),
            "description": "Predicts what code will cost: latency (s), memory (bytes), accuracy. Nothing is run."
            " A query without device or workload asks for the model's defaults.",
        },
        "paths": {
            wire.PREDICT: {"post": _operation("Answer questions about texts.", "Answer", *_PROBLEMS, body="Request")},
            wire.INFO: {"get": _operation("The model, its devices, default queries and limits.", "Info", "401")},
            wire.HEALTH: {"get": {**_operation("Whether the server is up.", "Health"), "security": []}},
            wire.METRICS: {"get": _metrics()},
        },
        "components": {"schemas": schemas(wire.Request, wire.Answer, wire.Info, wire.Health, wire.Problem)},
    }
    if with_token:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def as_json(found: dict[str, Any]) -> str:
    """The document as it is served."""
    return json.dumps(found, indent=1)


def page(found: dict[str, Any]) -> str:
    """The document for people, with a command to try."""
    rows = "".join(
        f"<tr><td><code>{method.upper()} {escape(path)}</code><td>{escape(operation['summary'])}"
        f"<td>{_replies(operation)}"
        for path, methods in found["paths"].items()
        for method, operation in methods.items()
    )
    shapes = "".join(_shape(name, schema) for name, schema in found["components"]["schemas"].items())
    token = ' -H "Authorization: Bearer $RLM_LSP_TOKEN"' if "security" in found else ""
    body = json.dumps(_EXAMPLE).replace("'", "'\\''")
    command = f"curl -H 'Content-Type: application/json'{token} \\\n  -d '{body}' \\\n  http://HOST:PORT{wire.PREDICT}"
    title = escape(f"{found['info']['title']} {found['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
        f"<h1>{title}</h1><p>{escape(found['info']['description'])}"
        f' The whole description is <a href="openapi.json">openapi.json</a>.'
        f"<h2>Addresses</h2><table>{rows}</table><h2>Try it</h2><pre>{escape(command)}</pre>"
        f"<h2>Messages</h2><p>JSON has no infinity: it is written as the string <code>Infinity</code>.{shapes}</html>"
    )


def _replies(operation: dict[str, Any]) -> str:
    return "<br>".join(f"{status} {escape(reply['description'])}" for status, reply in operation["responses"].items())


def _shape(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(field)}</code>{'' if field in schema['required'] else ' (optional)'}"
        f"<td>{escape(_words(kind))}"
        for field, kind in schema["properties"].items()
    )
    about = escape(schema["description"].replace("``", ""))
    return f'<h3 id="{name}">{name}</h3><p>{about}<table>{rows}</table>'


def _words(kind: dict[str, Any]) -> str:
    """A schema in words, like ``list of Query``."""
    if "$ref" in kind:
        return str(kind["$ref"]).rpartition("/")[2]
    if "enum" in kind:
        return " | ".join(map(json.dumps, kind["enum"]))
    if "anyOf" in kind:
        return " | ".join(map(_words, kind["anyOf"]))
    if "prefixItems" in kind:
        return f"[{', '.join(map(_words, kind['prefixItems']))}]"
    if kind["type"] == "array":
        return f"list of {_words(kind['items'])}"
    return f"object of {_words(kind['additionalProperties'])}" if kind["type"] == "object" else str(kind["type"])


def _content(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _operation(summary: str, reply: str, *problems: str, body: str | None = None) -> dict[str, Any]:
    replies = {"200": {"description": f"{reply}.", "content": _content(reply)}}
    replies |= {status: {"description": _PROBLEMS[status], "content": _content("Problem")} for status in problems}
    found: dict[str, Any] = {"summary": summary, "responses": replies}
    if body is not None:
        content = _content(body)
        content["application/json"]["example"] = _EXAMPLE
        found["requestBody"] = {"required": True, "content": content}
    return found


def _metrics() -> dict[str, Any]:
    replies = {
        "200": {"description": "Counters in Prometheus' text format.", "content": {"text/plain": {}}},
        "401": {"description": _PROBLEMS["401"], "content": _content("Problem")},
    }
    return {"summary": "What the server has done since it started.", "responses": replies}
