"""Views: what a narrowed reader may see.

A view is a row of limits, each applied to what the ones before it let through: to the records of some
sessions, to the facts that a pattern matches, to facts without some of their keywords. The pattern of
whoever reads comes after all of them, so that it finds out nothing about what they hide.

The one rule: limits are only ever added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dataspace.catalog.lookups import Leg
from dataspace.facts import Fact
from dataspace.patterns import BadPattern, Pattern
from dataspace.values import FrozenDict


@attrs.frozen
class View:
    """Limits on what is seen. `legs` are the chains that may be read, `None` for all, oldest first.

    `limits` are patterns that facts must match, and sets of keywords that are taken away.
    """

    legs: tuple[Leg, ...] | None = None
    limits: tuple[Pattern | frozenset[str], ...] = ()

    def within(self, legs: Sequence[Leg] | None) -> View:
        """This view, of those chains only."""
        if legs is None:
            return self
        if self.legs is None:
            return attrs.evolve(self, legs=tuple(legs))
        known: Mapping[bytes, int] = {leg.uid: leg.upto for leg in self.legs}
        both = [Leg(leg.uid, min(leg.upto, known[leg.uid])) for leg in legs if leg.uid in known]
        return attrs.evolve(self, legs=tuple(both))

    def matching(self, pattern: Pattern) -> View:
        """This view, of the facts only that `pattern` matches."""
        return attrs.evolve(self, limits=(*self.limits, pattern))

    def without(self, keywords: Sequence[str]) -> View:
        """This view, with those keywords taken out of every fact. Raises `BadPattern` for a text."""
        if isinstance(keywords, str):
            raise BadPattern(f"without is a list of keywords, not a text: give without=[{keywords!r}]")
        return attrs.evolve(self, limits=(*self.limits, frozenset(keywords)))

    @property
    def redacts(self) -> bool:
        """Whether facts are seen otherwise than they were stated."""
        return any(isinstance(limit, frozenset) for limit in self.limits)

    def of(self, fact: Fact) -> Fact | None:
        """The fact as it is seen through this view; None when it is not."""
        for limit in self.limits:
            if isinstance(limit, Pattern):
                if limit.match(fact) is None:
                    return None
            elif not limit.isdisjoint(fact.keywords):
                kept = {name: value for name, value in fact.keywords.items() if name not in limit}
                fact = Fact(fact.label, fact.fields, FrozenDict(kept))
        return fact


EVERYTHING = View()
"""The view without limits."""
