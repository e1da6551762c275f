"""A model that says again what was said last. It needs no network, no key and no time: for a first try, and for tests.

The one rule: it looks at the last message only, so its cost does not grow with the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataspace.values import Erased
from vat.devices.devices import Effect, effect


class EchoModel:
    """Answers with the text of the last message."""

    @effect(on_crash="retry")
    async def complete(
        self,
        effect: Effect,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """The answer; see the package. Tools and options change nothing."""
        content = messages[-1].get("content") if len(messages) else ""
        return {
            "message": {"role": "assistant", "content": text_of(content)},
            "usage": None,
            "model": "echo",
            "finish_reason": "stop",
        }


def text_of(content: Any) -> str:
    """The text in a message's content: the string, or the text parts one after another.

    >>> text_of([{"type": "text", "text": "look: "}, {"type": "image_url"}, {"type": "text", "text": "a cat"}])
    'look: a cat'
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Erased):
        return "[erased]"
    if isinstance(content, list):
        return "".join(text_of(part.get("text")) for part in content if isinstance(part, Mapping))
    return ""
