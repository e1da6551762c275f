"""Facts and patterns for property tests: values of all kinds, patterns made to fit."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from dataspace.facts import Fact, fact
from dataspace.patterns import ANY, Pattern, capture, pattern
from dataspace.values import Blob, Promise, Ref, Symbol

words = st.from_regex(r"\A[a-zé_][a-z0-9.\-/:]{0,4}\Z").filter(lambda word: word != "_")
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**64, -(2**80), 2**9000]),
    st.floats(),
    st.just(math.nan),
    st.text(max_size=6),
    st.binary(max_size=6),
    st.builds(Symbol, words),
    st.builds(Ref, st.none() | st.binary(min_size=16, max_size=16), st.integers(0, 300)),
    st.builds(Promise, st.integers(0, 300)),
    st.builds(Blob, st.text(max_size=6), st.binary(max_size=6)),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def facts(draw: st.DrawFn, of: st.SearchStrategy[Any] = values) -> Fact:
    label = draw(st.sampled_from(["turn", "shop.order"]))
    keywords = draw(st.dictionaries(st.sampled_from(["input", "by", "via"]), of, max_size=2))
    return fact(label, *draw(st.lists(of, max_size=3)), **keywords)


@st.composite
def patterns_that_fit(draw: st.DrawFn, given: Fact) -> tuple[Pattern, dict[str, Any], list[Any]]:
    """A pattern that fits the fact, and what it captures: by name and, unnamed, in order."""
    named: dict[str, Any] = {}
    unnamed: list[Any] = []

    def term(value: Any) -> Any:
        choice = draw(st.sampled_from(["literal", "literal", "any", "name", "unnamed", "inside", "inside"]))
        if choice == "any":
            return ANY
        if choice == "name":
            name = f"v{len(named)}"
            named[name] = value
            return capture(name)
        if choice == "unnamed":
            unnamed.append(value)
            return capture()
        if choice == "inside" and isinstance(value, list):
            kept = draw(st.integers(0, len(value)))
            rest = [] if kept == len(value) and draw(st.booleans()) else [...]
            return [*map(term, value[:kept]), *rest]
        if choice == "inside" and isinstance(value, dict):
            kept = draw(st.integers(0, len(value)))
            rest = {} if kept == len(value) and draw(st.booleans()) else {...: ...}
            return {**{key: term(value[key]) for key in list(value)[:kept]}, **rest}
        return value

    label = draw(st.sampled_from([given.label, ANY]))
    open = draw(st.booleans())
    fields = given.fields[: draw(st.integers(0, len(given.fields)))] if open else given.fields
    names = [name for name in given.keywords if not open or draw(st.booleans())]
    terms = [*map(term, fields), *([...] if open else [])]
    return pattern(label, *terms, **{name: term(given.keywords[name]) for name in names}), named, unnamed
