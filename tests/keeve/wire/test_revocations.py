"""Revocations: heeded at once by whoever reads, and nothing is let in where they cannot be read."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from keeve.wire.revocations import BadRevocations, NoTokenId, Revocations

ONE, OTHER = "0" * 31 + "1", "0" * 31 + "2"


def test_what_one_process_revokes_another_heeds(tmp_path: Path) -> None:
    reading, writing = Revocations(tmp_path), Revocations(tmp_path)
    assert reading.ids == frozenset()
    assert writing.revoke(ONE)
    assert reading.ids == {ONE}
    assert writing.revoke(OTHER)
    assert reading.ids == {ONE, OTHER}


def test_revoking_again_adds_nothing(tmp_path: Path) -> None:
    revocations = Revocations(tmp_path)
    assert [revocations.revoke(ONE), revocations.revoke(ONE)] == [True, False]
    assert revocations.path.read_text() == f"{ONE}\n"


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    revocations = Revocations(tmp_path)
    revocations.revoke(ONE)
    assert stat.S_IMODE(revocations.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["half an id\n", f"{ONE}\n\n{OTHER}\n", "ü\n", ONE[:-1] + "\n"])
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, content: str) -> None:
    revocations = Revocations(tmp_path)
    revocations.path.write_text(content)
    with pytest.raises(BadRevocations):
        revocations.ids  # noqa: B018  # reading it is what raises


def test_a_file_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    revocations = Revocations(tmp_path)
    revocations.path.mkdir()
    with pytest.raises(BadRevocations):
        revocations.ids  # noqa: B018  # reading it is what raises


@pytest.mark.parametrize("id", ["", "x" * 32, ONE + "\n" + OTHER, 7])
def test_only_the_id_of_a_token_is_revoked(tmp_path: Path, id: str) -> None:
    with pytest.raises(NoTokenId):
        Revocations(tmp_path).revoke(id)
    assert not Revocations(tmp_path).path.exists()
