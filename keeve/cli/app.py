"""The commands of every day: their options and help.

The one rule: a command parses and hands over. What it does, and how it is told, is in the module of its name, which is
imported when it is called: so no command waits for what another one needs.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated, Any

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from keeve.cli.options import OPTIONS, OWNER_OPTIONS, Flag, Options, OwnerOptions


def chat(session: str | None = None, /, *, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Talk to a session. It is made if it is not there; without a name, a new one is.

    Where a server has the store, it answers. Else the model is the one that the environment names, or an echo:
    KEEVE_MODEL is its name, KEEVE_MODEL_URL the base URL of its service, KEEVE_MODEL_KEY the name of the variable that
    holds the key.

    On a terminal Ctrl-D ends, and Ctrl-C ends an answer that is coming. A line that ends with a backslash goes on with
    the next one; lines that are pasted are said together. Elsewhere the lines of the standard input are
    answered, one after another, until one fails.

    ```
    keeve chat s1
    printf 'hello\\nagain\\n' | keeve chat s1 --json
    ```

    Parameters
    ----------
    session
        The id of the session.
    """
    from keeve.cli.chat import chat as hold_conversation

    return hold_conversation(common.where, common.output, session, own=common.own)


def ls(
    prefix: str = "",
    /,
    *,
    deleted: Annotated[bool, Flag] = False,
    after: str = "",
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    ids: Annotated[bool, Flag] = False,
    common: Options = OPTIONS,
) -> int:
    """List the sessions, in the order of their ids.

    ```
    keeve ls
    keeve ls customer- --limit 20 --json
    ```

    Parameters
    ----------
    prefix
        Only those whose ids begin with this.
    deleted
        Those that were deleted as well.
    after
        Only those that come after this id: the last one of a page gives the next page.
    limit
        At most so many.
    ids
        Only their ids, one on each line.
    """
    from keeve.cli.sessions import list_sessions

    how: dict[str, Any] = {"prefix": prefix, "after": after, "limit": limit, "deleted": deleted, "ids": ids}
    return common.looked_at(partial(list_sessions, output=common.output, **how))


def show(session: str, /, *, common: Options = OPTIONS) -> int:
    """Show a session: its turns, its forks, its head, what is pending.

    ```
    keeve show s1
    keeve show s1 --json | jq .turns
    ```

    Parameters
    ----------
    session
        The id of the session.
    """
    from keeve.cli.sessions import show_session

    return common.looked_at(partial(show_session, output=common.output, id=session))


def log(
    pattern: str,
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative="")] = False,
    after: str = "start",
    until: str | None = None,
    session: str | None = None,
    lineage: Annotated[bool, Flag] = False,
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    common: Options = OPTIONS,
) -> int:
    """Show the events that match a pattern, past and (with --follow) live. With --json, one line of JSON for each.

    A pattern is a fact with holes: `_` is anything, `?name` captures, `. _` leaves the rest open.

    ```
    keeve log '(turn . _)' --follow
    keeve log '(turn-done ?n "s1" . _)' --session s1 --json
    keeve log '(_ . _)' --after 2026-11-30T01:18 --until 2026-11-30T01:19
    ```

    Parameters
    ----------
    pattern
        What to look for.
    follow
        Go on with what comes, until Ctrl-C.
    after
        Where to begin: start, head, a position, or the cursor that an event carried; or a time, as 2026-11-30T01:18 (in
        your zone), 2026-11-30T01:18Z or with an offset: then what was recorded later.
    until
        Where to end: a position, or a time: then what was recorded up to that.
    session
        Only what this session has stated.
    lineage
        With --session: what its ancestors stated before it was forked, too.
    limit
        End after so many.
    """
    from keeve.cli.log import check, tell_log

    check(pattern, after, until, follow=follow)
    how: dict[str, Any] = {"after": after, "until": until, "session": session, "lineage": lineage}
    return common.looked_at(partial(tell_log, output=common.output, pattern=pattern, limit=limit, follow=follow, **how))


