"""What proves to others: checkpoints, keys, receipts, and whether all of the store is what was written.

The one rule: what is proven is given as the text that others check, byte for byte.
"""

from __future__ import annotations

import re
from typing import Final

import attrs
from starlette.responses import PlainTextResponse, Response

from dataspace.observe.words import Words
from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.proofs import Receipt
from keeve.faces import utc_time
from keeve.looking import chain_of, reading_of, words_of
from keeve.server.api.sessions import reached
from keeve.server.api.table import Asked, Document
from keeve.server.errors import Refusal
from vat.heap.restore import NoSuchPoint
from vat.host.within import dataspace_of

SEQ: Final = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)
"""The only way in which a seq is written."""


async def newest_checkpoint(asked: Asked) -> Document:
    """Signed now, over all that is durable."""
    host, since = asked.serving.host, asked.query.since
    note = host.checkpoint()
    extension = None if since is None else host.checkpoint(since=since)
    checkpoint = Checkpoint.parse(Note.parse(note).text)
    said = {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}
    return {**said, "note": note, "extension": extension}


async def checkpoint_text(asked: Asked) -> Response:
    """It alone; with `since`, what a witness takes."""
    return PlainTextResponse(asked.serving.host.checkpoint(since=asked.query.since))


async def log_keys(asked: Asked) -> Document:
    """For those who check."""
    return {"keys": asked.serving.host.log_keys()}


async def receipt_of(asked: Asked) -> Document:
    """By the newest checkpoint."""
    receipt, words = await _proven(asked)
    header = receipt.header
    return {
        "receipt": str(receipt),
        "words": None if words is None else str(words),
        "position": header.position,
        "session": header.uid.hex(),
        "seq": header.seq,
        "time": utc_time(header.time),
        "hash": header.hash.hex(),
    }


async def receipt_text(asked: Asked) -> Response:
    """It alone, as `keeve check` takes it; with `words`, with these."""
    receipt, words = await _proven(asked)
    return PlainTextResponse(str(receipt if words is None else words))


async def _proven(asked: Asked) -> tuple[Receipt, Words | None]:
    host, _, row = await reached(asked, "read")
    text = asked.path("seq")
    if not SEQ.fullmatch(text):
        said = f"{text!r:.40} is no seq: that is a number from 1 to {row.seq}, written without anything else"
        raise Refusal(422, "bad_seq", said, "GET the session: its turns have their seqs", "seq")
    seq = int(text)
    if not 1 <= seq <= row.seq:
        raise NoSuchPoint(row.id, seq, 1, row.seq)
    receipt = host.receipt(row.id, seq)
    return receipt, words_of(dataspace_of(host), receipt) if asked.query.words else None


async def list_chain(asked: Asked) -> Document:
    """Whoever hashes these bytes sees that each names the one before it."""
    host, _, row = await reached(asked, "read")
    query = asked.query
    return await chain_of(reading_of(host), row, query.after, query.limit, query.words)


async def verify_store(asked: Asked) -> Document:
    """A look at all of it, while the server goes on."""
    report = await asked.serving.host.verify()
    return {"format": 1, "sound": report.sound, **attrs.asdict(report)}
