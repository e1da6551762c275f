"""`Model`: a field that stands for a model, for actors that hold conversations of their own.

    class Agent(Actor):
        model: Model                                      # host.spawn(Agent, model="name of the device")

        reply = await self.model.complete(self.messages.view(), tools=self.tools.view())     # a message
        spent = self.model.usage.get("total_tokens", 0)                                      # by all answers so far

The one rule: it gives the message and nothing else; what answers have used is added up beside it. A field of the type
`Device` gives all of what the device answers.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Annotated, Any

from actors.chat import Answer, marked_message, message_in
from actors.counts import summed
from dataspace.values import FrozenDict
from vat.heap.refs import NearMethod, Promise
from vat.objects.actor import Actor, Device, actor, facade
from vat.objects.parts import Part
from vat.objects.types import Keep

Message = Annotated[Any, Keep(marked_message)]
"""A message in chat form. `List[Message]` keeps what is said in its items as content, however short."""


@actor("keeve.model", version=1)
class Speaker(Actor):
    """Takes what a model answers: the message in it, its text marked as content."""

    model: Device = "model"  # type: ignore[assignment]  # a field of that kind is given a name
    usage: Mapping[str, Any] = FrozenDict()

    def _answered(self, answer: Answer) -> Message:
        message, usage = message_in(answer), answer.get("usage")
        if isinstance(usage, Mapping) and (used := summed(self.usage, usage)) != self.usage:
            self.usage = used
        return message


class Model(Part):
    """A field that stands for a model. It is given the name of its device; without one, `"model"`."""

    __slots__ = ()
    __keeve_part__ = Speaker

    @classmethod
    def __keeve_given__(cls, value: Any) -> Mapping[str, Any]:
        return {"model": value} if isinstance(value, str) else super().__keeve_given__(value)

    def complete(self, *args: Any, **keywords: Any) -> Reply:
        """The promise of the next message of a conversation; breaks with `BadAnswer` where the device gives none.

        Takes what the device takes: the messages and `tools`, as views, and options.
        """
        field = self._crank.fields(self._ref.actor)["model"]
        promise: Promise = self._crank.want(str(self._crank.heap.read(field)), "complete", args, keywords)
        return Reply(promise.then(NearMethod(self._ref, "_answered")))

    @property
    def usage(self) -> Mapping[str, Any]:
        """What all answers so far have used together, as the device counts it: `total_tokens`, ...; {} before."""
        used: Mapping[str, Any] = facade(self._crank, self._ref.actor).usage
        return used


class Reply(Promise):
    """The promise of a message. Awaited, it gives one whose text is marked, wherever it is then kept."""

    __slots__ = ("_made",)
    _made: Promise

    def __init__(self, made: Promise) -> None:
        super().__init__(made.id)
        # A fiber holds a promise for as long as it has the object that was made. It is frozen, as a value is.
        object.__setattr__(self, "_made", made)

    def __await__(self) -> Generator[Promise, Any, Any]:
        message = yield from self._made.__await__()
        return marked_message(message)
