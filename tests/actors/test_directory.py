"""The directory device, asked by a host that only keeps what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from actors.directory import Directory, NoHost
from tests.actors.driving import at_once
from vat.devices.devices import Effect, methods_of
from vat.errors import Deleted
from vat.heap.messages import Asker
from vat.heap.refs import Ref


class Sessions:
    """A host's list of sessions."""

    def __init__(self) -> None:
        self.made: dict[bytes, tuple[str, str | None, Mapping[str, Any], Asker]] = {}
        self.gone: list[str] = []

    async def spawn_named(
        self, type_name: str, id: str | None, fields: Mapping[str, Any], asker: Asker, *, uid: bytes | None = None
    ) -> Ref:
        assert uid is not None
        self.made.setdefault(uid, (type_name, id, fields, asker))
        return Ref(uid, 1)

    def find(self, id: str) -> Ref:
        return Ref(next(uid for uid, made in self.made.items() if made[1] == id), 1)

    def listed(self, prefix: str, after: str, limit: int) -> list[dict[str, Any]]:
        ids = sorted(str(made[1]) for made in self.made.values())
        return [{"id": id} for id in ids if id.startswith(prefix) and id > after][:limit]

    async def delete(self, id: str, asker: Asker, *, force: bool = False) -> None:
        if id in self.gone:
            raise Deleted(id)
        self.gone.append(id)


def asked(id: str = "a" * 32) -> Effect:
    return Effect(
        id=id,
        device="directory",
        method="spawn",
        session="boss",
        attempt=1,
        progress=lambda value: None,
        credential=lambda name: name,
    )


def test_a_session_is_spawned_once_however_often_it_is_asked_for() -> None:
    sessions = Sessions()
    directory = Directory(sessions)
    first = at_once(directory.spawn(asked(), "keeve.session", "s2", {"mode": "chat"}))
    again = at_once(directory.spawn(asked(), "keeve.session", "s2", {"mode": "chat"}))
    other = at_once(directory.spawn(asked("b" * 32), "keeve.session", "s3"))
    assert first == again != other
    assert list(sessions.made.values()) == [
        ("keeve.session", "s2", {"mode": "chat"}, Asker("vat", "vat:boss")),
        ("keeve.session", "s3", {}, Asker("vat", "vat:boss")),
    ]


def test_sessions_are_found_and_listed() -> None:
    directory = Directory(Sessions())
    refs = {id: at_once(directory.spawn(asked(id * 32), "keeve.session", f"s-{id}")) for id in ("a", "b", "c")}
    assert at_once(directory.get(asked(), "s-b")) == refs["b"]
    assert at_once(directory.list(asked(), "s-", "s-a", 1)) == [{"id": "s-b"}]


def test_a_session_that_is_deleted_already_is_deleted() -> None:
    sessions = Sessions()
    directory = Directory(sessions)
    for _ in range(2):
        at_once(directory.delete(asked(), "s1"))
    assert sessions.gone == ["s1"]


def test_all_of_it_may_be_asked_again_after_a_crash() -> None:
    methods = methods_of(Directory())
    assert set(methods) == {"spawn", "get", "list", "delete"}
    assert {how.policy.on_crash for how in methods.values()} == {"retry"}


def test_a_directory_without_a_host_says_so() -> None:
    with pytest.raises(NoHost, match=r"set directory\.sessions"):
        at_once(Directory().get(asked(), "s1"))
