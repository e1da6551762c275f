"""The OpenAPI document, held against what is served."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.routing import Route

from keeve.server.api.openapi import document
from keeve.server.api.operations import TABLE
from keeve.server.app import application
from tests.server_worlds import world


async def test_the_document_has_every_route_and_no_other() -> None:
    async with world() as w:
        said = (await w.nobody.get("/api/v1/openapi.json")).json()
        served = {
            (route.path, method.lower())
            for route in application(w.serving).routes
            if isinstance(route, Route) and route.path.startswith("/api/v1") and not route.path.endswith("openapi.json")
            for method in (route.methods or ())
            if method != "HEAD"
        }
        assert served == {(path, method) for path, item in said["paths"].items() for method in item}


async def test_every_operation_needs_a_token() -> None:
    async with world() as w:
        for path, item in document(TABLE)["paths"].items():
            for method in item:
                answer = await w.nobody.request(method, path.replace("{", "").replace("}", ""))
                assert answer.status_code == 401, (method, path)


def test_every_reference_leads_somewhere() -> None:
    said = document(TABLE)

    def look(item: Any) -> None:
        if isinstance(item, dict):
            if "$ref" in item:
                found: Any = said
                for step in item["$ref"].removeprefix("#/").split("/"):
                    found = found[step]
            for each in item.values():
                look(each)
        elif isinstance(item, list):
            for each in item:
                look(each)

    look(said)


def test_every_operation_has_a_name_and_a_summary_of_its_own() -> None:
    names = [operation.name for operation in TABLE]
    assert len(set(names)) == len(names)
    assert len({operation.summary for operation in TABLE}) == len(names)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
async def test_another_method_is_refused_with_those_that_there_are(method: str) -> None:
    async with world() as w:
        answer = await w.owner.request(method, "/api/v1/sessions")
        assert (answer.status_code, answer.json()["error"]["code"]) == (405, "no_such_method")
        assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
