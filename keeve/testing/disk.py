"""What a disk may hold after a power cut: a model of files, names, and what was synced of each.

Each file has the content that was synced last, and the writes and cuts since. Each name is on the disk
once its folder was synced. A power cut keeps what was synced, and of the rest as much as `Mode` says.

The one rule: the model is told what happened and never looks at the real files, but for what was there
before it was told anything.
"""

from __future__ import annotations

import os
import random
from enum import Enum
from pathlib import Path
from typing import TypeAlias

SECTOR = 512
"""Bytes that a disk writes whole or not at all."""


class Mode(Enum):
    """How much of what was not synced reaches the disk."""

    NOTHING = "nothing"
    ALL = "all"
    PREFIX = "prefix"
    """The first writes whole, one of them in part, the rest not; names in the order of their making."""
    SECTORS = "sectors"
    """Any sectors of any write; each change of a name or not."""
    GARBAGE = "garbage"
    """As `PREFIX`, but where the write ends that was under way stands a sector of what nobody wrote. A sector that was
    written with what it had keeps that."""
    SIZES = "sizes"
    """Lengths and names, but none of the data: zeros in its place."""


class _File:
    """A file: what is surely on the disk, and what was done since (a write, or a cut to a length)."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self.pending: list[tuple[int, bytes | None]] = []

    def sync(self) -> None:
        for offset, data in self.pending:
            _apply(self.content, offset, data)
        self.pending.clear()

    def after(self, mode: Mode, chance: random.Random) -> bytes:
        """What a power cut leaves."""
        content = bytearray(self.content)
        pending = self.pending
        if mode is Mode.ALL:
            chosen = pending
        elif mode is Mode.PREFIX and pending:
            whole = chance.randrange(len(pending))
            offset, data = pending[whole]
            part = data and data[: chance.randrange(len(data) + 1)]
            chosen = [*pending[:whole], (offset, part)]
        elif mode is Mode.GARBAGE and pending:
            whole = chance.randrange(len(pending))
            chosen = [*pending[:whole], *_spoilt(content, *pending[whole], chance)]
        elif mode is Mode.SECTORS:
            chosen = [piece for offset, data in pending for piece in _sectors(offset, data, chance)]
        elif mode is Mode.SIZES:
            for offset, data in pending:
                if data is not None and offset + len(data) > len(content):
                    content.extend(bytes(offset + len(data) - len(content)))
            chosen = []
        else:
            chosen = []
        for offset, data in chosen:
            _apply(content, offset, data)
        return bytes(content)


_FOLDER = _File(b"")
"""Stands for a folder, where a file could be."""

_Change: TypeAlias = dict[str, _File | None]
"""What becomes of some names at once: a file, or None for a name that is gone."""


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _sectors(offset: int, data: bytes | None, chance: random.Random) -> list[tuple[int, bytes | None]]:
    if data is None:
        return [(offset, None)] if chance.random() < 0.5 else []
    pieces: list[tuple[int, bytes | None]] = []
    at = 0
    while at < len(data):
        end = min(len(data), at + SECTOR - (offset + at) % SECTOR)
        if chance.random() < 0.5:
            pieces.append((offset + at, data[at:end]))
        at = end
    return pieces


def _spoilt(
    content: bytearray, offset: int, data: bytes | None, chance: random.Random
) -> list[tuple[int, bytes | None]]:
    """The first sectors of a write, and one with anything in it."""
    if not data:
        return []
    part = data[: chance.randrange(len(data))]
    end = min(len(data), len(part) + SECTOR - (offset + len(part)) % SECTOR)
    there = bytes(content[offset + len(part) : offset + end])
    torn = there if there == data[len(part) : end] else chance.randbytes(end - len(part))
    return [(offset, part), (offset + len(part), torn)]


class Disk:
    """The disk beneath one file layer."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._names: dict[str, _File | None] = {}
        """The names as they are now; a folder has no file."""
        self._changes: list[_Change] = []
        """Changes of names that are not synced."""
        self._kept: dict[str, _File | None] = {}
        """The names that are surely on the disk."""
        self._known: set[str] = set()
        """Every name that was ever told of: of any other, what is there is on the disk."""

    def seen(self, path: str) -> None:
        """A name is about to be used. When it is new to us, what it names is taken to be on the disk."""
        path = os.path.abspath(path)
        if path not in self._known and os.path.isfile(path):
            self._known.add(path)
            self._names[path] = self._kept[path] = _File(Path(path).read_bytes())

    def opened(self, path: str, fd: int, *, made: bool) -> None:
        """A file was opened, or made."""
        path = os.path.abspath(path)
        if made:
            self._name(path, _File(b""))
        else:
            self.seen(path)
        file = self._names[path]
        assert file is not None
        self._files[fd] = file

    def wrote(self, fd: int, offset: int, data: bytes) -> None:
        """Bytes were written."""
        self._files[fd].pending.append((offset, data))

    def truncated(self, fd: int, length: int) -> None:
        """A file was cut, or made longer with zeros."""
        self._files[fd].pending.append((length, None))

    def synced(self, fd: int) -> None:
        """A file was synced."""
        self._files[fd].sync()

    def forgot(self, fd: int) -> None:
        """A sync failed, and what was not on the disk is taken to be there now: no later sync puts it there."""
        self._files[fd].pending.clear()

    def renamed(self, source: str, target: str) -> None:
        """A file has another name."""
        source = os.path.abspath(source)
        target = os.path.abspath(target)
        self._known.add(target)
        self._names[target] = self._names.pop(source)
        self._changes.append({source: None, target: self._names[target]})

    def removed(self, path: str) -> None:
        """A name was taken away."""
        path = os.path.abspath(path)
        del self._names[path]
        self._changes.append({path: None})

    def made_folder(self, path: str) -> None:
        """A folder was made."""
        self._name(os.path.abspath(path), None)

    def _name(self, path: str, file: _File | None) -> None:
        self._known.add(path)
        self._names[path] = file
        self._changes.append({path: file or _FOLDER})

    def synced_folder(self, path: str) -> None:
        """The names in a folder were synced."""
        path = os.path.abspath(path)
        here = [change for change in self._changes if path in map(os.path.dirname, change)]
        self._changes = [change for change in self._changes if change not in here]
        _rename(self._kept, here)

    def power_cut(self, folder: Path, into: Path, mode: Mode, seed: int) -> None:
        """Build at `into` what is left of `folder`."""
        chance = random.Random(seed)
        changes = self._changes
        names = dict(self._kept)
        if mode in (Mode.ALL, Mode.SIZES):
            _rename(names, changes)
        elif mode in (Mode.PREFIX, Mode.GARBAGE) and changes:
            _rename(names, changes[: chance.randrange(len(changes) + 1)])
        elif mode is Mode.SECTORS:
            _rename(names, [change for change in changes if chance.random() < 0.5])
        root = str(folder.absolute())
        into.mkdir(parents=True)
        for real in sorted(folder.rglob("*")):
            if str(real.absolute()) not in self._known and not real.is_dir():
                names[str(real.absolute())] = _File(real.read_bytes())
            elif str(real.absolute()) not in self._known:
                names[str(real.absolute())] = None
        for path, file in sorted(names.items(), key=lambda item: item[0]):
            if not path.startswith(root + os.sep):
                continue
            target = into / os.path.relpath(path, root)
            if not target.parent.is_dir():
                continue  # its folder is lost, and so is all that was in it
            if file is None:
                target.mkdir()
            else:
                target.write_bytes(file.after(mode, chance))


def _rename(names: dict[str, _File | None], changes: list[_Change]) -> None:
    for change in changes:
        for path, file in change.items():
            if file is None:
                names.pop(path, None)
            else:
                names[path] = None if file is _FOLDER else file
