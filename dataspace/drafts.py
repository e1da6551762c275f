"""A record in the making, and its two parts read back.

A `Draft` collects what one record will say: the message, the operations in order, the facts asserted and
retracted, and the cells that any of them brought. It is the `CellSink` that values are frozen against.
`seal` makes the record; `read_deeds`, `read_statements` and `read_used` are its inverse.

    deeds  = [message, operations, cell digests, pending]
    facts  = [statements, numbers of the cells that they use, their digests]

A statement is `[at, label, fields, keywords]` or, for a retraction, `[at, seq, operation]`; `at` is the
number of the operation that made it. Digests stand end to end, 32 bytes each.

The one rule: a draft holds nothing that a rollback to an earlier mark does not undo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dataspace.facts import Fact, is_word
from dataspace.records import DIGEST, MOST, SALT, Cell, Kind, Record, Salts, content_digest, split_digests
from dataspace.values import CELLED, CelledBlob, CellRef, Erased, FrozenDict, Promise, Ref, Value, thaw
from dataspace.values.encoding import BadEncoding, decode, encode

Load: TypeAlias = Callable[[CellRef], "str | bytes | Erased"]
"""Gives the content of a cell that is not loaded yet."""


_NOT_FACTS: Final = "the facts of a record are not a list of three"


class Handle(NamedTuple):
    """Names an assertion within a lineage: the seq of its record and the number of its operation."""

    seq: int
    operation: int


class Assertion(NamedTuple):
    """A fact stated by operation `at` of a record."""

    at: int
    fact: Fact


class Retraction(NamedTuple):
    """An earlier assertion taken back by operation `at` of a record."""

    at: int
    handle: Handle


Statement: TypeAlias = Assertion | Retraction


class Deeds(NamedTuple):
    """The first part of a body: the message, the operations, the cells' digests, what is pending.

    Values are in stored form. `pending` counts what must be woken after a restart.
    """

    message: Any
    operations: Sequence[Sequence[Any]]
    digests: bytes
    pending: int


Savepoint: TypeAlias = tuple[int, int, int, int]
"""How far a draft had come, in operations, statements, cells, and cells used by facts: what `rollback` goes back to."""


class Draft:
    """A record of chain `uid` at `seq`, in the making."""

    __slots__ = (
        "_by_content",
        "_contents",
        "_encoded",
        "_used",
        "kind",
        "message",
        "operations",
        "pages",
        "pending",
        "seq",
        "statements",
        "time",
        "uid",
    )

    def __init__(self, uid: bytes, seq: int, kind: Kind, time: int) -> None:
        self.uid = uid
        self.seq = seq
        self.kind = kind
        self.time = time
        self.message: Any = None
        self.operations: list[Sequence[Any]] = []
        self.statements: list[Statement] = []
        self.pending = 0
        self.pages: list[bytes] = []
        self._encoded: list[Sequence[Any]] = []
        self._contents: list[str | bytes] = []
        self._by_content: dict[str | bytes, CellRef] = {}
        self._used: list[int] = []

    def cell(self, content: str | bytes) -> CellRef:
        """The cell of this record that holds `content`: what is said twice in a record is stored once."""
        found = self._by_content.get(content)
        if found is None:
            found = CellRef(self.seq, len(self._contents), content)
            self._by_content[content] = found
            self._contents.append(content)
        return found

    @property
    def cells(self) -> int:
        """How many cells it has so far."""
        return len(self._contents)

    def reference(self, value: Ref | Promise) -> Value:
        """How a ref or a promise is kept: as it is."""
        return value

    def operation(self, *parts: Any) -> int:
        """Add an operation (an opcode and stored values); gives its number, from 0."""
        self.operations.append(parts)
        return len(self.operations) - 1

    def stated(self, at: int, label: str, fields: Sequence[Value], keywords: Mapping[str, Value]) -> Fact:
        """State a fact as operation `at`; fields and keywords in stored form, frozen against this draft."""
        celled = [value for value in (*fields, *keywords.values()) if type(value) in CELLED]
        if celled:
            for value in celled:
                self._use(value)
            fact = Fact(
                label,
                tuple([thaw(field, loaded) for field in fields]),
                FrozenDict({key: thaw(value, loaded) for key, value in keywords.items()}),
            )
        else:
            fact = Fact(label, tuple(fields), FrozenDict(keywords))
        self._encoded.append((at, label, fields, keywords))
        self.statements.append(Assertion(at, fact))
        return fact

    def _use(self, value: Value) -> None:
        """Note the cells that a fact refers to: the facts name their digests."""
        if isinstance(value, CellRef):
            if value.number not in self._used:
                self._used.append(value.number)
        elif isinstance(value, CelledBlob):
            self._use(value.content)
        elif isinstance(value, list | dict):
            for item in value.values() if isinstance(value, dict) else value:
                if type(item) in CELLED:
                    self._use(item)

    def retracted(self, at: int, handle: Handle) -> None:
        """Take an assertion back, as operation `at`."""
        self._encoded.append((at, handle.seq, handle.operation))
        self.statements.append(Retraction(at, handle))

    def mark(self) -> Savepoint:
        """A savepoint."""
        return len(self.operations), len(self.statements), len(self._contents), len(self._used)

    def rollback(self, mark: Savepoint) -> None:
        """Undo all that came after `mark`."""
        operations, statements, cells, used = mark
        del self.operations[operations:]
        del self.statements[statements:]
        del self._encoded[statements:]
        for content in self._contents[cells:]:
            del self._by_content[content]
        del self._contents[cells:]
        del self._used[used:]

    def seal(self, previous: bytes, salts: Salts) -> Record:
        """The record that follows `previous` (a hash). `salts(n)` gives n random bytes.

        Cost: one hash for each part and cell, and four more.
        """
        contents = self._contents
        random = salts(SALT * (2 + len(contents)))
        cells = [Cell(random[SALT * n : SALT * (n + 1)], content).encoded() for n, content in enumerate(contents, 2)]
        digests = [content_digest(cell) for cell in cells]
        used = self._used
        facts = encode([self._encoded, used, b"".join([digests[n] for n in used])]) if self._encoded else b""
        record = Record(
            self.uid,
            self.seq,
            self.kind,
            self.time,
            previous,
            random[: 2 * SALT],
            encode([self.message, self.operations, b"".join(digests), self.pending]),
            facts,
            cells,
            self.pages,
        )
        record.message = self.message
        record.statements = self.statements
        record.pending = self.pending
        return record


def read_deeds(data: bytes, *, ref: type[Ref] = Ref, promise: type[Promise] = Promise, tree: Any = bytes) -> Deeds:
    """The first part of a body. Raises `BadEncoding`.

    What stands for a tree is made by `tree`; by default it stays the bytes that name its root.
    """
    deeds = decode(data, ref=ref, promise=promise, tree=tree)
    if isinstance(deeds, list) and len(deeds) == 4:
        message, operations, digests, pending = deeds
        lists = isinstance(operations, list) and isinstance(digests, bytes) and not len(digests) % DIGEST
        if lists and type(pending) is int and 0 <= pending <= MOST:
            return Deeds(message, operations, digests, pending)
    raise BadEncoding("the deeds of a record are not a message, operations, digests and a count")


def _counts(*numbers: object) -> bool:
    return all(type(number) is int and 0 <= number <= MOST for number in numbers)


def read_statements(
    data: bytes, load: Load, *, ref: type[Ref] = Ref, promise: type[Promise] = Promise
) -> list[Statement]:
    """The second part of a body, facts in read form. Raises `BadEncoding`."""
    if not data:
        return []
    parts = decode(data, ref=ref, promise=promise)
    if not isinstance(parts, list) or len(parts) != 3 or not isinstance(parts[0], list):
        raise BadEncoding(_NOT_FACTS)
    statements: list[Statement] = []
    for said in parts[0]:
        match said:
            case [at, str(label), list(fields), dict(keywords)] if (
                _counts(at) and is_word(label) and all(map(is_word, keywords))
            ):
                read = tuple([thaw(field, load) for field in fields])
                statements.append(Assertion(at, Fact(label, read, thaw(keywords, load))))
            case [at, seq, operation] if _counts(at, seq, operation):
                statements.append(Retraction(at, Handle(seq, operation)))
            case _:
                raise BadEncoding("a statement that neither asserts a fact nor takes one back")
    return statements


def read_used(data: bytes) -> tuple[list[int], list[bytes]]:
    """The cells that the second part of a body refers to: their numbers and digests. Raises `BadEncoding`."""
    if not data:
        return [], []
    match decode(data, tree=bytes):
        case [_, list(numbers), bytes(digests)] if not len(digests) % DIGEST and _counts(*numbers):
            return numbers, split_digests(digests)
    raise BadEncoding(_NOT_FACTS)


def loaded(cell: CellRef) -> str | bytes | Erased:
    """The `Load` for cells that were just made: there is none to load."""
    raise LookupError(f"cell ({cell.seq}, {cell.number}) has no content")
