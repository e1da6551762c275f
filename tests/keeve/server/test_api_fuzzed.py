"""Every operation of the API, asked with what the document allows and with what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode, checks

from keeve.server.api.openapi import document
from keeve.server.api.operations import TABLE
from keeve.testing import folder_for_stores
from tests.server_process import Server, server

EXAMPLES = 8
HELD = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)
"""What every answer has to be, whatever was asked."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = folder_for_stores(tmp_path_factory.mktemp("fuzzed")) / "s"
    with server(store, "--requests", "1000000", "--log-level", "warning") as running:
        yield running
        leaks = [line for line in running.log.read_text().splitlines() if "Traceback" in line or running.token in line]
        assert leaks == []


@pytest.fixture(scope="module")
def operations(served: Server) -> dict[str, Any]:
    """What may be asked, by its name."""
    schema = schemathesis.openapi.from_dict(document(TABLE))
    schema.config.update(base_url=served.address)
    return {each.ok().definition.raw["operationId"]: each.ok() for each in schema.get_all_operations()}


@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
@pytest.mark.parametrize("there", [False, True], ids=["as it comes", "of a session that is there"])
@pytest.mark.parametrize("name", [operation.name for operation in TABLE])
def test_no_request_is_a_mistake_of_the_server(
    served: Server, operations: dict[str, Any], name: str, there: bool, mode: GenerationMode
) -> None:
    operation = operations[name]
    if there and "{id}" not in operation.path:
        return

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        if there:
            with served.client() as client:
                case.path_parameters["id"] = client.post("/api/v1/sessions", json={}).json()["id"]
        response = case.call(headers=served.headers)
        case.validate_response(response, checks=list(HELD))

    ask()


def test_an_address_without_end_is_answered_as_the_document_says(served: Server) -> None:
    schema = schemathesis.openapi.from_dict(document(TABLE))
    schema.config.update(base_url=served.address)
    operation = schema["/api/v1/dataspace"]["GET"]
    case = operation.Case(query={"pattern": "x" * 200_000})
    response = case.call(headers=served.headers)
    assert response.status_code == 431
    case.validate_response(response, checks=list(HELD))
