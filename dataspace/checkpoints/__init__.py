"""What a log was, signed: checkpoints and receipts of what is durable, and the keys that vouch for them.

`keys` tells with which keys a log was signed, from its own records; `checkpoints` makes checkpoints and receipts, and
holds what somebody has seen against the log; `checking` is for who looks at everything. The formats are in
`dataspace.proofs`.

These modules are public, all others are private to the package.
"""

__all__ = ["checking", "checkpoints", "keys"]
