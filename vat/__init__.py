"""The runtime: what runs actors, one message at a time, and the host that owns a store.

What actors are written with: `actor`, `types`, `collections`, `refs`. What touches the world for them: `devices`,
`outcomes`, `vault`. What runs them: `vat`, one session, with `restore` and `upgrading`; `engine`, all of them, with its
`settings`; and `host`, whose refs are in `outside` and whose callers wait in `asking`. What is shared with those who
look from outside: `messages`, `errors`, `pending`, `checking`; `guard` keeps tests away from real stores.

These modules are public, all others are private to the package. None is imported here.
"""

__all__ = [
    "actor",
    "asking",
    "checking",
    "collections",
    "devices",
    "engine",
    "errors",
    "guard",
    "host",
    "messages",
    "outcomes",
    "outside",
    "pending",
    "refs",
    "restore",
    "settings",
    "types",
    "upgrading",
    "vat",
    "vault",
]
