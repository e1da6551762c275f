"""The proof of the proofs: the crash suites, run without the protection that they are about, must fail.

Each test takes one protection out and expects the suite's own assertion to fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dataspace.drafts import read_deeds
from dataspace.log.scan import Trail
from keeve.testing.crashes import CrashFiles
from keeve.testing.disk import Mode
from snapshots.pages import decode_tree
from tests.crash.crash_suites import dies, two_owners
from tests.crash.crash_world import Reference, SlowFiles, under_load
from tests.vat.hosts import without_embargo
from vat.heap import restore
from vat.heap.operations import follow
from vat.heap.refs import Promise, Ref

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(tmp_path_factory.mktemp("reference") / "store")


def test_without_syncs_a_power_cut_loses_what_was_acknowledged(tmp_path: Path, reference: Reference) -> None:
    """Invariant 45: fsync."""
    for at in (40, 80, 120):
        with pytest.raises(AssertionError, match=r"is lost|cannot be opened"):
            dies(tmp_path / "case", CrashFiles(at, syncs=False), reference, (Mode.NOTHING, 1))
        dies(tmp_path / "case", CrashFiles(at), reference, (Mode.NOTHING, 1))


def test_without_the_embargo_the_world_sees_what_is_not_in_the_log(
    tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 45: the embargo."""
    under_load(monkeypatch)
    syncs = [at for at, call in enumerate(reference.calls, 1) if call == "sync"]
    for at in syncs[4::6]:
        dies(tmp_path / "case", SlowFiles(at), reference)

    without_embargo(monkeypatch)
    noticed = 0
    for at in syncs[4::6]:
        try:
            dies(tmp_path / "case", SlowFiles(at), reference)
        except AssertionError:
            noticed += 1
    assert noticed


def test_without_the_chain_check_two_owners_make_a_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: the chain check, in recovery and in restore."""
    admit = Trail._admit

    def admits(self: Trail, header: Any, hash: bytes) -> str:
        self.heads[header.uid] = (header.seq - 1, header.previous)
        return admit(self, header, hash)

    def replay(lineage: Any, heap: Any, memory: Any, snapshot: int, hash: bytes, upto: int, passed_over: Any) -> Any:
        for seq in range(snapshot + 1, upto + 1):
            stored = lineage.at(seq)
            deeds = read_deeds(stored.body().deeds, ref=Ref, promise=Promise, tree=decode_tree)
            follow(heap, stored.header.kind, deeds.operations, stored.header.time)
        return restore.Restored(heap, memory, upto, hash, snapshot, upto - snapshot, passed_over)

    monkeypatch.setattr(Trail, "_admit", admits)
    two_owners(tmp_path / "restore alone")
    monkeypatch.setattr(restore, "_replay", replay)
    with pytest.raises(AssertionError, match="no host has had"):
        two_owners(tmp_path / "neither")
