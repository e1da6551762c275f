"""Describing: a class taken apart into the type that it declares, by its annotations.

State is the declared fields, nothing else. The annotation decides what a field is: `List[...]`, `Map[...]` and
`Set[...]` are collections that belong to the vat, `Device` names a device of the host, a `Part` is an actor of its own
that is made with the one that has the field, everything else is a value. What is annotated `Text` (a field, the items
of a collection, a parameter, a result) is kept as a cell, however short.

The one rule: an annotation is read, never run; what cannot be found in its module is a value like any other.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, ClassVar, Final, get_args, get_origin

from dataspace.values import Text, Value, freeze
from vat.objects.types import TYPE_NAME, ActorType, BadActorType, Field, Keep, Mark, Method, Shape, Takes

_PLAIN: Final = (bool, int, float, str, bytes, list, dict, set, tuple, type(None))
"""Types of what a class attribute without an annotation may have been meant as a field with."""

_OURS: Final = ("List", "Map", "Set", "Device", "Text")
"""Annotations that make something else of a field than a plain value."""

_WORD: Final = re.compile(r"[^\W\d][\w.]*")


def describe_type(cls: type, name: str, version: int, reserved: frozenset[str]) -> ActorType:
    """Take a class apart. Raises `BadActorType`."""
    if not isinstance(name, str) or not TYPE_NAME.fullmatch(name):
        raise BadActorType(cls, f"{name!r} is no name for an actor type: use words with dots, like 'chat.counter'")
    if type(version) is not int or version < 1:
        raise BadActorType(cls, f"version {version!r} is not a whole number from 1 on; give one")
    fields = _fields(cls, reserved)
    methods: dict[str, Method] = {}
    inner: dict[str, Method] = {}
    for base in _declared(cls):
        for key, function in vars(base).items():
            if key == "__init__":
                raise BadActorType(cls, "an actor has no __init__: declare fields, and give them to spawn(...)")
            if key.startswith("__"):
                continue
            if key in reserved:
                _of_the_class(cls, key, function)
                continue
            if not isinstance(function, FunctionType):
                _no_lost_field(cls, base, key, function)
                continue
            if inspect.isasyncgenfunction(function) and not key.startswith("_"):
                raise BadActorType(
                    cls, f"{key} is an async generator: nobody can iterate it through a ref; give a list"
                )
            if inspect.iscoroutinefunction(function) and getattr(function, "__keeve_read__", False):
                raise BadActorType(
                    cls,
                    f"{key} is marked @read and async: what only reads has nothing to wait for; make it a plain def",
                )
            (inner if key.startswith("_") else methods)[key] = _method(cls, key, function)
    clash = fields.keys() & (methods.keys() | inner.keys())
    if clash:
        raise BadActorType(cls, f"{min(clash)} is a field and a method; give one of them another name")
    return ActorType(name, version, cls, fields, methods, inner)


def _of_the_class(cls: type, name: str, given: Any) -> None:
    """Raise for a name that every actor has, but for a class method in the place of one, as `upgrade`."""
    root = next(base for base in cls.__mro__ if "__keeve_root__" in vars(base))
    if not isinstance(vars(root).get(name), classmethod):
        kind = "method" if isinstance(given, FunctionType) else "attribute"
        raise BadActorType(cls, f"the {kind} {name} has the name of something that every actor has; give it another")
    if not isinstance(given, classmethod | staticmethod):
        raise BadActorType(cls, f"{name} is called on the class: write @classmethod above it, and def {name}(cls, ...)")


def _no_lost_field(cls: type, base: type, name: str, value: Any) -> None:
    """Raise for what looks like a field and is none, since it has no annotation: it would be the same for all."""
    if name in vars(base).get("__annotations__", {}) or name.isupper() or type(value) not in _PLAIN:
        return
    kind = "<type>" if value is None else type(value).__name__
    raise BadActorType(
        cls,
        f"{name} = {value!r:.40} is no field without a type: write `{name}: {kind} = ...`; or, for a constant of the "
        f"class, {name.upper()}, or `{name}: ClassVar[{kind}] = ...`",
    )


def _declared(cls: type) -> Iterable[type]:
    """The classes that declare something of an actor type, the bases first: not `Actor`, which is the runtime's."""
    return [base for base in reversed(cls.__mro__[:-1]) if "__keeve_root__" not in vars(base)]


