"""What is said, how it is kept, and how it is found and heard: the lowest package, which knows nothing of vats.

What is said: `values`, `facts` and `patterns`, `records` and their `drafts`. How it is kept: `log`. How it is found:
`catalog`. How it is heard: `observe`. What is proven: `checkpoints`, in the formats of `proofs`. What is hidden:
`encryption`. `errors` has the root of every error, `remedies` what they say to do, `in_logs` what a log has of them,
`interrupts` what is Ctrl-C, `urls` what of a URL may be shown. Values, patterns, proofs, encryption, log, catalog,
observe and checkpoints are rooms of their own, and name what of theirs is public.

None is imported here, so that who needs values loads neither SQLite nor trio.
"""

__all__ = [
    "catalog",
    "checkpoints",
    "drafts",
    "encryption",
    "errors",
    "facts",
    "in_logs",
    "interrupts",
    "log",
    "observe",
    "patterns",
    "proofs",
    "records",
    "remedies",
    "urls",
    "values",
]
