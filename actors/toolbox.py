"""`Toolbox`: a field that holds the tools of an actor, and has them called.

    class Agent(Actor):
        tools: Toolbox                                    # host.spawn(Agent, tools=Tools(weather, delete))

        for call, outcome in await self.tools.run_all(reply["tool_calls"]):
            self.messages.append(tool(call, outcome))

The schemas are data in the heap, given once; no request to a model records them again.

The one rule: every call is an effect of its own, with its own start and its own outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from actors.approvals import Approver
from actors.chat import MOST_CALLS, Call, check_call, check_calls
from actors.tools.errors import NoSuchTool
from actors.tools.offering import offered
from vat.heap.refs import Promise
from vat.objects.actor import Device, actor
from vat.objects.collections import List
from vat.objects.parts import Part
from vat.objects.types import type_of
from vat.objects.views import ListView
from vat.objects.waiting import Gathered


@actor("keeve.toolbox", version=1)
class Toolkeeper(Approver):
    """The tools that an actor offers to a model, the device that runs them, and the calls that wait for a person."""

    tool_device: Device = "tools"  # type: ignore[assignment]  # a field of that kind is given a name
    schemas: List[Mapping[str, Any]]

    def _replace(self, schemas: list[Mapping[str, Any]]) -> None:
        self.schemas.clear()
        self.schemas.extend(schemas)

    def _call(self, call: Call) -> Promise:
        return self._run(str(self.tool_device), call, 0)

    async def _refuse(self, call: Call) -> None:
        raise NoSuchTool(call["function"]["name"], tuple(offered(self.schemas)))


class _Calls(Gathered):
    """What `run_all` gives: it is waited for as what `gather` gives."""

    __slots__ = ("calls",)

    def __init__(self, calls: list[Mapping[str, Any]], promises: list[Promise]) -> None:
        super().__init__(promises, failures=True)
        self.calls = calls

    def came(self, outcomes: Sequence[tuple[bool, Any]]) -> list[Any]:
        return list(zip(self.calls, super().came(outcomes), strict=True))


class Toolbox(Part):
    """A field that holds tools. It is given a `Tools`, or schemas, or `{"schemas": [...], "tool_device": "name"}`."""

    __slots__ = ()
    __keeve_part__ = Toolkeeper

    @classmethod
    def __keeve_given__(cls, value: Any) -> Mapping[str, Any]:
        value = getattr(value, "schemas", value)
        return {"schemas": value} if isinstance(value, list | tuple) else super().__keeve_given__(value)

    def view(self) -> ListView[Mapping[str, Any]]:
        """The schemas as they are now, for a model. O(1)."""
        return self._schemas.view()

    def __len__(self) -> int:
        return len(self._schemas)

    @property
    def _schemas(self) -> List[Mapping[str, Any]]:
        return List(self._crank, self._ref.actor, type_of(Toolkeeper).fields["schemas"])

    def call(self, call: Mapping[str, Any]) -> Promise:
        """Have one tool call carried out; approved of by a person first where the tool wants that.

        A call of what is not offered breaks with `NoSuchTool`, whatever the device has besides. Raises `BadAnswer` for
        what is no call that could be carried out and told of.
        """
        check_call(call, asked=True)
        name = call["function"]["name"]
        promise: Promise = self.inner("_call" if name in offered(self._schemas) else "_refuse", call)
        return promise

    def run_all(self, calls: Iterable[Mapping[str, Any]]) -> Awaitable[list[tuple[Mapping[str, Any], Any]]]:
        """Have these tool calls carried out beside each other: each with its value, or the exception that broke it.

        In the order of the calls, when all are over; approved of by a person first where a tool wants that. `within` a
        time, those that are not over by then are given up, and have `TimeLimit`. Raises `BadAnswer`, as `call`, and for
        more than `MOST_CALLS`, and has made none then.
        """
        calls = list(islice(calls, MOST_CALLS + 1))
        check_calls(calls, asked=True)
        return _Calls(calls, [self.call(call) for call in calls])

    def replace(self, tools: Any) -> None:
        """Offer these from now on: schemas, or a `Tools`."""
        self.inner("_replace", list(getattr(tools, "schemas", tools)))
