"""A fork of what is damaged is refused at every face, with the last good seq; nothing is recorded."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
import trio

from actors.session import Session
from keeve import open_host
from keeve.errors import NoSuchPoint, PastDamaged, SessionDamaged
from tests.cli_runner import keeve
from tests.served_stores import asked, served_store
from tests.vat.hosts import Counter, World, flip, store_of

WORD = "to be damaged"
LAST_GOOD = 3
"""Of s1, whose record at seq 4 brought that word: the input of the second turn."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A session with a word that is not what was written; nobody has come to it. A snapshot behind it is sound."""
    folder = tmp_path / "data"
    trio.run(fill, folder)
    damage(folder)
    return folder


async def fill(folder: Path) -> None:
    async with open_host(folder) as host:
        s = await host.spawn(Session, "s1")
        for said in ("before", WORD, "after", "and on"):
            await s.turn(said)
        await s.fork(into="twin", at=LAST_GOOD + 5)
        await s.snapshot()


def damage(folder: Path) -> None:
    segment = folder / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[data.index(WORD.encode())] ^= 1
    segment.write_bytes(data)


def ids(folder: Path) -> list[str]:
    return [row["id"] for row in keeve("ls", "--store", folder, "--json").json["sessions"]]


def head(folder: Path) -> int:
    count: int = keeve("verify", "--store", folder, "--json").json["counts"]["records"]
    return count


@pytest.mark.parametrize("at", [(), ("--at", "8"), ("--at", "4")])
def test_a_command_refuses_and_nothing_is_recorded(store: Path, at: tuple[str, ...]) -> None:
    """Invariant 4: though nobody has come to the damage before."""
    before = head(store), ids(store)
    said = keeve("fork", "s1", *at, "--store", store)
    assert (said.code, said.out) == (1, "")
    assert "session s1 is damaged at seq 4" in said.err
    assert f"--at {LAST_GOOD}" in said.err
    assert (head(store), ids(store)) == before
    assert keeve("fork", "s1", "--at", str(LAST_GOOD), "--into", "good", "--store", store).code == 0
    assert keeve("chat", "good", "--store", store, input="goes on\n").code == 0


def test_a_fork_that_has_the_damage_of_another_in_its_past_is_not_forked_either(store: Path) -> None:
    before = head(store)
    said = keeve("fork", "twin", "--store", store)
    assert said.code == 1
    assert "session twin is damaged at seq 4" in said.err
    assert f"--at {LAST_GOOD}" in said.err
    assert head(store) == before
    assert keeve("fork", "twin", "--at", str(LAST_GOOD), "--into", "good", "--store", store).code == 0
    assert keeve("chat", "good", "--store", store, input="goes on\n").code == 0


def test_a_session_that_is_sound_is_forked_as_before(store: Path) -> None:
    assert keeve("chat", "s2", "--store", store, input="hello\n").code == 0
    assert keeve("fork", "s2", "--into", "s3", "--store", store).code == 0
    assert keeve("chat", "s3", "--store", store, input="goes on\n").code == 0


async def test_a_server_that_has_come_to_the_damage_refuses_its_clients_and_commands(store: Path) -> None:
    async with served_store(store) as there:
        assert not (await there.host.verify()).sound
        said = await asked("fork", "s1", "--store", store)
        assert said.code == 1
        assert f"--at {LAST_GOOD}" in said.err
        headers = {"Authorization": f"Bearer {there.token}"}
        async with httpx2.AsyncClient(base_url=there.url, headers=headers) as client:
            answer = await client.post("/api/v1/sessions/s1/fork", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "past_damaged")
        assert f"last good seq is {LAST_GOOD}" in answer.json()["error"]["message"]
        assert [row.id for row in there.host.sessions()] == ["s1", "twin"]


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("at", [None, 8])
async def test_a_host_that_has_come_to_the_damage_refuses_programs(store: Path, loaded: bool, at: int | None) -> None:
    async with open_host(store) as host:
        s = await host.get("s1")
        if loaded:
            await s.status()
        assert not (await host.verify()).sound
        before = [row.id for row in host.sessions()]
        with pytest.raises(PastDamaged, match="last good seq is 3") as refused:
            await s.fork(at=at)
        assert refused.value.seq == LAST_GOOD + 1
        # No claim that it would not go on, which it might from the snapshot behind the damage.
        assert "from there on would stand on records that cannot be read, so none was made; " in str(refused.value)
        assert [row.id for row in host.sessions()] == before
        good = await s.fork(at=LAST_GOOD)
        assert await good.turn("goes on") == "goes on"


async def test_damage_that_the_fork_itself_comes_to_refuses_it(tmp_path: Path) -> None:
    """Invariant 4: Loading the session for it reads the record, since no snapshot is behind that."""
    world = World(tmp_path / "store")
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        for number in range(6):
            await s.add(f"word {number}")
        flip(world, host, "s1", 4, b"word 2")
    async with world.host() as host:
        before = [row.id for row in host.sessions()], store_of(host).head
        for _ in range(2):
            with pytest.raises(SessionDamaged, match=r"--at 3"):
                await (await host.get("s1")).fork()
        assert ([row.id for row in host.sessions()], store_of(host).head) == before
        assert await (await (await host.get("s1")).fork(at=3)).add("more") == 3


async def test_a_seq_that_a_damaged_session_has_not_got_is_told_with_all_that_it_has(tmp_path: Path) -> None:
    """And not with those that are in memory, which end before the damage."""
    world = World(tmp_path / "store")
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        for number in range(6):
            await s.add(f"word {number}")
        flip(world, host, "s1", 4, b"word 2")
    async with world.host() as host:
        s = await host.get("s1")
        with pytest.raises(SessionDamaged):
            await s.fork()
        for at in (-1, 0, 8, 99):
            with pytest.raises(NoSuchPoint, match=f"has no seq {at}: it goes from 1 to 7; "):
                await s.fork(at=at)
        with pytest.raises(PastDamaged, match="last good seq is 3"):
            await s.fork(at=7)
