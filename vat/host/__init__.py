"""All the vats of a store in one process: what runs them, what they share, and what is outside of them.

`host` is what everything outside goes through, its refs are in `outside`, and its callers wait in `asking`. `engine`
puts the rooms together that run vats, as `settings` say. Sessions come to be in `births`, are brought into memory by
`loading` and `waking`, are `residents` there, are run by `scheduling`, are looked after by `care`, and become durable
in `commits`. `mail` goes between vats, `errands` to devices, `subscriptions` to actors that observe.

`asking`, `engine`, `host`, `outside` and `settings` are public, the others are private to the package.
"""

__all__ = [
    "asking",
    "engine",
    "host",
    "outside",
    "settings",
]
