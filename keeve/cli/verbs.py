"""The commands that ask a session for something, once: their names, options and help.

The one rule: a command parses and hands over: what it does is in the module that it calls.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, ClassVar

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.errors import KeeveError
from keeve.cli.options import OPTIONS, OWNER_OPTIONS, Flag, Options, OwnerOptions
from keeve.cli.sessions import show_state
from keeve.cli.talking import accept, create_session, fields_of, list_facts, take_turn
from keeve.cli.talking import interrupt as end_turn
from keeve.cli.talking import snapshot as take_snapshot
from keeve.looking import CONVERSATION


class NothingToSay(KeeveError, ValueError):
    """No input was given."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__("nothing was said: give the input behind the session, or in the standard input")


def create(
    session: str | None = None,
    /,
    *,
    system: str | None = None,
    model: str | None = None,
    field: Annotated[list[str] | None, Parameter(negative="")] = None,
    type: str = CONVERSATION,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """Make a session, and say its id.

    ```
    keeve create s1 --system 'Be brief.'
    keeve create --type shop.cart --field 'currency="EUR"' --actors shop.actors
    ```

    Parameters
    ----------
    session
        Its id; else it is given one.
    system
        The instructions for its model.
    model
        The name of the device that is its model.
    field
        What it begins with besides, as name=JSON; may be given several times.
    type
        The registered name of its actor type.
    """
    fields = fields_of(field or [], system, model)
    trio.run(partial(create_session, common.where, common.output, session, type=type, fields=fields, own=common.own))
    return 0


def turn(
    session: str, input: str | None = None, /, *, request_id: str | None = None, common: OwnerOptions = OWNER_OPTIONS
) -> int:
    """Say something to a session, and wait for the answer. It goes on where a server has it, whoever stops waiting.

    Where no server has the store, the model is the one that the environment names, as for `keeve chat`.

    ```
    keeve turn s1 'hello'
    git diff | keeve turn reviewer --json
    ```

    Parameters
    ----------
    session
        The id of the session.
    input
        What is said; else it is the standard input, all of it.
    request_id
        Any text of yours: said again with it, after whatever went wrong, it is said once, and answered as it was.
    """
    trio.run(partial(take_turn, common.where, common.output, session, _input(input), request_id, own=common.own))
    return 0


def queue(
    session: str, input: str | None = None, /, *, request_id: str | None = None, common: OwnerOptions = OWNER_OPTIONS
) -> int:
    """Say something to a session, and do not wait: its turn comes when those before it are over. Says its number.

    Where no server has the store, the next host that opens it goes on with it.

    ```
    keeve queue s1 'and when you have time, tidy up'
    ```

    Parameters
    ----------
    session
        The id of the session.
    input
        What is said; else it is the standard input, all of it.
    request_id
        Any text of yours: said again with it, after whatever went wrong, it is said once, and answered as it was.
    """
    trio.run(partial(accept, common.where, common.output, "turn", session, _input(input), request_id, own=common.own))
    return 0


def steer(
    session: str, input: str | None = None, /, *, request_id: str | None = None, common: OwnerOptions = OWNER_OPTIONS
) -> int:
    """Say something to the turn that runs: it joins at its next step. If none runs, it is a turn of its own.

    ```
    keeve steer s1 'not that file'
    ```

    Parameters
    ----------
    session
        The id of the session.
    input
        What is said; else it is the standard input, all of it.
    request_id
        Any text of yours: said again with it, after whatever went wrong, it is said once, and answered as it was.
    """
    trio.run(partial(accept, common.where, common.output, "steer", session, _input(input), request_id, own=common.own))
    return 0


def interrupt(
    session: str,
    /,
    *,
    turn: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """End the turn that runs.

    ```
    keeve interrupt s1
    ```

    Parameters
    ----------
    session
        The id of the session.
    turn
        Only the turn of this number.
    """
    trio.run(partial(end_turn, common.where, common.output, session, turn, own=common.own))
    return 0


def snapshot(session: str, /, *, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Take a snapshot of a session, and tell the value that names it.

    ```
    keeve snapshot s1 --json
    ```

    Parameters
    ----------
    session
        The id of the session.
    """
    trio.run(partial(take_snapshot, common.where, common.output, session, own=common.own))
    return 0


def state(
    session: str,
    /,
    *,
    at: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    common: Options = OPTIONS,
) -> int:
    """Show the public fields of a session, as they are or were after any of its records. Nothing of it is run.

    ```
    keeve state s1 --at 17
    ```

    Parameters
    ----------
    session
        The id of the session.
    at
        The seq of the record; else the newest.
    """
    return common.looked_at(partial(show_state, output=common.output, id=session, at=at))


def facts(
    pattern: str = "(_ . _)",
    /,
    *,
    at: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    session: str | None = None,
    lineage: Annotated[bool, Flag] = False,
    common: Options = OPTIONS,
) -> int:
    """List the facts that match a pattern and hold: those that were stated and not taken back.

    ```
    keeve facts '(shop.order . _)' --session s1
    ```

    Parameters
    ----------
    pattern
        What to look for, as for `keeve log`.
    at
        What held at this position; else what holds now.
    session
        Only what this session has stated.
    lineage
        With --session: what its ancestors stated before it was forked, too.
    """
    how = partial(list_facts, output=common.output, pattern=pattern, at=at, session=session, lineage=lineage)
    return common.looked_at(how)


def _input(given: str | None) -> str:
    """What is said. Raises `NothingToSay`."""
    if given is not None:
        return given  # also the empty text, which is said as it is over HTTP, too
    said = "" if sys.stdin.isatty() else sys.stdin.read().removesuffix("\n")
    if not said:
        raise NothingToSay
    return said
