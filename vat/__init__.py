"""The runtime: what runs actors, one message at a time, and the host that owns a store.

Five rooms, the lowest first. `heap`: a vat's state, and the operations that change it. `objects`: what actors are
written with. `crank`: what one message does. `devices`: what touches the world for actors. `host`: all the vats of a
store, and what is outside of them. `errors` has what the runtime refuses, and `failures` says how errors are kept. Each
room names what of its own is public.

None is imported here.
"""

__all__ = [
    "crank",
    "devices",
    "errors",
    "failures",
    "heap",
    "host",
    "objects",
]
