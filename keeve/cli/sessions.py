"""`keeve ls`, `show` and `state`: which sessions there are, and what one of them holds, or held.

The one rule: what is said in words is made of what `--json` gives.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.errors import KeeveError
from dataspace.remedies import command
from keeve.cli.log import stated
from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.output import Output
from keeve.cli.stores import Looks
from keeve.cli.text import ERASED, as_given, counted, local_time, shortened, time_said
from keeve.cli.waiting import called, state_in_words, waits_for, with_words
from keeve.looking import parts_put_together, put_together, with_refs

PAGE: Final = 500
"""Sessions that are asked for at once."""


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
    return common.looked_at(partial(show_session, output=common.output, id=session))


async def list_sessions(
    store: Looks, output: Output, *, prefix: str, after: str, limit: int | None, deleted: bool, ids: bool
) -> None:
    """Tell of the sessions whose ids begin with `prefix` and follow `after`, at most `limit` of them."""
    rows = [row async for row in _sessions(store, prefix, after, limit, deleted)]
    if output.as_json:
        output.document({"sessions": rows})
        return
    if ids:
        for row in rows:
            output.say(row["id"])
        return
    table = [
        (
            row["id"],
            "deleted" if row["deleted"] else f"{row['pending']} pending" if row["pending"] else "",
            str(row["seq"]),
            _local(row["updated"]),
            row["type"],
            "" if row["forked_from"] is None else f"fork of {_other(row['forked_from'])} at {row['forked_from']['at']}",
        )
        for row in rows
    ]
    if table:
        output.table(("SESSION", "STATE", "SEQ", "UPDATED", "TYPE", "ORIGIN"), table)
    else:
        output.note(
            "no sessions" + (f" that begin with {prefix!r}" if prefix else "") + (f" after {after!r}" if after else "")
        )


def _other(named: Mapping[str, Any]) -> str:
    """A session that another one was forked from, or into."""
    return f"{named['session']}{' (deleted)' if named.get('deleted') else ''}"


async def _sessions(
    store: Looks, prefix: str, after: str, limit: int | None, deleted: bool
) -> AsyncIterator[dict[str, Any]]:
    """The sessions, a page after another."""
    following: str | None = after
    left = limit
    while following is not None and left != 0:
        wanted = PAGE if left is None else min(left, PAGE)
        page = await store.look("sessions", prefix=prefix, after=following, limit=wanted, deleted=deleted)
        for row in page["sessions"]:
            yield row
        following = page["next"]
        left = None if left is None else left - len(page["sessions"])


async def show_session(store: Looks, output: Output, id: str) -> int:
    """Tell of one session. Gives 1 when a part of it could not be read. Raises `NoSuchSession` or `Deleted`.

    Costs a reading of its records, and a restore.
    """
    shown = with_words(await store.look("show", id=id, whole=output.as_json))
    owner, away = shown.pop("owner"), shown.pop("away")
    if output.as_json:
        try:
            await _add_fields(store, shown, id, "fields_next", words=False)
        except KeeveError as damage:
            shown["damage"] = shown["damage"] or str(damage)
        output.document(shown)
        return 0 if shown["damage"] is None else 1
    output.say(shown["id"], "bold")
    output.say(f"  type     {shown['type']}")
    output.say(f"  head     seq {shown['seq']}, position {shown['position']}, hash {shown['hash'][:16]}…")
    output.say(f"  created  {_local(shown['created'])}")
    output.say(f"  updated  {_local(shown['updated'])}")
    if shown["forked_from"] is not None:
        output.say(f"  fork of  {_other(shown['forked_from'])} at seq {shown['forked_from']['at']}")
    for fork in shown["forks"]:
        output.say(f"  fork     {_other(fork)} at seq {fork['at']}")
    if shown["snapshots"]:
        output.say(f"  snapshot at seq {shown['snapshots'][0]}")
    output.say(f"  pending  {_pending(shown, owner)}")
    for call in shown["approvals"]:
        output.say(f"  approval {call['id']} of {call['name']}, since {_local(call['since'])}")
    for fiber in shown["fibers"]:
        since = _local(fiber["since"])
        output.say(f"  fiber    {fiber['fiber']}, {fiber['method']}, since {since}, waits for {waits_for(fiber)}")
    for promise in shown.get("promises", ()):
        output.say(f"  promise  {promise['promise']}, waits for {waits_for(promise)}")
    _show_fields(output, shown["fields"], shown["id"])
    for event in shown["facts"]:
        said = shortened(stated(event["kind"], event["text"]), 200)
        output.say(f"  fact     {said}, seq {event['seq']}, {_local(event['time'])}")
        error = event["keywords"].get("error") if event["label"] == "fiber-failed" else None
        if isinstance(error, dict):  # the whole reason: nothing else tells it
            output.say(f"           {error.get('error')}: {in_words(error.get('message'))}", "red")
    if shown["turns_before"]:
        before = command("log", "(turn . _)", session=shown["id"])
        output.note(f"{counted(shown['turns_before'], 'turn')} before these: {before}")
    for turn in shown["turns"]:
        _show_turn(output, turn)
    if shown["truncated"]:
        output.note(f"there is more: these are not all {' and '.join(shown['truncated'])}", prose=True)
    if shown["damage"] is not None:
        what = "not all of it is here, and what is not is left out" if away else "not all of it can be read"
        output.note(f"{what}: {shown['damage']}", "red")
        return 1
    return 0


async def show_state(store: Looks, output: Output, id: str, at: int | None) -> None:
    """Tell of the fields of a session as they were after a record. Raises `NoSuchSession`, `Deleted`, `NoSuchPoint`."""
    words = not output.as_json
    told = await store.look("state", id=id, at=at, words=words)
    await _add_fields(store, told, id, "next", words=words)
    del told["next"]
    if output.as_json:
        output.document(told)
        return
    output.say(f"{told['session']} at seq {told['seq']}", "bold")
    output.say(f"  type     {told['type']}")
    output.say(f"  time     {_local(told['time'])}")
    output.say(f"  hash     {told['hash']}")
    fields = dict(told["fields"])
    for name, part in told.get("parts", {}).items():
        fields |= {f"{name}.{own}": value for own, value in part["fields"].items()}
    written = {name: json.dumps(value, ensure_ascii=False) for name, value in fields.items()}
    said = {name: shortened(with_refs(text, told["refs"].__getitem__), 400) for name, text in written.items()}
    _show_fields(output, said, id, at=at)


async def _add_fields(store: Looks, told: dict[str, Any], id: str, place: str, *, words: bool) -> None:
    """Add to what was told of a session the fields that follow, all of them; `place` has where they begin."""
    while told[place] is not None:
        page = await store.look("state", id=id, at=told["seq"], after=told[place], words=words)
        put_together(told["fields"], page["fields"])
        if "parts" in page:
            parts_put_together(told.setdefault("parts", {}), page["parts"])
        if words:
            told["refs"] |= page["refs"]
        told[place] = page["next"]


def _show_fields(output: Output, said: Mapping[str, str], id: str, *, at: int | None = None) -> None:
    for name, text in said.items():
        output.say(f"  field    {name}: {text}")
    if cut := [name for name, text in said.items() if text.endswith("…")]:
        output.note(f"cut to a line: {', '.join(cut)}; whole: {command('state', id, at=at, json=True)}")


def _pending(shown: Mapping[str, Any], owner: int | None) -> str:
    if not shown["pending"]:
        below = shown["approvals"] or shown["fibers"] or shown.get("promises")
        return "nothing but what stands below" if below else "nothing"
    names = [f"{called(each)} ({state_in_words(each, owner)})" for each in shown["effects"]]
    more = shown["pending"] - len(names)
    return ", ".join(names + ([f"{more} messages or subscriptions"] if more else []))


def _show_turn(output: Output, turn: Mapping[str, Any]) -> None:
    seqs = f"seq {turn['seq']}" if turn["end"] in (None, turn["seq"]) else f"seq {turn['seq']}–{turn['end']}"
    how = turn["state"] if turn["limit"] is None else f"{turn['state']} at the limit of {turn['limit']}"
    output.say(f"turn {turn['turn']}  {how}, {_local(turn['began'])}, {seqs}", "dim")
    output.say(f"  > {shortened(in_words(turn['input']), 400)}")
    calls = turn["tool_calls"]
    if calls:
        ends = (
            (turn["failed_calls"], "failed"),
            (turn["refused_calls"], "refused"),
            (turn["unknown_calls"], "of unknown outcome"),
        )
        ended = "".join(f", {count} {how}" for count, how in ends if count)
        output.say(f"  {counted(len(calls), 'tool call')} ({', '.join(sorted(set(calls)))}){ended}")
    if turn["state"] == "done":
        output.say(f"  {shortened(in_words(turn['output']), 400)}")
    elif turn["error"] is not None:
        output.say(f"  {shortened(in_words(turn['error']), 400)}", "red")


def _local(time: str) -> str:
    return local_time(time_said(time))


def in_words(content: Any) -> str:
    """What people read of an input, an output or an error.

    >>> in_words([{"role": "tool", "content": "wet"}, {"role": "user", "content": "and now?"}])
    '[tool: wet] and now?'
    """
    if content is None:
        return "(nothing)"
    if isinstance(content, str):
        return content
    if content == ERASED:
        return "[erased]"
    if isinstance(content, dict) and "error" in content:
        return f"{content['error']}: {as_given(content.get('message', ''))}"
    if isinstance(content, list):
        return " ".join(map(_part_in_words, content))
    return f"[{as_given(content)}]"


def _part_in_words(part: Any) -> str:
    if isinstance(part, dict) and "text" in part:
        return in_words(part["text"]) if part["text"] == ERASED else str(part["text"])
    if isinstance(part, dict) and "role" in part:  # a message: of a request that brought several
        said = in_words(part.get("content"))
        return said if part["role"] == "user" else f"[{part['role']}: {said}]"
    return f"[{_kind(part)}]"


def _kind(part: Any) -> str:
    return str(part.get("type", "object")) if isinstance(part, dict) else type(part).__name__
