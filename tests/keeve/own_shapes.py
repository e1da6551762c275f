"""Agents of one's own in all shapes: what is asked of them they have not, or with other parameters, or it fails."""

from __future__ import annotations

from typing import Any

from keeve import Actor, Text, actor, read


@actor("verbs.bare", version=1)
class Bare(Actor):
    """It has no method at all."""

    calls: int = 0


@actor("verbs.plain", version=1)
class Plain(Actor):
    """As those of docs/tools.md: an interrupt takes no turn, since its turns have no numbers."""

    calls: int = 0

    def turn(self, text: Text) -> str:
        self.calls += 1
        return "done"

    def steer(self, text: Text) -> None:
        self.calls += 1

    def interrupt(self) -> bool:
        self.calls += 1
        return False

    @read
    def status(self) -> str:
        return "well"


@actor("verbs.none", version=1)
class TakesNothing(Actor):
    calls: int = 0

    def turn(self) -> None:
        self.calls += 1

    def steer(self) -> None:
        self.calls += 1

    def interrupt(self) -> None:
        self.calls += 1

    @read
    def status(self) -> dict[str, Any]:
        return {"accepted": 0, "stated": True}


@actor("verbs.more", version=1)
class TakesMore(Actor):
    calls: int = 0

    def turn(self, text: Text, urgent: bool) -> None:
        self.calls += 1

    def steer(self, text: Text, urgent: bool) -> None:
        self.calls += 1

    def interrupt(self, turn: int, reason: str) -> None:
        self.calls += 1

    @read
    def status(self, what: str) -> str:
        return what


@actor("verbs.named", version=1)
class ByName(Actor):
    calls: int = 0

    def turn(self, *, text: Text) -> None:
        self.calls += 1

    def steer(self, *, text: Text) -> None:
        self.calls += 1

    def interrupt(self, *, turn: int | None = None, reason: str = "") -> str:
        self.calls += 1
        return f"{turn} was ended"

    @read
    def status(self, *, what: str) -> str:
        return what


@actor("verbs.private", version=1)
class Private(Actor):
    calls: int = 0

    def _turn(self, text: Text) -> None:
        self.calls += 1

    def _steer(self, text: Text) -> None:
        self.calls += 1

    def _interrupt(self, turn: int | None = None) -> None:
        self.calls += 1

    def _status(self) -> None:
        self.calls += 1


@actor("verbs.properties", version=1)
class Properties(Actor):
    calls: int = 0

    @property
    def turn(self) -> str:
        return "x"

    @property
    def steer(self) -> str:
        return "x"

    @property
    def interrupt(self) -> str:
        return "x"

    @property
    def status(self) -> str:
        return "x"


@actor("verbs.fields", version=1)
class Fields(Actor):
    calls: int = 0
    turn: str = "x"
    steer: str = "x"
    interrupt: str = "x"
    status: str = "x"


@actor("verbs.failing", version=1)
class Failing(Actor):
    calls: int = 0

    def turn(self, text: Text) -> None:
        raise ValueError("not today")

    def interrupt(self) -> None:
        raise ValueError("not today")

    @read
    def status(self) -> None:
        raise ValueError("not today")


@actor("verbs.writing", version=1)
class Writing(Actor):
    """What it calls its status writes, and says what that of a conversation says."""

    calls: int = 0

    def turn(self, text: Text) -> str:
        return "done"

    def steer(self, text: Text) -> None:
        pass

    def interrupt(self) -> int:
        return 3

    def status(self) -> dict[str, Any]:
        self.calls += 1
        return {"accepted": 3, "over": 3, "running": None, "stated": True}
