"""Every decoder of bytes that may come from anywhere: what it reads, its own errors, and sound bytes to begin with.

`tests/test_decoders.py` feeds them with what hypothesis draws and holds them to bounds; `python -m tests.fuzz_decoders`
feeds them for as long as one likes.

The one rule: whatever the bytes are, a decoder gives something or raises an error of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import digest
from typing import Any, Final

import attrs

from actors.models.answers import Assembly, Events, answer_of
from dataspace.drafts import Draft, read_deeds, read_statements, read_used
from dataspace.encryption import key_file as key_files
from dataspace.encryption.keys import HostKey, Keys
from dataspace.errors import KeeveError
from dataspace.log.frames import (
    SegmentHead,
    commit_frame,
    parse,
    record_frames,
    record_head,
    segment_frame,
    segment_head,
)
from dataspace.log.marks import BEGINNING
from dataspace.log.notices import created
from dataspace.log.publishing import unpack
from dataspace.log.recovery import judge
from dataspace.log.verdicts import SegmentBytes
from dataspace.observe.cursor import BadCursor, Cursor
from dataspace.observe.events import NotProven, Opened
from dataspace.observe.words import Words
from dataspace.patterns import BadPattern
from dataspace.patterns import parse as parse_pattern
from dataspace.proofs.merkle import leaf_hash
from dataspace.proofs.notes import BadNote, Checkpoint, Note
from dataspace.proofs.proofs import BadReceipt, LogProof, Receipt
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import BadKey, Verifier
from dataspace.records import SALT, Kind, part_digest, split_body, split_cell
from dataspace.values import Ref
from dataspace.values.encoding import BadEncoding, decode, decode_strict, encode
from snapshots import BadPage, ListTree, MapTree, MemoryPages, SetTree, decode_node, decode_tree, write

Errors = tuple[type[BaseException], ...]


@attrs.frozen
class Decoder:
    """Reads bytes, or raises one of `errors`. `sound` are some that it reads."""

    name: str
    read: Callable[[bytes], Any]
    errors: Errors
    sound: Sequence[bytes]


def of_text(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """A decoder of texts, which are given it as they would be read from a file."""
    return lambda data: read(data.decode("utf-8", "surrogateescape"))


def stream(data: bytes) -> None:
    """A model's answer that comes in pieces."""
    events, assembly = Events(1 << 20), Assembly()
    for at in range(0, len(data), 16):
        for said in events.of(data[at : at + 16]):
            if said != "[DONE]":
                assembly.add(_json(said))
    assembly.answer("model", "id")


def answer(data: bytes) -> None:
    """A model's answer in one piece."""
    answer_of(_json(data.decode("utf-8", "replace")), "model", "id")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def key_file(data: bytes) -> None:
    """A key file whose two hashes are right, so that what they cover is looked at."""
    host = HostKey(bytes(32), data[16:32])
    body = data[:32] + host.check + data[48:]
    hash = sha256(body).digest()
    key_files.unpacked(b"".join((body, hash, digest(host.vouching, hash, "sha256"))), bytes(32), "keys")


def a_key_file() -> bytes:
    """What the hashes of a key file cover."""
    host = HostKey(bytes(32), bytes(16))
    return key_files.packed(Keys.new(bytes(16), host, bytes), host)[:-64]


def a_page(tree: Any) -> bytes:
    """The page of a small tree."""
    pages = MemoryPages()
    write(tree, pages)
    return next(reversed(pages.data.values()))


def a_record() -> Any:
    """A record with cells."""
    draft = Draft(b"u" * 16, 4, Kind.CRANK, 5)
    draft.message = {"method": "turn", "text": draft.cell("x" * 300)}
    draft.stated(draft.operation(1, 2), "turn", [1, draft.cell("y" * 300)], {"by": "ada"})
    return draft.seal(b"h" * 32, bytes)


def a_segment() -> bytes:
    """A log of two records."""
    head = segment_frame(SegmentHead(1, 1, b"l" * 16, 1, 0, BEGINNING.commit))
    first, second = created(b"l" * 16, 7, bytes), a_record()
    first.position, second.position = 1, 2
    parts, at, commit = [head], len(head), BEGINNING.commit
    for record in (first, second):
        frames, crcs, size = record_frames(record, 1, 1, at)
        frame, commit = commit_frame(record.position, record.position, crcs, commit, 1, at + size)
        parts += [*frames, frame]
        at += size + len(frame)
    return b"".join(parts)


