"""A store with some of everything, and what can be done to its log: every way in which a disk or a hand has harmed one.

The one rule: a damage is a function of the folder and of a source of chance, and touches files of `log` alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from dataspace.log.frames import Frame, Type, parse, record_head
from dataspace.proofs.signers import SigningKey
from dataspace.records import STORE_UID, Kind
from tests.crash.crash_actors import Counter
from tests.crash.harms import lying, opened

KEY: Final = SigningKey.of_seed(bytes(32))
LONG: Final = "something that is kept beside its record " * 10
Damage: TypeAlias = Callable[[Path, Random], Any]


async def fill(folder: Path, **options: Any) -> None:
    """Several segments, sessions that speak in turn, long texts, snapshots, forks of forks, one that is deleted."""
    for life in range(2):
        async with opened(folder, signer=KEY, **options) as host:
            for name in ("a", "b", "c") if life == 0 else ():
                await host.spawn(Counter, name)
            sessions = [await host.get(name) for name in ("a", "b", "c")]
            for number in range(6):
                for session in sessions:
                    await session.add(f"{life} {number}")
                    if number % 2:
                        await session.put(f"k{number}", LONG + str(number))
                if number == 3:
                    await sessions[0].snapshot()
                    await sessions[1].snapshot()
            if life == 0:
                twin = await sessions[0].fork(at=4, into="twin")
                await twin.add("of the twin")
                again = await twin.fork(into="again")
                await again.add("of the fork's fork")
                await again.snapshot()
            else:
                await host.spawn(Counter, "gone")
                await host.delete("gone")


class Lying(NamedTuple):
    """A frame, and the file that it lies in."""

    path: Path
    frame: Frame


def frames(folder: Path) -> list[Lying]:
    """All frames of a log that is sound."""
    found = []
    for path in sorted((folder / "log").glob("*.seg")):
        data, at = lying(path), 0
        while (frame := parse(data, at, int(path.stem))) is not None:
            found.append(Lying(path, frame))
            at += frame.size
    return found


def segments(folder: Path) -> list[Path]:
    return sorted((folder / "log").glob("*.seg"))


def _flip(kind: int, part: str) -> Damage:
    def flip(folder: Path, chance: Random) -> None:
        path, frame = chance.choice([each for each in frames(folder) if each.frame.type == kind])
        if part == "body":
            at = frame.body_offset + chance.randrange(frame.body_length)
        else:
            at = chance.randrange(frame.offset, frame.body_offset)
        _put(path, at, bytes([path.read_bytes()[at] ^ 1 << chance.randrange(8)]))

    return flip


def _put(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def _cut(folder: Path, chance: Random) -> None:
    path = chance.choice(segments(folder))
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def _zeroed(folder: Path, chance: Random) -> None:
    path = chance.choice(segments(folder))
    _put(path, chance.randrange(0, path.stat().st_size, 512), bytes(512 * chance.randint(1, 8)))


def _scribbled(folder: Path, chance: Random) -> None:
    path = chance.choice(segments(folder))
    _put(path, chance.randrange(path.stat().st_size), chance.randbytes(chance.randint(1, 2000)))


def _records(folder: Path) -> list[Lying]:
    return [each for each in frames(folder) if each.frame.type == Type.RECORD]


def _bytes(lying: Lying) -> bytes:
    return lying.path.read_bytes()[lying.frame.offset : lying.frame.offset + lying.frame.size]


def _swapped(folder: Path, chance: Random) -> None:
    one, other = chance.sample(_records(folder), 2)
    first, second = _bytes(one), _bytes(other)
    _put(one.path, one.frame.offset, second)
    _put(other.path, other.frame.offset, first)


def _doubled(folder: Path, chance: Random) -> None:
    path, frame = chance.choice(_records(folder))
    data = path.read_bytes()
    end = frame.offset + frame.size
    path.write_bytes(data[:end] + data[frame.offset : end] + data[end:])


def _taken_out(folder: Path, chance: Random) -> None:
    path, frame = chance.choice(_records(folder))
    data = path.read_bytes()
    path.write_bytes(data[: frame.offset] + data[frame.offset + frame.size :])


def _spliced(folder: Path, chance: Random) -> None:
    one, other = chance.sample(segments(folder), 2)
    data = other.read_bytes()
    at = chance.randrange(min(len(data), one.stat().st_size))
    _put(one, at, data[at : at + 4096])


def _missing(folder: Path, chance: Random) -> None:
    chance.choice(segments(folder)).unlink()


def _twice(folder: Path, chance: Random) -> None:
    """One segment under the name of another as well."""
    one, other = chance.sample(segments(folder), 2)
    shutil.copy(one, other)


def _renamed(folder: Path, chance: Random) -> None:
    path = segments(folder)[-1]
    path.rename(path.with_name("00000077.seg"))


DAMAGES: Final[dict[str, Damage]] = {
    **{f"a flipped bit in the header of a {kind.name}": _flip(kind, "header") for kind in list(Type)[:6]},
    **{
        f"a flipped bit in the body of a {kind.name}": _flip(kind, "body")
        for kind in (Type.RECORD, Type.CELL, Type.PAGE, Type.CHECKPOINT)
    },
    "a file that was cut": _cut,
    "zeroed blocks": _zeroed,
    "bytes that something else wrote": _scribbled,
    "two records that were swapped": _swapped,
    "a record twice": _doubled,
    "a record that was taken out": _taken_out,
    "a piece of another segment": _spliced,
    "a segment that is gone": _missing,
    "a segment in the place of another": _twice,
    "a segment under another name": _renamed,
}


class Written(NamedTuple):
    """A record as it was written: where it and its cells lie, whose it is."""

    uid: bytes
    seq: int
    hash: bytes
    previous: bytes
    kind: int
    pieces: tuple[tuple[str, int, bytes], ...]
    """File, offset and bytes (but for the padding) of its frame and its cells' frames."""

    def kept(self, folder: Path) -> bool:
        """Whether a salvage has to keep it: its frame is still where it was, and in the store's own chain its cells are
        as well. (A segment under another name is the same segment.)"""
        needed = self.pieces if self.uid == STORE_UID else self.pieces[:1]
        return all(_reads(folder, name, offset, len(data)) == data for name, offset, data in needed)

    def holes(self, folder: Path) -> int:
        """How many of its cells are not where they were."""
        return sum(_reads(folder, name, offset, len(data)) != data for name, offset, data in self.pieces[1:])


