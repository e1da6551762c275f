"""What stands in a frame, or in a small file of a store, as data that a person can read.

The one rule: nothing here fails on what it is given. What cannot be read is told as such, and shown in hex.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, TypeAlias

from dataspace.drafts import read_deeds
from dataspace.log.frames import (
    Frame,
    Type,
    checkpoint_head,
    commit_head,
    part_head,
    record_head,
    rest_in,
    segment_head,
)
from dataspace.log.publishing import unpack as read_head
from dataspace.log.survey import Piece, Survey
from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.proofs import Receipt
from dataspace.records import SALT, STORE_UID, Kind, split_body, split_cell, split_digests, split_rest
from dataspace.values import render
from dataspace.values.encoding import decode
from keeve.faces import utc_time
from vat.heap.opcodes import Op

Described: TypeAlias = dict[str, Any]
"""What is told of a piece: names, and texts, numbers, or lists of them."""

LARGEST: Final = 4 << 20
"""Bytes of a body that is decoded unless all is to be shown."""
SHOWN: Final = 160
"""Characters of one value that are shown unless all is to be."""
_SEALED: Final = 2
_MAGIC: Final = b"KEEVEKEY"
_AWAY: Final[dict[int, str]] = {Type.ERASED: ", erased", Type.ARCHIVED: ", archived"}
_LEFT: Final[dict[int, str]] = {
    Type.REST: ", what it did archived",
    Type.FACTS: ", what it did gone",
}
"""Of what is left of records, what is not."""


class FileTeller:
    """Tells what pieces of a segment are. `full` shows everything, however long; else long values are cut.

    `names` are the ids of sessions by their uids, as far as they were met.
    """

    def __init__(self, full: bool) -> None:
        self._full = full
        self.names: dict[bytes, str] = {STORE_UID: "(the store)"}

    def piece(self, survey: Survey, piece: Piece) -> Described:
        """A piece of a segment."""
        told: Described = {"segment": survey.number, "offset": piece.offset, "size": piece.size}
        found = piece.frame
        if found is None:
            kind = "zeros" if piece.zeros else "damaged"
            told |= {"type": kind} if piece.zeros else {"type": kind, "wrong": "no sound frame begins here"}
            if not piece.zeros:
                begin = piece.offset - survey.base
                told["bytes"] = bytes(survey.data[begin : min(begin + 32, len(survey.data))]).hex()
            return told
        told["type"] = _type(found.was) + _AWAY.get(found.type, "") + _LEFT.get(found.type, "")
        told["crc"] = (
            "header good" if not found.body_length else f"header good, body {'bad' if piece.wrong else 'good'}"
        )
        if piece.wrong:
            told["wrong"] = piece.wrong
        try:
            told |= self._head(survey, found)
        except (struct.error, ValueError) as error:
            told["wrong"] = f"its head cannot be read: {error}"
            return told
        if found.type in _AWAY:
            told["body"] = f"{found.body_length} bytes{_AWAY[found.type]}"
        elif found.flags:
            told["body"] = f"{found.body_length} bytes, sealed" if found.flags == _SEALED else f"flags {found.flags:#x}"
        elif found.body_length:
            told |= self._body(survey, found)
        return told

    def _head(self, survey: Survey, found: Frame) -> Described:
        match found.was:
            case Type.SEGMENT:
                head = segment_head(found.head)
                if head is None:
                    raise ValueError("no segment's")
                return {
                    "format": head.format,
                    "log": head.log_id.hex(),
                    "first_position": head.first_position,
                    "previous_length": head.previous_length,
                    "previous_commit": head.previous_commit.hex(),
                }
            case Type.RECORD:
                header, starts = record_head(found.head)
                return {
                    "position": header.position,
                    "epoch": header.epoch,
                    "session": header.uid.hex(),
                    "seq": header.seq,
                    "kind": _kind(header.kind),
                    "time": _time(header.time),
                    "hash": header.hash.hex(),
                    "previous": header.previous.hex(),
                    "body_digest": header.body_digest.hex(),
                    "parts": len(starts),
                }
            case Type.CELL | Type.PAGE:
                position, number = part_head(found.head)
                return {"position": position, "number": number}
            case Type.COMMIT:
                commit = commit_head(found.head)
                begin = found.offset - survey.base
                own = sha256(bytes(survey.data[begin : begin + found.size])).hexdigest()
                return {
                    "first": commit.first,
                    "last": commit.last,
                    "frames": commit.frames,
                    "previous": commit.previous.hex(),
                    "hash": own,
                }
            case Type.CHECKPOINT:
                size, root = checkpoint_head(found.head)
                return {"records": size, "root": root.hex()}
        return {"head": found.head[:64].hex()}

    def _body(self, survey: Survey, found: Frame) -> Described:
        if found.body_length > LARGEST and not self._full:
            return {"body": f"{found.body_length} bytes: --full shows them"}
        body = survey.body(found)
        try:
            if found.type in _LEFT:
                return self._rest(found, body)
            if found.was == Type.RECORD:
                return self._record(found, body)
            if found.was == Type.CELL:
                return {"content": self._shown(split_cell(body).content)}
            if found.was == Type.PAGE:
                return {"node": self._shown(decode(body[SALT:], tree=bytes))}
            return {"note": self._cut(body.decode())}
        except Exception as error:  # noqa: BLE001  # whatever a body makes of its decoder, the dump goes on
            return {"body": self._cut(body.hex()), "unreadable": str(error) or type(error).__name__}

    def _record(self, found: Frame, stored: bytes) -> Described:
        header, _ = record_head(found.head)
        body = split_body(stored)
        if body is None:
            raise ValueError("its lengths do not fit")
        told: Described = {} if body.digest == header.body_digest else {"digest": "not the one in the header"}
        deeds = read_deeds(body.deeds, tree=bytes)
        told |= {"message": self._shown(deeds.message), "pending": deeds.pending}
        told["operations"] = [self._operation(operation) for operation in deeds.operations]
        told["facts"] = [self._shown(each) for each in decode(body.facts, tree=bytes)[0]] if body.facts else []
        told["cells"] = [digest.hex() for digest in split_digests(deeds.digests)]
        id = deeds.message.get("id") if isinstance(deeds.message, Mapping) else None
        if header.kind in (Kind.SPAWN, Kind.FORKED) and isinstance(id, str):
            self.names.setdefault(header.uid, id)
        return told

    def _rest(self, found: Frame, stored: bytes) -> Described:
        header, _ = record_head(found.head)
        rest = split_rest(rest_in(stored) or b"")
        if rest is None:
            raise ValueError("what is left of it is not what was written")
        told: Described = {} if rest.digest == header.body_digest else {"digest": "not the one in the header"}
        facts = [self._shown(each) for each in decode(rest.facts, tree=bytes)[0]] if rest.facts else []
        return told | {"deeds": rest.deeds.hex(), "pending": rest.pending, "facts": facts}

    def _operation(self, operation: Any) -> str:
        number, *arguments = operation
        name = Op(number).name.lower() if number in _OPS else str(number)
        return self._cut(" ".join([name, *map(render, arguments)]))

    def _shown(self, value: Any) -> str:
        return self._cut(render(value))

    def _cut(self, text: str) -> str:
        if self._full or len(text) <= SHOWN:
            return text
        return f"{text[:SHOWN]}… ({len(text)} characters)"


_OPS: Final = frozenset(map(int, Op))


def _type(number: int) -> str:
    return Type(number).name.lower() if number in frozenset(map(int, Type)) else f"type {number}"


def _kind(number: int) -> str:
    return Kind(number).name.lower() if number in frozenset(map(int, Kind)) else f"kind {number}"


def _time(time: int) -> str:
    try:
        return utc_time(time)
    except (ValueError, OverflowError, OSError):
        return f"{time} µs"


def head_file(data: bytes) -> Described:
    """The file `head`."""
    found = read_head(data)
    if found is None:
        return {"type": "head", "crc": "bad", "wrong": "torn, or no head", "bytes": data[:32].hex()}
    mark = found.mark
    return {
        "type": "head",
        "crc": "good",
        "log": found.log_id.hex(),
        "epoch": found.epoch,
        "segment": mark.segment,
        "offset": mark.offset,
        "position": mark.position,
        "hash": mark.hash.hex(),
        "commit": mark.commit.hex(),
    }


def note_file(data: bytes) -> Described:
    """A signed note: the file `checkpoint`, or one that was kept elsewhere."""
    try:
        note = Note.parse(data)
        checkpoint = Checkpoint.parse(note.text)
    except ValueError as error:
        return {"type": "note", "wrong": str(error)}
    return {"type": "checkpoint", **_checkpoint(checkpoint, note)}


def _checkpoint(checkpoint: Checkpoint, note: Note) -> Described:
    return {
        "origin": checkpoint.origin,
        "records": checkpoint.size,
        "root": checkpoint.root.hex(),
        "signed_by": [f"{each.name}+{each.id.hex()}" for each in note.signatures],
        "checked": "not here: keeve check does",
    }


def receipt_file(data: bytes) -> Described:
    """A receipt."""
    try:
        receipt = Receipt.parse(data)
    except ValueError as error:
        return {"type": "receipt", "wrong": str(error)}
    header = receipt.header
    return {
        "type": "receipt",
        "position": header.position,
        "session": header.uid.hex(),
        "seq": header.seq,
        "kind": _kind(header.kind),
        "time": _time(header.time),
        "hash": header.hash.hex(),
        **_checkpoint(receipt.checkpoint, receipt.note),
    }


def key_file(data: bytes) -> Described:
    """The head of an encrypted store's key file: what it says of itself in the clear, and no key."""
    if len(data) < 64:
        return {"type": "key file", "wrong": "it is cut off"}
    form, serial = int.from_bytes(data[8:10], "little"), int.from_bytes(data[12:16], "little")
    wraps, links, gone = struct.unpack_from("<III", data, 48)
    return {
        "type": "key file",
        "format": form,
        "serial": serial,
        "log": data[16:32].hex(),
        "wraps": wraps,
        "links": links,
        "destroyed": gone,
    }


def text_file(name: str, data: bytes) -> Described:
    """A small file of text."""
    return {"type": name, "text": data[:4096].decode(errors="backslashreplace").rstrip(" \n")}


def unknown_file(data: bytes) -> Described:
    """What nobody knows."""
    return {"type": "unknown", "wrong": "no file of a store", "bytes": data[:64].hex()}


def small_file(data: bytes) -> Described | None:
    """What a file is that is no segment, by its first bytes; None for what is neither."""
    for begin, tell in _SMALL.items():
        if data.startswith(begin):
            return tell(data)
    if b"\n\n\xe2\x80\x94 " in data:
        return note_file(data)
    return None


_SMALL: Final[Mapping[bytes, Callable[[bytes], Described]]] = {
    b"KEEVEHED": head_file,
    b"keeve store\n": lambda data: text_file("format", data),
    b"pid ": lambda data: text_file("lock", data),
    b"epoch ": lambda data: text_file("lock", data),  # as it was before
    b"c2sp.org/tlog-proof": receipt_file,
    _MAGIC: key_file,
}
