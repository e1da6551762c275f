"""What errors say to do, in the words of the command line.

An error says what to do to who writes Python. Somebody who typed a command cannot do that, and is told the command.

The one rule: a phrase stands for a phrase. What is wrong, and where, is said as the error says it.
"""

from __future__ import annotations

import re
from typing import Final

COMMANDS: Final = (
    (r"look at those of (host|client)\.sessions\(\)", "keeve ls lists those that are there"),
    (r"get it with (host|client)\.get\(.*?\), or choose", "keeve show shows it; or choose"),
    (r"name one, session=…", "name one with --session"),
    (r"look at the list of effects", "keeve effects lists those that are open"),
    (
        r"is not a store: there is nothing in it (yet|to read); name a store, or an empty or new folder",
        "has no store in it yet: keeve chat makes one, and --store names another folder",
    ),
    (r"or use force", "or use --force"),
    (
        r"Pass its class to open_host\(\.\.\., actors=\[\.\.\.\]\)",
        "Name the module that has its class with --actors module (or KEEVE_ACTORS)",
    ),
    (
        r"close it there, or open it here with readonly=True",
        "close it there first; keeve ls, show, log, effects, verify and doctor read it meanwhile",
    ),
    (
        r"ask that, over HTTP or with keeve\.client\.connect\('[^']*'\), or end it, or open it here with readonly=True",
        "keeve turn, queue, steer, interrupt, fork, approve and the like ask that; for this command end it first",
    ),
    (
        r"open the host with signer=\.\.\., the file of an Ed25519 key or a SigningKey",
        "keeve checkpoint --signer FILE signs one",
    ),
    (r"or name it as the former one, which signs", "or name that one with --former: it signs"),
    (r"signing_key\(path, make=True\) makes one", "--make makes one"),
    (
        r"is the right credential in the host's vault, and still valid\?",
        "is there the right key, still valid, in the variable that KEEVE_MODEL_KEY names (else in OPENAI_API_KEY)?",
    ),
    (r"may this credential use this model\?", "may the key in the variable that KEEVE_MODEL_KEY names use this model?"),
    (r"a position, or the cursor that an event carried", "a position, a time, or the cursor that an event carried"),
    (r"use a folder of its own, or only read the store \(readonly=True\)", "name a folder of your own with --store"),
)
"""What is said to who writes Python, and what to who types commands."""


def advised(message: str) -> str:
    """An error's message, for who has typed a command.

    >>> advised("session 's1' is busy (1 effect): wait for it, or use force")
    "session 's1' is busy (1 effect): wait for it, or use --force"
    """
    for said, instead in COMMANDS:
        message = re.sub(said, instead, message)
    return message
