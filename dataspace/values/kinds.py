"""The kinds of value: symbols, refs, promises, blobs, cells, and lists and dicts that cannot change.

A value never changes once it is one, so it can be shared, compared and kept without copying. Lists and
dicts are subclasses of `list` and `dict` whose mutators raise, so that `json.dumps`, `isinstance` and every
library work on them. (What goes round its methods is not stopped: `list.append(value, x)`, `heapq`.)

The one rule: **the type says whether a cell is inside.** What holds a `CellRef` at any depth is a `CelledList`,
`CelledDict` or `CelledBlob` (the *stored* form, which only the runtime sees); nothing else does (the *read*
form, which is what users see). `CELLED` is the set of those types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import is_
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

import attrs

from dataspace.errors import KeeveError

Value: TypeAlias = Any
"""`None`, bool, int, float, str, bytes, list, dict, `Symbol`, `Ref`, `Promise`, `Blob` or `ERASED`."""

SYMBOL_TEXT: Final = re.compile(r"(?!_\Z)[^\W\d][\w.\-/:+*!<>=]*")
"""What a symbol may be called: what can be written bare and is neither a number nor a wildcard."""

_REMEDIES: Final = {
    "datetime": "keep its .isoformat()",
    "date": "keep its .isoformat()",
    "Decimal": "keep its str()",
    "UUID": "keep its str() or .bytes",
    "set": "keep a sorted list of it",
    "frozenset": "keep a sorted list of it",
    "bytearray": "keep bytes() of it",
    "memoryview": "keep bytes() of it",
    "coroutine": "await it first",
}


class NotAValue(KeeveError, TypeError):
    """Something that is no value was to become one; says where (`path`) and of which type (`kind`) it is."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, kind: type, reason: str | None = None) -> None:
        super().__init__(path, kind, reason)
        self.path = path
        self.kind = kind
        self.reason = reason

    def __str__(self) -> str:
        if self.reason is not None:
            return f"{self.path}: {self.reason}"
        name = self.kind.__name__
        remedy = _REMEDIES.get(name) or getattr(self.kind, "__keeve_remedy__", None)
        return f"{self.path}: {name} is not a value" + (f" ({remedy})" if remedy else "")


class FrozenValue(KeeveError, TypeError):
    """A value was to be changed in place; the message tells how to make a changed copy."""

    usage: ClassVar[bool] = True

    def __init__(self, operation: str, remedy: str) -> None:
        super().__init__(operation, remedy)
        self.operation = operation
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.operation}: a value cannot be changed in place; {self.remedy}"


@attrs.frozen(repr=False)
class Symbol:
    """A word that stands for itself: `Symbol("turn")` is not `"turn"`. Raises `NotAValue` for other text."""

    name: str

    def __attrs_post_init__(self) -> None:
        if type(self.name) is not str or not SYMBOL_TEXT.fullmatch(self.name):
            raise NotAValue(
                f"Symbol({self.name!r})",
                type(self.name),
                "a symbol is a letter or _, then letters, digits and any of _.-/:+*!<>=; use a str instead",
            )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"


@attrs.frozen(eq=False)
class Ref:
    """A reference to an actor: of the vat `session` (a 16-byte uid), or of this one (`None`)."""

    session: bytes | None
    actor: int

    # By hand, because a subclass with behaviour refers to the same actor as a plain one does.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ref):
            return NotImplemented
        return self.actor == other.actor and self.session == other.session

    def __hash__(self) -> int:
        return hash((self.session, self.actor))


@attrs.frozen(eq=False)
class Promise:
    """A promise of this vat, by its number. Equal by that."""

    id: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Promise):
            return NotImplemented
        return self.id == other.id

    def __hash__(self) -> int:
        return hash((Promise, self.id))


@attrs.frozen
class Blob:
    """Content with a media type: `Blob("image/png", data)`."""

    media_type: str
    content: bytes


class Text(str):
    """A string that is kept as a cell however short it is, so that it can be erased. Reads as `str`."""

    __slots__ = ()


