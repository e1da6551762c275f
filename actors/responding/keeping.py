"""What a conversation keeps of the requests that were made of it, and what can be read of that and changed.

Of a turn: what was asked (`_requests`) and between which messages it stands (`_spans`). A request's tools are kept once
for as long as the next requests bring the same ones.

The one rule: of what was said nothing is kept but in `messages`; spans are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from actors.chat import marked_message
from actors.responding.asking import BadRequest, check_messages, names_in
from actors.responding.numbering import Numbering, called, open_calls, unfitting
from dataspace.errors import KeeveError
from dataspace.values import FrozenDict, FrozenList
from vat.objects.actor import Device, state_own
from vat.objects.collections import List, Map, Set
from vat.objects.moving import kept
from vat.objects.types import Keep, manage, read


class TurnRuns(KeeveError, quotes=False):
    """Something is asked of a conversation that can be done between turns only."""

    usage: ClassVar[bool] = True

    def __init__(self, turn: int) -> None:
        super().__init__(turn)
        self.turn = turn

    def __str__(self) -> str:
        return f"turn {self.turn} is not over: wait for it or interrupt it, and ask again"


def marked_messages(messages: Any) -> Any:
    """Messages, what is said in them marked as content."""
    return [marked_message(message) for message in messages] if isinstance(messages, list) else messages


Said = Annotated[Any, Keep(marked_messages)]
"""A list of messages in chat form."""


class Keeping(Numbering):
    """The part of a conversation that can say what was asked of it."""

    # Of the session.
    history: List[Any]
    model: Device
    tool_device: Device
    options: Mapping[str, Any]
    tools: List[Mapping[str, Any]]
    _queue: Map[int, int]

    offered: List[Mapping[str, Any]]
    """The schemas of tools that a request may have offered to the model, and that are carried out here."""
    metadata: Mapping[str, Any] = FrozenDict()
    """What a client has noted about the conversation."""

    _requests: Map[int, Mapping[str, Any]]
    """By turn: what was asked; in the place of the tools the turn whose `_toolsets` they are."""
    _toolsets: Map[int, Any]
    _spans: Map[int, Mapping[str, Any]]
    """By turn that has begun: numbers of messages, from its input (`from`), its first answer (`out`), and behind it
    (`to`); the seqs of the records in which it began (`first`) and ended (`seq`), and how it ended. Before `to` is
    there it runs."""
    _forgotten: Set[int]
    """Turns of which nothing is told any more."""
    _added: List[Any]
    """What is on its way into the messages; empty between cranks."""
    _own_at: Map[int, int]
    """By the number of an answer: how many of its calls, from the first one on, were carried out here."""
    _theirs: Sequence[str] = FrozenList()
    """The names of the client's tools, as the running turn has them."""
    _mine: int = 0
    """How many calls of the last answer are carried out here."""
    _finish: Any = None
    """Why the model stopped, by its last answer."""
    _outcome: Mapping[str, Any] = FrozenDict()
    """How the turn ends that is ending in this crank."""
    _tip: int = 0
    """The turn that the messages end with, if none runs."""

    def offer(self, schemas: Sequence[Mapping[str, Any]]) -> None:
        """The tools of the host are these from now on. Takes what is not there yet only."""
        if list(self.offered) != list(schemas):
            self.offered.clear()
            self.offered.extend(schemas)

    @manage
    def describe_as(self, metadata: Mapping[str, Any]) -> None:
        """Note this about the conversation."""
        if not isinstance(metadata, Mapping):
            raise BadRequest("it is a dict", "metadata")
        self.metadata = metadata

    # What is asked.

    def _note(self, n: int, how: Mapping[str, Any], lone: bool) -> None:
        tools = list(how["tools"])
        before = self._requests.get(n - 1, {}).get("tools", 0)
        if not before or list(self._toolsets[before]) != tools:
            self._toolsets[n] = tools
            before = n
        self._requests[n] = {**how, "tools": before, "lone": lone, "at": self.now()}

    def _follow(self, asked: Mapping[str, Any]) -> None:
        """What was asked for holds from now on."""
        self._instruct(asked["system"])
        for name in ("model", "tool_device", "options"):
            if asked[name] != getattr(self, name):
                setattr(self, name, asked[name])
        theirs = list(self._toolsets[asked["tools"]])
        own = asked["own"]
        wanted = set() if isinstance(own, bool) else set(own)
        offered = [tool for tool in self.offered if own is True or names_in([tool])[0] in wanted]
        names = names_in(theirs)
        taken = set(names)
        tools = [*(tool for tool in offered if names_in([tool])[0] not in taken), *theirs]
        if list(self.tools) != tools:
            self.tools.clear()
            self.tools.extend(tools)
        if list(self._theirs) != names:
            self._theirs = names

    # What was said, changed between turns.

    def add(self, messages: Said) -> dict[str, int]:
        """Put messages at the end, without asking the model; gives the numbers of the first and of what comes after.

        Raises `TurnRuns`, `BadInput`, and `BadRequest` for an outcome of no call.
        """
        check_messages(messages)
        self._must_rest()
        unknown = unfitting(messages, open_calls(self.messages))
        if unknown is not None:
            raise BadRequest(f"there is no call {unknown!r} that waits for its outcome", "items")
        first = self._end()
        self._added.append(marked_messages(messages))
        self._put(list(zip(messages, kept(self._added, 0).items(), strict=True)), asking=False)
        self._added.clear()
        state_own(self, "added", self.session_id, messages=marked_messages(messages))
        return {"from": first, "to": self._end()}

    @manage
    def remove(self, number: int, part: int | None = None) -> bool:
        """Take a message out; or its text (`part` 0) or one of its calls (1, 2, …), with what came of that, alone.

        Gives whether it was there. Raises `TurnRuns`. What it was stays in the log, until it is erased.
        """
        self._must_rest()
        place = self._place(number)
        message = None if place is None else self.messages[place]
        if place is None or message is None:
            return False
        calls = list(message.get("tool_calls") or ())
        if part is None or (part == 0 and not calls) or (part == 1 and len(calls) == 1 and not message.get("content")):
            removed = called(message)
            self._take_out(number)
        elif part == 0 and message.get("content"):
            removed = []
            self.messages[place] = marked_message({**message, "content": None})
        elif 1 <= part <= len(calls):
            removed = [calls[part - 1]["id"]]
            rest = calls[: part - 1] + calls[part:]
            other = {**message, "tool_calls": rest} if rest else {k: v for k, v in message.items() if k != "tool_calls"}
            self.messages[place] = marked_message(other)
            own = self._own_at.get(number, 0)
            if part <= own:
                self._own_at[number] = own - 1
        else:
            return False
        for id in removed:
            self._remove_outcome(number, id)
        state_own(self, "removed", self.session_id, number, part)
        return True

    def _take_out(self, number: int) -> None:
        place = self._place(number)
        assert place is not None
        del self.messages[place]
        self._removed.add(number)

    def _remove_outcome(self, answer: int, id: str) -> None:
        """Take out what came of a call of the answer of that number."""
        for number, message in self._numbered(answer + 1, self._end()):
            if message["role"] != "tool":
                return
            if message["tool_call_id"] == id:
                self._take_out(number)
                return

    @manage
    def forget(self, n: int) -> bool:
        """Tell nothing of a turn any more, though what was said in it stays; gives whether there was such a turn."""
        if self.status_of(n) is None:
            return False
        self._forgotten.add(n)
        return True

    def _must_rest(self) -> None:
        running = self._unfinished()
        if running:
            raise TurnRuns(running)
        self._part()

    # What is read.

    @read
    def status_of(self, n: int) -> str | None:
        """`"queued"`, `"in_progress"`, `"completed"`, `"failed"` or `"cancelled"`; None: there is no such turn."""
        if n in self._forgotten or not 1 <= n <= len(self.history):
            return None
        span = self._spans.get(n)
        if span is None:
            return "queued"
        status: str = span.get("status", "in_progress")
        return status

    @read
    def response(self, n: int, since: int = 0) -> dict[str, Any] | None:
        """A turn: what was asked, where it stands, and what the model and the tools have said so far, with its numbers.

        With `since`, only what was said from that number on. None: there is no such turn.
        """
        status = self.status_of(n)
        if status is None:
            return None
        asked: dict[str, Any] = dict(self._requests.get(n, {}))
        if asked:
            asked["tools"] = list(self._toolsets[asked["tools"]])
        span = dict(self._spans.get(n, {}))
        output = self._told(max(span["out"], since), span.get("to", self._end())) if span else []
        return {"turn": n, "status": status, "asked": asked, "span": span, "output": output}

    @read
    def input_of(self, n: int) -> list[dict[str, Any]] | None:
        """The messages of a turn's input, with their numbers; None: there is no such turn, or it has not begun."""
        span = self._spans.get(n)
        return None if span is None or n in self._forgotten else self._told(span["from"], span["out"])

    @read
    def extent(self) -> int:
        """The number behind the last message, those of a turn that runs left out."""
        end: int = self._spans.get(self._running_now(), {}).get("from", self._end())
        return end

    @read
    def listed(self, start: int, stop: int) -> list[dict[str, Any]]:
        """The messages from one number to before another, without those of a turn that runs."""
        return self._told(start, min(stop, self.extent()))

    @read
    def point(self, n: int) -> int | None:
        """The seq at which a fork goes on from turn n; None while that is not over, and if it never began."""
        seq: int | None = self._spans.get(n, {}).get("seq")
        return seq

    def _told(self, start: int, stop: int) -> list[dict[str, Any]]:
        return [
            {"number": number, "message": message, "own": self._own_at.get(number, 0)}
            for number, message in self._numbered(start, stop)
        ]

    # What the session says.

    def _running_now(self) -> int:
        raise NotImplementedError

    def _unfinished(self) -> int | None:
        raise NotImplementedError

    def _part(self, error: Exception | None = None) -> None:
        raise NotImplementedError
