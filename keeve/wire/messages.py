"""Messages: the kinds that each side may send, and what each has to hold.

A message is a list: its kind, and then its fields. `docs/wire.md` says what they mean. Refs and promises have no other
form on the wire than these two, and nobody can make one that reaches something:

    Ref(None, n)    what this connection was given as number n; 0 is the desk, which everybody has
    Promise(id)     the answer of this connection's call `id`, which may not have come yet

The one rule: a message is looked over against these tables before anything is done with it. What is not in them ends
the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, Final, TypeAlias

from dataspace.errors import KeeveError
from dataspace.values import FrozenDict, FrozenList, Promise, Ref, Value
from keeve.wire.frames import BadFrame

VERSION: Final = 1
"""The version of the protocol."""

DESK: Final = Ref(None, 0)
"""What everybody may call who was let in: finds sessions, makes them, lists them."""

LONGEST_ID: Final = 1 << 53
"""Ids of calls and numbers of refs are below this, so that any language has them as integers."""

Kinds: TypeAlias = Mapping[str, tuple[tuple[type, ...], ...]]

_NUMBER, _TEXT, _LIST, _DICT, _FLAG = (int,), (str,), (FrozenList,), (FrozenDict,), (bool,)
_ANY: Final = ()

FROM_CLIENT: Final[Kinds] = {
    "hello": (_NUMBER, _TEXT),  # version, token
    "call": (_NUMBER, (Ref, Promise), _TEXT, _LIST, _DICT, (str, NoneType), _FLAG),
    # id, target, method, arguments, keywords, request id, receipt
    "observe": (_NUMBER, _TEXT, _DICT, _NUMBER),  # id, pattern, options, credit
    "watch": (_NUMBER, (str, Ref, Promise, NoneType), _NUMBER),  # id, session, credit
    "more": (_NUMBER, _NUMBER),  # id, credit
    "stop": (_NUMBER,),  # id
    "forget": (_LIST,),  # ids
    "release": (_LIST,),  # [number, count] each
    "ping": (),
    "pong": (),
}
"""What a client sends, and of which types the fields are; without types, of any."""

FROM_SERVER: Final[Kinds] = {
    "welcome": (_DICT,),
    "value": (_NUMBER, _ANY, _LIST),  # id, value, [number, sturdy form, words] of each ref in it
    "error": (_NUMBER, _DICT),  # id, failure
    "items": (_NUMBER, _LIST, (str, NoneType)),  # id, items, the cursor up to which there is no more
    "end": (_NUMBER,),  # id
    "bye": (_DICT,),  # failure
    "ping": (),
    "pong": (),
}
"""What a server sends."""


class WrongVersion(KeeveError):
    """A client speaks another version of the protocol."""

    usage = True

    def __init__(self, version: int) -> None:
        super().__init__(
            f"version {version} of the protocol is not spoken here, version {VERSION} is: update the older end"
        )


def fields_of(said: list[Value], kinds: Kinds) -> list[Any]:
    """The fields of a message, without its kind. Raises `BadFrame` unless it is as the table says."""
    kind = said[0]
    types = kinds.get(kind)
    if types is None:
        raise BadFrame(f"there is no message {kind!r:.40} here")
    fields = said[1:]
    if len(fields) != len(types):
        raise BadFrame(f"{kind!r} has {len(types)} fields, and {len(fields)} came")
    for at, (field, allowed) in enumerate(zip(fields, types, strict=True), 1):
        if allowed and type(field) not in allowed:
            raise BadFrame(f"field {at} of {kind!r} is a {type(field).__name__}")
        if type(field) is int and not 0 <= field < LONGEST_ID:
            raise BadFrame(f"field {at} of {kind!r} is {field!r:.40}, which is no number from 0 to 2**53 - 1")
    return fields


def numbers(items: list[Value], each: int) -> list[Any]:
    """The items of a list of numbers (`each` is 1), or of lists of so many. Raises `BadFrame`."""
    for item in items:
        row = [item] if each == 1 else item
        if not isinstance(row, list) or len(row) != each:
            raise BadFrame(f"{item!r:.40} is not {each} numbers")
        if not all(type(number) is int and 0 <= number < LONGEST_ID for number in row):
            raise BadFrame(f"{item!r:.40} has something else than numbers from 0 to 2**53 - 1")
    return items


def numbers_in(value: Value) -> list[int]:
    """The numbers of the refs in a value that is to be sent."""
    found: list[int] = []
    if isinstance(value, Ref):
        found.append(value.actor)
    elif isinstance(value, dict):
        for item in value.values():
            found += numbers_in(item)
    elif isinstance(value, list):
        for item in value:
            found += numbers_in(item)
    return found