class Erased:
    """What erased content reads as. There is one, `ERASED`; it is true, and equal to itself alone."""

    __slots__ = ()
    _one: ClassVar[Erased | None] = None

    def __new__(cls) -> Erased:
        if cls._one is None:
            cls._one = super().__new__(cls)
        return cls._one

    def __repr__(self) -> str:
        return "Erased"

    def __reduce__(self) -> str:
        return "ERASED"


ERASED: Final = Erased()


@attrs.define(eq=False)
class CellRef:
    """The place of a piece of content: number `number` of the record `seq`. Equal by place, never by content.

    `content` is the string or bytes, `ERASED`, or `None` while it is not loaded.
    """

    seq: int
    number: int
    content: str | bytes | Erased | None = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not CellRef:
            return NotImplemented
        return self.number == other.number and self.seq == other.seq

    def __hash__(self) -> int:
        return hash((self.seq, self.number))


@attrs.frozen
class CelledBlob:
    """A `Blob` in stored form, whose content is a cell."""

    media_type: str
    content: CellRef


def _refuse(operation: str, remedy: str) -> Any:
    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise FrozenValue(operation, remedy)

    refuse.__name__ = refuse.__qualname__ = operation
    return refuse


_LIST: Final = "make a changed copy: [*value, item], or list(value) and change that"
_DICT: Final = "make a changed copy: {**value, key: item}, or dict(value) and change that"


class FrozenList(list[Any]):
    """A list that cannot change. `+`, `*`, slices, `copy()` and `copy.deepcopy` give plain lists."""

    __slots__ = ()
    celled: ClassVar[bool] = False

    append = _refuse("append", _LIST)
    clear = _refuse("clear", _LIST)
    extend = _refuse("extend", _LIST)
    insert = _refuse("insert", _LIST)
    pop = _refuse("pop", "make a changed copy: value[:-1]")
    remove = _refuse("remove", _LIST)
    reverse = _refuse("reverse", "make a changed copy: value[::-1]")
    sort = _refuse("sort", "make a changed copy: sorted(value)")
    __setitem__ = _refuse("value[index] = item", _LIST)
    __delitem__ = _refuse("del value[index]", _LIST)
    __iadd__ = _refuse("value += items", "make a changed copy: [*value, *items]")
    __imul__ = _refuse("value *= n", "make a changed copy: value * n")

    def __reduce__(self) -> tuple[type, tuple[list[Any]]]:
        return list, (list(self),)


class FrozenDict(dict[str, Any]):
    """A dict with `str` keys that cannot change. `|`, `copy()` and `copy.deepcopy` give plain dicts."""

    __slots__ = ()
    celled: ClassVar[bool] = False

    clear = _refuse("clear", _DICT)
    pop = _refuse("pop", "make a changed copy: {k: v for k, v in value.items() if k != key}")
    popitem = _refuse("popitem", _DICT)
    setdefault = _refuse("setdefault", _DICT)
    update = _refuse("update", "make a changed copy: {**value, **items}")
    __setitem__ = _refuse("value[key] = item", _DICT)
    __delitem__ = _refuse("del value[key]", "make a changed copy: {k: v for k, v in value.items() if k != key}")
    __ior__ = _refuse("value |= items", "make a changed copy: value | items")

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


class CelledList(FrozenList):
    """A `FrozenList` in stored form, with a cell in it at some depth."""

    __slots__ = ()
    celled: ClassVar[bool] = True


class CelledDict(FrozenDict):
    """A `FrozenDict` in stored form, with a cell in it at some depth."""

    __slots__ = ()
    celled: ClassVar[bool] = True


def with_items(
    value: list[Any] | tuple[Any, ...] | dict[str, Any],
    change: Callable[[Any], Any],
    listed: Callable[[list[Any]], Any] = FrozenList,
    mapped: Callable[[dict[str, Any]], Any] = FrozenDict,
) -> Any:
    """A list or dict with `change` of each item, made by `listed` or `mapped`; the very same where it changes none."""
    if isinstance(value, dict):
        items = {key: change(item) for key, item in value.items()}
        return value if all(map(is_, items.values(), value.values())) else mapped(items)
    changed = [change(item) for item in value]
    return value if all(map(is_, changed, value)) else listed(changed)


CELLED: Final[frozenset[type]] = frozenset({CellRef, CelledBlob, CelledList, CelledDict})
"""The types of what has a cell in it."""
