"""What a server of the Model Context Protocol says, in the forms that models and records take.

The one rule: pure functions of what the protocol has as JSON; nothing here knows how it was brought.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from dataspace.values import Blob

_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


def schema_of(tool: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A tool of a server in the form that models take, under the `name` that they call it by.

    >>> schema_of({"name": "list.files", "inputSchema": {"type": "object"}}, "fs_list_files")["function"]["name"]
    'fs_list_files'
    """
    accepted = {"type": "object", "properties": {}, **tool["inputSchema"]}
    function = {"name": name, "description": tool.get("description") or "", "parameters": accepted}
    return {"type": "function", "function": function}


def names_of(names: Iterable[str], prefix: str) -> dict[str, str]:
    """What a model calls the tools of a server, by what the server calls them: `prefix`, and `_` for what may not be.

    Of those that would be the same, the ones that had to be changed get a few hex digits more.

    >>> names_of(["list.files", "read"], "fs_")
    {'list.files': 'fs_list_files', 'read': 'fs_read'}
    >>> names_of(["a.b", "a_b", "a-b"], "")
    {'a.b': 'a_b_2e7336dc', 'a_b': 'a_b', 'a-b': 'a-b'}
    """
    plain = {name: f"{prefix}{_UNFIT.sub('_', name)}" for name in names}
    shared = Counter(plain.values())
    return {
        name: f"{fit}_{sha256(name.encode(errors='replace')).hexdigest()[:8]}"
        if shared[fit] > 1 and _UNFIT.search(name)
        else fit
        for name, fit in plain.items()
    }


def value_of(result: Mapping[str, Any]) -> Any:
    """What a tool has answered: a text, content parts if there are pictures among it, or what it gives as data alone.

    >>> value_of({"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]})
    'one\\ntwo'
    >>> value_of({"content": [{"type": "image", "data": "iVBORw==", "mimeType": "image/png"}]})
    [{'type': 'image_url', 'image_url': {'url': Blob(media_type='image/png', content=b'\\x89PNG')}}]
    >>> value_of({"content": [], "structuredContent": {"rows": 3}})
    {'rows': 3}
    """
    parts = [part_of(block) for block in result.get("content") or ()]
    if not parts and result.get("structuredContent") is not None:
        return result["structuredContent"]
    return parts if any(part["type"] != "text" for part in parts) else text_of(parts)


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """The texts of content parts, a line each."""
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def part_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """One piece of an answer as a content part: a text or a picture; of anything else, that it is there.

    >>> part_of({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})
    {'type': 'text', 'text': '[audio/wav of 3 bytes, which is not passed on]'}
    >>> part_of({"type": "resource_link", "uri": "file:///a", "name": "a"})
    {'type': 'text', 'text': '[a: file:///a]'}
    """
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": block["text"]}
    if kind in ("image", "audio"):
        return _content(block["mimeType"], block["data"])
    if kind == "resource":
        held = block["resource"]
        if "text" in held:
            return {"type": "text", "text": held["text"]}
        return _content(held.get("mimeType") or "application/octet-stream", held["blob"])
    if kind == "resource_link":
        return {"type": "text", "text": f"[{block['name']}: {block['uri']}]"}
    return {"type": "text", "text": f"[{kind}, which is not passed on]"}


def _content(media_type: str, data: str) -> dict[str, Any]:
    try:
        content = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return {"type": "text", "text": f"[{media_type}, which is no base64]"}
    if media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": Blob(media_type, content)}}
    return {"type": "text", "text": f"[{media_type} of {len(content)} bytes, which is not passed on]"}
