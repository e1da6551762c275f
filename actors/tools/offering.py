"""What is offered: the names of the tools that a model may call, by the schemas that it was given.

The one rule: what is not offered is not called, whatever the device has for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vat.objects.views import Listed, unread


def offered(schemas: Listed[Mapping[str, Any]]) -> list[str]:
    """The names in these schemas, in their order. Reads nothing else of them."""
    names = []
    for at in range(len(schemas)):
        try:
            names.append(unread(schemas, at)["function"]["name"].read())
        except (LookupError, TypeError):  # a tool of another kind, which the model's service has itself
            continue
    return names
