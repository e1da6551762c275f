"""What `open_host` is given, and what it leaves when that cannot be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.models import EchoModel
from actors.session import Session
from dataspace.errors import KeeveError
from keeve import Effect, Settings, effect, open_host
from keeve.errors import NoFolder, NotAsync, NotTrio
from keeve.testing import memory_host


class Hangs:
    """A device that begins and does not end."""

    def __init__(self) -> None:
        self.began = trio.Event()

    @effect
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> Any:
        self.began.set()
        await trio.sleep_forever()


async def test_an_unknown_outcome_is_held_whatever_else_is_set(store_folder: Path) -> None:
    model = Hangs()
    async with open_host(store_folder / "s", devices={"model": model}) as host, trio.open_nursery() as nursery:
        nursery.start_soon((await host.spawn(Session, "s1")).turn, "hello")
        await model.began.wait()
        nursery.cancel_scope.cancel()
    options: dict[str, Any] = {"devices": {"model": Hangs()}, "settings": Settings(vats=10), "unknown": "hold"}
    async with open_host(store_folder / "s", **options) as host:
        (held,) = host.effects()
        assert (held.session, held.device, held.method, held.state) == ("s1", "model", "complete", "unknown")
        await host.resolve(held.id, value={"message": {"role": "assistant", "content": "found out"}, "usage": None})
        assert [message["content"] for message in await (await host.get("s1")).messages] == ["hello", "found out"]


@pytest.mark.parametrize(
    ("unknown", "settings", "held"),
    [(None, None, False), (None, True, True), ("break", True, False), ("hold", False, True), ("hold", None, True)],
)
async def test_what_is_said_of_unknown_outcomes_counts_before_the_settings(
    store_folder: Path, unknown: Any, settings: bool | None, held: bool
) -> None:
    given = None if settings is None else Settings(hold_unknown=settings)
    async with open_host(store_folder / "s", unknown=unknown, settings=given) as host:
        assert host._engine.settings.hold_unknown is held


@pytest.mark.parametrize(
    "options",
    [
        {"actors": [dict]},
        {"devices": {"model": object()}},
        {"devices": {"model": EchoModel}},
        {"actors": Session},
        {"devices": [1]},
        {"unknown": "perhaps"},
        {"settings": {"vats": 1}},
    ],
)
async def test_an_option_that_cannot_be_meant_makes_no_store(store_folder: Path, options: dict[str, Any]) -> None:
    """Invariant 43."""
    with pytest.raises((KeeveError, ValueError, TypeError)):
        async with open_host(store_folder / "s", **options):
            pass
    assert not (store_folder / "s").exists()


async def test_settings_that_are_none_are_told_what_they_are(store_folder: Path) -> None:
    settings: Any = {"vats": 1}
    with pytest.raises(TypeError, match=r"settings is a dict: give Settings\(vats=100\)"):
        async with open_host(store_folder / "s", settings=settings):
            pass


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"actors": Session}, r"write actors=\[Session\]"),
        ({"devices": [1]}, r"devices is a list: give each a name, devices=\{'shop': Shop\(\)\}"),
    ],
)
async def test_types_and_devices_that_are_given_in_another_form_are_told_which(
    store_folder: Path, options: dict[str, Any], what: str
) -> None:
    with pytest.raises(TypeError, match=what):
        async with open_host(store_folder / "s", **options):
            pass


async def test_a_second_host_of_one_process_is_told_that_the_first_one_is_here(store_folder: Path) -> None:
    async with open_host(store_folder / "s"):
        with pytest.raises(KeeveError, match="which is this one: another host in it has not been closed"):
            async with open_host(store_folder / "s"):
                pass


async def test_a_host_is_opened_by_async_with_and_says_so_otherwise(store_folder: Path) -> None:
    said = r"`async with open_host\(...\) as host:`.*`with keeve.blocking.open_host"
    with pytest.raises(NotAsync, match=said), open_host(store_folder / "s"):
        pass
    with pytest.raises(NotAsync):
        await open_host(store_folder / "s")
    assert not (store_folder / "s").exists()


@pytest.mark.parametrize("opens", [lambda folder: open_host(folder / "s"), lambda _: memory_host()])
def test_a_host_that_is_opened_under_asyncio_says_how_to_run_it(store_folder: Path, opens: Any) -> None:
    async def main() -> None:
        async with opens(store_folder):
            pass

    with pytest.raises(NotTrio, match=r"trio\.run\(main\).*keeve\.blocking.*asyncio\.to_thread"):
        asyncio.run(main())
    assert not (store_folder / "s").exists()


async def test_a_place_that_can_hold_no_folder_is_named(store_folder: Path) -> None:
    (store_folder / "file").write_text("something else")
    with pytest.raises(NoFolder, match=r"^no folder can be made at .*: name a place for the store"):
        async with open_host(store_folder / "file" / "store"):
            pass
