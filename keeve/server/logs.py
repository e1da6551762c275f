"""The log of the server: structured, for people or as JSON, on the standard error.

What the host and the HTTP server tell Python's loggers `keeve` and `hypercorn.error` comes here as well.

The one rule: no secret is in it. Every line passes `Secrets`, whole and last: what stands under the name of a secret is
left out, and wherever it stands what looks like one, which every narrowed token and sturdy ref does, and what is known
to be one, in whatever way it is encoded. Paths are logged without their query.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, Final, Protocol, TextIO

import structlog

from keeve.remedies import worded
from vat.devices.vault import forms_of

LEFT_OUT: Final = "[secret]"

NAMES: Final = re.compile(r"authorization|cookie|token|secret|password|api[_-]?key|credential", re.IGNORECASE)

SHAPED: Final = re.compile(
    r"(?i)(\bbearer\s+|\bbasic\s+|token=|\bsk-|keeve1(?:\.|%2e)|keeve-ref1(?:\.|%2e))[^\s\"'&,;]+"
)
"""What looks like a secret, in any text."""


class Log(Protocol):
    """What parts log with: an event's name, and what belongs to it."""

    def debug(self, event: str, **said: Any) -> Any: ...
    def info(self, event: str, **said: Any) -> Any: ...
    def warning(self, event: str, **said: Any) -> Any: ...
    def error(self, event: str, **said: Any) -> Any: ...


Event = MutableMapping[str, Any]
Processor = Callable[[Any, str, Event], Any]


class Secrets:
    """The values that are in no log, and what takes them out."""

    def __init__(self) -> None:
        self._forms: list[str] = []
        self._redact: Callable[[str], str] = str

    def add(self, value: str) -> None:
        """From now on this value is left out, wherever it stands, and also as URLs, JSON, hex and base64 have it."""
        if len(value) >= 8:
            self._forms = sorted({*self._forms, *forms_of(value)}, key=len, reverse=True)

    def by(self, redact: Callable[[str], str]) -> None:
        """From now on what this takes out of a text is left out as well."""
        self._redact = redact

    def __call__(self, _: Any, __: str, event: Event) -> Event:
        for name, value in event.items():
            event[name] = LEFT_OUT if NAMES.search(name) else self.without(value)
        return event

    def without(self, value: Any) -> Any:
        """A value without secrets, as something to log."""
        if isinstance(value, str):
            for form in self._forms:
                if form in value:
                    value = value.replace(form, LEFT_OUT)
            value = self._redact(value)
            return SHAPED.sub(lambda found: f"{found[1]}{LEFT_OUT}", value)
        if isinstance(value, list | tuple):
            return [self.without(item) for item in value]
        if isinstance(value, dict):
            return {name: LEFT_OUT if NAMES.search(str(name)) else self.without(item) for name, item in value.items()}
        return value if value is None or isinstance(value, int | float) else self.without(str(value))


def make_log(secrets: Secrets, *, form: str = "text", level: str = "info", out: TextIO | None = None) -> Log:
    """A log that writes to `out` (the standard error), one line for each event."""
    stream = sys.stderr if out is None else out
    ending: list[Processor] = [structlog.processors.JSONRenderer(default=str)] if form == "json" else [_as_text]
    return structlog.wrap_logger(  # type: ignore[no-any-return]  # it gives a logger that takes what Log has
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            secrets,
            *ending,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        cache_logger_on_first_use=False,
    )


def _as_text(_: Any, __: str, event: Event) -> str:
    """A line for people; what others have said in it cannot do anything to a terminal."""
    head = f"{event.pop('timestamp')} {event.pop('level'):7} {event.pop('event')}"
    trace = event.pop("exception", None)
    said = " ".join(
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in event.items()
    )
    line = on_one_line(f"{head}  {said}".rstrip())
    return line if trace is None else "\n".join([line, *map(on_one_line, str(trace).splitlines())])


def on_one_line(text: str) -> str:
    """Text of which nothing is obeyed by a terminal, on one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class LogHandler(logging.Handler):
    """Takes what Python's loggers are told into a log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        tell = getattr(self._log, record.levelname.lower(), self._log.error)
        error = record.exc_info[1] if record.exc_info else None
        shown = {} if error is None else {"exc_info": error}
        try:
            tell(worded(record.getMessage(), "log"), logger=record.name, **shown)
        except Exception as trouble:  # noqa: BLE001  # it may have come from users' code, and ends nobody
            tell("this cannot be shown", logger=record.name, said=str(record.msg), why=type(trouble).__name__)


def listens(log: Log, level: str = "info") -> None:
    """Have Python's loggers `keeve` and `hypercorn` tell this log, and nobody else: for the process of a server."""
    for name in ("keeve", "hypercorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [LogHandler(log)]
        logger.setLevel(getattr(logging, level.upper()))
        logger.propagate = False
