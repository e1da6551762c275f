"""Terms: what stands in a pattern where a fact has a value.

`ANY` (`_`) accepts everything, a `Capture` (`?`, `?name`) accepts and keeps it, a `Literal` accepts what is
the same value, a `ListTerm` and a `DictTerm` look inside. Each answers `accepts(value, named, unnamed)`,
adding what it captures to the last two, and has its text as `str()`.

The one rule: a term has one shape. A list or dict of nothing but literals *is* a literal, so the text form
and the Python form of a pattern come to the same terms, and equal text means equal patterns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.facts import WORDS, is_word
from dataspace.values import ERASED, MAX_DEPTH, Symbol, freeze, key_of, render

_MARGIN = 60  # how much of a long line is shown on either side of the caret


class BadPattern(KeeveError, ValueError):
    """Something that is no pattern.

    From text, the message shows the line with a caret under the place: `text` is the whole of it, `at` the
    index in it. From Python both are `None`. `problem` says what is wrong and what was expected.
    """

    usage: ClassVar[bool] = True

    def __init__(self, problem: str, text: str | None = None, at: int | None = None) -> None:
        super().__init__(problem if text is None or at is None else f"{problem}\n{_shown(text, at)}")
        self.problem = problem
        self.text = text
        self.at = at


def _shown(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    line = "".join(char if char.isprintable() else " " for char in text[start:].partition("\n")[0])
    column = at - start
    left, right = max(0, column - _MARGIN), column + _MARGIN
    before, after = "… " if left else "", " …" if right < len(line) else ""
    return f"  {before}{line[left:right]}{after}\n  {' ' * (len(before) + column - left)}^"


def literal_key(value: Any) -> Any:
    """A hashable stand-in for a value: equal exactly when the values are the same.

    Strings and integers stand for themselves, being most of what is asked for; all others are their
    canonical bytes. None of these three kinds is ever equal to another.
    """
    kind = type(value)
    return value if kind is str or kind is int else key_of(value)


class Term:
    """What all terms are."""

    __slots__ = ()

    def accepts(self, value: object, named: dict[str, Any], unnamed: list[Any]) -> bool:
        """Whether `value` fits; what is captured on the way is added to `named` and `unnamed`."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Term) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


class Anything(Term):
    """`_`. There is one, `ANY`."""

    __slots__ = ()

    def accepts(self, value: object, named: dict[str, Any], unnamed: list[Any]) -> bool:
        return True

    def __str__(self) -> str:
        return "_"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = Anything()


class Capture(Term):
    """`?` or `?name`. A name that comes twice accepts only the same value again."""

    __slots__ = ("name",)

    def __init__(self, name: str | None) -> None:
        self.name = name

    def accepts(self, value: object, named: dict[str, Any], unnamed: list[Any]) -> bool:
        if self.name is None:
            unnamed.append(value)
        elif self.name in named:
            return _same(named[self.name], value)
        else:
            named[self.name] = value
        return True

    def __str__(self) -> str:
        return f"?{self.name or ''}"

    def __repr__(self) -> str:
        return "capture()" if self.name is None else f"capture({self.name!r})"


def capture(name: str | None = None) -> Capture:
    """A term that accepts anything and keeps it, under its name or else by its place among the unnamed."""
    if name is not None and not (isinstance(name, str) and is_word(name)):
        raise BadPattern(f"{name!r} cannot name a capture: {WORDS}")
    return Capture(name)


class Literal(Term):
    """A value, to be met exactly: `1`, `1.0` and `#t` differ, and so do `"turn"` and `turn`."""

    __slots__ = ("_simple", "key", "value")

    def __init__(self, value: Any) -> None:
        if _mentions_erased(value):
            raise BadPattern("erased content cannot be asked for: only `_` and captures accept it")
        self.value = value
        self.key = literal_key(value)
        self._simple = type(value) in (str, int, bool, bytes, Symbol, type(None))

    def accepts(self, value: object, named: dict[str, Any], unnamed: list[Any]) -> bool:
        if self._simple:
            return type(value) is type(self.value) and value == self.value
        return bool(literal_key(value) == self.key)

    def __str__(self) -> str:
        return render(self.value)

    __repr__ = __str__


