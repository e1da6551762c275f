"""What is left of records whose deeds are in an archive: how it is read, what it proves, and what is wrong with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dataspace.drafts import Draft
from dataspace.log import archiving, seals
from dataspace.log.archives import Archived
from dataspace.log.findings import Finding
from dataspace.log.frames import FORMAT, PACKED, REST_SIZE, RESTED, record_head
from dataspace.log.packed import SegmentFile
from dataspace.log.recovery import judge
from dataspace.log.rests import facts_of
from dataspace.log.rewriting import Rewriter
from dataspace.log.salvaging import Salvage
from dataspace.log.segments import SegmentStore
from dataspace.log.store import BodyErased, Erasure
from dataspace.log.survey import Survey
from dataspace.log.verdicts import Outcome, SegmentBytes, SessionDamaged
from dataspace.log.verify import Verification
from dataspace.records import ZERO_HASH, Body, Kind, Record, Rest
from dataspace.values import FrozenDict
from tests.dataspace.segment_folders import opened

UID = b"s" * 16
KEY = bytes(range(32))


def written(folder: Path, **options: Any) -> tuple[SegmentStore, list[Record]]:
    """A store with four records in a sealed segment, each of which has a cell, and states it."""
    store = opened(folder / "store", **options)
    records: list[Record] = []
    for n in range(1, 5):
        draft = Draft(UID, n, Kind.SPAWN if n == 1 else Kind.CRANK, n)
        cell = draft.cell(f"said {n} " * 20)
        draft.message = FrozenDict({"method": "say", "note": f"a deed {n} " * 12})
        draft.pending = n
        draft.stated(draft.operation(7, 0), "said", [n, cell], FrozenDict())
        records.append(draft.seal(records[-1].hash if records else ZERO_HASH, os.urandom))
        store.append(records[-1:])
    store.seal(0)
    return store, records


def keep(uid: bytes, seq: int, number: int) -> bool:
    return True


def hollow(store: SegmentStore, folder: Path) -> int:
    """Have the deeds of all but the second record go."""
    return store.archive(1, folder / "archive", keep, leaves=lambda uid, seq: seq != 2).records


def findings(store: SegmentStore) -> list[Finding]:
    with store.still() as (segments, evidence):
        return list(Verification(segments, evidence, opener=store.opener, archives=store.archives.found).findings())


def away(folder: Path) -> None:
    (folder / "archive").rename(folder / "elsewhere")


@pytest.fixture(params=[None, KEY], ids=["plain", "sealed"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[SegmentStore, list[Record]]]:
    made = written(tmp_path, key=request.param)
    yield made
    made[0].close()


def test_the_deeds_of_cranks_go_and_what_they_state_stays(
    store: tuple[SegmentStore, list[Record]], tmp_path: Path
) -> None:
    """Invariant 22: Deeds that are elsewhere are an error that names the place; facts and cells need nothing of it."""
    log, records = store
    assert hollow(log, tmp_path) == 2  # the first is no crank's
    third = log.read(records[2].address)
    assert third.body() == Body(records[2].salts, records[2].deeds, records[2].facts)
    rest = third.rest()
    assert rest == Rest.of(third.body(), 3)
    assert rest is not None
    assert rest.digest == third.header.body_digest
    assert (log.archived(), findings(log)) == ((2, 0), [])
    log.archives.renew()
    away(tmp_path)
    with pytest.raises(Archived, match=f"position {records[2].position} was archived"):
        log.read(records[2].address).body()
    assert [facts_of(log.read(each.address)) for each in records] == [each.facts for each in records]
    assert log.read(records[2].address).cell(0) == "said 3 " * 20
    assert log.read(records[1].address).rest() is None
    assert findings(log) == []


def test_what_comes_back_is_what_went(store: tuple[SegmentStore, list[Record]], tmp_path: Path) -> None:
    log, records = store
    hollow(log, tmp_path)
    assert hollow(log, tmp_path) == 0
    assert log.archive(1, tmp_path / "archive", lambda *place: False).pieces == 3  # the first is no crank's
    held = log.read(records[2].address)
    assert log.bring_back(1) == 5
    shutil.rmtree(tmp_path / "archive")
    log.archives.renew()
    assert held.body().deeds == records[2].deeds  # who has met it as it was looks again
    assert held.rest() is None
    assert [log.read(each.address).body().deeds for each in records] == [each.deeds for each in records]
    assert (log.archived(), findings(log)) == ((0, 0), [])


def test_what_is_left_is_erased_with_its_record(store: tuple[SegmentStore, list[Record]], tmp_path: Path) -> None:
    """Invariant 26: Here, and in the archive."""
    log, records = store
    hollow(log, tmp_path)
    held = log.read(records[2].address)
    held._window = b""  # type: ignore[attr-defined]  # as of a record that is longer than what is read with its header
    log.erase([Erasure(records[2].address)])
    with pytest.raises(BodyErased):
        log.read(records[2].address).body()
    assert held.rest() is None  # who has met it as it was looks again: zeros are nothing that is left
    with pytest.raises(BodyErased):
        held.body()
    assert log.read(records[2].address).rest() is None
    assert log.bring_back(1) == 1
    copy = SegmentFile(tmp_path / "archive" / "00000001.seg", 1)
    assert b"a deed 3" not in copy.read(0, copy.length)
    copy.close()


@pytest.mark.parametrize("lost", [False, True], ids=["a byte", "all of it is zeros"])
def test_what_is_left_and_damaged_is_the_damage_of_its_session(tmp_path: Path, lost: bool) -> None:
    """Invariant 4: It is named, and bringing the record back mends it."""
    log, records = written(tmp_path)
    hollow(log, tmp_path)
    log.close()
    path = tmp_path / "store" / "log" / "00000001.seg"
    data = path.read_bytes()
    at = data.index(records[2].facts)
    end = at + 1
    if lost:
        at, end = at - len(Rest(ZERO_HASH, b"", 0, b"").encoded()) - REST_SIZE, at + len(records[2].facts)
    path.write_bytes(data[:at] + (b"\0" if lost else b"\xff") * (end - at) + data[end:])
    file = SegmentFile(path, 1)
    wrong = [each.wrong for each in Survey(file.read(0, file.length), 1).pieces() if each.wrong]
    file.close()
    assert wrong == ["what is left of its body is not what was written"]
    log = opened(tmp_path / "store")
    assert list(log.damaged) == [UID]
    with pytest.raises(SessionDamaged, match="what is left"):
        log.read(records[2].address).rest()
    assert [each.seq for each in findings(log)] == [3]
    log.bring_back(1)
    assert findings(log) == []
    log.close()
    log = opened(tmp_path / "store")
    assert not log.damaged
    log.close()


@pytest.mark.parametrize("cut", [False, True], ids=["other facts", "nothing of them"])
def test_other_facts_under_sound_checksums_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    """What somebody has changed in what is left of a record does not fit its header."""
    log, _ = written(tmp_path)
    real = archiving.going

    def forged(*arguments: Any) -> archiving.Going:
        found = real(*arguments)
        rests = {at: b"cut" if cut else rest.replace(b"said", b"sAid") for at, rest in found.rests.items()}
        return archiving.Going(found.frames, rests, found.firsts)

    monkeypatch.setattr("dataspace.log.sealed.going", forged)
    hollow(log, tmp_path)
    told = findings(log)
    assert [(each.seq, each.altered) for each in told] == [(3, True), (4, True)]
    assert ("is not what was written" if cut else "is not what the record's hash covers") in told[0].what
    log.close()


def test_a_version_that_knows_no_rests_refuses_a_log_with_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file says so in its first frame, which every version looks at; without them it is as it was."""
    monkeypatch.setattr(seals, "is_packed", lambda segment: False)
    log, _ = written(tmp_path)
    path = tmp_path / "store" / "log" / "00000001.seg"
    for act, form in ((lambda: hollow(log, tmp_path), RESTED), (lambda: log.bring_back(1), PACKED)):
        act()
        file = SegmentFile(path, 1)
        assert file.form == form > FORMAT
        file.close()
        assert judge([SegmentBytes(1, path.read_bytes())]).outcome is Outcome.NEWER  # as who knows nothing of packing
    log.close()


