"""`--actors`: sessions of the user's own types on the command line. And `keeve delete`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_runner import keeve
from tests.cli_worlds import Caller, Stuck, Waiter, leave_a_turn_waiting, leave_fibers, leave_waiting
from tests.served_stores import asked, served_store

HERE = "tests.cli_worlds"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder that is in no import path, and is forgotten."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != ""])
    known = set(sys.modules)
    yield tmp_path
    for name in sys.modules.keys() - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):  # Keeve's own stay one
            del sys.modules[name]


async def effect_of(store: Path) -> str:
    await leave_waiting(store)
    return str(keeve("effects", "--store", store, "--json").json["effects"][0]["id"])


@pytest.mark.parametrize("named", [HERE, f"{HERE}:Caller"])
async def test_an_effect_of_a_type_that_is_named_can_be_resolved(store: Path, named: str) -> None:
    id = await effect_of(store)
    said = keeve("resolve", id, "--value", "7", "--actors", named, "--store", store)
    assert (said.code, said.out) == (0, f"settled {id}\n")
    assert "the next host that opens this store goes on with c1" in said.err
    assert "pending  nothing" in keeve("show", "c1", "--store", store).out


async def test_the_variable_names_types_too(store: Path) -> None:
    await leave_waiting(store)
    assert keeve("fork", "c1", "--into", "c2", "--store", store, env={"KEEVE_ACTORS": f"{HERE}:Guest {HERE}"}).code == 0


async def test_a_type_that_nobody_named_is_refused_with_the_option_that_names_it(store: Path) -> None:
    id = await effect_of(store)
    said = keeve("resolve", id, "--value", "7", "--store", store)
    assert said.code == 2
    assert "unknown actor type 'test.caller'" in said.err
    assert "--actors module" in said.err
    assert "open_host" not in said.err


async def test_the_doctor_says_how_a_type_of_ones_own_is_named(store: Path) -> None:
    id = await effect_of(store)
    await leave_fibers(store, w1=("for_a_person", "40"))
    told = keeve("doctor", "--store", store).out
    assert f"keeve resolve {id} --value '...' --actors MODULE" in told
    assert "keeve approve w1 c1 --actors MODULE, or keeve refuse" in told


async def test_where_a_server_has_the_store_the_doctor_names_no_type(store: Path) -> None:
    id = await effect_of(store)
    await leave_fibers(store, w1=("for_a_person", "40"))
    async with served_store(store, actors=[Caller, Waiter], devices={"tool": Stuck()}, unknown="hold"):
        told = (await asked("doctor", "--store", store)).out
        assert f"keeve resolve {id} --value '...'\n" in told
        assert "keeve approve w1 c1, or keeve refuse\n" in told
        said = await asked("approve", "w1", "c1", "--store", store)
    assert (said.code, "passed over" in said.err) == (0, False)


async def test_the_beginning_of_an_effects_id_is_enough(store: Path) -> None:
    await leave_waiting(store, ["c1", "c2"])
    first, second = (each["id"] for each in keeve("effects", "--store", store, "--json").json["effects"])
    assert keeve("resolve", first[:8], "--error", "no", "--actors", HERE, "--store", store).code == 0
    assert [each["id"] for each in keeve("effects", "--store", store, "--json").json["effects"]] == [second]
    said = keeve("resolve", "", "--error", "no", "--actors", HERE, "--store", store)
    assert (said.code, "no effect ''" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("no.such.module", "cannot be imported (ModuleNotFoundError"),
        (f"{HERE}:Nobody", "has no Nobody"),
        (f"{HERE}:leave_waiting", "@actor does not decorate it"),
        ("json", "there is no class in it that @actor decorates"),
        ("", "is not a text"),
    ],
)
async def test_what_names_no_type_is_refused_and_nothing_is_done(store: Path, named: str, problem: str) -> None:
    await leave_waiting(store)
    said = keeve("delete", "c1", "--force", "--actors", named, "--store", store)
    assert (said.code, problem in said.err) == (2, True)
    assert keeve("show", "c1", "--store", store).code == 0


def test_a_module_in_the_current_folder_is_found_after_all_that_is_installed(folder: Path) -> None:
    (folder / "json.py").write_text("raise SystemExit('not this one')")
    (folder / "shop_of_ours.py").write_text(
        "import json\nfrom keeve import Session, actor\n\n@actor('shop.talk')\nclass Talk(Session): ...\n"
    )
    assert keeve("chat", "s1", "--actors", "shop_of_ours", input="hello\n")[:2] == (0, "hello\n")


async def test_a_session_is_deleted_for_ever(store: Path) -> None:
    keeve("chat", "s1", "--store", store, input="hello\n")
    assert keeve("delete", "s1", "--store", store)[:2] == (0, "deleted s1\n")
    assert keeve("ls", "--store", store, "--json").json == {"sessions": []}
    said = keeve("chat", "s1", "--store", store, input="hello\n")
    assert (said.code, "has been deleted" in said.err) == (2, True)


async def test_one_that_has_work_under_way_is_deleted_by_force_only(store: Path) -> None:
    await leave_a_turn_waiting(store)
    said = keeve("delete", "s1", "--store", store)
    assert (said.code, "--force" in said.err) == (2, True)
    assert keeve("delete", "s1", "--force", "--store", store, "--json").json == {"session": "s1", "deleted": True}


async def test_a_session_that_cannot_be_talked_to_is_refused_with_what_its_type_lacks(store: Path) -> None:
    await leave_waiting(store)
    said = keeve("chat", "c1", "--actors", HERE, "--store", store, input="hello\n")
    assert said.code == 2
    assert "session 'c1' is a test.caller, which has no turn, status, steer, interrupt" in said.err
    assert "resume it with" not in said.err


async def test_an_input_to_a_type_that_states_no_turns_is_refused_by_name(store: Path) -> None:
    await leave_waiting(store)
    said = keeve("queue", "c1", "hello", "--actors", HERE, "--store", store)
    assert said.code == 2
    assert "session 'c1' is of a type that states no turns" in said.err


def test_a_field_that_a_type_needs_is_named_with_the_option_that_gives_it(folder: Path) -> None:
    (folder / "titled.py").write_text(
        "from keeve import Actor, actor\n@actor('titled.book', version=1)\nclass Book(Actor):\n    title: str\n"
    )
    words = ("create", "b1", "--type", "titled.book", "--actors", "titled", "--store", folder / "data")
    said = keeve(*words)
    assert said.code == 2
    assert "needs a value for its field 'title': give it one, as in --field 'title=\"…\"'" in said.err
    assert "spawn(" not in said.err
    assert keeve(*words, "--field", 'title="Emma"').code == 0
