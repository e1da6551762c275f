"""`keeve checkpoint`, `prove`, `check` and `keys`: what a log was, signed; that a record is in it; who says so.

The one rule: what is written to the standard output is the file itself, byte for byte, so that it can be kept as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dataspace.checkpoints.checkpoints import Checkpoints, Seen
from dataspace.checkpoints.keys import WrongKey
from dataspace.drafts import Assertion, Statement
from dataspace.errors import KeeveError
from dataspace.log.files import ReadFailed
from dataspace.log.layout import Layout, State
from dataspace.observe.words import FIRST, Words
from dataspace.proofs.notes import Checkpoint, Note, checked_checkpoint
from dataspace.proofs.proofs import Receipt
from dataspace.proofs.verifiers import Algorithm, Verifier, witness_time
from keeve.api import open_host
from keeve.cli.output import Output
from keeve.cli.reading import FilesRead, must_be_there, reading
from keeve.cli.stores import Looks
from keeve.cli.text import local_time, visible
from keeve.host_keys import host_key_from
from keeve.key_files import signing_key
from keeve.looking import record_said, told_checkpoint
from vat.host.settings import Settings

_LARGEST = 1 << 26
"""Bytes that are read of a file."""


class NotAKey(KeeveError, ValueError):
    """What was given with `--key` is neither a verifier key nor a file of them."""

    usage: ClassVar[bool] = True

    def __init__(self, given: str, what: str) -> None:
        self.given = given
        super().__init__(
            f"{given!r:.120} is neither a verifier key nor a file of them ({what}): give what keeve keys tells"
        )


class SignedAlready(KeeveError):
    """A key was to be made for a log that is signed with one already."""

    usage: ClassVar[bool] = True

    def __init__(self, key: str, file: Path) -> None:
        self.key = key
        super().__init__(
            f"this log is signed with {key}, and no other key is made for it: give the file of that with --signer; or, "
            f"if a new one is to take its place, --signer {file} --make --former with the file of that one"
        )


class NothingToCheckBy(KeeveError, LookupError):
    """A file was to be checked without keys, and there is no log whose keys could be taken."""

    usage: ClassVar[bool] = True

    def __init__(self, file: str, folder: Path) -> None:
        super().__init__(
            f"{file} can be checked by keys, or by the log that it is of, and no store is at {folder}: give --key "
            "with what keeve keys told (GET /api/v1/keys of a server), or name the store with --store"
        )


class NoSuchFile(KeeveError, LookupError):
    """What was to be read is no file."""

    usage: ClassVar[bool] = True

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}: name the file of a receipt or of a checkpoint")


async def make_checkpoint(
    folder: Path, output: Output, signer: Path, *, make: bool, former: Path | None, since: int | None
) -> None:
    """Sign all that is durable, as the owner of the store, and keep that in the log."""
    must_be_there(folder)
    there = _is_there(signer)
    if make and not there and former is None:
        with reading(folder) as read:
            if known := _checkpoints(read).verifiers:
                raise SignedAlready(str(known[-1]), signer)
    key = signing_key(signer, make=make)
    settings = Settings(takes_up="nothing")
    try:
        host_key = host_key_from(os.environ)
        async with open_host(folder, signer=key, former=former, key=host_key, settings=settings, via="cli") as host:
            extension = None if since is None else host.checkpoint(since=since)
            _tell_checkpoint(output, told_checkpoint(host.checkpoint(), extension))
    except WrongKey:
        if not there:
            _take_back(signer)
        raise


def _is_there(file: Path) -> bool:
    return file.exists()


def _take_back(key: Path) -> None:
    """Delete a key that was made just now and has signed nothing."""
    key.unlink(missing_ok=True)


async def tell_checkpoint(store: Looks, output: Output, since: int | None) -> None:
    """Tell the newest checkpoint that there is. Raises `NotSigning` when there is none."""
    _tell_checkpoint(output, await store.look("checkpoint", since=since))


def _tell_checkpoint(output: Output, said: Mapping[str, Any]) -> None:
    if output.as_json:
        output.document(said)
    else:
        output.piece(said.get("extension", said["note"]))


async def prove(
    store: Looks, output: Output, session: str, seq: int, checkpoint: str | None, *, words: bool = False
) -> None:
    """Give the receipt of a session's record, by the newest checkpoint that there is or by the one in a file.

    With `words`, what the record has stated as well. Raises `NotProven` when it has stated nothing.
    """
    note = None if checkpoint is None else str(Note.parse(read(checkpoint)))
    said = await store.look("receipt", id=session, seq=seq, checkpoint=note, words=words)
    if output.as_json:
        output.document(said)
    else:
        output.piece(said.get("words", said["receipt"]))


async def tell_keys(store: Looks, output: Output) -> int:
    """Tell the verifier keys with which a log was signed. Gives 1 when it never was."""
    keys = (await store.look("keys"))["keys"]
    if output.as_json:
        output.document({"keys": keys})
    elif not keys:
        output.note("this log was never signed: keeve checkpoint --signer FILE does it")
    for each in [] if output.as_json else keys:
        output.say(each["key"])
    return 0 if keys else 1


def check_file(folder: Path, output: Output, file: str, keys: Sequence[str]) -> int:
    """Check a receipt (with words or without) or a checkpoint: with keys, or else against the log in the store.

    Raises what says that it proves nothing: `BadReceipt`, `BadNote`, `BadSignature`, `NotSigned`, `NotProven`, or with
    the store `LogTruncated` or `LogTampered`; `NothingToCheckBy` where there is none and no key.
    """
    data = read(file)
    words = Words.parse(data) if data.startswith(f"{FIRST}\n".encode()) else None
    data = data if words is None else str(words.receipt).encode()
    seen, known = (Seen.of(data), _keys(keys)) if keys else _in_log(folder, file, data)
    _, signers = checked_checkpoint(seen.note, known)
    checked = Checked(
        seen.checkpoint,
        None if seen.head is None else Receipt.parse(data),
        None if words is None else list(map(_stated, words.statements)),
        [each.name for each in signers if each.algorithm is Algorithm.NOTE],
        _witness_times(seen.note, signers),
        "keys" if keys else "log",
    )
    if output.as_json:
        output.document(checked.document)
    else:
        for line in checked.lines():
            output.say(line)
    return 0


def _in_log(folder: Path, file: str, data: bytes) -> tuple[Seen, Sequence[Verifier]]:
    """What a file says, which fits the log in the store, and the keys of that."""
    seen = Seen.of(data)  # what is neither is said to be so, wherever one is
    if Layout(folder).state() is State.NEW:
        raise NothingToCheckBy(file, folder)
    with reading(folder) as store:
        checkpoints = _checkpoints(store)
        checkpoints.expect(data)
        return seen, checkpoints.verifiers


def _witness_times(note: Note, signers: Sequence[Verifier]) -> dict[str, int]:
    """When each witness has signed, by its name."""
    return {
        each.name: witness_time(line.data)
        for each in signers
        if each.algorithm is Algorithm.WITNESS
        for line in note.signatures
        if (line.name, line.id) == (each.name, each.id)
    }


@attrs.frozen
class Checked:
    """What a file proves: a checkpoint; of a receipt its record as well, and what that has stated, if it has words.

    against: `keys`, or `log`: what it was held against.
    """

    checkpoint: Checkpoint
    receipt: Receipt | None
    states: list[str] | None
    signed_by: list[str]
    witnesses: Mapping[str, int]
    against: str

    @property
    def document(self) -> dict[str, Any]:
        """It in JSON."""
        checkpoint = self.checkpoint
        said: dict[str, Any] = {"proven": True, "origin": checkpoint.origin, "size": checkpoint.size}
        said |= {"root": checkpoint.root.hex(), "signed_by": self.signed_by, "witnesses": dict(self.witnesses)}
        said["held_against"] = self.against
        if self.receipt is not None:
            said |= record_said(self.receipt) | ({} if self.states is None else {"states": self.states})
        return said

    def lines(self) -> Iterator[str]:
        """It in words."""
        checkpoint = self.checkpoint
        if self.receipt is not None:
            header = self.receipt.header
            yield (
                f"proven: record {header.position} of {checkpoint.origin} is seq {header.seq} of session "
                f"{header.uid.hex()}, made {local_time(header.time)}, hash {header.hash.hex()}"
            )
        for each in self.states or ():
            yield f"proven: that record states {each}"
        yield f"proven: {checkpoint.origin} had {checkpoint.size} records, root {checkpoint.root.hex()}"
        witnessed = f"; witnessed by {', '.join(self.witnesses)}" if self.witnesses else ""
        yield f"signed by {', '.join(self.signed_by)}{witnessed}"
        if self.against == "log":
            yield "the log in the store has all of them"


def _stated(statement: Statement) -> str:
    if isinstance(statement, Assertion):
        return f"+ {visible(str(statement.fact))}"
    return f"- what operation {statement.handle.operation} of seq {statement.handle.seq} had stated"


def _checkpoints(store: FilesRead) -> Checkpoints:
    return Checkpoints(store.store, store.catalog)


def read(file: str) -> bytes:
    """What is in a file. Raises `NoSuchFile` or `ReadFailed`."""
    try:
        with open(file, "rb") as opened:
            return opened.read(_LARGEST)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NoSuchFile(file, error.strerror or str(error)) from error
    except OSError as error:
        raise ReadFailed.of(file, error) from error


def _keys(given: Sequence[str]) -> list[Verifier]:
    """Verifier keys, given as they are or as files of them, one on each line."""
    found = []
    for each in given:
        if each.count("+") >= 2:
            found.append(Verifier.parse(each))
            continue
        try:
            lines = read(each).decode().split()
        except (NoSuchFile, ReadFailed, UnicodeError) as error:
            raise NotAKey(each, str(error)) from error
        found += [Verifier.parse(line) for line in lines]
    if not found:
        raise NotAKey(given[0], "it is empty")
    return found


def key_texts(given: Sequence[str]) -> list[str]:
    """The same, as texts."""
    return [str(each) for each in _keys(given)] if given else []
