"""What observers and queries are given: events, marks, what holds, and proofs of what was said.

The one rule: plain data. An event can be checked by whoever holds it, with its proof and without the store.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from dataspace.drafts import Assertion, Handle, Statement, read_statements, read_used
from dataspace.errors import KeeveError
from dataspace.facts import Fact
from dataspace.observe.cursor import Cursor
from dataspace.patterns import Captures
from dataspace.proofs.notes import BadSignature, NotSigned
from dataspace.proofs.proofs import BadReceipt, Receipt
from dataspace.proofs.verifiers import Verifier
from dataspace.records import Header, body_digest, content_digest, part_digest, split_cell
from dataspace.values import ERASED, CellRef, Erased
from dataspace.values.encoding import decode_strict

NO_PROOF: Final = (struct.error, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is raised where a proof from outside has something else in it than a proof has."""


@attrs.frozen
class Event:
    """A fact was asserted or retracted, by operation `operation` of the record at `seq` of session `session`.

    `session` is its id (empty for the store's own chain), `uid` the session's; `value` is the whole fact, as
    far as the reader may see it, `captures` what the pattern took from it (by name, or by number for a bare
    `?`); `time` is in microseconds, `hash` the record's. Reading goes on from `cursor`.
    """

    position: int
    session: str
    uid: bytes
    seq: int
    operation: int
    kind: Literal["assert", "retract"]
    value: Fact
    captures: Captures
    time: int
    hash: bytes
    cursor: Cursor

    @property
    def handle(self) -> Handle:
        """Names the assertion, if this is one."""
        return Handle(self.seq, self.operation)


@attrs.frozen
class CaughtUp:
    """There is nothing more to read now; what comes next is live."""

    cursor: Cursor


@attrs.frozen
class Unreadable:
    """A record that might have matched cannot be read: its session is damaged from `seq` on (`what`)."""

    position: int
    session: str
    uid: bytes
    seq: int
    what: str
    cursor: Cursor


@attrs.frozen
class Away(Unreadable):
    """A record that might have matched cannot be read here and now: content of it is in an archive that is not here."""


@attrs.frozen
class Held:
    """A fact that holds: asserted by `handle` in session `session`, at `position`, and not taken back."""

    handle: Handle
    session: str
    uid: bytes
    fact: Fact
    captures: Captures
    position: int
    time: int


class NotProven(KeeveError):
    """An event is not what its record says. `what` tells where they part."""

    def __init__(self, position: int, what: str) -> None:
        self.position = position
        self.what = what
        super().__init__(f"the event at position {position} is not proven: {what}; do not rely on it")


@attrs.frozen
class Opened:
    """The facts of a record as its hash covers them: the salt, the encoded part, the encoded cells by number."""

    salt: bytes
    facts: bytes
    cells: Mapping[int, bytes]


@attrs.frozen
class Proof:
    """Ties an event to the hash of its record, and so to the chain.

    `deeds` and `facts` are the digests of the two parts. `opened` is there for readers who may see all facts
    of the record; without it the header and its place in the chain are proven, and the event's words are not.
    """

    header: Header
    deeds: bytes
    facts: bytes
    opened: Opened | None

    def verify(self, event: Event, receipt: Receipt | None = None, keys: Iterable[Verifier] = ()) -> None:
        """Check `event` against this proof, which may come from anybody. Raises `NotProven`.

        With the `receipt` of its record, it is proven up to a checkpoint that the log has signed with one of `keys`.
        Costs a few hashes and a decoding: time and memory in proportion to the size of the proof.
        """
        try:
            self._verify(event)
            if receipt is not None:
                proven = Receipt.parse(str(receipt))
                if proven.header.hash != self.header.hash:
                    raise NotProven(event.position, "the receipt is another record's")
                proven.verify(keys)
        except NotProven:
            raise
        except (BadReceipt, BadSignature, NotSigned) as error:
            raise NotProven(event.position, str(error)) from error
        except (*NO_PROOF, KeeveError) as error:
            raise NotProven(event.position, f"the proof is malformed ({error})") from error

    def _verify(self, event: Event) -> None:
        header = self.header
        if body_digest(self.deeds, self.facts) != header.body_digest:
            raise NotProven(event.position, "the parts are not those that the header names")
        if header.hash != event.hash or (header.uid, header.seq) != (event.uid, event.seq):
            raise NotProven(event.position, "the header is another record's")
        if self.opened is not None:
            self._verify_words(event, self.opened)

    def _verify_words(self, event: Event, opened: Opened) -> None:
        if part_digest(opened.salt, opened.facts) != self.facts:
            raise NotProven(event.position, "the facts are not those that the header names")
        for statement in statements_of(opened):
            if statement.at == event.operation:
                if isinstance(statement, Assertion) and statement.fact != event.value:
                    break
                if isinstance(statement, Assertion) != (event.kind == "assert"):
                    break
                return
        raise NotProven(event.position, "its record says something else")


def statements_of(opened: Opened) -> list[Statement]:
    """What facts from outside say. Raises `BadEncoding`, or one of `NO_PROOF`."""
    if opened.facts:
        decode_strict(opened.facts, cells=True)
    digests = dict(zip(*read_used(opened.facts), strict=False))
    return read_statements(opened.facts, lambda cell: _content(cell, opened.cells, digests))


def _content(cell: CellRef, cells: Mapping[int, bytes], digests: Mapping[int, bytes]) -> str | bytes | Erased:
    data = cells.get(cell.number)
    if data is None:
        return ERASED
    if content_digest(data) != digests.get(cell.number):
        raise ValueError(f"cell {cell.number} is not the one that the facts name")
    return split_cell(data).content
