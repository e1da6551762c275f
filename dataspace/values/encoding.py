"""One value, one byte string: values as msgpack, in one canonical form.

Integers are minimal, floats are float64 bit for bit, dict keys keep their order, and of ext types there are
those listed here only. Nothing is imported or called by a name that was read.

The one rule: **what `encode` gives is the only encoding of a value.** `decode_strict` accepts nothing else,
by encoding again what it read; `key_of` is the same encoding with dict keys sorted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, Final, Protocol

import msgpack

from dataspace.values.freezing import MAX_DEPTH
from dataspace.values.kinds import (
    CELLED,
    ERASED,
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
    Value,
)
from dataspace.values.outline import BadEncoding, check_outline

__all__ = ["BadEncoding", "TreeRoot", "decode", "decode_strict", "digest_of", "encode", "key_of"]


# The ext types. A number, once given, is never given again.
_BIG_INT: Final = 1  # two's complement, big endian, minimal; only what msgpack's own integers cannot hold
_SYMBOL: Final = 2  # the name, UTF-8
_REF: Final = 3  # the actor's number (varint), after the 16 bytes of the session's uid if it is another's
_PROMISE: Final = 4  # its number (varint)
_BLOB: Final = 5  # length of the media type (varint), media type, then 0 and the content or 1 and the cell
_CELL: Final = 6  # seq, number (varints)
_ERASED: Final = 7  # nothing
_TREE: Final = 8  # what `__tree_ext__` gives
_EXT_TYPES: Final = range(_BIG_INT, _TREE + 1)


class TreeRoot(Protocol):
    """A collection's tree, that stands in a stored value as the place of its root."""

    def __tree_ext__(self) -> bytes: ...


def encode(stored: Value) -> bytes:
    """The canonical bytes of a value in stored form. Plain lists, tuples and dicts of such values will do.

    Raises `NotAValue` for what is none; what did not come through `freeze` or `decode` is checked no further.
    """
    packed: bytes = msgpack.Packer(default=_extension, buf_size=1024).pack(stored)
    return packed


# Makes an ExtType without the checks of its constructor, which cost as much as the rest of a small encoding.
_ext: Final[Callable[[tuple[int, bytes]], Any]] = partial(tuple.__new__, msgpack.ExtType)


def _extension(value: Any) -> Any:
    kind = type(value)
    if kind is CellRef:
        return _ext((_CELL, varint(value.seq) + varint(value.number)))
    if kind is Symbol:
        return _ext((_SYMBOL, value.name.encode()))
    if isinstance(value, Ref):
        if value.session is None:
            return _ext((_REF, varint(value.actor)))
        if len(value.session) != 16:
            raise NotAValue("Ref", kind, "the session of a Ref is a uid of 16 bytes")
        return _ext((_REF, value.session + varint(value.actor)))
    if isinstance(value, Promise):
        return _ext((_PROMISE, varint(value.id)))
    if kind is int:
        size = (value if value > 0 else ~value).bit_length() // 8 + 1
        return _ext((_BIG_INT, value.to_bytes(size, "big", signed=True)))
    if kind is Blob or kind is CelledBlob:
        media_type = value.media_type.encode()
        head = varint(len(media_type)) + media_type
        if kind is Blob:
            return _ext((_BLOB, head + b"\0" + value.content))
        return _ext((_BLOB, head + b"\1" + varint(value.content.seq) + varint(value.content.number)))
    if kind is Erased:
        return _ext((_ERASED, b""))
    if hasattr(kind, "__tree_ext__"):
        return _ext((_TREE, value.__tree_ext__()))
    raise NotAValue("value", kind)


def varint(number: int) -> bytes:
    """`number`, at least 0, in groups of 7 bits, the least first; all but the last have the high bit set."""
    if number < 128:
        return number.to_bytes(1, "big")
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    number = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            if number >> 64:
                break
            return number, at
        shift += 7
    raise BadEncoding("a number of more than 64 bits")


_SHORT: Final = 512
"""Items of a list that are believed without a look at the outline."""
_ANY_EXT: Final = range(256)
_DEEPEST: Final = 1024
_KEYS: Final = frozenset({str})
_NOT_A_KEY: Final = "a dict key that is not a string"


def _finder(code: int) -> re.Pattern[bytes]:
    """Finds any ext of a type, in each form of its head; and now and then what is none. Costs 0.1 µs."""
    # It begins with a byte that is rare: a search for what begins with one of several takes 8 times as long.
    end = re.escape(bytes([code]))
    heads = [rb"[\xd4-\xd8]", rb"\xc7.", rb"\xc8..", rb"\xc9...."]
    return re.compile(end + b"(?:" + b"|".join(b"(?<=%b%b)" % (head, end) for head in heads) + b")", re.DOTALL)


_cell_in: Final = _finder(_CELL).search
_blob_in: Final = _finder(_BLOB).search
_timestamp_in: Final = _finder(0xFF).search
"""An ext of type -1, of which msgpack makes a `Timestamp` itself, without asking the hook for ext types."""


def _freeze_dict(items: dict[Any, Any]) -> FrozenDict:
    if _KEYS.issuperset(map(type, items)):
        return FrozenDict(items)
    raise BadEncoding(_NOT_A_KEY)


def _seal_list(items: list[Any]) -> FrozenList:
    return FrozenList(items) if CELLED.isdisjoint(map(type, items)) else CelledList(items)


def _seal_dict(items: dict[Any, Any]) -> FrozenDict:
    if not _KEYS.issuperset(map(type, items)):
        raise BadEncoding(_NOT_A_KEY)
    return FrozenDict(items) if CELLED.isdisjoint(map(type, items.values())) else CelledDict(items)


def _watch_list(items: list[Any]) -> FrozenList:
    _refuse_timestamps(items)
    return _seal_list(items)


