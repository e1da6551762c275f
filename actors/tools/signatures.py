"""A function as a model sees it: its name, what it is for, and the JSON schema of its arguments.

And the other way: what a model sends, checked and brought into the types that the function takes.

Types are msgspec's affair, both ways: what the schema says is what is checked. Descriptions come from the docstring (in
the styles of Google, NumPy, reST and Epydoc), or from `Annotated[str, "what it is"]`.

The one rule: what a model sends is checked whole before a function is called.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import attrs
import docstring_parser
import msgspec

from actors.tools.errors import BadArguments, BadTool
from vat.devices.devices import Effect

SHOWN: Final = 600
"""Characters of a parameter's schema that are repeated to a model whose argument does not fit."""

_REF: Final = "#/$defs/"
_PLACE: Final = re.compile(r"`\$\.(\w+)")


@attrs.frozen(eq=False)
class Signature:
    """What there is to know of a function before it is called. `of` makes one."""

    name: str
    schema: dict[str, Any]
    """In the form that models take: `{"type": "function", "function": {"name", "description", "parameters"}}`."""
    effect: str | None
    """The parameter that is given the `Effect`, if there is one."""
    _parameters: dict[str, Any]
    _struct: type[msgspec.Struct]

    @classmethod
    def of(cls, function: Callable[..., Any], name: str | None = None, description: str | None = None) -> Signature:
        """Raises `BadTool`."""
        name = name or getattr(function, "__name__", None) or repr(function)
        try:
            hints = get_type_hints(inspect.unwrap(getattr(function, "__func__", function)), include_extras=True)
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError, NameError) as error:
            raise BadTool(name, f"its signature cannot be read ({error})") from None
        text = docstring_parser.parse(inspect.getdoc(function) or "")
        said = {part.arg_name: part.description for part in text.params if part.description}
        effect = next((parameter.name for parameter in parameters if hints.get(parameter.name) is Effect), None)
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        defaults: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.name == effect:
                continue
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise BadTool(
                    name, f"a model names its arguments, and {parameter} has no name of its own; write it out"
                )
            if parameter.name not in hints:
                raise BadTool(
                    name,
                    f"{parameter.name} is not annotated, so a model cannot know what it is; annotate it",
                )
            kind = _described(hints[parameter.name], said.get(parameter.name))
            if parameter.default is parameter.empty:
                fields.append((parameter.name, kind))
            else:
                fields.append((parameter.name, kind, msgspec.UNSET))
                defaults[parameter.name] = parameter.default
        struct = _struct_of(name, fields)
        accepted = _schema_of(struct, defaults)
        if description is None:
            description = _purpose(text)
        shown = {"name": name, "description": description, "parameters": accepted}
        return cls(name, {"type": "function", "function": shown}, effect, accepted["properties"], struct)

    def arguments(self, sent: Any) -> dict[str, Any]:
        """What a model sent, as a JSON text or a dict, as keyword arguments. Raises `BadArguments`."""
        try:
            if isinstance(sent, str | bytes):
                made = msgspec.json.decode(sent or "{}", type=self._struct)
            elif sent is None or isinstance(sent, Mapping):
                made = msgspec.convert(dict(sent or {}), self._struct)
            else:
                raise BadArguments(self.name, "they are no JSON text")
        except msgspec.ValidationError as error:
            raise BadArguments(self.name, self._explained(str(error))) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise BadArguments(self.name, f"they are no JSON ({error})") from None
        given = ((name, getattr(made, name)) for name in self._parameters)
        return {name: value for name, value in given if value is not msgspec.UNSET}

    def _explained(self, wrong: str) -> str:
        """What is wrong, with what the parameter takes."""
        place = _PLACE.search(wrong)
        name = None if place is None else place[1]
        if name not in self._parameters:
            return f"{wrong}; its parameters are {', '.join(self._parameters) or 'none'}"
        takes = json.dumps(self._parameters[name], ensure_ascii=False)
        return f"{wrong}; `{name}` takes {takes[:SHOWN]}{'…' if len(takes) > SHOWN else ''}"


def _purpose(text: docstring_parser.Docstring) -> str:
    """What a docstring says, but for the parameters."""
    parts = [text.short_description, text.long_description]
    if text.returns is not None and text.returns.description:
        parts.append(f"Returns: {text.returns.description}")
    return "\n\n".join(part for part in parts if part)


def _described(kind: Any, description: str | None) -> Any:
    """An annotation with its description as msgspec takes it; `Annotated[str, "..."]` comes before the docstring."""
    if get_origin(kind) is Annotated:
        bare, *more = get_args(kind)
        own = next((part for part in more if isinstance(part, str)), None)
        if own is None and any(isinstance(part, msgspec.Meta) and part.description for part in more):
            return kind
        kept = tuple(part for part in more if not isinstance(part, str))
        kind = Annotated[(bare, *kept)] if kept else bare
        description = own or description
    return kind if not description else Annotated[kind, msgspec.Meta(description=description)]


def _struct_of(name: str, fields: list[Any]) -> type[msgspec.Struct]:
    """What the arguments become. Raises `BadTool`."""
    try:
        struct = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        msgspec.json.schema(struct)
    except (TypeError, ValueError) as error:
        why = str(error).splitlines()
        raise BadTool(
            name,
            f"its parameters have no form in JSON ({why[0]} {why[-1] if len(why) > 1 else ''}); use str, int, float, "
            "bool, None, list, dict, tuple, Literal, Enum, TypedDict, dataclasses, and unions that JSON can tell apart",
        ) from None
    return struct


def _schema_of(struct: type[msgspec.Struct], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of the arguments; types that do not contain themselves stand where they are used."""
    [root], parts = msgspec.json.schema_components((struct,), ref_template=_REF + "{name}")
    whole = parts.pop(root["$ref"].removeprefix(_REF))
    loops = {name for name in parts if name in _reached(parts[name], parts)}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _inlined(part, parts, loops) for name, part in whole["properties"].items()},
        "required": list(whole.get("required", ())),
        "additionalProperties": False,
    }
    for name, default in defaults.items():
        try:
            plain = msgspec.to_builtins(default, str_keys=True)
            json.dumps(plain)
        except (TypeError, ValueError, RecursionError):
            continue  # it is the function's own affair
        if plain is not None:
            schema["properties"][name]["default"] = plain
    if loops:
        schema["$defs"] = {name: _inlined(parts[name], parts, loops) for name in sorted(loops)}
    return schema


def _reached(part: Any, parts: Mapping[str, Any]) -> set[str]:
    """The names of the types that a schema comes to."""
    found: set[str] = set()
    todo = [part]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            name = here.get("$ref")
            if isinstance(name, str) and (name := name.removeprefix(_REF)) in parts and name not in found:
                found.add(name)
                todo.append(parts[name])
            todo += here.values()
        elif isinstance(here, list):
            todo += here
    return found


def _inlined(part: Any, parts: Mapping[str, Any], loops: set[str]) -> Any:
    if isinstance(part, list):
        return [_inlined(item, parts, loops) for item in part]
    if not isinstance(part, dict):
        return part
    name = part.get("$ref")
    if isinstance(name, str) and (name := name.removeprefix(_REF)) in parts and name not in loops:
        there = {key: value for key, value in parts[name].items() if key != "title"}
        return _inlined({**there, **{key: value for key, value in part.items() if key != "$ref"}}, parts, loops)
    return {key: _inlined(value, parts, loops) for key, value in part.items()}