class Sink:
    """Segments in memory."""

    def __init__(self) -> None:
        self.data = b""

    def begin(self, segment: int) -> None:
        pass

    def write(self, data: bytes) -> None:
        self.data += data


@pytest.mark.parametrize("there", [True, False], ids=["with its archive", "without"])
def test_a_base_is_let_go_by_a_salvage_only_while_what_it_stands_for_is_there(tmp_path: Path, there: bool) -> None:
    log, records = written(tmp_path)
    draft = Draft(UID, 5, Kind.BASE, 5)
    draft.pages = [b"the whole heap" * 4]
    log.append([draft.seal(records[-1].hash, os.urandom)])
    log.seal(0)
    hollow(log, tmp_path)
    log.close()
    if not there:
        away(tmp_path)
    path = tmp_path / "store" / "log" / "00000002.seg"
    path.write_bytes(path.read_bytes().replace(b"the whole heap", b"the whole h3ap", 1))
    log = opened(tmp_path / "store")
    with log.still() as (segments, _):
        salvage = Salvage(segments, archives=log.archives.found)
        salvage.look()
        kept = [each for each in salvage.kept(lambda certificate: False) if record_head(each.head)[0].uid == UID]
    assert (len(kept), salvage.chains[UID].lost) == ((5, 0) if there else (4, 5))
    log.close()


