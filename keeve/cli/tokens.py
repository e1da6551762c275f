"""`keeve token`: capability tokens made of the owner's, narrowed, shown and revoked.

The one rule: no token is an argument, since everybody on a machine can read those. One is read from the variable
KEEVE_TOKEN, or else from the standard input.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import attrs
from cyclopts import App, Parameter

from dataspace.errors import KeeveError
from keeve.api import OURS
from keeve.cli.log import time_of
from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.own import named_types
from keeve.cli.where import VARIABLE
from keeve.faces import utc_time
from keeve.private_files import read_private
from keeve.served import TOKEN
from keeve.wire.revocations import Revocations
from keeve.wire.tokens import (
    LONGEST,
    NONCE,
    Caveat,
    Token,
    TokenRefused,
    check,
    methods,
    mint,
    named,
    read_only,
    sessions,
    until,
)
from keeve.wire.verbs import AT_THE_DESK, EVERY_REF, MANAGE, READ, TURN
from vat.objects.types import Types

VERBS: Final = frozenset({MANAGE, READ, TURN})
"""What may be done over HTTP."""

_SPAN: Final = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}

HELP: Final = """Make, narrow, show and revoke tokens for a server.

Each of these takes `--store PATH` (else KEEVE_STORE), `--json` and `--debug`, and has a `--help` of its own.

```
keeve token make --as ann --until 8h
```
"""

tokens = App(name="token", help=HELP)


class NoOwnerToken(KeeveError):
    """The token of a store's owner cannot be read."""

    usage: ClassVar[bool] = True

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path}: {what}")


class NothingGiven(KeeveError, ValueError):
    """No token was given to a command that needs one."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(f"no token was given: put it into {VARIABLE}, or into the standard input")


class BadSpan(KeeveError, ValueError):
    """A time at which a token is to end is none, or is over."""

    usage: ClassVar[bool] = True

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no time to come: write 8h (or s, m, d), or a time as 2026-11-30T01:18Z")


class NoSuchTokenMethod(KeeveError, ValueError):
    """A token was to be narrowed to a method that nothing has."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, known: Iterable[str]) -> None:
        near = get_close_matches(name, sorted(known), 3)
        what = f"did you mean {' or '.join(near)}" if near else f"there are {', '.join(sorted(known))}"
        super().__init__(
            f"no session has a method or a field {name!r}, nor has what finds sessions ({what}): give one of these, "
            "or name the module of your own actor type that has it with --actors"
        )


@Parameter(name="*")
@attrs.frozen
class Narrowing:
    """What a token is narrowed to. Nothing of it: it allows what it did.

    Parameters
    ----------
    name
        In the name of this principal, who reaches the sessions of their own; or those that were named before.
    session
        Only this session; may be given several times.
    method
        Only this method or field; over HTTP one of read, turn, manage; may be given several times.
    actors
        An actor type of your own, as module or module:Class, whose methods are known as well; several times.
    read
        Only what changes nothing.
    until
        Only until then: 8h (or s, m, d) from now, or a time as 2026-11-30T01:18Z.
    """

    name: Annotated[str | None, Parameter(name="--as")] = None
    session: Annotated[list[str] | None, Parameter(negative="")] = None
    method: Annotated[list[str] | None, Parameter(negative="")] = None
    actors: Annotated[list[str] | None, Parameter(negative="")] = None
    read: Annotated[bool, Flag] = False
    until: str | None = None

    def caveats(self, now: int) -> list[Caveat]:
        """The caveats that say so. Raises `BadCaveat`, `BadSpan`, `NoSuchTokenMethod` or `NoSuchActors`."""
        found: list[Caveat] = []
        if self.session:
            found.append(sessions(*self.session))
        if self.name is not None:
            found.append(named(self.name))
        if self.method:
            known = methods_of(self.actors or ())
            for name in self.method:
                if name not in known:
                    raise NoSuchTokenMethod(name, known)
            found.append(methods(*self.method))
        if self.read:
            found.append(read_only())
        if self.until is not None:
            found.append(until(end_of(self.until, now)))
        return found


NARROWING = Narrowing()


def methods_of(actors: Sequence[str]) -> frozenset[str]:
    """What a token can name: at the desk, of every ref, of Keeve's own and these actor types; and the verbs of HTTP."""
    types = Types([*OURS, *named_types(actors)])  # what waits for approval is a part of a session
    return VERBS | AT_THE_DESK.keys() | EVERY_REF.keys() | {name for each in types for name in each.public}


