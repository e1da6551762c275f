"""`keeve messages` and `keeve chain`: the conversation of a session, and its records, a page after another.

The one rule: what `--json` gives is what the HTTP API gives, with the same `after`, `limit` and `next`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.records import ZERO_HASH, Header, Kind
from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.output import Output
from keeve.cli.sessions import in_words
from keeve.cli.stores import Looks
from keeve.cli.text import as_given, local_time, shortened
from keeve.looking import PAGE

After = Annotated[int, Parameter(validator=Number(gte=0))]
Limit = Annotated[int | None, Parameter(validator=Number(gte=1))]


def messages(session: str, /, *, after: After = 0, limit: Limit = None, common: Options = OPTIONS) -> int:
    """Show the messages of a conversation, in OpenAI's chat form with --json. Nothing is run.

    ```
    keeve messages s1
    keeve messages s1 --after 100 --limit 20 --json
    ```

    Parameters
    ----------
    session
        The id of the session.
    after
        Only those behind so many: `next` of a page gives the next one.
    limit
        At most so many.
    """
    return common.looked_at(partial(tell_messages, output=common.output, id=session, after=after, limit=limit))


def chain(
    session: str,
    /,
    *,
    after: After = 0,
    limit: Limit = None,
    words: Annotated[bool, Flag] = False,
    common: Options = OPTIONS,
) -> int:
    """Show the records of a session, its ancestors' among them, each of which names the one before by its hash; of each
    which call it took, whose, and what it asked devices for.

    With --json they are given as the bytes that the hashes are over, so that others can hash them, too. Ends with 1
    when one does not name the one before it.

    ```
    keeve chain s1
    keeve chain s1 --after 100 --limit 20 --words --json
    ```

    Parameters
    ----------
    session
        The id of the session.
    after
        Only those behind this seq: `next` of a page gives the next one.
    limit
        At most so many.
    words
        With --json: what each has stated, too, as its hash covers it.
    """
    how: dict[str, Any] = {"after": after, "limit": limit, "words": words}
    return common.looked_at(partial(tell_chain, output=common.output, id=session, **how))


async def tell_messages(store: Looks, output: Output, *, id: str, after: int, limit: int | None) -> None:
    """Tell of the messages behind so many, at most `limit`. Raises `NoSuchSession`, `Deleted`, `NoMessages`."""
    told = await _all(store, "messages", "messages", limit, id=id, after=after)
    if output.as_json:
        output.document(told)
        return
    for number, message in enumerate(told["messages"], after + 1):
        output.say(f"{number:>4}  {message.get('role', '?'):<9}  {_said(message)}")
    if not told["messages"]:
        output.note(f"no message of {id} comes after {after}" if after else f"nothing was said in {id}")


async def tell_chain(store: Looks, output: Output, *, id: str, after: int, limit: int | None, words: bool) -> int:
    """Tell of the records behind a seq, at most `limit`. Gives 1 where one does not name the one before it."""
    told = await _all(store, "chain", "records", limit, id=id, after=after, words=words)
    records = [(Header.of_hashed(b64decode(each["header"]), each["position"])) for each in told["records"]]
    hashes = [sha256(record.hashed).digest() for record in records]
    before = [None if after else ZERO_HASH, *hashes]
    broken = [record.seq for record, hash in zip(records, before, strict=False) if hash not in (None, record.previous)]
    if output.as_json:
        output.document(told)
    elif records:
        names: dict[int, str] = {}
        rows = [
            (
                *(str(record.seq), str(record.position), _kind(record.kind), local_time(record.time)),
                *(_of(each["of"], names) if "of" in each else "", hash.hex()),
            )
            for each, record, hash in zip(told["records"], records, hashes, strict=True)
        ]
        output.table(("SEQ", "POSITION", "KIND", "TIME", "OF", "HASH"), rows)
    else:
        output.note(f"no record of {id} comes after seq {after}")
    for seq in broken:
        output.note(f"the record at seq {seq} does not name the one before it: keeve verify says what is wrong", "red")
    return 1 if broken else 0


async def _all(store: Looks, what: str, items: str, limit: int | None, *, after: int, **how: Any) -> dict[str, Any]:
    """All pages, or as many as have `limit` items, as one."""
    found: list[Any] = []
    following: int | None = after
    while following is not None and (limit is None or len(found) < limit):
        some = PAGE if limit is None else min(limit - len(found), PAGE)
        page = await store.look(what, after=following, limit=some, **how)
        found += page[items]
        following = page["next"]
    return {items: found, "next": following}


def _said(message: Mapping[str, Any]) -> str:
    """What people read of a message, on one line."""
    said = "" if message.get("content") is None else shortened(in_words(message["content"]), 400)
    calls = [call.get("function", {}) for call in message.get("tool_calls") or ()]
    called = [f"{call.get('name', '?')}({shortened(as_given(call.get('arguments')), 200)})" for call in calls]
    return " ".join([*filter(None, [said]), *(f"[calls {each}]" for each in called)])


def _of(of: Mapping[str, Any] | None, names: dict[int, str]) -> str:
    """What a record is of, in words. `names` are those of the effects that earlier ones have wanted."""
    if of is None:
        return "(cannot be read here)"
    names |= {call["effect"]: f"{call['device']}.{call['method']}" for call in of["calls"]}
    said = []
    if of["effect"] is not None:
        name = names.get(of["effect"])
        said.append(f"effect {of['effect']}{'' if name is None else f' ({name})'}")
    elif of["method"] is not None:
        said.append(of["method"])
    if of["by"] is not None:
        said.append(f"by {of['by']} via {of['via']}")
    if of["request"] is not None:
        said.append(f"request {of['request']}")
    calls = ", ".join(f"effect {call['effect']} ({names[call['effect']]})" for call in of["calls"])
    return " ".join(said) + (f"; wants {calls}" if calls else "")


def _kind(number: int) -> str:
    return next((kind.name.lower().replace("_", "-") for kind in Kind if kind == number), str(number))
