"""How it is kept: one log for a store, as frames in segment files, with recovery and group commit.

`store` is the protocol of every store and its errors, `memory` the readable specification of it, `segments` the
embedded one. `writer` commits in groups, `files` reaches the disk, `marks` names places. `verdicts` has what recovery
tells and `verify` checks everything, `contents` among it, for its `findings`, what is `gone`, and the `gaps` where
frames do not parse; `notices` has the records that are written of a store itself; `rests` what is left of records
whose deeds went elsewhere; `layout`, `opening`, `ownership` and `publishing` are for those who look at a store's
folder without owning it. `keyring` has the keys of an encrypted store, `rekeying` another one for them; `archives` has
what went elsewhere, `leaving` names it; `near` serves records that lie near each other from one read. For whoever
looks at a log that may be damaged: `frames` says how it lies in a file, `survey` finds them, `unsound` says whose
records lay where none are met, `patience` and `windows` read, `packed` knows segments without their zeros; `salvaging`
finds what is sound, and `rewriting` writes it anew.
`backup` copies a store's folder while its owner goes on; `making` has the folder in which that, or a salvage, is made.

These modules are public, all others are private to the package.
"""

__all__ = [
    "archives",
    "backup",
    "contents",
    "files",
    "findings",
    "frames",
    "gaps",
    "gone",
    "keyring",
    "layout",
    "leaving",
    "making",
    "marks",
    "memory",
    "near",
    "notices",
    "opening",
    "ownership",
    "packed",
    "patience",
    "publishing",
    "rekeying",
    "rests",
    "rewriting",
    "salvaging",
    "segments",
    "store",
    "survey",
    "unsound",
    "verdicts",
    "verify",
    "windows",
    "writer",
]