def end_of(text: str, now: int) -> int:
    """The time that is meant, in µs since 1970. Raises `BadSpan` or `BadTime`.

    >>> end_of("2m", 5)
    120000005
    """
    span = _SPAN.fullmatch(text)
    end = time_of(text) if span is None else now + int(span[1]) * _SECONDS[span[2]] * 1_000_000
    if end is None or end <= now:
        raise BadSpan(text)
    return end


@tokens.command
def make(*, narrowing: Narrowing = NARROWING, common: Options = OPTIONS) -> int:
    """Make a token of the store's owner's, and narrow it. It is all that is said on the standard output.

    Sessions that are named are granted, whoever they belong to; without them, and with a name, the token reaches the
    sessions that this name has made.

    ```
    keeve token make --as ann --until 8h
    keeve token make --session s1 --method turn --method history
    ```
    """
    token = mint(_secret(common.where.folder), os.urandom(NONCE)).narrow(*narrowing.caveats(_now()))
    return _tell(common, token)


@tokens.command
def narrow(*, narrowing: Narrowing = NARROWING, common: Options = OPTIONS) -> int:
    """Narrow the token that is given in KEEVE_TOKEN or the standard input. Needs no server, and no store.

    ```
    KEEVE_TOKEN=keeve1.… keeve token narrow --read --until 1h
    ```
    """
    return _tell(common, Token.parse(_given()).narrow(*narrowing.caveats(_now())))


@tokens.command
def show(*, common: Options = OPTIONS) -> int:
    """Show what a token says, and, where its store is, whether it is taken now. Ends with 1 if it is not.

    ```
    KEEVE_TOKEN=keeve1.… keeve token show
    ```
    """
    token = Token.parse(_given())
    refused = _refusal(common.where.folder, token) if (common.where.folder / TOKEN).exists() else None
    known = (common.where.folder / TOKEN).exists()
    if common.json:
        said = [{"caveat": name, "says": face_of(name, value)} for name, value in token.caveats]
        taken = (refused is None) if known else None
        common.output.document({"id": token.id, "caveats": said, "taken": taken, "refused": refused})
    else:
        common.output.say(f"id       {token.id}")
        for name, value in token.caveats or (("everything", None),):
            common.output.say(f"{name:<8} {caveat_in_words(name, value)}".rstrip())
        if known:
            common.output.say(f"taken    {'yes' if refused is None else f'no: {refused}'}")
    return 0 if refused is None else 1


@tokens.command
def revoke(id: str | None = None, /, *, common: Options = OPTIONS) -> int:
    """Revoke a token, and with it all that were narrowed from it. A server that runs heeds it at once.

    ```
    keeve token revoke 0123456789abcdef0123456789abcdef
    ```

    Parameters
    ----------
    id
        The token's id, as `keeve token show` says; without it, the token in KEEVE_TOKEN or the standard input.
    """
    _secret(common.where.folder)  # that it is the store of a server
    found = Token.parse(_given()).id if id is None else id
    new = Revocations(common.where.folder).revoke(found)
    if common.json:
        common.output.document({"revoked": found, "new": new})
    else:
        common.output.say(f"{found} {'is revoked' if new else 'was revoked before'}")
    return 0


def _tell(common: Options, token: Token) -> int:
    if common.json:
        common.output.document({"token": str(token), "id": token.id})
    else:
        common.output.say(str(token))
        common.output.note(f"its id is {token.id}")
    return 0


def _refusal(store: Path, token: Token) -> str | None:
    """Why a token is refused now; None if it is taken."""
    try:
        allowance = check(_secret(store), token, Revocations(store).ids)
    except TokenRefused as error:
        return error.what
    return None if allowance.holds_at(_now()) else "its time is over"


def _secret(store: Path) -> str:
    path = store / TOKEN
    return read_private(path, "keeve serve makes it", lambda what: NoOwnerToken(path, what)).decode("latin-1").strip()


def _given(environ: Mapping[str, str] = os.environ) -> str:
    text = environ.get(VARIABLE) or sys.stdin.read(2 * LONGEST)
    if not text.strip():
        raise NothingGiven
    return text.strip()


def _now() -> int:
    return time.time_ns() // 1000


def face_of(name: str, value: Any) -> Any:
    """What a caveat says, in JSON."""
    return utc_time(value) if name == "until" and type(value) is int else value


def caveat_in_words(name: str, value: Any) -> str:
    """What a caveat says, in words."""
    said = face_of(name, value)
    if said is None:
        return ""
    return ", ".join(map(str, said)) if isinstance(said, list) else str(said)
