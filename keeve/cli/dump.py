"""`keeve dump`: any file of a store, or all of them, frame by frame.

It works on files of a broken store, and on single ones that were copied elsewhere: nothing is opened as a store. What
is damaged is shown as damaged, and the next sound frame after it.

The one rule: it reads. No lock is looked for, none is taken, and no byte or time of a file changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import apsw

from dataspace.catalog.schema import CATALOG
from dataspace.errors import KeeveError
from dataspace.log.files import ReadFailed, open_plain
from dataspace.log.frames import Type
from dataspace.log.layout import Layout
from dataspace.log.packed import mended_in
from dataspace.log.patience import Patient
from dataspace.log.survey import Survey, owner_of
from dataspace.log.windows import Window
from dataspace.records import Kind
from keeve.cli.dumped import Described, FileTeller, small_file, unknown_file
from keeve.cli.output import Output
from keeve.cli.text import visible

_CUT: Final = re.compile(r"(\d{1,10})-(\d{1,12})\.(?:bin|pending)", re.ASCII)
_SEGMENT: Final = re.compile(r"(\d{1,10})\.seg", re.ASCII)
_SQLITE: Final = b"SQLite format 3\0"
_SMALL: Final = 1 << 20
"""Bytes of a small file that are read."""
_LINES: Final = frozenset({"operations", "facts"})
_ON_THE_LINE: Final = frozenset({"segment", "offset", "size", "type", "crc"})
_LONG: Final = frozenset({"previous", "body_digest", "cells"})
"""What is shown with `--full` alone."""


class NothingToDump(KeeveError, LookupError):
    """There is nothing at a path that could be shown, or nothing in it that was asked for."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        super().__init__(f"{path}: {what}; name a store, or a file of one")


class Wanted(NamedTuple):
    """What is to be shown: only records with their content (`records`), of one session, from a position on."""

    records: bool = False
    session: str | None = None
    start: int = 0
    full: bool = False


def dump(target: Path, output: Output, wanted: Wanted) -> int:
    """Show a file, or the files of a store. Gives 1 when something in it is damaged. Raises `NothingToDump`."""
    teller = FileTeller(wanted.full)
    paths = _files_of(target)
    uid = None if wanted.session is None else _uid(paths, wanted.session, teller)
    good = True
    for path in paths:
        if not output.as_json:
            output.say(f"{path}  {path.stat().st_size} bytes", "bold")
        for told in _file(path, teller, wanted, uid):
            good = good and "wrong" not in told
            if output.as_json:
                output.document({"file": str(path), **told})
            else:
                _say(output, told, teller, wanted)
    return 0 if good else 1


def _files_of(target: Path) -> list[Path]:
    if target.is_file():
        return [target]
    if not target.is_dir():
        raise NothingToDump(str(target), "there is no such file" if not target.exists() else "it is no plain file")
    layout = Layout(target)
    small = [layout.format, layout.lock, layout.head, layout.checkpoint, layout.folder / "keys"]
    logs = sorted(target.glob("*.seg")) + [layout.segment(number) for number in layout.segments()]
    cut = sorted(layout.cut.iterdir()) if layout.cut.is_dir() else []
    found = [path for path in (*small, *logs, *cut, layout.folder / CATALOG) if path.is_file()]
    if not found:
        raise NothingToDump(str(target), "no file in it is one of a store")
    return found


def _file(path: Path, teller: FileTeller, wanted: Wanted, uid: bytes | None) -> Iterator[Described]:
    with _Open(path) as data:
        begin = bytes(data[0 : min(_SMALL, len(data))])
        if begin.startswith(_SQLITE):
            yield _catalog(path)
            return
        survey = _survey(path, data)
        if survey is None:
            yield small_file(begin) or unknown_file(begin)
        else:
            yield from _pieces(survey, teller, wanted, uid)


def _survey(path: Path, data: Window) -> Survey | None:
    """The survey of a segment, or of what was cut off one; None for what is neither."""
    cut = _CUT.fullmatch(path.name)
    if cut is not None:
        return Survey(data, int(cut[1]), int(cut[2]))
    named = _SEGMENT.fullmatch(path.name)
    number = owner_of(data) or (int(named[1]) if named else None)
    return None if number is None else Survey(data, number)


