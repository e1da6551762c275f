"""What a session may be set to: all of it is checked before any of it is taken."""

from __future__ import annotations

from typing import Any

import pytest

from actors.models import EchoModel
from actors.session import BadSetting, Session
from keeve.testing.hosts import memory_host
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, says
from vat.objects.actor import actor

LOOK = {"type": "function", "function": {"name": "look", "description": "Look at it.", "parameters": {}}}


@actor("test.careful", version=1)
class Careful(Session):
    """Goes on when it is refused something."""

    def try_out(self) -> str:
        try:
            self.configure(mode="chat", system="other", max_steps=0)
        except BadSetting as error:
            return error.field
        return "none"


def session(device: object, **fields: Any) -> Driven:
    return Driven(Session, {"model": device, "tools": Does()}, **fields)


def said(driven: Driven, input: Any) -> Any:
    """What a turn comes to."""
    answer = driven.call("turn", input)
    driven.run()
    return answer.value


BAD_SETTINGS = [
    *(("mode", value) for value in ("robot", [], 5)),
    ("parallel", 1),
    *(("max_steps", value) for value in (0, 1.5, -(10**5000))),
    *(("max_tokens", value) for value in (-1, "many", [10**5000])),
    *(("max_seconds", value) for value in (-1, "long", 1e300, 10**5000)),
    *(("options", value) for value in (5, [], {"messages": []}, {"effect": 1}, {"self": 1}, {"tools": []})),
    *((field, value) for field in ("model", "tool_device") for value in ("", 5, [], {})),
    *(("system", value) for value in (5, [], {})),
    *(("tools", value) for value in (5, "look", {"look": 1}, [5], [{}], [{"type": "function", "function": {}}])),
    ("tools", [{"type": "function", "function": {"name": ""}}]),
]


async def test_a_setting_that_cannot_be_meant_makes_no_session_over_a_host() -> None:
    async with memory_host() as host:
        for field, value in [("model", 5), ("tools", 5), ("system", []), ("options", {"messages": []})]:
            with pytest.raises(BadSetting, match=f"^{field} "):
                await host.spawn(Session, "s1", **{field: value})
        assert host.sessions() == []


@pytest.mark.parametrize(("field", "value"), BAD_SETTINGS, ids=range(len(BAD_SETTINGS)))
def test_a_setting_that_cannot_be_meant_is_refused(field: str, value: Any) -> None:
    driven = session(EchoModel(), tools=[LOOK], options={"seed": 1})
    names = ("system", "mode", "options", "max_steps", "max_tokens", "max_seconds", "parallel", "tools", "usage")
    before = [driven.read(name) for name in names]
    others = {"system": "changed", "mode": "chat", "options": {}, "max_steps": 5, "parallel": False, "tools": []}
    with pytest.raises(BadSetting, match=f"^{field} ") as refused:
        driven.call("configure", **{**others, field: value}).value  # noqa: B018  # raises what went wrong
    assert len(str(refused.value)) < 500
    assert [driven.read(name) for name in names] == before
    with pytest.raises(BadSetting, match=f"^{field} "):
        Session.given({field: value})


def test_a_setting_that_is_refused_changes_nothing_for_a_method_that_goes_on() -> None:
    driven = Driven(Careful, {"model": EchoModel(), "tools": Does()})
    assert driven.call("try_out").value == "max_steps"
    assert (driven.read("mode"), driven.read("system")) == ("agent", "")


def test_a_system_text_or_tools_may_be_taken_away() -> None:
    driven = session(EchoModel(), tools=[LOOK], system="Be brief.")
    driven.call("configure", tools=[], system="").value  # noqa: B018  # raises what went wrong
    assert (driven.read("tools"), driven.read("system")) == ([], "")


def test_a_tool_of_a_kind_that_only_the_service_knows_is_offered() -> None:
    model = Says(says("found"))
    assert said(session(model, tools=[{"type": "web_search"}]), "search") == "found"
    assert model.asked[0][1]["tools"] == [{"type": "web_search"}]
