"""The commands that remove something for good: their names, options and help.

The one rule: a command parses and hands over: what it does is in the module that it calls.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from keeve.cli.delete import delete_session
from keeve.cli.options import OWNER_OPTIONS, Flag, OwnerOptions
from keeve.cli.space import OnePlace, collect
from keeve.cli.space import erase as erase_content


def delete(session: str, /, *, force: Annotated[bool, Flag] = False, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Delete a session, for ever. Its id never comes back; forks of it stay whole.

    What it said can be read no more. It goes from the files with `keeve gc`, or when a host has a quiet while.

    ```
    keeve delete s1
    keeve delete s1 --force
    ```

    Parameters
    ----------
    session
        The id of the session.
    force
        Abandon the work that it has under way.
    """
    trio.run(partial(delete_session, common.where, common.output, session, force=force, own=common.own))
    return 0


def gc(*, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Have what was deleted go from the files, as far as no fork needs it.

    Only headers stay, by which the log still verifies. It may be stopped at any time, and goes on the next time.

    ```
    keeve gc --store ./data
    ```
    """
    trio.run(partial(collect, common.where, common.output, own=common.own))
    return 0


def erase(
    session: str,
    /,
    *,
    turn: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    seq: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    force: Annotated[bool, Flag] = False,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """Take what was said in a turn out of a session, and of its forks, for ever. The session goes on.

    Everything that was said in the turn goes, and every later text that is the very same, whole. A longer text that
    quotes it stays: erase the turn that brought it as well. In its place stands that something was erased, and nobody
    reads it any more, also where its bytes cannot go from the files for want of space: then this ends with 1, and they
    go later. What cannot be erased alone, `docs/deletion.md` tells.

    ```
    keeve erase s1 --turn 3
    keeve erase s1 --seq 17
    ```

    Parameters
    ----------
    session
        The id of the session.
    turn
        The number of the turn; `keeve show` tells it.
    seq
        In place of a turn, the seq of a record, which `keeve chain` tells: what that brought goes.
    force
        Although a model or a tool runs, which may say it again.
    """
    if (turn is None) == (seq is None):
        raise OnePlace
    trio.run(
        partial(erase_content, common.where, common.output, session, seq=seq, turn=turn, force=force, own=common.own)
    )
    return 0
