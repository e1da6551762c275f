"""Calling tools without a host: one call at a time, as the runner would."""

from __future__ import annotations

import json
from typing import Any

from actors.tools import Tools
from vat.devices.devices import Effect


def an_effect(**more: Any) -> Effect:
    given: dict[str, Any] = {
        "id": "0" * 32,
        "device": "tools",
        "method": "run",
        "session": "s1",
        "attempt": 1,
        "progress": lambda value: None,
        "credential": lambda name: name,
        **more,
    }
    return Effect(**given)


def a_call(name: str, arguments: Any = None, id: str = "a") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str | None) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


async def run(tools: Tools, name: str, arguments: Any = None, approved: bool = False, **effect: Any) -> Any:
    return await tools.run(an_effect(**effect), a_call(name, arguments), approved)
