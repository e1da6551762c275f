"""What somebody means who has the content of a record, or of a turn, erased: which cells, of which records.

Of a record it is all that it brought. Of a turn it is what the session's facts say of it, and what else the records
that state these facts brought (how a model is told what a tool gave, say), unless it was there before, or is
stated of another turn: a record may end one turn and begin the next.

The one rule: cells are told apart by number here, and content by its digest; nothing that was said is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import attrs

from dataspace.log.rests import facts_of
from dataspace.log.store import BodyErased, NoSuchPart, Store, Stored
from dataspace.log.verdicts import SessionDamaged
from dataspace.values import CelledBlob, CellRef, Erased
from dataspace.values.encoding import BadEncoding, decode

Parts = dict[int, set[int]]
"""Numbers of cells, by the positions of their records."""


@attrs.define
class Meant:
    """The cells that are meant, and the first record concerned: whose it is, and its seq. `places` are the positions of
    all records that were looked at for them. `turnless`: the session has stated no turn at all."""

    parts: Parts = attrs.field(factory=dict)
    first: tuple[bytes, int] | None = None
    places: set[int] = attrs.field(factory=set)
    turnless: bool = False

    def add(self, stored: Stored, numbers: set[int]) -> None:
        """Cells of a record; records are added in their order."""
        if numbers:
            self.parts[stored.header.position] = numbers
            self.first = self.first or (stored.header.uid, stored.header.seq)


@attrs.define
class TurnReader:
    """Reads the records of a lineage in their order, and finds what is meant by a `turn`."""

    turn: int
    _own: list[tuple[Stored, dict[int, bytes], set[int]]] = attrs.field(factory=list)
    _others: set[bytes] = attrs.field(factory=set)
    """Digests of what was there before the turn, and of what is stated of other turns."""
    _turnless: bool = True

    def read(self, store: Store, addresses: Sequence[int], name: str) -> None:
        """The next records, of a session that is called by that name."""
        for address in addresses:
            stored = store.read(address)
            digests = {n: sha256(_bytes(content)).digest() for n, content in cells(stored).items()}
            said = _said(stored)
            self._turnless = self._turnless and said is not None and not any(_is_turn(each, name) for each in said)
            stated, others = _stated(stored, said or (), self.turn, name)
            if stated is not None:
                self._own.append((stored, digests, stated))
            elif not self._own:
                others = digests.keys() | others
            self._others.update(digests[n] for n in others if n in digests)

    def meant(self) -> Meant:
        """What is meant, by all that was read."""
        found = Meant(places={stored.header.position for stored, _, _ in self._own}, turnless=self._turnless)
        for stored, digests, stated in self._own:
            found.add(stored, {n for n, digest in digests.items() if n in stated or digest not in self._others})
        return found


def cells(stored: Stored) -> dict[int, str | bytes]:
    """The cells of a record that can be read, and were not erased before, by their numbers."""
    found: dict[int, str | bytes] = {}
    for n in range(stored.attachments):
        try:
            content = stored.cell(n)
        except NoSuchPart:
            break  # from here on there are pages
        except (BodyErased, SessionDamaged):
            continue
        if not isinstance(content, Erased):
            found[n] = content
    return found


def _bytes(content: str | bytes) -> bytes:
    return b"\0" + content.encode() if isinstance(content, str) else b"\1" + content


def _said(stored: Stored) -> Sequence[Any] | None:
    """What a record has stated; None where that cannot be read."""
    try:
        facts = facts_of(stored)
        said: Sequence[Any] = decode(facts)[0] if facts else ()
    except (BodyErased, BadEncoding, SessionDamaged):
        return None
    return said


def _is_turn(statement: Any, session: str) -> bool:
    match statement:
        case [_, "turn", [n, id, *_], dict()]:
            return type(n) is int and id == session
    return False


def _stated(stored: Stored, said: Sequence[Any], turn: int, session: str) -> tuple[set[int] | None, set[int]]:
    """The cells that a record's facts about a turn of a session refer to (None: there are none such), and those that
    its facts about other turns do."""
    own: set[int] | None = None
    others: set[int] = set()
    for statement in said:
        match statement:
            case [_, str(), [n, id, *_] as fields, dict() as keywords] if type(n) is int and id == session:
                numbers = {cell.number for cell in _referred([fields, keywords]) if cell.seq == stored.header.seq}
                if n == turn:
                    own = (own or set()) | numbers
                else:
                    others |= numbers
    return own, others


def _referred(value: Any) -> Iterator[CellRef]:
    """The cells that a stored value refers to."""
    if isinstance(value, CellRef):
        yield value
    elif isinstance(value, CelledBlob):
        yield from _referred(value.content)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _referred(item)
    elif isinstance(value, list):
        for item in value:
            yield from _referred(item)
