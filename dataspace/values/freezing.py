"""Into a value and out of it: `freeze` makes one of what users hand over, `thaw` gives them what is stored.

`freeze` promises that what it returns is a value through and through, and names the place of whatever is not.
The one rule: the hot path carries no path. Where something is wrong is put together while the error passes up
through the containers, so that a good value pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, Final, Protocol

from dataspace.values.kinds import (
    CELLED,
    Blob,
    Cell,
    CelledBlob,
    CelledDict,
    CelledList,
    Erased,
    FrozenDict,
    FrozenList,
    NotAValue,
    Promise,
    Ref,
    Symbol,
    Text,
    Value,
)

MAX_DEPTH: Final = 64
"""Containers within containers, at most: `[]` has a depth of 1."""

CELL_BYTES: Final = 256
"""Strings (in UTF-8) and bytes longer than this are kept as cells."""

_UID: Final = 16  # bytes of a session's uid

_SURELY_SHORT: Final = CELL_BYTES // 4  # characters, of 4 bytes at most

_STEP_SHOWN: Final = 60  # characters of a key, in an error's path

_AS_IT_IS: Final[frozenset[type]] = frozenset({NoneType, bool, int, float, Symbol, Erased})


class CellSink(Protocol):
    """Where new content goes (gives the cell that it is now kept in), and who sees the refs and promises."""

    def cell(self, content: str | bytes) -> Cell: ...

    def reference(self, value: Ref | Promise) -> Value:
        """How a ref or a promise is kept: as it is, or as another that means the same there."""


def freeze(value: Any, cells: CellSink | None = None, path: str = "value") -> Value:
    """The value that `value` is, frozen through and through; in stored form if `cells` takes long content.

    Tuples become lists; subclasses of `str`, `int`, `float` and `bytes` (enums, say) their plain value; a
    lone surrogate U+FFFD, in keys too (of two keys that become one, the last stays). With `cells`, every
    `Text`, and every other string or bytes over 256 bytes, becomes a `Cell` (keys never do), and refs and
    promises become what `cells.reference` gives for them.

    Raises `NotAValue` naming the place, from `path` on, for any other type, for a key that is not a `str`,
    for what contains itself and for containers nested more than 64 deep. Costs one pass over `value`.
    """
    try:
        return _freeze(value, cells, 1)
    except _TooDeep as error:
        # Without what it holds: a container that contains itself, which nobody who shows errors is prepared for.
        raise NotAValue(path + error.path, error.kind, error.reason) from None
    except NotAValue as error:
        error.path = path + error.path
        raise


def _freeze(value: Any, cells: CellSink | None, depth: int) -> Value:
    kind = type(value)
    if kind is str:
        return _string(value, cells)
    if kind in _AS_IT_IS:
        return value
    if kind is dict or kind is FrozenDict:
        return _dict(value, cells, depth)
    if kind is list or kind is FrozenList:
        return _list(value, cells, depth)
    if kind is Text and cells is not None:
        text = str.__str__(value)
        return cells.cell(text if text.isascii() else _valid(text))
    if kind is bytes:
        return value if cells is None or len(value) <= CELL_BYTES else cells.cell(value)
    return _unusual(value, cells, depth)


def _dict(value: dict[Any, Any], cells: CellSink | None, depth: int) -> FrozenDict:
    if depth > MAX_DEPTH:
        raise _TooDeep(value)
    frozen = {}
    key: Any = None
    try:
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                key = _key(key)
            kind = type(item)
            if (kind is str and len(item) <= _SURELY_SHORT and item.isascii()) or kind in _AS_IT_IS:
                frozen[key] = item
            else:
                frozen[key] = _freeze(item, cells, depth + 1)
    except NotAValue as error:
        _found_under(value, _step(key), error)
        raise
    if cells is None or CELLED.isdisjoint(map(type, frozen.values())):
        return FrozenDict(frozen)
    return CelledDict(frozen)


def _list(value: list[Any] | tuple[Any, ...], cells: CellSink | None, depth: int) -> FrozenList:
    if depth > MAX_DEPTH:
        raise _TooDeep(value)
    frozen: list[Value] = []
    add = frozen.append
    try:
        for item in value:
            kind = type(item)
            if (kind is str and len(item) <= _SURELY_SHORT and item.isascii()) or kind in _AS_IT_IS:
                add(item)
            else:
                add(_freeze(item, cells, depth + 1))
    except NotAValue as error:
        _found_under(value, f"[{len(frozen)}]", error)
        raise
    if cells is None or CELLED.isdisjoint(map(type, frozen)):
        return FrozenList(frozen)
    return CelledList(frozen)


def _string(value: str, cells: CellSink | None) -> str | Cell:
    text = value if value.isascii() else _valid(value)
    if cells is None or len(text) <= _SURELY_SHORT:
        return text
    # Characters first: there are never more of them than bytes.
    if len(text) > CELL_BYTES or len(text.encode()) > CELL_BYTES:
        return cells.cell(text)
    return text


def _valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, so that the two halves of one character, where they meet, become that character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _key(key: Any) -> str:
    if not issubclass(type(key), str):
        raise NotAValue("", type(key), f"the keys of a dict are str, and one is {type(key).__name__}")
    return _valid(str.__str__(key))


def _unusual(value: Any, cells: CellSink | None, depth: int) -> Value:
    # What a thing is, not what it says of itself: a mock or a proxy may say that it is a str.
    kind = type(value)
    if issubclass(kind, str):
        plain = str.__str__(value)
        if cells is not None and issubclass(kind, Text):
            return cells.cell(_valid(plain))
        return _string(plain, cells)
    if issubclass(kind, (Ref, Promise)):
        _check_reference(value)
        return value if cells is None else cells.reference(value)
    if issubclass(kind, (tuple, list)):
        return _list(value, cells, depth)
    if issubclass(kind, dict):
        return _dict(value, cells, depth)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, bytes):
        return _freeze(bytes(memoryview(value)), cells, depth)
    if kind is Blob:
        return _blob(value, cells)
    raise NotAValue("", kind)


def _check_reference(value: Ref | Promise) -> None:
    """Refuse what could be written and never be read again."""
    number, session = (value.actor, value.session) if isinstance(value, Ref) else (value.id, None)
    if type(number) is not int or not 0 <= number < 1 << 64:
        raise NotAValue("", type(value), f"the number in a {type(value).__name__} is an int from 0 to 2**64 - 1")
    if session is not None and (type(session) is not bytes or len(session) != _UID):
        raise NotAValue("", type(value), f"the session of a {type(value).__name__} is a uid of {_UID} bytes")


def _blob(value: Blob, cells: CellSink | None) -> Blob | CelledBlob:
    if type(value.media_type) is not str:
        raise NotAValue(".media_type", type(value.media_type), "the media type of a Blob is a str")
    if type(value.content) is not bytes:
        raise NotAValue(".content", type(value.content), "the content of a Blob is bytes")
    media_type = _valid(value.media_type)
    if cells is None or len(value.content) <= CELL_BYTES:
        return Blob(media_type, value.content)
    return CelledBlob(media_type, cells.cell(value.content))


class _TooDeep(NotAValue):
    def __init__(self, container: Any) -> None:
        super().__init__("", type(container), f"nested more than {MAX_DEPTH} deep")
        self.container = container


def _step(key: Any) -> str:
    if not issubclass(type(key), str):
        return ""
    key = str.__str__(key)
    if key.isidentifier() and len(key) <= _STEP_SHOWN:
        return f".{key}"
    return f"[{key!r}]" if len(key) <= _STEP_SHOWN else f"[{key[:_STEP_SHOWN]!r}…]"


def _found_under(container: Any, step: str, error: NotAValue) -> None:
    # A container that is met again on the way up contains itself.
    if isinstance(error, _TooDeep) and error.container is container:
        error.path = ""
        error.reason = f"{type(container).__name__} that contains itself"
    else:
        error.path = step + error.path


def thaw(stored: Value, load: Callable[[Cell], str | bytes | Erased]) -> Value:
    """What is stored as users read it: content in the place of cells, `load`ed if the cell does not have it.

    A value without cells comes back as it is. A blob whose content is erased reads as `ERASED`.
    """
    kind = type(stored)
    if kind not in CELLED:
        return stored
    if kind is Cell:
        content = stored.content
        return load(stored) if content is None else content
    if kind is CelledDict:
        return FrozenDict({key: item if type(item) not in CELLED else thaw(item, load) for key, item in stored.items()})
    if kind is CelledList:
        return FrozenList([item if type(item) not in CELLED else thaw(item, load) for item in stored])
    content = thaw(stored.content, load)
    return content if isinstance(content, Erased) else Blob(stored.media_type, content)
