"""What touches the world: async functions that a host runs outside all vats, and what comes of them.

`devices` says what a device declares, `outcomes` what a call comes to, `vault` where credentials are, `timers` is the
device that every host has; `attempts` and `runner` call.

`devices`, `outcomes`, `timers` and `vault` are public, `attempts` and `runner` are private to the package.
"""

__all__ = [
    "devices",
    "outcomes",
    "timers",
    "vault",
]
