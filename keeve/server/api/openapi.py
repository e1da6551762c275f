"""The OpenAPI 3.1 document of the API, made of the table of operations and of the types that they take and give.

The one rule: nothing is said here that the table does not say.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from keeve.server import repeating
from keeve.server.api.shapes import ErrorFace
from keeve.server.api.table import PREFIX, Operation
from keeve.version import installed
from vat.heap.messages import LONGEST_REQUEST

ABOUT: Final = """Durable conversations over one hash-chained log. Every error has one shape, with a stable code,
what was wrong and what to do. An operation that changes something may carry an Idempotency-Key: asked again with it, it
answers as it did the first time. Values that JSON has not got are objects with one key that begins with `$`."""

REFUSED: Final = {
    "400": "The request cannot be read.",
    "401": "Nobody who is known asks.",
    "403": "Who asks may not do that, or the page that asks may not.",
    "404": "There is no such thing, or not for who asks.",
    "405": "This path has other methods.",
    "408": "The body did not come in time.",
    "409": "It cannot be as things are now.",
    "410": "The session was deleted, and its id does not come back.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "421": "The Host is none of this server's names.",
    "422": "What was asked cannot be.",
    "429": "Too much at once, or too often.",
    "500": "A mistake of the server's, or damage in the store.",
    "502": "A model or a tool has failed.",
    "503": "Not now: the server is stopping, or cannot write.",
    "507": "The disk of the server is full.",
}
"""What every operation may be answered with besides."""

UNREAD: Final = {"431": "The address or a header is too long, or there are too many headers: nothing of it was read."}
"""What is said before a request is one, and so without a body."""

REF: Final = "#/components/schemas/{name}"
KEY: Final = {"$ref": "#/components/parameters/IdempotencyKey"}


def document(table: Iterable[Operation]) -> dict[str, Any]:
    """The document."""
    table = tuple(table)
    kinds = {kind for each in table for kind in (each.takes, each.gives) if kind is not None}
    _, schemas = msgspec.json.schema_components(
        [*sorted(kinds, key=lambda kind: kind.__name__), ErrorFace], ref_template=REF
    )
    paths: dict[str, Any] = {}
    for operation in table:
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Keeve", "version": installed(), "description": ABOUT, "license": {"name": "Apache-2.0"}},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "parameters": {"IdempotencyKey": _key()},
            "responses": {
                **{status: _refused(said) for status, said in REFUSED.items()},
                **{status: {"description": said} for status, said in UNREAD.items()},
            },
            "schemas": schemas,
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    said: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": inspect.getdoc(operation.does) or "",
        "tags": [operation.tag],
        "x-keeve-verb": operation.verb,
        "parameters": [*_in_path(operation), *_in_query(operation), *([KEY] if operation.keyed else [])],
        "responses": {
            str(operation.status): {"description": operation.summary, "content": _content(operation)},
            **{status: {"$ref": f"#/components/responses/{status}"} for status in (*REFUSED, *UNREAD)},
        },
    }
    if operation.takes is not None:
        schema = {"$ref": REF.format(name=operation.takes.__name__)}
        required = any(field.required for field in msgspec.structs.fields(operation.takes))
        said["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return said


def _content(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": REF.format(name=operation.gives.__name__)}}}
    return content | {kind: {"schema": {"type": "string"}} for kind in operation.streams}


def _in_path(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]


def _in_query(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    _, found = msgspec.json.schema_components([operation.query])
    schema = found[operation.query.__name__]
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "schema": _without_null({key: value for key, value in said.items() if key != "description"}),
            **({"description": said["description"]} if "description" in said else {}),
        }
        for name, said in schema["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """In a query what is not given is left out: there is no null."""
    if "anyOf" in schema:
        [kind] = [each for each in schema["anyOf"] if each != {"type": "null"}]
        return {**{key: value for key, value in schema.items() if key not in ("anyOf", "default")}, **kind}
    return schema


def _key() -> dict[str, Any]:
    return {
        "name": repeating.KEY,
        "in": "header",
        "required": False,
        "description": "Asked again with it, and with the same content, the first answer is given again.",
        "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_REQUEST},
    }


def _refused(said: str) -> dict[str, Any]:
    schema = {"$ref": REF.format(name=ErrorFace.__name__)}
    return {"description": said, "content": {"application/json": {"schema": schema}}}
