"""An answer at the prompt, shown as it comes.

The one rule: what is streamed is thrown away. What counts is the answer that the session gives in the end.
"""

from __future__ import annotations

from typing import Any

from keeve.cli.output import Output
from keeve.cli.text import Cleaner


class Stream:
    """What a model tells while it answers, shown as it comes."""

    def __init__(self, output: Output, session: str) -> None:
        self._output = output
        self._session = session
        self._cleaner = Cleaner()
        self._attempt: Any = None
        self._shown = ""

    def hear(self, session: str, effect: str, value: Any) -> None:
        """One thing that an effect told; called in the host's thread."""
        if session != self._session or not isinstance(value, dict) or not isinstance(value.get("delta"), dict):
            return
        content = value["delta"].get("content")
        if not isinstance(content, str):
            return
        if value.get("attempt") != self._attempt:
            # What an earlier attempt told is void.
            self.end()
            self._attempt = value.get("attempt")
        text = self._cleaner.of(content)
        self._shown += text
        self._output.piece(text)

    def end(self) -> str:
        """The answer is whole, or begins again: gives what was shown of it."""
        shown, self._shown = self._shown, ""
        if shown and not shown.endswith("\n"):
            self._output.say()
        return shown
