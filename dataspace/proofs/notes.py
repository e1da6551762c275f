"""Signed notes: a text, and the signatures of any number of keys under it; and checkpoints, which are such texts.

    keeve/4b6565766527…                                the origin: whose log it is
    3                                                  how many records it has
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=       the root of the tree over them
                                                       an empty line, which is not part of the text
    — keeve/4b6565766527… Az3grlgtzPICa5OS8npVmf1M…    a name, and base64 of a key's id (4 bytes) and a signature

The formats are C2SP's `signed-note`, `tlog-checkpoint` and `tlog-cosignature`, which Go's `sumdb/note` and the tools of
transparency logs read too.

The one rule: **nothing a note says counts before `Note.checked`.** Until then it is anybody's text. It is read
strictly: what was read is written again byte for byte.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

import attrs

from dataspace.errors import KeeveError
from dataspace.proofs.verifiers import Algorithm, Verifier, is_name, strict_base64
from dataspace.records import MOST

LONGEST: Final = 1 << 18
"""Bytes of a note, at the most."""
SIGNATURES: Final = 64
"""How many signatures a note has, at the most."""
_DASH: Final = "— "
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_NUMBER = re.compile(r"0|[1-9]\d{0,18}", re.ASCII)


class BadNote(KeeveError, ValueError):
    """A text that is no signed note, or no checkpoint."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"this is no {what}; keep it byte for byte as it was given out")


class NotSigned(KeeveError):
    """A note that none of the keys at hand has signed: who wrote it is not known."""

    def __init__(self, origin: str, keys: Sequence[str]) -> None:
        self.origin = origin
        self.keys = keys
        known = ", ".join(keys) or "none"
        super().__init__(
            f"the note of {origin!r:.120} is signed by no key that is known here ({known}): do not rely on it"
        )


class BadSignature(KeeveError, quotes=False):
    """A note under which stands the name of a known key, and a signature that is not that key's."""

    def __init__(self, name: str, id: bytes) -> None:
        self.name = name
        self.id = id
        super().__init__(
            f"the signature of {name!r:.120} ({id.hex()}) does not fit the note: one of the two was changed; "
            "do not rely on it"
        )


class Signature(NamedTuple):
    """One signature: the name and the id of its key, and what that made (of a witness with its time before)."""

    name: str
    id: bytes
    data: bytes

    def __str__(self) -> str:
        return f"{_DASH}{self.name} {b64encode(self.id + self.data).decode()}\n"


@attrs.frozen
class Note:
    """A text that ends with a newline, and its signatures in their order."""

    text: str
    signatures: tuple[Signature, ...] = ()

    @classmethod
    def parse(cls, data: str | bytes) -> Note:
        """The note that `data` is. Raises `BadNote`. Nothing is checked but the form."""
        try:
            whole = data.decode() if isinstance(data, bytes) else data
            size = len(whole.encode())
        except UnicodeError:
            raise BadNote("signed note: it is not UTF-8") from None
        if size > LONGEST:
            raise BadNote(f"signed note: it has {size} bytes, {LONGEST} are the most")
        if _CONTROL.search(whole):
            raise BadNote("signed note: it has control characters")
        text, separator, lines = whole.rpartition("\n\n")
        if not separator or not lines.endswith("\n"):
            raise BadNote("signed note: it has no text, an empty line, and lines of signatures")
        listed = lines[:-1].split("\n")
        if len(listed) > SIGNATURES:
            raise BadNote(f"signed note: it has {len(listed)} signatures, {SIGNATURES} are the most")
        return cls(text + "\n", tuple(map(_signature, listed)))

    def __str__(self) -> str:
        return self.text + "\n" + "".join(map(str, self.signatures))

    def signed(self, *more: Signature) -> Note:
        """The same text with more signatures. One of a key that has signed already takes that one's place."""
        by_key = {(each.name, each.id): each for each in (*self.signatures, *more)}
        return Note(self.text, tuple(by_key.values()))

    def checked(self, keys: Iterable[Verifier]) -> list[Verifier]:
        """The keys among these that have signed, in the order of the signatures.

        Raises `BadSignature` when one stands under it that has not, `NotSigned` when there is none. Signatures of
        unknown keys are passed over. Costs some 100 µs for each signature of a known key.
        """
        known = {(key.name, key.id): key for key in keys}
        found = []
        for name, id, data in self.signatures:
            key = known.get((name, id))
            if key is None:
                continue
            if not key.verifies(self.text, data):
                raise BadSignature(name, id)
            if key not in found:
                found.append(key)
        if not found:
            raise NotSigned(self.text.partition("\n")[0], [str(key) for key in known.values()])
        return found


class Checkpoint(NamedTuple):
    """The text of a note that says what a log was at some size: its origin, how many records, the root over them."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Checkpoint:
        """The checkpoint that the text of a note is. Raises `BadNote`."""
        lines = text.removesuffix("\n").split("\n")
        if len(lines) < 3 or not all(lines) or not text.endswith("\n"):
            raise BadNote("checkpoint: it has not an origin, a size and a root, each on a line")
        origin, size, encoded, *extensions = lines
        root = strict_base64(encoded)
        if not _NUMBER.fullmatch(size) or int(size) > MOST:
            raise BadNote(f"checkpoint: {size!r:.40} is no size")
        if root is None or len(root) != 32:
            raise BadNote("checkpoint: its third line is not 32 bytes in base64")
        return cls(origin, int(size), root, tuple(extensions))

    @property
    def text(self) -> str:
        """The lines that are signed."""
        lines = (self.origin, str(self.size), b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)


def checked_checkpoint(note: Note, keys: Iterable[Verifier]) -> tuple[Checkpoint, list[Verifier]]:
    """What a note says of a log, and which of `keys` have signed that; the log itself is among them.

    Raises `BadNote`, `BadSignature`, or `NotSigned` also when only others than the log have signed.
    """
    checkpoint = Checkpoint.parse(note.text)
    given = list(keys)
    signers = note.checked(given)
    if not any(key.name == checkpoint.origin and key.algorithm is Algorithm.NOTE for key in signers):
        raise NotSigned(checkpoint.origin, [str(key) for key in given])
    return checkpoint, signers


def _signature(line: str) -> Signature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    data = strict_base64(encoded)
    if not line.startswith(_DASH) or not space or not is_name(name) or data is None or len(data) < 5:
        raise BadNote(f"signed note: {line!r:.80} is no line of a signature")
    return Signature(name, data[:4], data[4:])
