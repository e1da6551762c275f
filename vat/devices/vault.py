"""The vault: the host's credentials, by name. Heaps, records and images hold names; only devices see a value.

A value is looked up at each use, so a rotated key is used from the next call on, and nothing has to be restarted.
The vault remembers the last values that it has given out for one purpose: to take them out of text again (`redact`).

The one rule: no value leaves by another way than `resolve`. None is in a `repr` or an error, and no error here
carries another exception, since that one might quote what it read.
"""

from __future__ import annotations

import json
import os
import re
import stat
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from operator import is_
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote, quote_plus

import attrs

from dataspace.errors import KeeveError
from dataspace.values import Blob, FrozenDict, FrozenList, Symbol, Value

REMEMBERED: Final = 16
"""Values of one credential that are still taken out of text after it has been rotated."""

LARGEST_FILE: Final = 1 << 16
"""Bytes. What is longer is no credential."""

SHORTEST_SECRET: Final = 8
"""Characters, blanks around them not counted. Shorter values are the placeholders that local servers want ("none",
"ollama"), and words of results."""


_URLSAFE: Final = str.maketrans("+/", "-_")


class NoCredential(KeeveError, LookupError, quotes=False):
    """A device asked for a credential that the host does not have; `name` is which one, `reason` why not."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"no credential {self.name!r}: {self.reason}"


class _NotFound(Exception):
    """Why a source has no value; becomes a `NoCredential` with the name."""


class Source(Protocol):
    """Where a credential is found. A callable that gives the value is one, too."""

    def __call__(self) -> str: ...


@attrs.frozen
class Environment:
    """A credential in an environment variable."""

    variable: str
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ, repr=False, eq=False)

    def __call__(self) -> str:
        value = self.environ.get(self.variable, "")
        if not value:
            raise _NotFound(f"the environment variable {self.variable} is not set; set it for the host")
        return value


@attrs.frozen
class File:
    """A credential in a file of its own, which only its owner may read (mode 0600 or stricter)."""

    path: Path = attrs.field(converter=Path)

    def __call__(self) -> str:
        try:
            # Without O_NONBLOCK a named pipe would stop the host until somebody writes into it.
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            reason = f"{self.path}: {error.strerror}; put it there, with mode 0600"
            raise _NotFound(reason) from None
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise _NotFound(f"{self.path} is not a file; name one that holds the value alone")
            if found.st_mode & 0o077:
                mode = stat.S_IMODE(found.st_mode)
                raise _NotFound(f"{self.path} has mode {mode:04o}, so others may read it: chmod 600 {self.path}")
            data = os.read(handle, LARGEST_FILE + 1)
        finally:
            os.close(handle)
        if len(data) > LARGEST_FILE:
            raise _NotFound(f"{self.path} has more than {LARGEST_FILE} bytes; it should hold the value alone")
        text = data.decode(errors="replace").rstrip("\r\n")
        if not text or "\ufffd" in text:
            raise _NotFound(f"{self.path} is empty or not UTF-8 text; it should hold the value alone")
        return text


def forms_of(value: str) -> set[str]:
    """What a value looks like where a device echoes what it sent. Never raises, whatever characters there are in it.

    As it is; as Python, JSON and HTML escape it; as a URL or a form has it; where it is no UTF-8, as it reads when that
    is passed over; each of its lines, if it has several; and, from 8 characters on, in hex and inside of any base64,
    whatever stands before and after it there. All of that also without the blanks around it, as most devices
    send it.
    """
    return {form for each in _bare(value) for form in _forms_of(each)}


def _bare(value: str) -> set[str]:
    """A text as it is, and without the blanks around it."""
    return {value, value.strip()}


def _forms_of(value: str) -> set[str]:
    data = _bytes_of(value)
    percent = quote(data, safe="")
    escaped = json.dumps(value)[1:-1]
    forms = {
        value,
        repr(value)[1:-1],
        repr(data)[2:-1],
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(value, ensure_ascii=False)[1:-1],
    }
    # What is half of a character becomes another one on the way into a value.
    forms.add(value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    forms |= {percent, quote(data), quote_plus(data), _lowered(percent), escape(value)}
    if len(value) >= SHORTEST_SECRET:
        forms |= {data.hex(), data.hex().upper(), data.decode("latin-1")}
        # Where an error is shown inside of another one, something stands before each of its lines.
        lines = {each for line in value.splitlines() for each in _bare(line)}
        forms |= {line for line in lines if len(line) >= SHORTEST_SECRET}
        if sum(map(str.isascii, value)) >= SHORTEST_SECRET:  # what is lost below must leave more than question marks
            forms |= {data.decode(errors="replace")} | {
                value.encode(errors=how).decode() for how in ("replace", "ignore")
            }
        for before in range(3):
            # Six bits a character: those count that hold no bit of what stands before, or after.
            first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
            text = b64encode(bytes(before) + data).decode()[first:last]
            forms |= {text, text.translate(_URLSAFE)}
    forms.discard("")
    return forms


def _bytes_of(text: str) -> bytes:
    """A text in UTF-8, with the bytes that `surrogateescape` has made characters of; any text has some."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def _lowered(percent: str) -> str:
    """A URL's text with its escapes in lower case."""
    return re.sub("%..", lambda found: found[0].lower(), percent)