def _watch_dict(items: dict[Any, Any]) -> FrozenDict:
    _refuse_timestamps(items.values())
    return _seal_dict(items)


def _refuse_timestamps(items: Any) -> None:
    if msgpack.Timestamp in map(type, items):
        raise BadEncoding("an unknown ext type, -1")


def _restore(
    ref: Callable[[bytes | None, int], Any],
    promise: Callable[[int], Any],
    tree: Callable[[bytes], Any] | None,
    code: int,
    data: bytes,
) -> Any:
    if code == _CELL:
        seq, at = read_varint(data, 0)
        number, at = read_varint(data, at)
        if at == len(data):
            return CellRef(seq, number)
    elif code == _SYMBOL:
        return Symbol(data.decode())
    elif code == _REF:
        session, start = (data[:16], 16) if len(data) > 16 else (None, 0)
        actor, at = read_varint(data, start)
        if at == len(data):
            return ref(session, actor)
    elif code == _PROMISE:
        number, at = read_varint(data, 0)
        if at == len(data):
            return promise(number)
    elif code == _BIG_INT:
        return int.from_bytes(data, "big", signed=True)
    elif code == _BLOB:
        return _restore_blob(data)
    elif code == _ERASED:
        if not data:
            return ERASED
    elif code == _TREE and tree is not None:
        return tree(data)
    else:
        raise BadEncoding(f"an unknown ext type, {code}")
    raise BadEncoding(f"ext type {code} with bytes left over")


def _restore_blob(data: bytes) -> Blob | CelledBlob:
    length, at = read_varint(data, 0)
    media_type = data[at : at + length].decode()
    at += length
    if data[at] == 0:
        return Blob(media_type, data[at + 1 :])
    seq, end = read_varint(data, at + 1)
    number, end = read_varint(data, end)
    if data[at] != 1 or end != len(data):
        raise BadEncoding("a blob that is neither content nor a cell")
    return CelledBlob(media_type, CellRef(seq, number))


def decode(
    data: bytes,
    *,
    ref: Callable[[bytes | None, int], Any] = Ref,
    promise: Callable[[int], Any] = Promise,
    tree: Callable[[bytes], Any] | None = None,
) -> Value:
    """The stored form of a value from its encoding in our own log, whose checksum was verified.

    `ref`, `promise` and `tree` make what refers to actors, promises and trees. Raises `BadEncoding`. Takes memory and
    time in proportion to the length of `data`.
    """
    hook = partial(_restore, ref, promise, tree)
    try:
        value = _unpacked(data, hook, _SHORT)
    except BadEncoding:
        # msgpack makes room for all the items that a list announces: for many, they have to be there.
        if len(data) <= _SHORT:
            raise
        check_outline(data, _ANY_EXT, _DEEPEST)
        value = _unpacked(data, hook, len(data))
    if type(value) is msgpack.Timestamp:
        raise BadEncoding("an unknown ext type, -1")
    return value


def _unpacked(data: bytes, hook: Callable[[int, bytes], Any], longest: int) -> Value:
    list_hook: Callable[[list[Any]], FrozenList]
    dict_hook: Callable[[dict[Any, Any]], FrozenDict]
    if _timestamp_in(data):
        list_hook, dict_hook = _watch_list, _watch_dict
    elif _cell_in(data) or _blob_in(data):
        list_hook, dict_hook = _seal_list, _seal_dict
    else:
        # Nothing is to be asked of each list then, which is most of what decoding costs.
        list_hook, dict_hook = FrozenList, _freeze_dict
    try:
        return msgpack.unpackb(data, list_hook=list_hook, object_hook=dict_hook, ext_hook=hook, max_array_len=longest)
    except BadEncoding:
        raise
    except (ValueError, TypeError, IndexError, RecursionError) as error:
        raise BadEncoding(str(error) or type(error).__name__) from error


def decode_strict(
    data: bytes,
    *,
    cells: bool = False,
    tree: Callable[[bytes], TreeRoot] | None = None,
    max_items: int | None = None,
) -> Value:
    """A value from its encoding, which comes from outside: exactly the bytes that `encode` gives for it.

    Refused, with `BadEncoding`: forms longer than they must be, a dict key twice or not a string, unknown
    ext types, nesting over 64, lengths beyond the input, bytes left over; cells unless `cells`, trees
    unless `tree` makes them; more than `max_items` items in all its lists and dicts, where a byte can be one and take
    a hundred in memory. Costs a few passes over `data`, in time and memory proportional to its length.
    """
    check_outline(data, _EXT_TYPES, MAX_DEPTH, max_items)
    value = decode(data, tree=tree)
    if not cells and type(value) in CELLED:
        raise BadEncoding("a cell, where none can be")
    again = encode(value)
    if again != data:
        at = next((at for at, (one, other) in enumerate(zip(again, data, strict=False)) if one != other), len(again))
        raise BadEncoding(f"byte {at}: a form longer than it must be, or a dict with a key twice")
    return value


def key_of(value: Value) -> bytes:
    """Canonical bytes, equal for equal values; types are told apart, the order of dict keys does not matter.

    `1`, `1.0` and `True` have three keys, `"turn"` and the symbol `turn` two, `0.0` and `-0.0` two; a NaN
    has that of its bits. Takes values in read form; a cell counts by its place.
    """
    return encode(_sorted(value) if isinstance(value, (list, dict, tuple)) else value)


def _sorted(value: Value) -> Value:
    # The order of code points is that of UTF-8 bytes.
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, (list, tuple)):
        return [_sorted(item) for item in value]
    return value


def digest_of(value: Value) -> bytes:
    """SHA-256 of `key_of(value)`."""
    return sha256(key_of(value)).digest()
