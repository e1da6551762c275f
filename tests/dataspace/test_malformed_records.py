"""Records that are sound by every hash and say what no session says: whose fault they are, and nobody else's."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from logmaker import A, B, LogMaker, closed_log, judged
from worlds import World, places

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.connections import connect
from dataspace.catalog.peeking import peek
from dataspace.facts import fact
from dataspace.log.frames import SEGMENT_SIZE, Type, frame
from dataspace.log.recovery import judge
from dataspace.log.verdicts import Evidence, Outcome, SessionDamaged
from dataspace.log.verify import Verification
from dataspace.observe.dataspace import Dataspace
from dataspace.records import MOST, SALT, STORE_UID, ZERO_HASH, Kind, Record
from dataspace.values import CelledList, CellRef, Symbol
from dataspace.values.encoding import BadEncoding, decode, encode

GOOD: Any = [None, [], b"", 0]
MESSAGES: list[Any] = [None, 5, [], {}, {"id": 1, "type": "t"}, {"id": "a"}, {"id": "a", "type": []}, Symbol("a")]
PARENTS: list[Any] = [1, "p", {"parent": 1}, {"parent": A, "seq": "1"}, {"parent": A, "seq": -1}, {"parent": A}]
DEEDS: list[Any] = [
    1,
    [],
    [1, 2, 3],
    [None, 1, b"", 0],
    [None, [], b"x", 0],
    [None, [], b"", -1],
    [None, [], b"", 1 << 63],
]
FACTS: list[Any] = [
    1,
    [],
    [1, [], b""],
    [[5], [], b""],
    [[[]], [], b""],
    [[[0, "turn"]], [], b""],
    [[[0, 5, [], {}]], [], b""],
    [[["x", "turn", [], {}]], [], b""],
    [[[0, "not a word", [], {}]], [], b""],
    [[[0, "\0", [], {}]], [], b""],
    [[[0, "turn", [], {"not a word": 1}]], [], b""],
    [[[0, "turn", 5, {}]], [], b""],
    [[[0, "turn", [], []]], [], b""],
    [[["x", 1, 2]], [], b""],
    [[[0, 1, -2]], [], b""],
    [[[0, 1, 1 << 63]], [], b""],
    [[[0, "turn", [CellRef(2, 5)], {}]], [], b""],
    [[[0, "turn", CelledList([CellRef((1 << 64) - 1, 0)]), {}]], [], b""],
]


def hostile(world: World, kind: Kind = Kind.CRANK, deeds: Any = GOOD, facts: Any = None) -> None:
    """Append a record of session `bad` with these parts."""
    uid = world.uids.setdefault("bad", b"bad" * 5 + b"!")
    seq, previous = world.heads.get(uid, (0, ZERO_HASH))
    said = b"" if facts is None else encode(facts)
    world.append(Record(uid, seq + 1, kind, 0, previous, bytes(2 * SALT), encode(deeds), said))


@pytest.mark.parametrize(
    ("kind", "deeds", "facts"),
    [
        *[(Kind.SPAWN, [message, [], b"", 0], None) for message in MESSAGES],
        *[(Kind.FORKED, [{"id": "a", "type": "t", "parent": parent}, [], b"", 0], None) for parent in PARENTS],
        *[(Kind.SNAPSHOT, [message, [], b"", 0], None) for message in [*MESSAGES, {"seq": "x"}, {"seq": 9}]],
        *[(Kind.DELETE, [message, [], b"", 0], None) for message in MESSAGES],
        *[(Kind.CRANK, deeds, None) for deeds in DEEDS],
        *[(Kind.CRANK, GOOD, facts) for facts in FACTS],
    ],
)
def test_a_malformed_session_stops_no_other(kind: Kind, deeds: Any, facts: Any) -> None:
    """Invariant 23: the others are listed, read and written to, at once and after a start."""
    world = World()
    world.spawn("ada")
    world.say("ada", fact("turn", 1))
    world.deaf = True
    hostile(world, kind, deeds, facts)
    world.deaf = False
    world.say("ada", fact("turn", 2))
    for catalog in (world.catalog, Catalog(None, world.store)):
        space = Dataspace(world.store, catalog)
        catalog.flush()
        assert [row.uid for row in catalog.sessions(deleted=True) if row.id == "ada"] == [world.uids["ada"]]
        assert catalog.by_uid(world.uids["bad"]) is not None
        assert len(catalog.lineage(world.uids["bad"])) <= 2
        assert [event.value.fields for event in space.query("(turn _)", session="ada")] == [(1,), (2,)]
        assert [held.fact.fields for held in space.facts("(turn _)", session="ada")] == [(1,), (2,)]


@pytest.mark.parametrize("facts", FACTS)
def test_what_a_malformed_record_says_is_an_error_by_name(facts: Any) -> None:
    world = World()
    world.deaf = True
    hostile(world, facts=facts)
    with pytest.raises(SessionDamaged, match="seq 1"):
        places(list(Dataspace(world.store, Catalog(None, world.store)).query("(turn . _)")))


def test_sessions_that_name_each_other_as_parents_are_read_all_the_same() -> None:
    world = World()
    world.deaf = True
    one, other = b"one" * 5 + b"!", b"other" * 3 + b"!"
    for uid, parent in ((one, other), (other, one)):
        message = {"id": uid.hex(), "type": "t", "parent": parent, "seq": 4, "hash": ZERO_HASH}
        deeds = encode([message, [], b"", 0])
        world.append(Record(uid, 5, Kind.FORKED, 0, ZERO_HASH, bytes(2 * SALT), deeds, b""))
    catalog = Catalog(None, world.store)
    assert {leg.uid for leg in catalog.lineage(one)} == {one, other}
    assert catalog.position(one, 2) is None


def test_a_dict_with_a_key_that_is_no_string_is_no_value() -> None:
    with pytest.raises(BadEncoding, match="key"):
        decode(b"\x81\xc4\x01k\x01")


@pytest.mark.parametrize("change", [{"seq": MOST + 1, "kind": Kind.FORKED}, {"epoch": (1 << 32) - 1}])
def test_a_record_after_which_nothing_could_come_is_corrupt(change: dict[str, int]) -> None:
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    log.epoch = change.get("epoch", 1)
    log.batch(log.record(A, kind=change.get("kind"), after=(change.get("seq", 1) - 1, ZERO_HASH)))
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("length", range(49, 57))
def test_a_commit_with_a_head_of_another_length_is_none(length: int) -> None:
    log = closed_log()
    log.data += frame(Type.COMMIT, bytes(length), b"x" * (56 - length), 1, len(log.data))[0]
    mark = judged(closed_log().data).end._replace(offset=len(log.data))
    for evidence in (Evidence(), Evidence(start=mark)):
        assert judge(log.segments(), evidence).end.position == log.position


@pytest.mark.parametrize("head", [b"", bytes(39), bytes(41)])
def test_verification_goes_on_after_a_checkpoint_with_a_head_of_another_length(head: bytes) -> None:
    log = closed_log()
    log.batch(extra=[(Type.CHECKPOINT, head, b"note")])
    log.batch(log.record(B, "after"))
    verification = Verification(log.segments(), Evidence())
    assert [found.outcome for found in verification.findings()] == [Outcome.CORRUPT]
    assert verification.counts.records == len(log.records)


def test_verification_names_a_fork_whose_parent_is_no_uid() -> None:
    log = closed_log()
    log.batch(log.record(b"c" * 16, kind=Kind.FORKED, after=(5, bytes(32)), message={"parent": [1]}))
    verification = Verification(log.segments(), Evidence())
    assert list(verification.findings()) == []
    assert verification.counts.orphans == 1


@pytest.mark.parametrize("column", ["log_id", "position", "hash", "segment", "offset", "committed"])
@pytest.mark.parametrize("value", ["text", 1.5, -1, 1 << 62, b"bytes", None])
def test_a_catalog_that_says_anything_of_itself_is_no_evidence_that_misleads(
    tmp_path: Any, column: str, value: Any
) -> None:
    """Invariant 21: what is derived costs time at most."""
    path = tmp_path / "catalog.sqlite"
    world = World(path)
    world.spawn("ada")
    world.catalog.close()
    db = connect(path, 100)
    db.execute(f"UPDATE about SET {column} = ?", (value,))
    db.close()
    log = closed_log()
    found = peek(path)
    if found is not None:
        assert judge(log.segments(), Evidence(start=found.mark)) == judge(log.segments())
        found.close()


def test_a_record_frame_with_a_head_of_another_length_is_corrupt() -> None:
    log = LogMaker()
    log.forge([(Type.RECORD, struct.pack("<Q", 1), b"")], 1, 1)
    assert judged(log.data).outcome is Outcome.CORRUPT
    assert judged(log.data).offset == SEGMENT_SIZE