class Vault:
    """Credentials by name. `Vault({"openai": Environment("OPENAI_API_KEY"), "crm": File("/run/keys/crm")})`.

    add: what who asks for one that is not there is told to do; `{name}` in it is its name.
    """

    def __init__(self, sources: Mapping[str, Source] | None = None, *, add: str = "add the name to it") -> None:
        self._sources = dict(sources or {})
        self._add = add
        self._given: dict[str, tuple[str, ...]] = {}  # the last values of each, in the order in which they were given
        self._forms: list[tuple[str, str, int]] = []  # what a value looks like, its name, its length; longest first

    def names(self) -> list[str]:
        """The names of its credentials, sorted."""
        return sorted(self._sources)

    def resolve(self, name: str) -> str:
        """The value of a credential, looked up now. Raises `NoCredential`, which says what to do."""
        source = self._sources.get(name)
        if source is None:
            known = ", ".join(self.names()) or "nothing"
            raise NoCredential(name, f"this host's vault has {known}; {self._add.format(name=name)}")
        reason = None
        value: object = None
        try:
            value = source()
        except _NotFound as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - sources are the users' code, and may raise anything
            reason = f"its source raised {type(error).__name__}"
        if reason is None and (not isinstance(value, str) or not value):
            reason = f"its source gave {'nothing' if not value else type(value).__name__}; it has to give a str"
        if reason is not None:
            raise NoCredential(name, reason)  # outside of the handler: it must not carry what the source raised
        assert isinstance(value, str)
        value = str.__str__(value)  # a subclass may compare and encode as it likes
        self._remember(name, value)
        return value

    def redact(self, text: str, at_least: int = 1) -> str:
        """`text` with the names of credentials in the place of values that have been given out.

        Finds a value in the forms of `forms_of`, and not encoded in other ways. Values of fewer than `at_least`
        characters, blanks around them not counted, stay. Costs one search of the text for each of those forms.
        """
        for form, name, length in self._forms:
            if length >= at_least and form in text:
                text = text.replace(form, f"‹credential {name}›")
        return text

    def redact_value(self, value: Value) -> Value:
        """A frozen value without the values that have been given out; itself when there are none.

        Looks into each string of it: keys, symbols, bytes, and the contents and media types of blobs as well.

        Values under 8 characters are no secrets, and stay.
        """
        if not self._forms:
            return value
        kind = type(value)
        if issubclass(kind, str):
            clean = self.redact(value, SHORTEST_SECRET)
            return value if clean == value else kind(clean)
        if issubclass(kind, dict):
            changed = {self.redact(k, SHORTEST_SECRET): self.redact_value(v) for k, v in value.items()}
            same = all(map(is_, changed, value)) and all(map(is_, changed.values(), value.values()))
            return value if same else FrozenDict(changed)
        if issubclass(kind, list):
            items = [self.redact_value(item) for item in value]
            return value if all(map(is_, items, value)) else FrozenList(items)
        if kind is bytes:
            return self._redact_bytes(value)
        if kind is Symbol:
            clean = self.redact(value.name, SHORTEST_SECRET)
            return value if clean == value.name else clean
        if kind is Blob:
            clean = self.redact(value.media_type, SHORTEST_SECRET)
            content = self._redact_bytes(value.content)
            same = clean == value.media_type and content is value.content
            return value if same else Blob(clean, content)
        return value

    def _redact_bytes(self, content: bytes) -> bytes:
        for form, name, length in self._forms:
            if length >= SHORTEST_SECRET and (data := _bytes_of(form)) in content:
                content = content.replace(data, _bytes_of(f"‹credential {name}›"))
        return content

    def _remember(self, name: str, value: str) -> None:
        """Have a value taken out of text from now on. Either that is so when this returns, or nothing has changed."""
        given = self._given.get(name, ())
        if given and given[-1] == value:
            return
        # The one that was given last is the last one to be forgotten, also if it had been given before.
        now = {**self._given, name: (*(each for each in given if each != value), value)[-REMEMBERED:]}
        forms = {
            (form, name, len(value.strip()))
            for name, values in now.items()
            for value in values
            for form in forms_of(value)
        }
        # The longest first: of a value that begins with another one nothing must be left over.
        self._forms = sorted(forms, key=lambda each: (-len(each[0]), each))
        self._given = now

    def __repr__(self) -> str:
        shown = (
            f"{name}={source!r}" if isinstance(source, Environment | File) else f"{name}=..."
            for name, source in sorted(self._sources.items())
        )
        return f"Vault({', '.join(shown)})"
