"""What is away, erased, deleted or damaged is called that by whoever looks, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.cli_runner import keeve
from tests.cli_worlds import leave_asking
from vat.heap import reaching

WORDS = {
    "away": "archive",
    "erased": "erased",
    "deleted": "deleted",
    "damaged": "is not what was written",
}
"""By which each is known: nobody says one of it that is another."""


def away(store: Path) -> None:
    """In an archive of a version that took waiting sessions for idle, which is not in its place."""
    cold = store.with_name("cold")
    assert keeve("archive", "--into", cold, "--idle", "--store", store).code == 0
    cold.rename(store.with_name("elsewhere"))


def erased(store: Path) -> None:
    assert keeve("erase", "asks", "--turn", "1", "--force", "--store", store).code == 0


def deleted(store: Path) -> None:
    assert keeve("delete", "asks", "--force", "--store", store).code == 0


def damaged(store: Path) -> None:
    segment = store / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[data.index(b"call_1")] ^= 1
    segment.write_bytes(data)
    (store / "catalog.sqlite").unlink()  # so that all of the log is looked at


LOOKS = {
    "doctor": ("doctor",),
    "verify": ("verify",),
    "effects": ("effects",),
    "effects of one": ("effects", "--session", "asks"),
    "show": ("show", "asks"),
    "log": ("log", "(_ . _)", "--session", "asks"),
    "state": ("state", "asks"),
    "messages": ("messages", "asks"),
    "salvage": ("salvage",),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("harm", [away, erased, deleted, damaged])
def test_nobody_calls_it_what_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], look: str
) -> None:
    monkeypatch.setattr(reaching, "is_waiting", lambda heap: False)
    store = tmp_path / "data"
    trio.run(leave_asking, store, "asks")
    harm(store)
    where = (store, tmp_path / "new") if look == "salvage" else ("--store", store)
    said = keeve(*LOOKS[look], *where)
    told = f"{said.out}\n{said.err}"
    assert "Traceback" not in told
    if harm is not damaged:
        assert WORDS["damaged"] not in told
        assert "is damaged" not in told
        assert "cannot be read" not in told
        assert look not in ("doctor", "verify") or said.code == 0
    elif look in ("doctor", "verify", "salvage"):
        assert said.code == 1
        assert WORDS["damaged"] in told
    if harm is not away:
        assert "not in its place" not in told
        assert "is not in " not in told
    elif look in ("doctor", "verify", "effects", "show", "state", "messages"):
        assert WORDS["away"] in told