def a_receipt() -> Receipt:
    """The receipt of the only record of a log."""
    record, name = a_record(), "keeve.example/log"
    record.position = 1
    checkpoint = Checkpoint(name, 1, leaf_hash(record.hash))
    note = Note(checkpoint.text, (SigningKey.of_seed(bytes(32)).signature(name, checkpoint.text),))
    frame = parse(b"".join(record_frames(record, 1, 1, 0)[0]), 0, 1)
    assert frame is not None
    return Receipt.of(record_head(frame.head)[0], [], note, checkpoint)


def words(record: Any, receipt: Receipt) -> Words:
    """What that record says, with its first longer text."""
    deeds = part_digest(record.salts[:SALT], record.deeds)
    return Words(receipt, deeds, Opened(record.salts[SALT:], record.facts, {1: record.cells[1]}))


def _decoders() -> Sequence[Decoder]:
    record, receipt, segment = a_record(), a_receipt(), a_segment()
    said = encode({"turn": [1, "hello", {"by": "ada"}, 2.5, b"bytes", Ref(None, 1)]})
    pages = [a_page(tree) for tree in (ListTree().extend(range(40)), MapTree().put(1, {"a": [1]}), SetTree().add("b"))]
    root = encode([0, 3, 4, 5, b"d" * 32, True])
    chunk = (
        b'{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}'
    )
    whole = b'{"choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{}}'
    return [
        Decoder("value", decode, (BadEncoding,), [said, root]),
        Decoder("value from outside", lambda data: decode_strict(data, cells=True), (BadEncoding,), [said]),
        Decoder("deeds", lambda data: read_deeds(data, tree=decode_tree), (BadEncoding,), [record.deeds]),
        Decoder("statements", lambda data: read_statements(data, lambda _: ""), (BadEncoding,), [record.facts]),
        Decoder("facts that are used", read_used, (BadEncoding,), [record.facts]),
        Decoder("tree", decode_tree, (BadEncoding,), [root]),
        Decoder("page", decode_node, (BadPage,), pages),
        Decoder("cell", split_cell, (ValueError,), [b"\0" * 17 + b"text"]),
        Decoder("body", split_body, (), [b"\0" * 60]),
        Decoder("published head", unpack, (), []),
        Decoder("segment's head", segment_head, (), [segment[16:96]]),
        Decoder("frame", lambda data: parse(data, 0, 1), (), [segment]),
        Decoder("log", lambda data: judge([SegmentBytes(1, data)]), (), [segment]),
        Decoder("key file", key_file, (KeeveError,), [a_key_file()]),
        Decoder("cursor", of_text(Cursor.parse), (BadCursor,), [str(Cursor.start(bytes(16))).encode()]),
        Decoder("pattern", of_text(parse_pattern), (BadPattern,), [b'(turn ?n "s1" {"a": _} #:by ?who . _)']),
        Decoder("note", Note.parse, (BadNote,), [str(receipt.note).encode()]),
        Decoder("checkpoint", of_text(Checkpoint.parse), (BadNote,), [receipt.checkpoint.text.encode()]),
        Decoder("proof", LogProof.parse, (BadReceipt, BadNote), [str(receipt).encode()]),
        Decoder(
            "words",
            lambda data: Words.parse(data).statements,
            (BadReceipt, NotProven),
            [str(words(record, receipt)).encode()],
        ),
        Decoder("receipt", Receipt.parse, (BadReceipt,), [str(receipt).encode()]),
        Decoder(
            "public key",
            of_text(Verifier.parse),
            (BadKey,),
            [b"a+00000000+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"],
        ),
        Decoder("model's answer", answer, (KeeveError,), [whole]),
        Decoder("model's stream", stream, (KeeveError,), [b"data: " + chunk + b"\n\ndata: [DONE]\n\n"]),
    ]


DECODERS: Final = {decoder.name: decoder for decoder in _decoders()}
