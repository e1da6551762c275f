"""`keeve delete`, `keeve gc` and `keeve erase`: what they say is gone is in no file."""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve.errors import NothingToErase
from tests.cli_runner import keeve
from tests.keeve.canaries import LONG, Keeper, found, host_of

FIRST, SECOND = "CANARYONE", "CANARYTWO"


def talked(store: Path) -> None:
    """A conversation of two turns with an echo."""
    assert keeve("chat", "s1", "--store", store, input=f"{FIRST} is said\n{SECOND} is said\n").code == 0


def test_a_deleted_session_is_gone_from_the_files_after_gc(tmp_path: Path) -> None:
    talked(tmp_path)
    assert keeve("delete", "s1", "--store", tmp_path).out == "deleted s1\n"
    assert found(tmp_path, FIRST)
    said = keeve("gc", "--store", tmp_path)
    assert said.code == 0
    assert said.out.startswith("1 deleted session: ")
    assert found(tmp_path, FIRST, SECOND) == []
    assert keeve("gc", "--store", tmp_path).out == "nothing to do\n"
    assert keeve("verify", "--store", tmp_path).code == 0
    assert keeve("chat", "s1", "--store", tmp_path, input="again\n").code == 2


def test_a_turn_is_erased_and_the_conversation_goes_on(tmp_path: Path) -> None:
    talked(tmp_path)
    said = keeve("erase", "s1", "--turn", "1", "--store", tmp_path, "--json")
    assert said.code == 0
    assert said.json["erased"] > 1
    assert found(tmp_path, FIRST) == []
    assert keeve("chat", "s1", "--store", tmp_path, input="and on\n").code == 0
    shown = keeve("show", "s1", "--store", tmp_path, "--json").json
    assert len(shown["turns"]) == 3
    assert SECOND in str(shown)
    assert keeve("verify", "--store", tmp_path).code == 0


def test_what_cannot_be_erased_is_told_with_its_remedy(tmp_path: Path) -> None:
    """Invariant 43: A refusal to erase says what was wrong and what to do."""
    talked(tmp_path)
    for asked in ((), ("--turn", "1", "--seq", "2")):
        said = keeve("erase", "s1", *asked, "--store", tmp_path)
        assert said.code == 2
        assert "either --turn" in said.err
    said = keeve("erase", "s1", "--turn", "9", "--store", tmp_path)
    assert said.code == 2
    assert "keeve show" in said.err
    assert keeve("erase", "nobody", "--turn", "1", "--store", tmp_path).code == 2
    assert keeve("gc", "--store", tmp_path / "nothing").code == 2


async def test_of_a_session_that_states_no_turn_erasing_one_names_what_can_be_erased(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        keeper = await host.spawn(Keeper, "keeper")
        await keeper.keep(FIRST + LONG)
        with pytest.raises(NothingToErase, match=r"erase\('keeper', seq=\.\.\.\)"):
            await host.erase("keeper", turn=1)
        with pytest.raises(NothingToErase, match="look at its turns"):
            await host.erase("keeper", seq=1)
    said = keeve("erase", "keeper", "--turn", "1", "--store", tmp_path)
    assert said.code == 2
    assert "it has stated no turn, so erase what a record has brought, with --seq: keeve chain keeper tells" in said.err
    assert "\n2  " in keeve("chain", "keeper", "--store", tmp_path).out
    assert keeve("erase", "keeper", "--seq", "2", "--store", tmp_path).code == 0
    assert found(tmp_path, FIRST) == []
    talked(tmp_path)
    assert "--seq" not in keeve("erase", "s1", "--turn", "9", "--store", tmp_path).err


def test_with_json_it_is_told_what_went(tmp_path: Path) -> None:
    talked(tmp_path)
    keeve("delete", "s1", "--store", tmp_path)
    told = keeve("gc", "--store", tmp_path, "--json").json
    assert told["sessions"] == 1
    assert told["bodies"] > 5
    assert told["freed"] >= 0


def test_the_doctor_says_what_lies_in_the_files_yet(tmp_path: Path) -> None:
    def signs() -> list[str]:
        said = keeve("doctor", "--store", tmp_path, "--json").json["signs"]
        return [f"{sign['state']}: {sign['seen']}" for sign in said if sign["of"] == "deleted"]

    talked(tmp_path)
    assert signs() == []
    keeve("delete", "s1", "--store", tmp_path)
    assert signs() == ["note: what 1 deleted session said is in the files yet"]
    keeve("gc", "--store", tmp_path)
    assert signs() == []


async def test_no_actor_types_are_needed_to_erase_and_to_reclaim(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        keeper = await host.spawn(Keeper, "keeper")
        await keeper.keep(FIRST + LONG)
        await keeper.keep(SECOND + LONG)
    assert keeve("erase", "keeper", "--seq", "2", "--store", tmp_path).code == 0
    assert found(tmp_path, FIRST) == []
    async with host_of(tmp_path) as host:
        assert await (await host.get("keeper")).last == SECOND + LONG
        await host.delete("keeper")
    assert keeve("gc", "--store", tmp_path).code == 0
    assert found(tmp_path, SECOND) == []
