"""What actors are written with: types and their registry, fields, collections, and what a method can do.

`actor` is the front of it, `types` what a class declares, which `describing` reads from it; `collections` are `List`,
`Map` and `Set`, and `views` what they were at a moment. `fields` says how an actor's fields begin, `randomness` where
its random numbers come from, `waiting` what async methods await, `parts` which actors are made with another one, and
`owing` how an actor makes a promise that it settles itself. `moving` puts what is stored in one collection into
another.

`actor`, `collections`, `fields`, `moving`, `owing`, `parts`, `types`, `views` and `waiting` are public, the others are
private to the package.
"""

__all__ = [
    "actor",
    "collections",
    "fields",
    "moving",
    "owing",
    "parts",
    "types",
    "views",
    "waiting",
]
