"""What is stored for a key's holder alone: ciphers, the table of data keys, and the file that keeps it.

`cipher` seals and opens the bodies of frames, `keys` says which key opens what, `key_file` is their form on the disk,
`veil` hides what a derived file would show, `errors` has what can go wrong. `docs/encryption.md` is their page.

These modules are public. They know no file, no clock and no randomness: bytes come in, bytes go out.
"""

__all__ = ["cipher", "errors", "key_file", "keys", "veil"]