def _pieces(survey: Survey, teller: FileTeller, wanted: Wanted, uid: bytes | None) -> Iterator[Described]:
    ours = uid is None
    begun = not wanted.start
    for piece in survey.pieces():
        found = piece.frame
        if found is None:
            if begun and not (piece.zeros and wanted.records):
                yield teller.piece(survey, piece)
            continue
        if found.was == Type.RECORD and len(found.head) >= 48:
            ours = uid is None or found.head[16:32] == uid
        if not begun and found.was in (Type.RECORD, Type.CELL, Type.PAGE):
            begun = int.from_bytes(found.head[:8], "little") >= wanted.start
        content = found.was in (Type.RECORD, Type.CELL, Type.PAGE)
        if begun and (ours if content else uid is None and not wanted.records):
            yield teller.piece(survey, piece)


def _uid(paths: Iterable[Path], session: str, teller: FileTeller) -> bytes:
    """The uid of a session that is named by that, or by its id. Raises `NothingToDump`."""
    if re.fullmatch(r"[0-9a-f]{32}", session):
        return bytes.fromhex(session)
    for path in paths:
        with _Open(path) as data:
            survey = _survey(path, data)
            if survey is None:
                continue
            for piece in survey.pieces():
                found = piece.frame
                if found is None or found.type != Type.RECORD or len(found.head) < 48:
                    continue
                if found.head[12] in (Kind.SPAWN, Kind.FORKED):
                    teller.piece(survey, piece)
        for uid, name in teller.names.items():
            if name == session:
                return uid
    raise NothingToDump(session, "no first record of a session with that id can be read here; its uid (32 hex) will do")


def _catalog(path: Path) -> Described:
    """The tables of a catalog, and how many rows they have. It is derived: `keeve ls` and `show` tell what is in it."""
    told: Described = {"type": "catalog"}
    try:
        # Immutable: SQLite makes no file beside it, and looks for no lock.
        db = apsw.Connection(f"file:{path.as_posix().replace('?', '%3f')}?immutable=1", flags=_READ)
        try:
            names = [
                name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            ]
            told["tables"] = [
                f"{name}: {next(iter(db.execute(f'SELECT count(*) FROM {_quoted(name)}')))[0]} rows" for name in names
            ]
        finally:
            db.close()
    except apsw.Error as error:
        told["wrong"] = f"it cannot be read: {error}"
    return told


_READ: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class _Open:
    """The bytes of a file, read when they are looked at; zeros for what the disk does not give."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._fd = open_plain(path)
        except OSError as error:
            raise ReadFailed.of(str(path), error) from error

    def __enter__(self) -> Window:
        read, size = Patient(self._fd).read, os.fstat(self._fd).st_size
        lies = mended_in(read, size)
        return Window(read, size, str(self._path)) if lies is None else Window(lies.read, lies.length, str(self._path))

    def __exit__(self, *raised: object) -> None:
        os.close(self._fd)


# Telling.


def _say(output: Output, told: Described, teller: FileTeller, wanted: Wanted) -> None:
    if "size" in told:
        line = f"{told['offset']:>12}  {told['type']:<12} {told['size']:>9}  {told.get('crc', '')}"
        hidden = _ON_THE_LINE if wanted.full else _ON_THE_LINE | _LONG
    else:
        line, hidden = told["type"], frozenset({"type"})
    output.say(visible(line.rstrip()), "red" if "wrong" in told else "")
    for name, value in told.items():
        if name in hidden:
            continue
        if isinstance(value, list):
            _say_list(output, name, value)
        else:
            output.say(f"                {name}: {visible(_named(name, value, teller))}", _style(name))


def _say_list(output: Output, name: str, values: list[Any]) -> None:
    for number, value in enumerate(values):
        label = f"{name} {number}" if name in _LINES else name
        output.say(f"                {label}: {visible(str(value))}")


def _named(name: str, value: object, teller: FileTeller) -> str:
    if name == "session" and isinstance(value, str):
        known = teller.names.get(bytes.fromhex(value))
        return value if known is None else f"{value} {known}"
    return str(value)


def _style(name: str) -> str:
    return "red" if name in ("wrong", "unreadable") else "dim"