def _reads(folder: Path, name: str, offset: int, length: int) -> bytes:
    own = int(name[:8])
    for path in sorted((folder / "log").glob("*.seg"), key=lambda path: path.name != name):
        data = path.read_bytes()
        first = parse(data, 0, own)
        if (path.name == name and (first is not None or _owner(data) is None)) or (
            path.name != name and first is not None and first.type == Type.SEGMENT
        ):
            return data[offset : offset + length]
    return b""


def _owner(data: bytes) -> int | None:
    """The segment that a sound first frame says a file is."""
    number = int.from_bytes(data[20:24], "little")
    found = parse(data, 0, number)
    return number if found is not None and found.type == Type.SEGMENT else None


def written(folder: Path) -> list[Written]:
    """All records of a sound log, in order."""
    found: list[Written] = []
    pieces: list[tuple[str, int, bytes]] = []
    for path, frame in frames(folder):
        data = path.read_bytes()
        piece = (path.name, frame.offset, data[frame.offset : frame.body_offset + frame.body_length])
        if frame.type == Type.RECORD:
            header, _ = record_head(frame.head)
            pieces = [piece]
            found.append(Written(header.uid, header.seq, header.hash, header.previous, header.kind, ()))
        elif frame.type == Type.CELL:
            pieces.append(piece)
        else:
            continue
        found[-1] = found[-1]._replace(pieces=tuple(pieces))
    return found


def sound_chains(records: list[Written], folder: Path) -> dict[bytes, list[bytes]]:
    """What a salvage has to keep: the hashes of each chain, as far as it and its parents are intact."""
    kept: dict[bytes, list[bytes]] = {}
    ended: set[bytes] = set()
    hashes: set[bytes] = set()
    for each in records:
        if each.uid in ended:
            continue
        orphan = each.kind == Kind.FORKED and each.previous not in hashes
        if orphan or not each.kept(folder):
            ended.add(each.uid)
            continue
        kept.setdefault(each.uid, []).append(each.hash)
        hashes.add(each.hash)
    return kept


def state_of(folder: Path) -> Iterator[tuple[str, int, int, str]]:
    """Every file and folder, with its times and what it holds."""
    for path in sorted([folder, *folder.rglob("*")]):
        found = path.stat()
        content = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        yield str(path), found.st_mtime_ns, found.st_ctime_ns, content
