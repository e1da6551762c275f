"""Patterns: what an observer asks for, as text and as Python.

This is the front door of three rooms, and the one rule is to import patterns from here. `pattern` has what a `Pattern`
is, from text (`parse`) and from Python (`pattern`), what it `Captures`, and what an index needs of it: its `Skeleton`,
with a `Shape`. `terms` has what stands in one: `ANY`, `capture`, and the `literal_key` of what stands for itself.
`reading` takes a text apart, and raises `BadPattern`.
"""

from dataspace.patterns.pattern import ANY, BadPattern, Captures, Pattern, Shape, Skeleton, capture, parse, pattern
from dataspace.patterns.terms import literal_key

__all__ = [
    "ANY",
    "BadPattern",
    "Captures",
    "Pattern",
    "Shape",
    "Skeleton",
    "capture",
    "literal_key",
    "parse",
    "pattern",
]
