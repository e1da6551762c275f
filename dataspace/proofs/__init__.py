"""What proves to others that a record is in a log, in public formats: trees, notes, receipts, and keys.

`merkle` is the tree over the records, `notes` are signed texts (checkpoints are some), `verifiers` the keys that check
them, `signers` those that sign, `proofs` the receipts. What a log signs, and when, is the affair of
`dataspace.checkpoints`. Pure functions of bytes; a signer is handed in.

These modules are public, all others are private to the package.
"""

__all__ = ["merkle", "notes", "proofs", "signers", "verifiers"]
