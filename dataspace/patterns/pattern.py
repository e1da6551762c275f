"""Patterns: what an observer asks for.

    (turn ?n "s1" #:by ?who . _)          pattern("turn", capture("n"), "s1", ..., by=capture("who"))

A pattern fits a fact when the label, each positional field and each named keyword do, and when the fact has
no others, unless the pattern is open (`. _`, in Python `...`). Both forms make the same patterns, and
`parse(str(p)) == p` always.

The one rule: a pattern *is* its text. Equal text, equal pattern; everything else here is worked out from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import attrs

from dataspace.facts import WORDS, Fact, is_word
from dataspace.patterns.reading import read_pattern
from dataspace.patterns.terms import ANY, BadPattern, Capture, DictTerm, ListTerm, Literal, Term, capture, term_of
from dataspace.values import Symbol

__all__ = ["ANY", "BadPattern", "Captures", "Pattern", "Shape", "Skeleton", "capture", "parse", "pattern"]

_MISSING: Final = object()


@attrs.define
class Captures:
    """What a pattern captured: `named` by name, `values` those of each `?` in the order of the text.

    >>> from dataspace.facts import fact
    >>> found = parse("(turn ?n ? . _)").match(fact("turn", 1, "s1"))
    >>> found["n"], found[0]
    (1, 's1')
    """

    named: dict[str, Any]
    values: tuple[Any, ...]

    def __getitem__(self, which: str | int) -> Any:
        return self.values[which] if isinstance(which, int) else self.named[which]


class Skeleton(NamedTuple):
    """What an index needs of a pattern: `label` (`None`: any) and `shape`, which say where to look, and
    `constants`, which say what must be found there, one for each of the shape's paths, as `literal_key`s.
    """

    label: str | None
    shape: Shape
    constants: tuple[Any, ...]


class Shape(NamedTuple):
    """How many fields a fact has and which keywords; with `open` it may have more of both.

    A path's first step is a field's index or a keyword's name, the others go into lists and dicts; its
    second part says whether the constant there is a list or a dict itself.
    """

    arity: int
    names: tuple[str, ...]
    open: bool
    paths: tuple[tuple[tuple[int | str, ...], bool], ...]


@attrs.frozen(eq=False, repr=False)
class Pattern:
    """A pattern. Make one with `parse` or `pattern`."""

    label: str | Term
    fields: tuple[Term, ...]
    keywords: Mapping[str, Term]
    open: bool

    # What `match` goes through, in the order of the text.
    _label: str | None = attrs.field(init=False)
    _steps: tuple[tuple[int, Term], ...] = attrs.field(init=False)
    _named: tuple[tuple[str, Term], ...] = attrs.field(init=False)

    @_label.default
    def _only_label(self) -> str | None:
        return self.label if isinstance(self.label, str) else None

    @_steps.default
    def _not_any(self) -> tuple[tuple[int, Term], ...]:
        return tuple((at, term) for at, term in enumerate(self.fields) if term is not ANY)

    @_named.default
    def _all_named(self) -> tuple[tuple[str, Term], ...]:
        return tuple(self.keywords.items())

    def match(self, fact: Fact) -> Captures | None:
        """What the pattern captures from `fact`, or `None` if it does not fit. O(size of the pattern)."""
        fields, keywords = fact.fields, fact.keywords
        if self._label is not None and self._label != fact.label:
            return None
        if self.open:
            if len(fields) < len(self.fields):
                return None
        elif len(fields) != len(self.fields) or len(keywords) != len(self._named):
            return None
        named: dict[str, Any] = {}
        unnamed: list[Any] = []
        if isinstance(self.label, Capture):
            self.label.accepts(Symbol(fact.label), named, unnamed)
        for at, term in self._steps:
            if not term.accepts(fields[at], named, unnamed):
                return None
        for name, term in self._named:
            value = keywords.get(name, _MISSING)
            if value is _MISSING or not term.accepts(value, named, unnamed):
                return None
        return Captures(named, tuple(unnamed))

    def skeleton(self) -> Skeleton:
        """What an index needs: what can be looked up instead of tried."""
        paths: list[tuple[tuple[int | str, ...], bool]] = []
        constants: list[Any] = []
        names = tuple(sorted(self.keywords))
        terms: list[tuple[int | str, Term]] = [*enumerate(self.fields)]
        terms += [(name, self.keywords[name]) for name in names]
        for step, term in terms:
            for path, literal in _literals((step,), term):
                paths.append((path, isinstance(literal.value, (list, dict))))
                constants.append(literal.key)
        return Skeleton(self._label, Shape(len(self.fields), names, self.open, tuple(paths)), tuple(constants))

    @cached_property
    def _text(self) -> str:
        parts = [str(self.label), *map(str, self.fields)]
        parts += [f"#:{name} {term}" for name, term in self.keywords.items()]
        return f"({' '.join([*parts, '. _'] if self.open else parts)})"

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"parse({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Pattern) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)


def parse(text: str) -> Pattern:
    """The pattern that `text` is. Raises `BadPattern`, which shows the place. O(length of the text)."""
    return Pattern(*read_pattern(text))


def pattern(label: Any, /, *terms: Any, **keywords: Any) -> Pattern:
    """A pattern from Python: `ANY` is `_`, `capture(…)` is `?`, a last `...` is `. _`, a value is itself.

    >>> pattern("turn", ANY, "s1", ..., by=capture("who"))
    parse('(turn _ "s1" #:by ?who . _)')

    In a list, too, a last `...` leaves the rest open; in a dict a key `...` does. Raises `BadPattern`, and
    `NotAValue` for what is neither a term nor a value.
    """
    if isinstance(label, Symbol):
        label = label.name
    if not isinstance(label, Capture) and label is not ANY and not (isinstance(label, str) and is_word(label)):
        raise BadPattern(f"{label!r} cannot be a label: it is a word, ANY or a capture; {WORDS}")
    for name in keywords:
        if not is_word(name):
            raise BadPattern(f"{name!r} cannot be a keyword: {WORDS}")
    open = bool(terms) and terms[-1] is ...
    return Pattern(
        label,
        tuple(term_of(term, f"term {at}") for at, term in enumerate(terms[:-1] if open else terms, 1)),
        {name: term_of(term, name) for name, term in keywords.items()},
        open,
    )


def _literals(path: tuple[int | str, ...], term: Term) -> list[tuple[tuple[int | str, ...], Literal]]:
    if isinstance(term, Literal):
        return [(path, term)]
    inside: list[tuple[int | str, Term]] = []
    if isinstance(term, ListTerm):
        inside = list(enumerate(term.items))
    elif isinstance(term, DictTerm):
        inside = list(term.entries.items())
    return [found for step, part in inside for found in _literals((*path, step), part)]
