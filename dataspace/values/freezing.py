"""Into a value and out of it: `freeze` makes one of what users hand over, `thaw` gives them what is stored.

`freeze` promises that what it returns is a value through and through, and names the place of whatever is not.
The one rule: the hot path carries no path. Where something is wrong is put together while the error passes up
through the containers, so that a good value pays nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any, Final, Protocol, TypeAlias

from dataspace.values.kinds import (
    CELLED,
    Blob,
    CelledBlob,
    CelledDict,
    CelledList,
    CellRef,
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

MAX_SIZE: Final = 256 << 20
"""Bytes of a list or dict with all that is in it, at the most. An item counts 64, with the first 64 bytes of a string
or bytes; a list or dict within counts 512 more."""

CELL_BYTES: Final = 256
"""Strings (in UTF-8) and bytes longer than this are kept as cells."""

_UID: Final = 16  # bytes of a session's uid

_SURELY_SHORT: Final = CELL_BYTES // 4  # characters, of 4 bytes at most

_UNIT: Final = 6  # bits of the 64 bytes in which sizes are counted
_UNITS: Final = MAX_SIZE >> _UNIT

_CONTAINER: Final = 512 >> _UNIT

_Left: TypeAlias = (
    list[int] | None
)  # one number: how many units the rest may have; None until there is something to count

_STEP_SHOWN: Final = 60  # characters of a key that is shown in an error's path; half of one is not: it may be a secret

_AS_IT_IS: Final[frozenset[type]] = frozenset({NoneType, bool, int, float, Symbol, Erased})


class CellSink(Protocol):
    """Where new content goes (gives the cell that it is now kept in), and who sees the refs and promises."""

    def cell(self, content: str | bytes) -> CellRef: ...

    def reference(self, value: Ref | Promise) -> Value:
        """How a ref or a promise is kept: as it is, or as another that means the same there."""


def freeze(value: Any, cells: CellSink | None = None, path: str = "value") -> Value:
    """The value that `value` is, frozen through and through; in stored form if `cells` takes long content.

    Tuples become lists; subclasses of `str`, `int`, `float` and `bytes` (enums, say) their plain value; a
    lone surrogate U+FFFD, in keys too (of two keys that become one, the last stays). With `cells`, every
    `Text`, and every other string or bytes over 256 bytes, becomes a `CellRef` (keys never do), and refs and
    promises become what `cells.reference` gives for them.

    Raises `NotAValue` naming the place, from `path` on, for any other type, for a key that is not a `str`,
    for what contains itself, for containers nested more than 64 deep, and for more than `MAX_SIZE`, where what is
    held twice counts twice. Costs one pass over `value`.
    """
    try:
        return _freeze(value, cells, 1, None)
    except _TooLarge:
        raise NotAValue(path, type(value), _TOO_LARGE) from None
    except _TooDeep as error:
        # Without what it holds: a container that contains itself, which nobody who shows errors is prepared for.
        raise NotAValue(path + error.path, error.kind, error.reason) from None
    except NotAValue as error:
        error.path = path + error.path
        raise


def _freeze(value: Any, cells: CellSink | None, depth: int, left: _Left) -> Value:
    kind = type(value)
    if kind is str:
        return _string(value, cells, left)
    if kind in _AS_IT_IS:
        return value
    if kind is dict or kind is FrozenDict:
        return _dict(value, cells, depth, left)
    if kind is list or kind is FrozenList:
        return _list(value, cells, depth, left)
    if kind is Text and cells is not None:
        return _text(value, cells, left)
    if kind is bytes:
        return _bytes(value, cells, left)
    return _unusual(value, cells, depth, left)


def _dict(value: dict[Any, Any], cells: CellSink | None, depth: int, left: _Left) -> FrozenDict:
    if left is not None:
        left[0] = rest = left[0] - len(value) - _CONTAINER
        if rest < 0 or depth > MAX_DEPTH:
            raise _TooLarge if rest < 0 else _TooDeep(value)
    frozen = {}
    key: Any = None
    try:
        for key, item in value.items():
            if type(key) is not str or not key.isascii() or len(key) > _SURELY_SHORT:
                key = _key(key, left)
            kind = type(item)
            if (kind is str and len(item) <= _SURELY_SHORT and item.isascii()) or kind in _AS_IT_IS:
                frozen[key] = item
            else:
                if left is None:
                    left = [_UNITS - len(value)]
                frozen[key] = _freeze(item, cells, depth + 1, left)
    except NotAValue as error:
        _found_under(value, _step(key), error)
        raise
    if cells is None or CELLED.isdisjoint(map(type, frozen.values())):
        return FrozenDict(frozen)
    return CelledDict(frozen)


def _list(value: list[Any] | tuple[Any, ...], cells: CellSink | None, depth: int, left: _Left) -> FrozenList:
    if left is not None:
        left[0] = rest = left[0] - len(value) - _CONTAINER
        if rest < 0 or depth > MAX_DEPTH:
            raise _TooLarge if rest < 0 else _TooDeep(value)
    frozen: list[Value] = []
    add = frozen.append
    try:
        for item in value:
            kind = type(item)
            if (kind is str and len(item) <= _SURELY_SHORT and item.isascii()) or kind in _AS_IT_IS:
                add(item)
            else:
                if left is None:
                    left = [_UNITS - len(value)]
                add(_freeze(item, cells, depth + 1, left))
    except NotAValue as error:
        _found_under(value, f"[{len(frozen)}]", error)
        raise
    if cells is None or CELLED.isdisjoint(map(type, frozen)):
        return FrozenList(frozen)
    return CelledList(frozen)


def _string(value: str, cells: CellSink | None, left: _Left) -> str | CellRef:
    text = value if value.isascii() else _valid(value)
    length = len(text)
    if length <= _SURELY_SHORT:
        return text
    if left is not None:
        left[0] = rest = left[0] - (length >> _UNIT)
        if rest < 0:
            raise _TooLarge
    # Characters first: there are never more of them than bytes.
    if cells is not None and (length > CELL_BYTES or len(text.encode()) > CELL_BYTES):
        return cells.cell(text)
    return text


def _text(value: str, cells: CellSink, left: _Left) -> CellRef:
    text = str.__str__(value)
    if left is not None:
        _take(len(text), left)
    return cells.cell(text if text.isascii() else _valid(text))


def _bytes(value: bytes, cells: CellSink | None, left: _Left) -> bytes | CellRef:
    if left is not None:
        _take(len(value), left)
    return value if cells is None or len(value) <= CELL_BYTES else cells.cell(value)


def _take(length: int, left: list[int]) -> None:
    left[0] = rest = left[0] - (length >> _UNIT)
    if rest < 0:
        raise _TooLarge


def _valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, so that the two halves of one character, where they meet, become that character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _key(key: Any, left: _Left) -> str:
    if not issubclass(type(key), str):
        raise NotAValue("", type(key), f"the keys of a dict are str, and one is {type(key).__name__}")
    if left is not None:
        _take(str.__len__(key), left)
    return _valid(str.__str__(key))


def _unusual(value: Any, cells: CellSink | None, depth: int, left: _Left) -> Value:
    # What a thing is, not what it says of itself: a mock or a proxy may say that it is a str.
    kind = type(value)
    if issubclass(kind, str):
        if cells is not None and issubclass(kind, Text):
            return _text(value, cells, left)
        return _string(str.__str__(value), cells, left)
    if issubclass(kind, (Ref, Promise)):
        _check_reference(value)
        return value if cells is None else cells.reference(value)
    if issubclass(kind, (tuple, list)):
        return _list(value, cells, depth, left)
    if issubclass(kind, dict):
        return _dict(value, cells, depth, left)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, bytes):
        return _bytes(bytes(memoryview(value)), cells, left)
    if kind is Blob:
        return _blob(value, cells, left)
    raise NotAValue("", kind)


def _check_reference(value: Ref | Promise) -> None:
    """Refuse what could be written and never be read again."""
    number, session = (value.actor, value.session) if isinstance(value, Ref) else (value.id, None)
    if type(number) is not int or not 0 <= number < 1 << 64:
        raise NotAValue("", type(value), f"the number in a {type(value).__name__} is an int from 0 to 2**64 - 1")
    if session is not None and (type(session) is not bytes or len(session) != _UID):
        raise NotAValue("", type(value), f"the session of a {type(value).__name__} is a uid of {_UID} bytes")


def _blob(value: Blob, cells: CellSink | None, left: _Left) -> Blob | CelledBlob:
    if type(value.media_type) is not str:
        raise NotAValue(".media_type", type(value.media_type), "the media type of a Blob is a str")
    if type(value.content) is not bytes:
        raise NotAValue(".content", type(value.content), "the content of a Blob is bytes")
    media_type = _valid(value.media_type)
    if left is not None:
        _take(len(media_type), left)
    content = _bytes(value.content, cells, left)
    return CelledBlob(media_type, content) if isinstance(content, CellRef) else Blob(media_type, content)


class _TooLarge(Exception):
    """It has no place: it is the whole that is too large."""


_TOO_LARGE: Final = (
    f"larger than {MAX_SIZE >> 20} MiB when it is written out, where what is held twice counts twice: "
    "bring it in pieces, or keep the parts in a collection"
)


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
    return f"[{key!r}]" if len(key) <= _STEP_SHOWN else f"[a key of {len(key)} characters]"


def _found_under(container: Any, step: str, error: NotAValue) -> None:
    # A container that is met again on the way up contains itself.
    if isinstance(error, _TooDeep) and error.container is container:
        error.path = ""
        error.reason = f"{type(container).__name__} that contains itself"
    else:
        error.path = step + error.path


def thaw(stored: Value, load: Callable[[CellRef], str | bytes | Erased]) -> Value:
    """What is stored as users read it: content in the place of cells, `load`ed if the cell does not have it.

    A value without cells comes back as it is. A blob whose content is erased reads as `ERASED`.
    """
    kind = type(stored)
    if kind not in CELLED:
        return stored
    if kind is CellRef:
        content = stored.content
        return load(stored) if content is None else content
    if kind is CelledDict:
        return FrozenDict({key: item if type(item) not in CELLED else thaw(item, load) for key, item in stored.items()})
    if kind is CelledList:
        return FrozenList([item if type(item) not in CELLED else thaw(item, load) for item in stored])
    content = thaw(stored.content, load)
    return content if isinstance(content, Erased) else Blob(stored.media_type, content)
