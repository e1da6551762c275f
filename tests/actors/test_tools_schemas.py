"""What a model is told of a function: its schema, from hints and docstring; and what it sends, converted."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Literal, TypedDict

import attrs
import pytest

from actors.tools import BadArguments, BadTool, Tools
from actors.tools.signatures import Signature
from vat.devices.devices import Effect


class Unit(enum.Enum):
    CELSIUS = "C"
    KELVIN = "K"


@dataclasses.dataclass
class Place:
    """Where something is."""

    x: int
    y: int = 0


@attrs.define
class Named:
    title: str


class Address(TypedDict, total=False):
    street: str
    number: int


class Branch(TypedDict):
    leaves: list[Branch]


def parameters(function: Any) -> dict[str, Any]:
    shown: dict[str, Any] = Signature.of(function).schema["function"]["parameters"]
    return shown


def properties(function: Any) -> dict[str, Any]:
    found: dict[str, Any] = parameters(function)["properties"]
    return found


def test_a_schema_says_what_a_function_takes() -> None:
    async def weather(city: str, days: int = 1, unit: Literal["C", "F"] = "C") -> str:
        """The weather in a city."""
        return ""

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
                        "days": {"type": "integer", "default": 1},
                        "unit": {"enum": ["C", "F"], "default": "C"},
                    },
                    "required": ["city"],
                    "additionalProperties": False,
                },
            },
        }
    ]


GOOGLE = """The weather.

    Of one place.

    Args:
        city: Where it is.
        days: How many
            in all.

    Returns:
        What to expect.
    """
NUMPY = """The weather.

    Of one place.

    Parameters
    ----------
    city : str
        Where it is.
    days : int
        How many
        in all.

    Returns
    -------
    str
        What to expect.
    """
REST = """The weather.

    Of one place.

    :param city: Where it is.
    :param days: How many
        in all.
    :returns: What to expect.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST])
def test_descriptions_come_from_the_docstring_in_the_usual_styles(text: str) -> None:
    def weather(city: str, days: int) -> str:
        return ""

    weather.__doc__ = text
    assert Signature.of(weather).schema["function"]["description"] == (
        "The weather.\n\nOf one place.\n\nReturns: What to expect."
    )
    assert properties(weather) == {
        "city": {"type": "string", "description": "Where it is."},
        "days": {"type": "integer", "description": "How many\nin all."},
    }


def test_an_annotation_describes_before_the_docstring_does() -> None:
    def greet(name: Annotated[str, "whom to greet"]) -> str:
        """Greet.

        Args:
            name: something else
        """
        return name

    assert properties(greet) == {"name": {"type": "string", "description": "whom to greet"}}


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Unit, {"enum": ["C", "K"]}),
        (Named, {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}),
        (
            Place,
            {
                "description": "Where something is.",
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
            },
        ),
        (
            Address,
            {
                "type": "object",
                "properties": {"number": {"type": "integer"}, "street": {"type": "string"}},
                "required": [],
            },
        ),
    ],
)
def test_each_type_has_its_form(kind: Any, schema: Any) -> None:
    def take(it: Any) -> None: ...

    take.__annotations__ = {"it": kind}
    assert properties(take)["it"] == schema


def test_a_type_that_contains_itself_is_named() -> None:
    def grow(branch: Branch) -> None: ...

    found = parameters(grow)
    assert found["properties"]["branch"] == {"$ref": "#/$defs/Branch"}
    assert found["$defs"]["Branch"]["properties"]["leaves"]["items"] == {"$ref": "#/$defs/Branch"}


def test_a_default_without_a_form_in_json_is_the_functions_own_affair() -> None:
    nothing: Any = object()

    def take(it: int = nothing, unit: Unit = Unit.KELVIN, none: int | None = None) -> None: ...

    assert parameters(take)["required"] == []
    assert [part.get("default") for part in properties(take).values()] == [None, "K", None]


