"""How it is found: which sessions there are and where in the log their records and facts lie, derived from the log.

`catalog` is all of it, put together, and made again when it is missing or bad; `recent` and `lookups` have the rows
that it gives, and `checked` holds each record that it leads to against what was asked. `checking` holds all of it
against the log. `remains` says what of deleted sessions and of erased content lies there yet, `withholding` that the
latter reads as erased. `tables`, `questions`, `schema`, `connections` and `packing` are its SQLite file, `writing` says
who may write it; `recall` reads back what records said, and `tree` is the Merkle tree over them.

`catalog`, `checking`, `deletions` (which a salvage asks), `lookups`, `peeking` (before the log is open), `recent`,
`remains` and `schema` are public, the others are private to the package.
"""

__all__ = [
    "catalog",
    "checking",
    "deletions",
    "lookups",
    "peeking",
    "recent",
    "remains",
    "schema",
]