def test_a_fork_lacks_in_a_salvage_what_its_parent_did_where_it_left(tmp_path: Path) -> None:
    """Neither what a base stood for in the parent later on, nor what the parent came to lack."""
    log, records = written(tmp_path)
    base = Draft(UID, 5, Kind.BASE, 5)
    base.pages = [b"the whole heap" * 4]
    log.append([base.seal(records[-1].hash, os.urandom)])
    for at in (2, 4):
        fork = Draft(bytes([at]) * 16, at + 1, Kind.FORKED, 6)
        fork.message = FrozenDict({"id": f"at {at}", "type": "", "parent": UID, "seq": at})
        log.append([fork.seal(records[at - 1].hash, os.urandom)])
    log.seal(0)
    hollow(log, tmp_path)
    away(tmp_path)
    log.archives.renew()
    with log.still() as (segments, _):
        salvage = Salvage(segments, archives=log.archives.found)
        salvage.look()
        assert len(list(salvage.kept(lambda certificate: False))) > 7
    assert [salvage.chains[uid].hollow for uid in (UID, b"\2" * 16, b"\4" * 16)] == [0, 0, 3]
    log.close()


@pytest.mark.parametrize("there", [True, False], ids=["with its archive", "without"])
def test_a_salvage_keeps_what_is_left(tmp_path: Path, there: bool) -> None:
    """Invariant 22: Facts are kept in any case, and deeds where the archive is in its place."""
    log, records = written(tmp_path)
    hollow(log, tmp_path)
    if not there:
        away(tmp_path)
        log.archives.renew()
    sink = Sink()
    with log.still() as (segments, _):
        salvage = Salvage(segments, archives=log.archives.found)
        salvage.look()
        rewriter = Rewriter(log.log_id, sink, 1 << 20)
        for kept in salvage.kept(lambda certificate: False):
            rewriter.add(kept)
        rewriter.end()
    assert (salvage.away, salvage.chains[UID].hollow) == ((0, 0) if there else (2, 3))
    log.close()
    new = tmp_path / "new"
    shutil.copytree(tmp_path / "store", new)
    for path in (new / "log").iterdir():
        path.unlink()
    for name in ("head", "archived"):
        (new / name).unlink(missing_ok=True)
    (new / "log" / "00000001.seg").write_bytes(sink.data)
    made = opened(new)
    assert (made.fault, dict(made.damaged), findings(made)) == (None, {}, [])
    found = [each for each in made.scan() if each.header.uid == UID]
    assert [facts_of(each) for each in found] == [each.facts for each in records]
    assert [each.header.hash for each in found] == [each.hash for each in records]
    if there:
        assert found[2].body().deeds == records[2].deeds
    else:
        with pytest.raises(BodyErased):
            found[2].body()
    made.close()
