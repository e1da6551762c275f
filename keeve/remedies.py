"""What errors say to do, at each door: over HTTP, at the prompt, in the log of a server, in a client.

Errors are written for programs in Python, which have a host (`dataspace.remedies`). Nobody else has one: they are told
a command, a setting, or whom to ask.

The one rule: a remedy stands for a remedy. What is wrong, and where, is said as the error says it; and each remedy has
its words at every door.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from dataspace.remedies import REMEDIES, put

Door: TypeAlias = Literal["http", "commands", "log", "client"]


class Words(NamedTuple):
    """What is said in place of a remedy, with the data that it has; None: that is for programs as it is, and fits.

    http: who asks a server. commands: who types. log: who runs a server. client: a program that has a client.
    """

    http: str | None
    commands: str | None
    log: str | None
    client: str | None = None


SAME_STORE: Final = "one process owns a store at a time"

WORDS: Final[Mapping[str, Words]] = {
    "ask-for-these": Words("", ". A program asks for these: docs/client.md", None),
    "answer-so": Words(
        "Whoever keeps the model has to look at it",
        "Look at what the model's service answers",
        None,
    ),
    "ask-another": Words(
        "the server carries out no such work; nothing has happened. Another server has to be asked",
        "this command carries out no such work; nothing has happened. keeve turn does, and so does a server",
        "the server carries out no such work; nothing has happened. Another server has to be asked",
    ),
    "ask-there": Words(
        SAME_STORE,
        "keeve chat, turn, queue, fork, approve, gc, archive and the like ask that; for this command end it first",
        f"end that first: {SAME_STORE}",
    ),
    "call-so": Words(
        "send what it takes, or have a program call it with that",
        "give it what it takes, or have a program do so: docs/client.md",
        None,
    ),
    "choose-id": Words(
        "choose another id",
        "keeve show shows it; or choose another id",
        "choose another id",
        "get it with client.get({id}), or choose another id",
    ),
    "close-there": Words(
        SAME_STORE,
        "close it there first; keeve ls, show, log, effects, verify and doctor read it meanwhile",
        f"close it there first: {SAME_STORE}",
    ),
    "credential": Words(
        None,
        "is there the right key, still valid, in the variable that KEEVE_MODEL_KEY names (else in OPENAI_API_KEY)?",
        None,
    ),
    "for-example": Words("", "", None),
    "fork-takes": Words(
        "a fork has a place and a name: ",
        "a fork has a place and a name: ",
        "a fork has a place and a name: ",
    ),
    "give-device": Words(
        "there is no {effect} here; there are: {known}",
        "this host has no {effect}; its devices offer: {known}. A model is named by KEEVE_MODEL, and a server may have "
        "others",
        "this host has no {effect}; its devices offer: {known}. Name it in the server's file of settings as "
        "[models.NAME], if it is a model",
    ),
    "give-field": Words(
        ': give it one in "fields"',
        """: give it one, as in --field '{field}="…"' (a name, =, and JSON)""",
        ': give it one in "fields"',
    ),
    "give-key": Words(
        "whoever keeps the server has to start it with the key of its host",
        "name the file with the key of its host in KEEVE_KEY_FILE",
        "name the file with the key of its host in KEEVE_KEY_FILE",
    ),
    "give-seq": Words(
        "have what a record has brought erased, by its seq: its chain tells those, and the call of each",
        "erase what a record has brought, with --seq: keeve chain {id:typed} tells them, and the call of each",
        "have what a record has brought erased, by its seq: keeve chain {id:typed} tells those, and the call of each",
    ),
    "give-signer": Words(
        "the server has to be started with a signer",
        "keeve checkpoint --signer FILE signs one",
        "start the server with a signer",
    ),
    "give-type": Words(
        "of its own the server runs {known}. Its setting `actors` names the module that has it; nothing was touched",
        "this host runs {known}. Name the module that has its class with --actors module (or KEEVE_ACTORS); nothing "
        "was touched",
        "this host runs {known}. Name the module that has it in the server's setting `actors`; nothing was touched",
    ),
    "hold-it": Words(
        'the server has to have its device, and be started with unknown = "hold"',
        "it takes a server of the store that has its device, with --unknown hold: keeve serve --unknown hold",
        'start it with the device, and with unknown = "hold"',
    ),
    "key-file": Words(None, "a file that keeve new-key makes", "a file that keeve new-key makes"),
    "look-at-effects": Words(
        None, "keeve effects lists those that are open", "keeve effects lists those that are open"
    ),
    "look-at-sessions": Words(
        "look at the list of those that there are",
        "keeve ls lists those that are there",
        "keeve ls lists those that are there",
        "look at those of client.sessions()",
    ),
    "look-at-turns": Words("", None, None),
    "make-host-key": Words(None, "keeve new-key makes one", "keeve new-key makes one"),
    "make-key": Words(None, "--make makes one", None),
    "mend-server": Words(
        "",
        ". See that it can be started and reached, and ask again; --field 'tools=[]' makes a session without tools",
        None,
    ),
    "make-space": Words(
        "whoever keeps the server has to make space; then try again",
        "make space, then try again: with room for one segment, keeve gc takes out what was deleted, and keeve archive "
        "--into a folder on another disk what no session needs",
        "make space, then try again: with room for one segment, keeve gc takes out what was deleted, and keeve archive "
        "--into a folder on another disk what no session needs",
    ),
    "may-use": Words(
        None,
        "may the key in the variable that KEEVE_MODEL_KEY names use this model?",
        None,
    ),
    "more-time": Words(
        "give the session a larger max_seconds",
        "give the session a larger max_seconds",
        "give the session a larger max_seconds",
    ),
    "name-former": Words(
        None,
        "or name that one with --former: it signs that the new one takes its place",
        None,
    ),
    "name-place": Words(None, "a position, a time, or the cursor that an event carried", None),
    "name-session": Words(None, "name one with --session", None),
    "name-store": Words(
        None,
        "has no store in it yet: keeve create and keeve chat make one, and --store names another folder",
        None,
    ),
    "new-request": Words(
        "; use a new Idempotency-Key for something new",
        None,
        "; use a new Idempotency-Key for something new",
    ),
    "one-outcome": Words(
        "one outcome has to be given",
        "keeve resolve takes exactly one of --value, --error and --again",
        "one outcome has to be given",
    ),
    "open-again": Words(
        "the server has stopped: ask again later; with the same Idempotency-Key a retry is safe",
        "the host is closed: run the command again",
        "the host is closed: with the same Idempotency-Key a retry is safe",
    ),
    "open-with-device": Words(
        "Whoever keeps the server has to settle it",
        "Settle it with keeve resolve {id:typed}, or have a host with that device open the store",
        "Start the server with [models.{device}] in its file of settings, if that is a model; or settle it: "
        "keeve resolve {id:typed}",
    ),
    "opened-to-read": Words("the server only reads it", "this command only reads it", "the server only reads it"),
    "or-default": Words("", None, None),
    "own-folder": Words(
        "use a folder of its own",
        "name a folder of your own with --store",
        "give the server a folder of its own",
    ),
    "part": Words('({{"type": "text", "text": "…"}})', '({{"type": "text", "text": "…"}})', None),
    "raise-version": Words("", None, None),
    "read-with-these": Words("", "; keeve ls, show and log read what its keys open", ""),
    "return-less": Words("Ask it for less", "Ask it for less", None),
    "say-as-turn": Words(
        "say it as a turn, and wait for what comes of it",
        "say it with keeve turn, which waits for what comes of it; a program calls its own methods, as steer, with "
        "keeve.client: docs/client.md",
        None,
    ),
    "schema": Words("a schema is an object", "a schema is an object", None),
    "set-field": Words(
        "; give it another {field}",
        "; give it another {field}",
        "; give it another {field}",
    ),
    "tools": Words("it is a list", "it is a list", None),
    "truth": Words("it is true, or false", "it is true, or false", None),
    "wait-or-force": Words("wait for it", "wait for it, or use --force", None),
    "without-key": Words(
        None,
        "open it with KEEVE_KEY_FILE and KEEVE_KEY unset, or make a new store with a key",
        "open it with KEEVE_KEY_FILE and KEEVE_KEY unset, or make a new store with a key",
    ),
}
"""By the code of each remedy."""


def worded(message: str, door: Door) -> str:
    """A message of an error of ours in the words of a door.

    >>> from vat.host.host import IdInUse
    >>> worded(str(IdInUse("s1")), "http"), worded(str(IdInUse("s1")), "commands")
    ("there is a session 's1' already: choose another id", \
"there is a session 's1' already: keeve show shows it; or choose another id")
    """
    for code, remedy in REMEDIES.items():
        words = WORDS.get(code)
        said = None if words is None else getattr(words, door)
        if said is not None:
            message = remedy.put(message, said)
            if words is not None and words.client is not None:  # it may have come over a connection
                message = put(message, words.client, said)
    return message
