"""The OpenAPI document and its page: complete, consistent, and in need of nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from rlm_core.serving import openapi, wire


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_message_is_described() -> None:
    found = openapi.document(with_token=False)
    names = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    assert set(references(found)) <= names
    assert {"Request", "Answer", "Info", "Prediction", "Query", "Band", "Limits", "Problem"} <= {
        name.rpartition("/")[2] for name in names
    }
    assert set(found["paths"]) == {wire.PREDICT, wire.INFO, wire.HEALTH, wire.METRICS}


def test_the_example_is_a_request() -> None:
    found = openapi.document(with_token=False)
    content = found["paths"][wire.PREDICT]["post"]["requestBody"]["content"]["application/json"]
    [question] = wire.read_request(json.dumps(content["example"]).encode()).questions
    assert [query.metric for query in question.queries] == ["latency", "memory"]


def test_the_token_is_described_where_there_is_one() -> None:
    assert "security" not in openapi.document(with_token=False)
    found = openapi.document(with_token=True)
    assert found["security"] == [{"token": []}]
    assert found["paths"][wire.HEALTH]["get"]["security"] == []


@pytest.mark.parametrize("with_token", [False, True])
def test_the_page_loads_nothing_and_runs_nothing(with_token: bool) -> None:
    page = openapi.page(openapi.document(with_token=with_token))
    assert not re.search(r"<script|<link|<img|@import|src=|url\(", page)
    assert re.findall(r'href="([^"]*)"', page) == ["openapi.json"]
    assert ("Authorization: Bearer" in page) == with_token
    for name in ("Request", "Prediction", wire.PREDICT):
        assert name in page
