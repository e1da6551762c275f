"""What an agent of one's own has used, in the JSON of every door: whole and the same, however much it keeps besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from keeve import Actor, List, Model, Ref, Text, actor, effect, open_host, user
from keeve.looking import parts
from tests.cli_runner import keeve
from tests.server_worlds import world

USED = {f"tokens_of_kind_{n}": n + 1 for n in range(40)}
"""More than a line has."""

KEPT = ["hello" * 100] * 30


@actor("test.counts-what-it-uses", version=1)
class Counts(Actor):
    """It keeps much, under a name that comes before its model's, and leads to itself."""

    kept: List[str]
    me: Ref | None = None
    model: Model
    zeal: Text = "z" * 700

    async def turn(self, text: Text) -> Text:
        self.kept.extend(KEPT)
        self.me = self.ref
        await self.model.complete([user(text)])
        return "done"


MODEL: dict[str, Any] = {"type": "keeve.model", "actor": 2, "fields": {"model": "model", "usage": USED}}


class Counting:
    """A model that says what it has used."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        return {"message": {"role": "assistant", "content": "done"}, "usage": USED}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"

    async def main() -> None:
        async with open_host(path, actors=[Counts], devices={"model": Counting()}) as host:
            await (await host.spawn(Counts, "a1")).turn("hello")

    trio.run(main)
    return path


@pytest.mark.parametrize("command", ["show", "state"])
def test_it_is_whole_in_json_however_much_there_is_before_it(
    store: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(parts, "ROOM", 600)
    told = keeve(command, "a1", "--store", store, "--json").json
    assert told["fields"]["kept"] == KEPT
    assert told["parts"] == {"model": MODEL}  # and not what leads to the session itself, whose fields are there
    assert told.get("fields_next") is None


async def test_over_http_it_has_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(actors=[Counts], devices={"model": Counting()}) as w:
        await (await w.host.asking("ann").spawn(Counts, "a1")).turn("hello")
        path = "/api/v1/sessions/a1/state"
        assert (await w.ann.get(path)).json()["parts"] == {"model": MODEL}
        monkeypatch.setattr(parts, "ROOM", 600)
        pages = [(await w.ann.get(path)).json()]
        while pages[-1]["next"] is not None:
            pages.append((await w.ann.get(path, params={"after": pages[-1]["next"]})).json())
        items = [item for page in pages for item in page["fields"].pop("kept", [])]
        others = [name for page in pages for name in page["fields"]]
        fields = [each for page in pages for part in page["parts"].values() for each in part["fields"].items()]
        assert (items, others, fields) == (KEPT, ["me", "model", "zeal"], list(MODEL["fields"].items()))


@pytest.mark.parametrize(("command", "cut"), [("show", "kept, me, model, zeal"), ("state", "kept, zeal, model.usage")])
def test_people_are_told_what_was_cut_and_what_tells_it_whole(store: Path, command: str, cut: str) -> None:
    told = keeve(command, "a1", "--store", store)
    assert "tokens_of_kind_39" not in told.out
    assert f"cut to a line: {cut}; whole: keeve state a1 --json\n" in told.err


def test_of_what_fits_nothing_is_said_to_be_cut(tmp_path: Path) -> None:
    assert keeve("create", "s1", "--store", tmp_path / "data").code == 0
    assert "cut" not in keeve("state", "s1", "--store", tmp_path / "data").err
