"""Tools: schemas from signatures, arguments that are checked, functions that are called."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from actors.session import Session
from actors.tools import BadArguments, BadTool, NoSuchTool, Tools
from tests.actors.driving import Driven, at_once
from tests.actors.scenes import Says, calls, says, tool
from vat.devices.devices import Effect, Policy, methods_of


async def weather(city: str, days: int = 1, unit: Literal["C", "F"] = "C") -> str:
    """The weather in a city."""
    return f"{city} {days} {unit}"


async def gather(
    effect: Effect, names: list[str], weights: dict[str, float] | None = None, rest: Any = None
) -> dict[str, Any]:
    """Several things."""
    return {"for": effect.session, "names": names, "weights": weights, "rest": rest}


def run(tools: Tools, name: str, arguments: Any) -> Any:
    text = arguments if isinstance(arguments, str | None) else json.dumps(arguments)
    effect = Effect(
        id="0" * 32,
        device="tools",
        method="run",
        session="s1",
        attempt=1,
        progress=lambda value: None,
        credential=lambda name: name,
    )
    return at_once(tools.run(effect, {"id": "a", "function": {"name": name, "arguments": text}}))


def test_a_schema_says_what_a_function_takes() -> None:
    assert Tools(weather).schemas == [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "The weather in a city.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string"},
                        "days": {"type": "integer"},
                        "unit": {"enum": ["C", "F"]},
                    },
                    "required": ["city"],
                    "additionalProperties": False,
                },
            },
        }
    ]


def test_the_effect_is_no_argument_of_the_model() -> None:
    parameters = Tools(gather).schemas[0]["function"]["parameters"]
    assert list(parameters["properties"]) == ["names", "weights", "rest"]
    assert parameters["required"] == ["names"]
    assert run(Tools(gather), "gather", {"names": ["a"], "weights": {"a": 1}})["for"] == "s1"


def test_a_call_reaches_its_function_with_its_arguments() -> None:
    assert run(Tools(gather, weather), "weather", {"city": "Oslo", "unit": "F"}) == "Oslo 1 F"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("{", "they are no JSON"),
        ("[" * 100_000, "they are no JSON"),
        ([1], "they are no object"),
        (None, "'city' is missing"),
        ({"city": 3}, "'city' is no string"),
        ({"city": "Oslo", "days": True}, "'days' is no integer"),
        ({"city": "Oslo", "days": 1.5}, "'days' is no integer"),
        ({"city": "Oslo", "unit": "K"}, "'unit' is not one of"),
        ({"city": "Oslo", "wind": 1}, "'wind' is not one of city, days, unit"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: Any, reason: str) -> None:
    with pytest.raises(BadArguments, match=reason):
        run(Tools(weather), "weather", arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"names": ["a", 1]}, "'names' has an item that is no string"),
        ({"names": "a"}, "'names' is no array"),
        ({"names": [], "weights": {"a": "heavy"}}, "'weights' fits none"),
    ],
)
def test_what_is_inside_of_arguments_is_checked_too(arguments: Any, reason: str) -> None:
    with pytest.raises(BadArguments, match=reason):
        run(Tools(gather), "gather", arguments)


def test_an_unknown_tool_is_named_with_those_that_there_are() -> None:
    with pytest.raises(NoSuchTool, match="there is no tool 'sing'; there are weather"):
        run(Tools(weather), "sing", {})


async def loose(*names: str) -> None: ...
async def bare(name) -> None: ...  # type: ignore[no-untyped-def]  # that is what is refused
async def strange(when: complex) -> None: ...
def plain(name: str) -> None: ...


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        ((loose,), "a model names its arguments"),
        ((bare,), "name is not annotated"),
        ((strange,), "complex.* has no form in JSON"),
        ((plain,), "no `async def`"),
        ((weather, weather), "two of that name"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(functions: Any, reason: str) -> None:
    with pytest.raises(BadTool, match=reason):
        Tools(*functions)


def test_a_policy_of_ones_own_takes_the_place_of_the_usual_one() -> None:
    assert methods_of(Tools(weather))["run"].policy.on_crash == "unknown"
    assert methods_of(Tools(weather, policy=Policy(on_crash="retry")))["run"].policy.on_crash == "retry"


def test_a_model_hears_what_was_wrong_with_its_call() -> None:
    tools = Tools(weather)
    wrong, right = calls("a", "weather", town="Oslo"), calls("b", "weather", city="Oslo")
    model = Says(says(None, wrong), says(None, right), says("done"))
    driven = Driven(Session, {"model": model, "tools": tools}, tools=tools.schemas)
    driven.call("turn", "go")
    driven.run()
    heard = driven.read("messages")
    assert heard[2] == tool(
        "a", "This call failed: BadArguments: the arguments of weather do not fit: 'city' is missing"
    )
    assert heard[4] == tool("b", "Oslo 1 C")
    assert model.asked[0][1] == {"tools": tools.schemas}