def test_the_effect_is_no_argument_of_the_model() -> None:
    def look(names: list[str], effect: Effect, rest: Any = None) -> None: ...

    assert list(properties(look)) == ["names", "rest"]


async def sent(function: Any, arguments: Any) -> Any:
    return Signature.of(function).arguments(arguments)


async def test_arguments_arrive_in_the_types_that_the_function_takes() -> None:
    def take(place: Place, unit: Unit, pair: tuple[int, str], named: Named, price: float = 1.5) -> None: ...

    text = '{"place": {"x": 1}, "unit": "K", "pair": [1, "a"], "named": {"title": "t"}, "price": 2}'
    assert await sent(take, text) == {
        "place": Place(1),
        "unit": Unit.KELVIN,
        "pair": (1, "a"),
        "named": Named("t"),
        "price": 2.0,
    }


async def test_what_was_not_sent_has_the_functions_own_default() -> None:
    def take(one: list[int] = [], two: int = 2) -> None: ...  # noqa: B006 - that is what is tried

    assert await sent(take, '{"two": 3}') == {"two": 3}


@pytest.mark.parametrize("nothing", ["", None, "{}", {}])
async def test_no_arguments_are_none(nothing: Any) -> None:
    def take() -> None: ...

    assert await sent(take, nothing) == {}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("{", "they are no JSON"),
        ("[" * 100_000, "got `array`"),
        ('{"names": ' + "[" * 100_000, "Expected `str`, got `array`"),
        ('{"names": [], "rest": ' + "[" * 100_000, "they are no JSON"),
        ('{"names": ["\\ud800"]}', "they are no JSON"),
        ([1], "they are no JSON text"),
        ("[1]", "Expected `object`, got `array`"),
        ({}, "missing required field `names`; its parameters are names, days, unit, place, rest"),
        ({"names": [], "wind": 1}, "unknown field `wind`; its parameters are names"),
        ({"names": "a"}, 'Expected `array`, got `str` - at `\\$.names`; `names` takes {"type": "array"'),
        ({"names": ["a", 1]}, "Expected `str`, got `int` - at `\\$.names\\[1\\]`; `names` takes"),
        ({"names": [], "days": True}, "Expected `int`, got `bool`"),
        ({"names": [], "days": 1.5}, "Expected `int`, got `float`"),
        ({"names": [], "unit": "R"}, "Invalid enum value 'R' - at `\\$.unit`; `unit` takes {\"enum\": "),
        ({"names": [], "place": {"y": 1}}, "missing required field `x` - at `\\$.place`; `place` takes"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused_with_what_would(arguments: Any, reason: str) -> None:
    def take(
        names: list[str], days: int = 1, unit: Unit = Unit.KELVIN, place: Place | None = None, rest: Any = None
    ) -> None: ...

    with pytest.raises(BadArguments, match=reason):
        await sent(take, arguments)


async def loose(*names: str) -> None: ...
async def bare(name) -> None: ...  # type: ignore[no-untyped-def]  # that is what is refused
async def strange(when: complex) -> None: ...
async def twofold(where: Place | Address) -> None: ...
async def unheard(of: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - that is what is refused


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (loose, "a model names its arguments"),
        (bare, "name is not annotated"),
        (strange, "no form in JSON .*complex"),
        (twofold, "no form in JSON .*more than one dict-like"),
        (unheard, "cannot be read .*Nowhere"),
        (len, "a model names its arguments"),
        (3, "it is no function"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function: Any, reason: str) -> None:
    with pytest.raises(BadTool, match=reason):
        Tools(function)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(BadTool, match="two of that name"):
        Tools(strange_but_true, strange_but_true)


def strange_but_true() -> None: ...


def test_a_method_of_an_object_is_a_tool() -> None:
    class Shop:
        def order(self, what: str) -> str:
            """Order something."""
            return what

    assert properties(Shop().order) == {"what": {"type": "string"}}
