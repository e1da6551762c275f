"""Damage that concerns others: a fork is told of what is damaged in its parent, and nobody of what nobody needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve import Session, blocking
from tests.cli_runner import keeve


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The second turn of `parent` is damaged: `early` was forked before it, `late` after it, and `later` from that."""
    folder = tmp_path / "data"
    with blocking.open_host(folder) as host:
        parent = host.spawn(Session, "parent")
        parent.turn("before")
        parent.fork(into="early")
        parent.turn("the damage is here")
        late = parent.fork(into="late")
        late.turn("on")
        late.fork(into="later")
    path = folder / "log" / "00000001.seg"
    data = bytearray(path.read_bytes())
    data[data.index(b"the damage is here")] ^= 1
    path.write_bytes(data)
    (folder / "catalog.sqlite").unlink()
    return folder


def test_damage_in_the_past_of_a_fork_is_told_of_the_fork(store: Path) -> None:
    verified = keeve("verify", "--store", store)
    assert "which is in the past of late, later as well" in verified.out
    [touched] = keeve("verify", "--store", store, "--json").json["integrity"]["sessions"]
    assert (touched["session"], touched["forks"]) == ("parent", ["late", "later"])
    seen = keeve("doctor", "--store", store).out
    assert "that is in the past of late, later as well" in seen
    assert "keeve fork parent --at" in seen
    for told in (verified.out, seen):
        assert "cell 0 is not what was written" in told


def test_of_a_deleted_session_damage_is_told_for_as_long_as_a_fork_has_it(store: Path) -> None:
    assert keeve("delete", "parent", "--store", store).code == 0
    seen = keeve("doctor", "--store", store)
    assert seen.code == 1
    assert "keeve fork late --at" in seen.out
    for fork in ("late", "later"):
        assert keeve("delete", fork, "--store", store).code == 0
    seen = keeve("doctor", "--store", store)
    assert (seen.code, "keeve gc takes it out" in seen.out) == (0, True)
    assert keeve("gc", "--store", store).code == 0
    assert keeve("verify", "--store", store).code == 0
    assert "damaged" not in keeve("doctor", "--store", store).out
    assert "before" in keeve("show", "early", "--store", store).out
