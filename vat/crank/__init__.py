"""What one message does in a vat, whole or not at all, and the record that it becomes.

A crank is `transaction` (what was done, and how it is undone) with what an actor can do on top: `keeping`, `promises`,
`sending`, `acting`, `finding`; `crank`, which tells what each of them adds, runs the `deliveries`. `progress` is what
there is of one crank, and `powers` are what it cannot make itself. `fibers` runs those of async methods, each part
between two waits (`awaiting`), with a `fiber` for each coroutine in memory. `rerun` brings these back after a restart,
on a stack with `room` enough, `comparing` holds what they do against what they did, `holding` says what their locals
hold, and `closing` ends them. A vat is `chain` (its records), `upkeep` (its cranks
without a message), `vat`. `collecting` finds what nothing reaches, `upgrading` brings actors to the code's version,
`whole` keeps what is half done from being seen.

`upgrading` and `vat` are public, the others are private to the package.
"""

__all__ = [
    "upgrading",
    "vat",
]