def _fields(cls: type, reserved: frozenset[str]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for base in _declared(cls):
        names = vars(sys.modules[base.__module__])
        for name, annotation in vars(base).get("__annotations__", {}).items():
            kind = _kind(annotation, names)
            if kind is ClassVar or (isinstance(annotation, str) and annotation.startswith("ClassVar")):
                continue
            if name in reserved:
                raise BadActorType(
                    cls, f"the field {name} has the name of something that every actor has; give it another"
                )
            if name.startswith("__"):
                raise BadActorType(cls, f"the field {name} has a name of Python's or the runtime's: use another one")
            if name == "request":
                raise BadActorType(cls, "spawn(..., request=...) is the id of a request: give the field another name")
            _meant(cls, name, annotation, names)
            fields[name] = _field(cls, base, name, kind, annotation)
    return fields


def _meant(cls: type, name: str, annotation: Any, names: Mapping[str, Any]) -> None:
    """Raise for an annotation that reads like one of ours and is another: the field would be a plain value."""
    word = _WORD.match(annotation) if isinstance(annotation, str) else None
    called = word[0].rpartition(".")[2] if word is not None else ""
    found = annotation if word is None else _resolved(word[0], names)
    if called in _OURS and found is None:
        problem = f"{called} cannot be found in {cls.__module__} when it is imported"
    elif getattr(found, "__module__", "") == "typing" and getattr(found, "_name", "") in _OURS:
        called = found._name
        problem = f"that is the {called} of typing, with which the field is a plain value"
    elif called == "Text" and found is str:
        problem = "that is the Text of typing, which is str"
    else:
        return
    raise BadActorType(cls, f"{name}: {annotation}: {problem}; write `from keeve import {called}` in its module")


def _field(cls: type, base: type, name: str, kind: Any, annotation: Any) -> Field:
    shape: Shape = getattr(kind, "__keeve_shape__", Shape.VALUE)
    given = name in vars(base)
    if given and hasattr(vars(base)[name], "__keeve_field__"):  # the base is an actor type itself
        inherited: Field = vars(base)[name].__keeve_field__
        return inherited
    default: Value = None
    if given and shape in (Shape.LIST, Shape.MAP, Shape.SET):
        raise BadActorType(cls, f"the collection {name} begins empty: take its default away")
    if given and shape is Shape.PART:
        raise BadActorType(cls, f"{name} is an actor of its own, made with this one: take its default away")
    if given:
        default = freeze(vars(base)[name], None, f"{cls.__name__}.{name}")
    required = not given and shape in (Shape.VALUE, Shape.DEVICE)
    mark = _mark(annotation, vars(sys.modules[base.__module__])) if shape is not Shape.PART else None
    return Field(name, shape, mark, required, default, kind if shape in (Shape.DEVICE, Shape.PART) else None)


def _method(cls: type, name: str, function: FunctionType) -> Method:
    marks: dict[str | int, Mark] = {}
    names = function.__globals__
    parameters = list(inspect.signature(function).parameters.values())
    for place, parameter in enumerate(parameters[1:]):
        mark = _mark(parameter.annotation, names)
        if mark is not None:
            marks[parameter.name] = mark
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                marks[place] = mark
    result = _mark(function.__annotations__.get("return"), names)
    return Method(
        name,
        function,
        getattr(function, "__keeve_read__", False),
        any(getattr(vars(base).get(name), "__keeve_manage__", False) for base in cls.__mro__),
        inspect.iscoroutinefunction(function),
        marks,
        result,
        f"the result of {cls.__name__}.{name}",
        taken_by(function, 1),
    )


def taken_by(function: Callable[..., Any], given: int) -> Takes:
    """What a function can be called with behind what it is always `given`, as Python calls it: its own code counts, and
    nothing that it says of itself (`__wrapped__`, `__signature__`), no annotation, and no value of a default."""
    assert isinstance(function, FunctionType)
    bare = FunctionType(function.__code__, {}, argdefs=function.__defaults__, closure=function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__
    signature = inspect.signature(bare)
    parameters = list(signature.parameters.values())
    if parameters[:1] and parameters[0].kind is not inspect.Parameter.VAR_POSITIONAL:
        parameters = parameters[given:]
    return Takes(signature.replace(parameters=list(map(_without_default, parameters))))


class _Unsaid:
    """Stands for the value of a default, which is the code's own, and may be a secret: who calls is shown that there is
    one."""

    def __repr__(self) -> str:
        return "…"


def _without_default(parameter: inspect.Parameter) -> inspect.Parameter:
    needed = parameter.default is inspect.Parameter.empty
    return parameter if needed else parameter.replace(default=_Unsaid())


def _mark(annotation: Any, names: Mapping[str, Any]) -> Mark | None:
    """How what is annotated so is kept: by the first `Text` or `Keep` in it."""
    if isinstance(annotation, str):
        named = (_resolved(word, names) for word in _WORD.findall(annotation))
        return next((mark for part in named if (mark := _mark(part, names)) is not None), None)
    if annotation is Text:
        return _text
    for part in (*getattr(annotation, "__metadata__", ()), *get_args(annotation)):
        if isinstance(part, Keep):
            return part.mark
        if (mark := None if isinstance(part, str) else _mark(part, names)) is not None:
            return mark
    return None


def _text(value: Any) -> Any:
    return Text(value) if type(value) is str else value


def _kind(annotation: Any, names: Mapping[str, Any]) -> Any:
    """What an annotation names, its parameters aside; None when that cannot be found here."""
    if isinstance(annotation, str):
        word = _WORD.match(annotation)
        annotation = None if word is None else _resolved(word[0], names)
    return get_origin(annotation) or annotation


def _resolved(word: str, names: Mapping[str, Any]) -> Any:
    """What a name in an annotation stands for; None when that cannot be found here, or is a string itself."""
    head, *rest = word.split(".")
    found = names.get(head)
    for part in rest:
        found = getattr(found, part, None)
    return None if isinstance(found, str) else found
