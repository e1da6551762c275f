"""What a record says, proven, as one text: for who has a verifier key of the log, and neither its store nor its host.

    keeve words 1
    deeds 5t1ZcOGDXqUZ…       base64 of the digest of what the record did, which stays unsaid
    salt 8mGqNxk1Dg…          of the salt of what it says
    facts k5GVAKR0dXJu…       of what it says, as it is stored
    cell 0 aGVsbG8gd29y…      of each longer text in it, by number; one that was erased is not there
                              an empty line
    c2sp.org/tlog-proof@v1    the receipt of the record, as it is
    …

The one rule: nothing in it counts before `statements`, which follow from the hash in the receipt, or are refused.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final

import attrs

from dataspace.drafts import Statement, read_used
from dataspace.errors import KeeveError
from dataspace.observe.events import NO_PROOF, NotProven, Opened, Proof, statements_of
from dataspace.proofs.proofs import BadReceipt, Receipt
from dataspace.proofs.verifiers import Verifier, strict_base64
from dataspace.records import body_digest, part_digest

FIRST: Final = "keeve words 1"
"""The first line."""
_CELL: Final = re.compile(r"cell (0|[1-9]\d{0,9}) (\S+)", re.ASCII)


@attrs.frozen
class Words:
    """What the record of a receipt says. `str` gives the file."""

    receipt: Receipt
    deeds: bytes
    opened: Opened

    @classmethod
    def of(cls, proof: Proof, receipt: Receipt) -> Words:
        """The words in a reader's proof, tied to a log. Raises `NotProven` where the reader may not see all of them."""
        if proof.opened is None:
            raise NotProven(proof.header.position, "this reader may not see all that the record says")
        used = set(read_used(proof.opened.facts)[0])
        cells = {number: data for number, data in sorted(proof.opened.cells.items()) if number in used}
        return cls(receipt, proof.deeds, attrs.evolve(proof.opened, cells=cells))

    @classmethod
    def parse(cls, data: str | bytes) -> Words:
        """The words in a file. Raises `BadReceipt`. Nothing is checked but the form, and what a receipt checks."""
        try:
            text = data.decode() if isinstance(data, bytes) else data
        except UnicodeError:
            raise BadReceipt("it is not UTF-8") from None
        above, _, receipt = text.partition("\n\n")
        first, *lines = above.split("\n")
        if first != FIRST or len(lines) < 3:
            raise BadReceipt(f"it does not begin with the line {FIRST} and three more")
        deeds, salt, facts = (_named(line, name) for line, name in zip(lines, ("deeds", "salt", "facts"), strict=False))
        return cls(Receipt.parse(receipt), deeds, Opened(salt, facts, dict(map(_cell, lines[3:]))))

    @property
    def statements(self) -> list[Statement]:
        """What the record has asserted and retracted. Raises `NotProven` unless that is what its hash is over."""
        header, opened = self.receipt.header, self.opened
        try:
            digest = body_digest(self.deeds, part_digest(opened.salt, opened.facts))
            if digest != header.body_digest:
                raise NotProven(header.position, "its record says something else")
            return statements_of(opened)
        except NotProven:
            raise
        except (*NO_PROOF, KeeveError) as error:
            raise NotProven(header.position, f"the words are malformed ({error})") from error

    def verify(self, keys: Iterable[Verifier]) -> list[Statement]:
        """The statements, of a record that a log with one of `keys` has signed for.

        Raises `NotProven`, or what `Receipt.verify` raises.
        """
        self.receipt.verify(keys)
        return self.statements

    def __str__(self) -> str:
        opened = self.opened
        lines = [FIRST, f"deeds {_text(self.deeds)}", f"salt {_text(opened.salt)}", f"facts {_text(opened.facts)}"]
        lines += [f"cell {number} {_text(data)}" for number, data in opened.cells.items()]
        return "\n".join([*lines, "", str(self.receipt)])


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def _named(line: str, name: str) -> bytes:
    found = strict_base64(line.removeprefix(f"{name} ")) if line.startswith(f"{name} ") else None
    if found is None:
        raise BadReceipt(f"it has no line `{name}` with base64 in its place")
    return found


def _cell(line: str) -> tuple[int, bytes]:
    parts = _CELL.fullmatch(line)
    data = None if parts is None else strict_base64(parts[2])
    if parts is None or data is None:
        raise BadReceipt(f"{line!r:.80} is no line of a cell")
    return int(parts[1]), data