class ListTerm(Term):
    """A list whose items fit these; if `open`, only its first ones. Made by `list_term`."""

    __slots__ = ("items", "open")

    def __init__(self, items: tuple[Term, ...], open: bool) -> None:
        self.items = items
        self.open = open

    def accepts(self, value: object, named: dict[str, Any], unnamed: list[Any]) -> bool:
        if not isinstance(value, list) or len(value) < len(self.items):
            return False
        if len(value) > len(self.items) and not self.open:
            return False
        return all(term.accepts(item, named, unnamed) for term, item in zip(self.items, value, strict=False))

    def __str__(self) -> str:
        return f"({' '.join([*map(str, self.items), '. _'] if self.open else map(str, self.items))})"

    __repr__ = __str__


class DictTerm(Term):
    """A dict whose entries fit these; if `open`, others are let be. Made by `dict_term`."""

    __slots__ = ("entries", "open")

    def __init__(self, entries: dict[str, Term], open: bool) -> None:
        self.entries = entries
        self.open = open

    def accepts(self, value: object, named: dict[str, Any], unnamed: list[Any]) -> bool:
        if not isinstance(value, dict) or (len(value) != len(self.entries) and not self.open):
            return False
        return all(name in value and term.accepts(value[name], named, unnamed) for name, term in self.entries.items())

    def __str__(self) -> str:
        entries = [f"{json.dumps(name, ensure_ascii=False)}: {term}" for name, term in self.entries.items()]
        return f"{{{', '.join(entries)}{' . _' if self.open else ''}}}"

    __repr__ = __str__


def list_term(items: Sequence[Term], open: bool) -> Term:
    """The term for a list of terms."""
    if not open and all(isinstance(item, Literal) for item in items):
        return Literal(freeze([item.value for item in items if isinstance(item, Literal)]))
    return ListTerm(tuple(items), open)


def dict_term(entries: Mapping[str, Term], open: bool) -> Term:
    """The term for a dict of terms."""
    if not open and all(isinstance(term, Literal) for term in entries.values()):
        return Literal(freeze({name: t.value for name, t in entries.items() if isinstance(t, Literal)}))
    return DictTerm({freeze(name): term for name, term in entries.items()}, open)


def term_of(given: Any, path: str, depth: int = 0) -> Term:
    """The term that a Python object stands for; `path` says where it was given.

    Raises `BadPattern` or, for what is no value, `NotAValue`; both name the place.
    """
    if isinstance(given, Term):
        return given
    if given is ...:
        raise BadPattern(f"{path}: `...` leaves the rest open, so it comes last; for one value use ANY")
    kind = type(given)  # and not what it says of itself, as a mock would
    if issubclass(kind, (list, tuple, dict)) and depth >= MAX_DEPTH:
        raise BadPattern(f"{path}: lists and dicts nest more than {MAX_DEPTH} deep, or contain themselves")
    if issubclass(kind, (list, tuple)):
        open = bool(given) and given[-1] is ...
        items = given[:-1] if open else given
        return list_term([term_of(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(items)], open)
    if issubclass(kind, dict) and all(isinstance(name, str) or name is ... for name in given):
        entries = {n: term_of(v, f"{path}.{n}", depth + 1) for n, v in given.items() if n is not ...}
        return dict_term(entries, ... in given)
    return Literal(freeze(given, None, path))


def _same(one: Any, other: Any) -> bool:
    # Nobody knows what an erased string said, so it is not the same as anything, itself included.
    return bool(key_of(one) == key_of(other)) and not _mentions_erased(one)


def _mentions_erased(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_mentions_erased, value))
    if isinstance(value, dict):
        return any(map(_mentions_erased, value.values()))
    return value is ERASED
