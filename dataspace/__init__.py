"""What is said, how it is kept, and how it is found and heard: the lowest package, which knows nothing of vats.

What is said: `values` and their `encoding`, `facts` and `patterns`, `records` and their `drafts`. How it is kept:
`log`, a package of its own. How it is found and heard: `catalog` (with `recent` and `lookups`, whose rows it gives),
`observe`, `observation`, `events`, `cursor`, and `checking`, which holds the catalog against the log. `errors` has the
root of every error.

These modules are public, all others are private to the package. None is imported here, so that who needs values loads
neither SQLite nor trio.
"""

__all__ = [
    "catalog",
    "checking",
    "cursor",
    "drafts",
    "encoding",
    "errors",
    "events",
    "facts",
    "log",
    "lookups",
    "observation",
    "observe",
    "patterns",
    "recent",
    "records",
    "values",
]
