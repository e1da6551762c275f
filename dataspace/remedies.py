"""Remedies: what the messages of errors say to do, each under a code, so that it can be said in other words elsewhere.

A message is written for a program in Python, which has a host. Who reads it over HTTP, at a prompt or in the log of a
server has none, and is told what they can do. Of an error that was recorded nothing is left but its text; so a remedy
is found in a text by the very words that it is said with.

    CHOOSE = Remedy("choose-id", "get it with host.get({id}), or choose another id")
    message = f"there is a session {id!r} already: {CHOOSE(id=repr(id))}"
    CHOOSE.put(message, "keeve show {id} shows it")

The one rule: a sentence that is not the same everywhere stands in one place, as a remedy; and errors are made of it.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from string import Formatter
from typing import Final

REMEDIES: Final[dict[str, Remedy]] = {}
"""All of them, by their codes, as the modules that have them are imported."""


class Remedy:
    """What to do, or another part of a message that depends on who reads it. `{name}` in its words stands for data.

    It begins and ends with words. One that stands in the middle of a sentence brings what joins it.

    >>> CALL = Remedy("call", "call {name}(force=...) for {name}")
    >>> CALL(name="delete")
    'call delete(force=...) for delete'
    >>> CALL.put("it runs: call delete(force=...) for delete; or wait", "give --force to {name}")
    'it runs: give --force to delete; or wait'
    >>> del REMEDIES["call"]
    """

    def __init__(self, code: str, words: str) -> None:
        if code in REMEDIES:
            raise ValueError(f"there is a remedy {code!r} already")
        self.code = code
        self.words = words
        REMEDIES[code] = self

    def __call__(self, **data: object) -> str:
        """It, in the words for programs."""
        return self.words.format_map(data)

    def data(self, message: str) -> Mapping[str, str] | None:
        """What it says of its data in a message; None if it is not in there."""
        found = _pattern(self.words)[1].search(message)
        return None if found is None else found.groupdict()

    def put(self, message: str, words: str) -> str:
        """A message with other words in its place, wherever it is in there."""
        return put(message, self.words, words)


def put(message: str, said: str, words: str) -> str:
    """A message with other words in the place of those that were said, which have their data as a remedy has. Where
    these have not all that the other words take, it stays as it is."""
    start, pattern = _pattern(said)
    if start not in message or not _names(words) <= pattern.groupindex.keys():
        return message
    return pattern.sub(lambda found: filled(words, found.groupdict()), message)


def filled(words: str, data: Mapping[str, str]) -> str:
    """Words with what they say of the data. `{id:typed}` stands for it as a word of a command, also where a message had
    it in quotes.

    >>> filled("{id} is shown by keeve show {id:typed}", {"id": "'a'"})
    "'a' is shown by keeve show a"
    """
    return words.format_map({name: _Data(each) for name, each in data.items()})


def command(name: str, *words: object, **options: object) -> str:
    """A command of `keeve` with these words and options, as it is typed at a prompt. An option that is None is left
    out, one that is True is a flag. Whatever a session or a folder is called, it is one word, and no option.

    >>> command("fork", "a b", at=3), command("show", "-x"), command("show", "s1", actors=None)
    ("keeve fork 'a b' --at 3", 'keeve show -- -x', 'keeve show s1')
    """
    said, given = [str(word) for word in words], [word for pair in options.items() for word in _given(*pair)]
    behind = [*given, "--", *said] if any(word.startswith("-") for word in said) else [*said, *given]
    return shlex.join(["keeve", name, *behind])


def _given(option: str, value: object) -> list[str]:
    """An option, and its value, which may look like one; a flag has none."""
    if value is None or value is True:
        return [f"--{option}"] if value else []
    return [f"--{option}={value}"] if str(value).startswith("-") else [f"--{option}", str(value)]


class _Data(str):
    """What a message says of its data: see `filled`."""

    def __format__(self, how: str) -> str:
        if how != "typed":
            return str.__format__(self, how)
        try:
            said = ast.literal_eval(self)
        except (ValueError, SyntaxError):
            said = None
        word = said if isinstance(said, str) else str(self)
        return f"{'-- ' if word.startswith('-') else ''}{shlex.quote(word)}"


@cache
def _pattern(words: str) -> tuple[str, re.Pattern[str]]:
    """What they begin with, and what finds them."""
    return next(iter(Formatter().parse(words)))[0], re.compile("".join(_parts(words)), re.DOTALL)


@cache
def _names(words: str) -> frozenset[str]:
    """The data that they take."""
    return frozenset(name for _, name, _, _ in Formatter().parse(words) if name is not None)


def _parts(words: str) -> Iterator[str]:
    seen: set[str] = set()
    for said, name, _, _ in Formatter().parse(words):
        yield re.escape(said)
        if name in seen:
            yield f"(?P={name})"
        elif name is not None:
            seen.add(name)
            yield f"(?P<{name}>.*?)"
