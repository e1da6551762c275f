"""Drawn lives of sessions whose store is thinned, archived, weeded and restarted at any point: what they hold is what a
model of them holds, with the archive away."""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keeve import Actor, List, Map, Settings, Text, actor, open_host
from vat.host.archiving import NothingToArchive
from vat.host.host import Host

LONG = " and so on" * 30


@actor("test.space.keeper", version=1)
class Keeper(Actor):
    """Keeps texts in every kind of place, replaces them and lets them go."""

    one: Text = Text("")
    all: List[Text]
    some: Map[str, Any]

    def write(self, text: Text) -> None:
        self.one = text

    def add(self, text: Text) -> None:
        self.all.append(text)

    def put(self, key: str, text: Text) -> None:
        self.some[key] = {"said": [text], "more": key}

    def drop(self) -> None:
        if len(self.all):
            self.all.pop()


class Model:
    """What one session holds."""

    def __init__(self, one: str = "", all: list[str] | None = None, some: dict[str, Any] | None = None) -> None:
        self.one, self.all, self.some = one, all or [], some or {}

    def copy(self) -> Model:
        return Model(self.one, list(self.all), dict(self.some))

    def held(self) -> tuple[str, list[str], dict[str, Any]]:
        return self.one, self.all, self.some


NAMES = st.sampled_from(["a", "b", "c"])
STEP = st.one_of(
    st.tuples(st.sampled_from(["write", "add", "add", "put", "drop", "snapshot", "delete"]), NAMES),
    st.tuples(st.just("fork"), NAMES, NAMES),
    st.tuples(st.sampled_from(["reclaim", "archive", "back", "restart", "rebuild"])),
)


async def life(folder: Path, steps: list[tuple[str, ...]]) -> None:
    models: dict[str, Model] = {}
    gone: set[str] = set()
    left = deque(enumerate(steps))
    while left:
        options = Settings(reclaim=None, first_snapshot=3, snapshot_records=4, closing_records=1)
        async with open_host(folder / "store", actors=[Keeper], settings=options, segment_bytes=4000) as host:
            step = ""
            while left and step not in ("restart", "rebuild"):
                n, (step, *names) = left.popleft()
                await do(host, folder, step, names, f"said {n}{LONG}", models, gone)
        if step == "rebuild":
            without_catalog(folder)
    away(folder)
    async with open_host(folder / "store", actors=[Keeper]) as host:
        assert {row.id for row in host.sessions()} == set(models)
        for name, model in models.items():
            s = await host.get(name)
            assert (await s.one, list(await s.all), dict(await s.some)) == model.held()
        report = await host.verify()
        assert report.sound, report.troubles


def without_catalog(folder: Path) -> None:
    for path in (folder / "store").glob("catalog.sqlite*"):
        path.unlink()


def away(folder: Path) -> None:
    if (folder / "archive").exists():
        (folder / "archive").rename(folder / "elsewhere")


async def do(
    host: Host, folder: Path, step: str, names: list[str], text: str, models: dict[str, Model], gone: set[str]
) -> None:
    if step == "reclaim":
        await host.reclaim()
    elif step in ("archive", "back"):
        with suppress(NothingToArchive):
            await (host.archive(folder / "archive") if step == "archive" else host.bring_back())
    elif step == "fork":
        if names[0] in models and names[1] not in models and names[1] not in gone:
            await (await host.get(names[0])).fork(into=names[1])
            models[names[1]] = models[names[0]].copy()
    elif step in ("restart", "rebuild") or names[0] in gone:
        pass
    elif names[0] not in models:
        await host.spawn(Keeper, names[0])
        models[names[0]] = Model()
    else:
        await act(host, step, names[0], text, models, gone)


async def act(host: Host, step: str, name: str, text: str, models: dict[str, Model], gone: set[str]) -> None:
    s, model = await host.get(name), models[name]
    if step == "write":
        await s.write(Text(text))
        model.one = text
    elif step == "add":
        await s.add(Text(text))
        model.all.append(text)
    elif step == "put":
        key = text[5:6]
        await s.put(key, Text(text))
        model.some[key] = {"said": [text], "more": key}
    elif step == "drop":
        await s.drop()
        model.all[-1:] = []
    elif step == "snapshot":
        await s.snapshot()
    else:
        await host.delete(name)
        del models[name]
        gone.add(name)


@given(st.lists(STEP, min_size=10, max_size=60))
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_sessions_hold_needs_nothing_that_was_taken_away(tmp_path: Path, steps: list[tuple[str, ...]]) -> None:
    """Invariants 8, 21 and 26: Restarts, forks, deletions, lost catalogs and archives change nothing that is held."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    try:
        trio.run(life, folder, steps)
    finally:
        shutil.rmtree(folder)
