"""A vat's state: persistent trees that only operations change, in memory and from what is stored.

`heap` holds the trees and `operations`, with their `opcodes`, are the only ways to change them; `entries` says what
stands where in them, `indexes` where to find it. `refs` are refs and promises as actors hold them; `messages` what a
vat takes. `restore` brings a heap back from what is stored, `memory` says where its pages come from, `past` what was
before, `checking` holds snapshots against records, `pending` reads what waits for the outside, `settled` what became of
what did, `deadlines` when a timer of it is due. `fibers` is what the heap keeps of async methods that wait, and `waits`
says what for. `reaching` says what of a log a heap needs.

`checking`, `deadlines`, `entries`, `fibers`, `heap`, `memory`, `messages`, `opcodes`, `past`, `pending`, `reaching`,
`refs`, `restore`, `settled` and `waits` are public, the others are private to the package.
"""

__all__ = [
    "checking",
    "deadlines",
    "entries",
    "fibers",
    "heap",
    "memory",
    "messages",
    "opcodes",
    "past",
    "pending",
    "reaching",
    "refs",
    "restore",
    "settled",
    "waits",
]
