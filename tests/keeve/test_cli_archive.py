"""`keeve archive`: what goes, what is said of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from actors.session import Session
from keeve.cli.output import Output
from keeve.cli.progress import OFTEN, telling, written
from tests.cli_runner import keeve
from tests.cli_worlds import asking_devices, leave_a_turn_waiting, leave_asking, leave_promises
from tests.keeve.canaries import LONG, found
from tests.served_stores import asked, served_store
from vat.host import basing

SAID = "CANARYSAID"


def talked(store: Path, *ids: str) -> None:
    for id in ids:
        assert keeve("chat", id, "--store", store, input=f"{SAID} {id}{LONG}\nand on{LONG}{LONG}\n").code == 0


def test_what_idle_sessions_have_said_goes_and_comes_back(tmp_path: Path) -> None:
    store, cold = tmp_path / "store", tmp_path / "cold"
    talked(store, "s1", "s2", "s3")
    told = keeve("archive", "--into", cold, "--idle", "--store", store, "--json").json
    assert (told["folder"], told["segments"], told["idle"], told["whole"]) == (str(cold), 1, 3, [])
    assert told["pieces"] >= 12
    assert found(store / "log", SAID) == []
    assert f"{SAID} s1" in keeve("show", "s1", "--store", store).out
    assert "archived: " in keeve("verify", "--store", store).out
    cold.rename(tmp_path / "elsewhere")
    said = keeve("show", "s1", "--store", store)
    assert said.code == 1
    assert f"is not in {cold}" in said.err
    assert "keeve archive --back --from" in said.err
    assert said.out.startswith("s1\n")  # what is here is shown
    signs = {sign["of"]: sign for sign in keeve("doctor", "--store", store, "--json").json["signs"]}
    assert signs["archive"]["state"] == "warn"
    assert signs["archive"]["seen"].startswith(f"{told['pieces']} of {told['pieces']} pieces of content that were arch")
    assert f"are not in {cold}" in signs["archive"]["seen"]
    assert keeve("log", "(turn . _)", "--store", store).code == 1  # each in its place
    named = {"KEEVE_ARCHIVES": str(tmp_path / "elsewhere")}
    assert f"{SAID} s1" in keeve("show", "s1", "--store", store, env=named).out
    assert keeve("archive", "--back", "--store", store, env={"KEEVE_ARCHIVES": str(store)}).code == 2
    assert keeve("ls", "--store", store).code == 0
    verified = keeve("verify", "--store", store, "--json")
    assert (verified.code, verified.json["counts"]["away"]) == (0, told["pieces"])
    assert keeve("archive", "--back", "--store", store).code == 1
    back = keeve("archive", "--back", "--from", tmp_path / "elsewhere", "--store", store)
    assert back.out == f"{told['pieces']} pieces of content came back to 1 segment\n"
    assert f"{SAID} s1" in keeve("show", "s1", "--store", store).out


def test_of_a_backup_the_doctor_says_what_is_away_and_where_it_went(tmp_path: Path) -> None:
    store, copy, cold = tmp_path / "store", tmp_path / "copy", tmp_path / "cold"
    talked(store, "s1", "s2", "s3")
    pieces = keeve("archive", "--into", cold, "--idle", "--store", store, "--json").json["pieces"]
    assert keeve("backup", store, copy).code == 0

    def sign(**environ: str) -> dict[str, str] | None:
        told = keeve("doctor", "--store", copy, "--json", env=environ).json["signs"]
        return next((each for each in told if each["of"] == "archive"), None)

    for _ in range(2):  # whether it is in its place or not, who reads the copy is not given it
        away = sign()
        assert away is not None
        assert away["state"] == "warn"
        assert away["seen"].startswith(f"{pieces} of {pieces} pieces of content were archived into {cold}, where this")
        assert "KEEVE_ARCHIVES" in away["remedy"]
        if cold.exists():
            cold.rename(tmp_path / "elsewhere")
    there = sign(KEEVE_ARCHIVES=str(tmp_path / "elsewhere"))
    assert there is not None
    assert there["state"] == "ok"
    assert keeve("archive", "--back", "--from", tmp_path / "elsewhere", "--store", copy).code == 0
    assert sign() is None or sign()["state"] == "ok"  # type: ignore[index]  # it is there
    talked(tmp_path / "never", "s1")
    assert "archive" not in keeve("doctor", "--store", tmp_path / "never").out


def test_what_is_erased_later_goes_from_the_archive_with_gc(tmp_path: Path) -> None:
    store, cold = tmp_path / "store", tmp_path / "cold"
    talked(store, "s1", "s2", "s3")
    assert keeve("archive", "--into", cold, "--idle", "--store", store).code == 0
    cold.rename(tmp_path / "elsewhere")
    assert keeve("delete", "s1", "--store", store).code == 0
    assert keeve("gc", "--store", store).code == 0
    (tmp_path / "elsewhere").rename(cold)
    assert found(cold, f"{SAID} s1")
    assert keeve("gc", "--store", store).out.startswith("archives: ")
    assert found(cold, f"{SAID} s1") == []
    assert found(cold, f"{SAID} s2")


def test_a_salvage_takes_content_from_the_archive_or_says_that_it_is_away(tmp_path: Path) -> None:
    store, cold = tmp_path / "store", tmp_path / "cold"
    talked(store, "s1", "s2", "s3")
    pieces = keeve("archive", "--into", cold, "--idle", "--store", store, "--json").json["pieces"]
    told = keeve("salvage", store, tmp_path / "saved", "--json").json
    assert (told["whole"], told["away"]) == (True, 0)
    assert f"{SAID} s1" in keeve("show", "s1", "--store", tmp_path / "saved").out
    cold.rename(tmp_path / "elsewhere")
    said = keeve("salvage", store, tmp_path / "again", "--json")
    assert (said.code, said.json["whole"], said.json["away"]) == (1, False, pieces)
    assert "[erased]" in keeve("show", "s1", "--store", tmp_path / "again").out


def test_what_cannot_be_archived_is_told_with_its_remedy(tmp_path: Path) -> None:
    """Invariant 43."""
    store, cold = tmp_path / "store", tmp_path / "cold"
    talked(store, "s1")
    for words in ((), ("--into", cold, "--back"), ("--back", "--keep", "1"), ("--into", cold, "--from", cold)):
        said = keeve("archive", *words, "--store", store)
        assert said.code == 2
        assert "either --into FOLDER" in said.err
    cold.mkdir()
    (cold / "letters").write_text("dear")
    said = keeve("archive", "--into", cold, "--idle", "--store", store)
    assert said.code == 2
    assert "it holds 'letters'; name another folder" in said.err
    said = keeve("archive", "--back", "--store", store)
    assert said.code == 2
    assert keeve("archive", "--into", cold, "--store", tmp_path / "nothing").code == 2


async def test_how_far_it_is_is_told_while_it_goes_on_and_cleared_at_its_end(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    lines: list[str] = []

    class Listening(Output):
        def passing(self, text: str) -> None:
            lines.append(text)

    async with telling(Listening(), written(tmp_path, "archived")):
        await trio.sleep(OFTEN / 2)
        (tmp_path / "piece").write_bytes(bytes(range(256)) * 64)
        await trio.sleep(OFTEN)
    assert lines == ["archived: 0 bytes", "archived: 16.0 KiB", ""]


def test_what_records_did_goes_when_that_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(basing, "WORTH", 1)
    store, cold = tmp_path / "store", tmp_path / "cold"
    talked(store, "s1")
    told = keeve("archive", "--into", cold, "--records", "--store", store)
    assert "what these did, but for what they state; 1 session wrote the whole heap for that" in told.out
    cold.rename(tmp_path / "elsewhere")
    assert f"{SAID} s1" in keeve("show", "s1", "--store", store).out
    assert "record, what it did archived" in keeve("dump", "--store", store, "--records").out
    then = keeve("state", "s1", "--at", "2", "--store", store)
    assert (then.code, f"is not in {cold}" in then.err) == (1, True)
    assert keeve("fork", "s1", "--at", "2", "--store", store).code == 1
    assert keeve("chat", "s1", "--store", store, input="going on\n").code == 0
    assert keeve("verify", "--store", store).code == 0
    assert keeve("archive", "--back", "--records", "--store", store).code == 2


@pytest.mark.parametrize("how", [(), ("--records",)])
def test_a_session_that_waits_for_a_person_or_a_tool_is_not_idle(tmp_path: Path, how: tuple[str, ...]) -> None:
    """And goes on without the archive, when the word comes."""
    store, cold = tmp_path / "store", tmp_path / "cold"
    trio.run(leave_asking, store, "asks")
    trio.run(leave_a_turn_waiting, store, "stuck")
    talked(store, "idle")
    told = keeve("archive", "--into", cold, "--idle", *how, "--store", store, "--json").json
    assert (told["idle"], told["waiting"], told["whole"]) == (1, ["asks", "stuck"], [])
    cold.rename(tmp_path / "elsewhere")
    for id, ours in (("asks", "send it"), ("stuck", "send it")):
        assert ours in keeve("show", id, "--store", store).out
    assert keeve("show", "idle", "--store", store).code == 1
    [call] = keeve("effects", "--session", "asks", "--store", store, "--json").json["approvals"]
    assert keeve("refuse", "asks", call["id"], "--store", store).code == 0
    (tmp_path / "elsewhere").rename(cold)
    said = keeve("archive", "--into", cold, "--idle", "--keep", "0", "--store", store)
    assert "session stuck is not idle and keeps what it needs" in said.out
    assert "keeve effects --session stuck" in said.out


def test_what_a_session_that_is_not_idle_waits_for_is_told(tmp_path: Path) -> None:
    """Also where it is another session, or an actor of its own, and no method waits."""
    store = tmp_path / "store"
    trio.run(leave_promises, store)
    talked(store, "idle")
    told = keeve("archive", "--into", tmp_path / "cold", "--idle", "--store", store, "--json").json
    assert (told["waiting"], told["whole"]) == (["asks", "owes"], ["w1"])
    for session, what in (("asks", "session w1"), ("owes", "actor 1, which owes it")):
        said = keeve("effects", "--session", session, "--store", store, "--json").json
        assert [source["what"] for promise in said["promises"] for source in promise["waits_for"]] == [what]


async def test_a_server_keeps_what_sessions_need_that_wait(tmp_path: Path) -> None:
    store = tmp_path / "store"
    async with served_store(store, devices=asking_devices()) as there:
        s = await there.host.spawn(Session, "asks", tools=asking_devices()["tools"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(s.turn, "send it")
            async for _ in there.host.observe("(approval-wanted . _)"):
                break
            await (await there.host.spawn(Session, "other")).status()
            told = await asked("archive", "--into", tmp_path / "cold", "--idle", "--store", store, "--json")
            assert (told.json["waiting"], told.json["idle"]) == (["asks"], 1)
            nursery.cancel_scope.cancel()
