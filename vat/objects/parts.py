"""Parts: actors that are made with another one, and that it calls at once.

    class Desk(Actor):
        approvals: Approvals          # a `Part`; the field is given when the desk is spawned, and stays what it is

    self.approvals.ask(call)          # inside: a near call
    await desk.approvals              # from outside: a ref to the part, which can be handed on

The one rule: a part is an actor like any other; only its beginning is its owner's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vat.errors import BadCall
from vat.heap.refs import Near, Ref
from vat.objects.types import Shape


class Part(Near):
    """What a method has in the place of a part: its methods are called at once, as with `near`.

    A subclass names the actor type (`__keeve_part__`), and may say what can be given for it (`__keeve_given__`).
    """

    __slots__ = ("_crank",)
    __keeve_shape__: ClassVar[Shape] = Shape.PART
    __keeve_part__: ClassVar[type]
    __keeve_remedy__: ClassVar[str] = "it is a part: give what it holds, as .view(), or its .ref"

    def __init__(self, crank: Any, ref: Ref) -> None:
        super().__init__(ref)
        self._crank = crank

    def inner(self, method: str, *args: Any) -> Any:
        """Call a method that only its owner may, with an underscore before its name."""
        return self._crank.call(self._ref, method, args, {}, inner=True)

    @property
    def ref(self) -> Ref:
        """The ref to it."""
        return self._ref

    @classmethod
    def __keeve_given__(cls, value: Any) -> Mapping[str, Any]:
        """The fields that the part begins with, from what its owner was given. Raises `BadCall`."""
        if not isinstance(value, Mapping):
            raise BadCall(f"{cls.__name__} begins with a dict of its fields: give that, not a {type(value).__name__}")
        return value
