"""Worlds whose log is signed, and logs that were changed: for tests of checkpoints."""

from __future__ import annotations

from worlds import World

from dataspace.checkpoints.checkpoints import Checkpoints
from dataspace.facts import fact
from dataspace.log.memory import MemoryLog
from dataspace.proofs.merkle import Tree, leaf_hash
from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.signers import SigningKey

KEY = SigningKey.of_seed(bytes(32))
OTHER = SigningKey.of_seed(bytes([1]) * 32)


def world(turns: int = 3, log: MemoryLog | None = None) -> World:
    made = World(log=log)
    made.spawn("ada")
    for turn in range(turns):
        made.say("ada", fact("turn", turn))
    return made


def signing(world: World, key: SigningKey | None = KEY, former: SigningKey | None = None) -> Checkpoints:
    return Checkpoints(world.store, world.catalog, key, former=former, now=int, salts=world.random.randbytes)


def kept(checkpoints: Checkpoints, world: World) -> None:
    """Let what is pending be kept, as it is when the log is settled."""
    while (certificate := checkpoints.pending()) is not None:
        world.store.settle(certificate)
        checkpoints.kept(certificate)


def size_of(note: Note) -> int:
    return Checkpoint.parse(note.text).size


def tree(world: World) -> Tree:
    return Tree(leaf_hash(stored.header.hash) for stored in world.store.scan())


def changed(before: World, at: int) -> World:
    """Another history with the same beginning: the records up to position `at`, and others after them."""
    log = MemoryLog(before.log.log_id)
    log.records = before.log.records[:at]
    log.marks = before.log.marks[: at + 1]
    other = World(log=log)
    other.uids, other.random = dict(before.uids), before.random
    other.random.random()
    for stored in other.store.scan():
        other.heads[stored.header.uid] = (stored.header.seq, stored.header.hash)
    return other
