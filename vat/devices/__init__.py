"""What touches the world: async functions that a host runs outside all vats, and what comes of them.

`devices` says what a device declares, `outcomes` what a call comes to, `vault` where credentials are; `runner` calls.

`devices`, `outcomes` and `vault` are public, `runner` is private to the package.
"""

__all__ = [
    "devices",
    "outcomes",
    "vault",
]
