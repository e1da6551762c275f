"""`Model`: a field that stands for a model, for actors that hold conversations of their own.

    class Agent(Actor):
        model: Model                                      # host.spawn(Agent, model="name of the device")

        reply = await self.model.complete(self.messages.view(), tools=self.tools.view())     # a message

The one rule: it gives the message and nothing else; a field of the type `Device` gives all of what the device answers.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Annotated, Any

from actors.chat import Answer, marked_message, message_in
from vat.heap.refs import NearMethod, Promise
from vat.objects.actor import Actor, Device, actor
from vat.objects.parts import Part
from vat.objects.types import Keep

Message = Annotated[Any, Keep(marked_message)]
"""A message in chat form. `List[Message]` keeps what is said in its items as content, however short."""


@actor("keeve.model", version=1)
class Speaker(Actor):
    """Takes what a model answers: the message in it, its text marked as content."""

    model: Device = "model"  # type: ignore[assignment]  # a field of that kind is given a name

    def _answered(self, answer: Answer) -> Message:
        return message_in(answer)


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
