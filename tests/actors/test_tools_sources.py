"""Whose tool a name is: what is offered goes to who declared it, and nobody takes a name that is another's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from actors.tools import ApprovalWanted, BadTool, NoSuchTool, Source, Tools
from tests.actors.toolcalls import a_call, run
from vat.devices.devices import Effect, Policy


class Named(Source):
    """A source that says who was called. Its tools may change, as those of a server may."""

    def __init__(self, prefix: str, *tools: str, approval: bool = False) -> None:
        self.prefix = prefix
        self.tools = list(tools)
        self.approval = approval

    @property
    def schemas(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": {"name": self.prefix + name}} for name in self.tools]

    async def fetch(self, credential: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        return self.schemas

    def variant(self, call: Mapping[str, Any], approved: bool = False) -> tuple[str, Policy] | None:
        return self.prefix, Policy()

    async def run(self, effect: Effect, call: Mapping[str, Any], approved: bool = False) -> Any:
        if self.approval and not approved:
            raise ApprovalWanted(call["function"]["name"])
        return f"{self.prefix!r} has {call['function']['name']}"

    async def __aenter__(self) -> Named:
        return self

    async def __aexit__(self, *raised: Any) -> None: ...

    def __repr__(self) -> str:
        return f"Named({self.prefix!r})"


def names(tools: Tools) -> list[str]:
    return [schema["function"]["name"] for schema in tools.schemas]


@pytest.mark.parametrize("turned", [False, True])
async def test_each_name_that_is_offered_goes_to_the_source_that_declared_it(turned: bool) -> None:
    sources = [Named("web_", "a"), Named("web_b_", "c"), Named("", "look"), Named("web_b_long_", "d")]
    tools = Tools(*(reversed(sources) if turned else sources))
    assert sorted(names(tools)) == ["look", "web_a", "web_b_c", "web_b_long_d"]
    for source in sources:
        for schema in source.schemas:
            name = schema["function"]["name"]
            assert await run(tools, name) == f"{source.prefix!r} has {name}"
            assert tools.variant(a_call(name)) == (source.prefix, Policy())


async def test_a_source_cannot_do_away_with_the_approval_that_anothers_tool_needs() -> None:
    tools = Tools(Named("web_", "b_pay"), Named("web_b_", "pay", approval=True))
    with pytest.raises(ApprovalWanted):
        await run(tools, "web_b_pay")


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("theirs", "also"), [(Named("web_", "b_c"), "web_b_"), (Named("", "web_b_c"), "web_b_"), (Named("", "b_"), "b_")]
)
def test_a_source_that_declares_what_another_has_is_refused_with_both(theirs: Named, also: str, turned: bool) -> None:
    sources = [theirs, Named(also, "x")]
    tools = Tools(*(reversed(sources) if turned else sources))
    with pytest.raises(BadTool) as refused:
        names(tools)
    said = str(refused.value)
    assert said.startswith(f"{theirs.schemas[0]['function']['name']} cannot be a tool: {theirs!r} declares it")
    assert f"Named({also!r}) has" in said
    assert "give one of them another prefix" in said


def test_a_source_that_declares_what_a_function_is_called_is_refused() -> None:
    def web_x() -> None: ...

    with pytest.raises(BadTool, match=r"^web_x .* a function and Named\('web_'\) both have it; rename the function"):
        names(Tools(Named("web_", "x"), web_x))


def test_a_source_that_declares_a_name_twice_is_refused() -> None:
    with pytest.raises(BadTool, match=r"^web_x .* Named\('web_'\) declares it twice"):
        names(Tools(Named("web_", "x", "y", "x")))


def test_a_source_that_declares_names_without_its_prefix_is_refused() -> None:
    class Stray(Named):
        @property
        def schemas(self) -> list[dict[str, Any]]:
            return [{"type": "function", "function": {"name": "stray"}}]

    with pytest.raises(BadTool, match=r"^stray .* no source has the names that begin like it"):
        names(Tools(Stray("web_")))


async def test_what_a_source_declares_later_is_refused_when_it_is_offered_and_stops_no_session() -> None:
    def web_look() -> str:
        return "the function"

    shop, other = Named("web_", "a"), Named("web_b_", "c")
    tools = Tools(shop, other, web_look)
    offered = {name: await run(tools, name) for name in names(tools)}
    shop.tools += ["b_c", "look"]
    with pytest.raises(BadTool):
        await tools.fetch()
    assert {name: await run(tools, name) for name in offered} == offered


class Unasked(Named):
    """One that knows its tools when it has asked for them."""

    @property
    def schemas(self) -> list[dict[str, Any]]:
        raise RuntimeError("not fetched")


class Refusing(Named):
    """One that knows best what it has."""

    async def run(self, effect: Effect, call: Mapping[str, Any], approved: bool = False) -> Any:
        raise NoSuchTool(call["function"]["name"] if self.tools else "another", ("mine",))


def look() -> str:
    return "the function"


@pytest.mark.parametrize("called", ["sing", "web_sing"])
async def test_who_calls_what_nobody_has_is_told_all_that_there_is_of_functions_and_sources(called: str) -> None:
    shop = Refusing("web_", "a", "b_stray")
    tools = Tools(look, shop, Named("web_b_", "c"), Unasked("files_"))
    with pytest.raises(NoSuchTool) as refused:
        await run(tools, called)
    assert str(refused.value) == f"there is no tool {called!r}; there are look, web_a, web_b_c, files_*"


async def test_what_a_tool_of_a_source_lacks_itself_is_told_as_that() -> None:
    with pytest.raises(NoSuchTool, match="no tool 'another'; there are mine"):
        await run(Tools(look, Refusing("web_")), "web_sing")


async def test_of_many_tools_the_first_are_told_and_how_many_there_are_besides() -> None:
    many = [f"n{n:03}" for n in range(300)]
    with pytest.raises(NoSuchTool) as refused:
        await run(Tools(Named("web_", *many)), "x" * 10_000)
    said = str(refused.value)
    assert said.endswith("web_n038, web_n039, and 260 more")
    assert len(said) < 1_000
    assert len(refused.value.known) == 300