def fork(
    session: str,
    /,
    *,
    at: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    turn: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    into: str | None = None,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """Make a new session from another, as it is now, or was after a turn or at a seq. Says the new one's id.

    ```
    keeve fork s1
    keeve fork s1 --turn 3 --into s1-before-the-mistake
    ```

    Parameters
    ----------
    session
        The id of the session to fork.
    at
        The seq of the last record that both have in common; `keeve show` tells the seqs of the turns.
    turn
        The number of the last turn that both have in common.
    into
        The id of the new session.
    """
    from keeve.cli.fork import fork_session

    trio.run(partial(fork_session, common.where, common.output, session, at=at, turn=turn, into=into, own=common.own))
    return 0


def effects(
    *,
    session: str | None = None,
    ids: Annotated[bool, Flag] = False,
    calls: Annotated[bool, Flag] = False,
    after: str = "",
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    common: Options = OPTIONS,
) -> int:
    """List what has no outcome yet: calls of models and tools, timers, what a person is to approve, fibers that wait.
    Of a session that waits for none of these, promises: what another session or an actor of its own owes.

    One that has *started* while no process owns the store is of unknown outcome.

    ```
    keeve effects
    keeve effects --session s1
    keeve effects --limit 20 --json
    ```

    Parameters
    ----------
    session
        Only what this session waits for.
    ids
        Only the ids of effects, one on each line.
    calls
        Only the ids of calls that wait for a person, one on each line.
    after
        Only what follows: `next` of a page gives the next one.
    limit
        At most so many of all of these.
    """
    from keeve.cli.effects import list_effects

    how: dict[str, Any] = {"session": session, "ids": ids, "calls": calls, "after": after, "limit": limit}
    return common.looked_at(partial(list_effects, output=common.output, **how))


def resolve(
    effect: str, /, *, value: str | None = None, error: str | None = None, common: OwnerOptions = OWNER_OPTIONS
) -> int:
    """Settle a call whose outcome nobody knows, with what you have found out.

    ```
    keeve resolve 3f2a… --value '"the mail was sent"'
    keeve resolve 3f2a… --error 'the mail was not sent'
    ```

    Parameters
    ----------
    effect
        The id of the effect, as `keeve effects` tells it, or the beginning of it.
    value
        What it returned, as JSON.
    error
        Why it failed, in words.
    """
    from keeve.cli.effects import resolve_effect

    trio.run(partial(resolve_effect, common.where, common.output, effect, value=value, error=error, own=common.own))
    return 0


def verify(
    *,
    key: Annotated[list[str] | None, Parameter(negative="")] = None,
    expect: Annotated[list[str] | None, Parameter(negative="")] = None,
    common: Options = OPTIONS,
) -> int:
    """Check everything: frames, chains and checkpoints, snapshots against the log, the catalog against the log.

    Says two things: whether what is there is what was written, and whether all is there that was seen from outside.
    Ends with 1 when something is wrong, with 2 when nothing is and not all could be looked at (an encrypted store, and
    no key). Changes nothing.

    ```
    keeve verify
    keeve verify --expect yesterday --key keys.txt
    ```

    Parameters
    ----------
    key
        A verifier key that the log has to have signed with, one of a witness, or a file of them; may be given several
        times.
    expect
        The file of a receipt or a checkpoint: the log has to have all that was seen in it; may be given several times.
    """
    from keeve.cli.verify import verify as check_all

    return check_all(common.where.files("verify"), common.output, key or [], expect or [])


def doctor(*, common: Options = OPTIONS) -> int:
    """Say what is wrong with this store or this machine, and what to do.

    Ends with 1 when something must be done, with 2 when it could not look into an encrypted store. Changes nothing.

    ```
    keeve doctor --store ./data
    ```
    """
    from keeve.cli.doctor import doctor as examine

    return examine(common.where.files("doctor"), common.output, os.environ)
