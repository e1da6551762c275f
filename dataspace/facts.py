"""Facts: what a crank states, a label with positional fields and named ones.

    (turn 1 "s1" #:input "hello" #:by "ada")

A fact is frozen: its fields are values, deeply immutable. Two facts are equal when their text could be
the same: `1` and `True` are different fields, the order of the keywords does not count.

The one rule: names are *words*, so that every fact can be written as text and every pattern read from it.
Labels with a dot (`shop.order`) belong to users; labels without one are the system's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

import attrs

from dataspace.errors import KeeveError
from dataspace.values import SYMBOL_TEXT, FrozenDict, freeze, key_of, render

WORDS: Final = "a word is a letter or _ and then letters, digits and any of _.-/:+*!<>="


class BadName(KeeveError, ValueError):
    """What is no word and was to be a fact's label or keyword (`role`). `name` is what was given."""

    usage: ClassVar[bool] = True

    def __init__(self, name: object, role: str) -> None:
        super().__init__(name, role)
        self.name = name
        self.role = role

    def __str__(self) -> str:
        return f"{self.name!r} cannot be a {self.role}: {WORDS}"


@lru_cache(4096)
def is_word(name: str) -> bool:
    """Whether `name` can be a label, a keyword, or the name of a symbol or a capture."""
    return SYMBOL_TEXT.fullmatch(name) is not None


@attrs.frozen(eq=False, repr=False)
class Fact:
    """A fact, in read form. Nothing is checked or frozen here; `fact` does that.

    Equal by `key`, which costs a pass over the whole.
    """

    label: str
    fields: tuple[Any, ...]
    keywords: Mapping[str, Any]

    def key(self) -> bytes:
        """Canonical bytes: two facts are equal exactly when their keys are. O(size of the fact)."""
        return key_of([self.label, self.fields, self.keywords])

    def __eq__(self, other: object) -> bool:
        return self.key() == other.key() if isinstance(other, Fact) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key())

    def __str__(self) -> str:
        parts = [self.label, *map(render, self.fields)]
        parts += [f"#:{name} {render(value)}" for name, value in self.keywords.items()]
        return f"({' '.join(parts)})"

    __repr__ = __str__


def fact(label: str, /, *fields: Any, **keywords: Any) -> Fact:
    """A fact of these values, frozen.

    >>> fact("turn", 1, "s1", input="hello")
    (turn 1 "s1" #:input "hello")

    Raises `BadName` for a label or keyword that is no word, `NotAValue` for a field that is no value.
    """
    check_words(label, keywords)
    return Fact(
        label,
        tuple([freeze(value, None, f"{label}[{at}]") for at, value in enumerate(fields)]),
        FrozenDict({name: freeze(value, None, f"{label}.{name}") for name, value in keywords.items()}),
    )


def check_words(label: object, keywords: Iterable[object]) -> None:
    """Raise `BadName` unless a label and all keywords are words."""
    for name, role in ((label, "label"), *((keyword, "keyword") for keyword in keywords)):
        if not (isinstance(name, str) and is_word(name)):
            raise BadName(name, role)
