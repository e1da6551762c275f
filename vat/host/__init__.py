"""All the vats of a store in one process: what runs them, what they share, and what is outside of them.

`host` is what everything outside goes through: `sessions` finds and makes sessions, `outside` has their refs, which
call through `calling`, and callers wait in `asking`; `observers` and `watching` hear (`hearing` has who hears which of
the `pieces`), `resolving` settles effects (`settling` once for a request), `verifying` looks at all of a store and
`reports` what it finds, `allowing` says what may be gone, `backing_up` copies a store while it runs, `salvaging` writes
what is sound of a damaged one into a new one (`aftermath` says what came of it), `again` runs all fibers of one again,
`proving` proves what is in it, `following` is for hosts that only read, `within` for who shows all that one has,
`repetitions` for who puts something to what clients send. `engine` puts the rooms together that run vats, as `settings`
say. Sessions come to be in `births`, leave the log in `shredding`, `erasing`, `reclaiming`, `thinning` and `archiving`,
are brought into memory by `loading` and `waking`, are `residents` there, are run by `scheduling` (their timers first:
`timely`), are looked after by `care`, and become durable in `commits`. `mail` goes between vats, `errands` to devices,
`subscriptions` to actors that observe.

What is named below is public, the others are private to the package.
"""

__all__ = [
    "aftermath",
    "again",
    "allowing",
    "asking",
    "births",
    "engine",
    "following",
    "host",
    "observers",
    "outside",
    "pieces",
    "repetitions",
    "reports",
    "resolving",
    "salvaging",
    "sessions",
    "settings",
    "settling",
    "verifying",
    "watching",
    "within",
]
