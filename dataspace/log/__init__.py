"""How it is kept: one log for a store, as frames in segment files, with recovery and group commit.

`store` is the protocol of every store and its errors, `memory` the readable specification of it, `segments` the
embedded one. `writer` commits in groups, `files` reaches the disk, `marks` names places. `verdicts` has what recovery
tells and `verify` checks everything; `notices` has the records that are written of a store itself; `layout`, `opening`,
`ownership` and `publishing` are for those who look at a store's folder without owning it.

These modules are public, all others are private to the package.
"""

__all__ = [
    "contents",
    "files",
    "keyring",
    "layout",
    "marks",
    "memory",
    "notices",
    "opening",
    "ownership",
    "publishing",
    "rekeying",
    "segments",
    "store",
    "verdicts",
    "verify",
    "writer",
]
