"""What is wrong with a tool, or with a call of one.

The one rule: a model reads most of these, so each says what to do.
"""

from __future__ import annotations

from typing import ClassVar, Final

from dataspace.errors import KeeveError


class BadTool(KeeveError, TypeError, quotes=False):
    """Something that cannot be a tool; `reason` says why and what to do."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.name} cannot be a tool: {self.reason}"


SHOWN: Final = 40
"""Tools that a model is told of in an error; a name has 64 characters at most."""


class NoSuchTool(KeeveError, LookupError):
    """A model called a tool (`name`) that is not there; `known` are those that are, of which the first are told."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(name, known)
        self.name = name
        self.known = known

    def __str__(self) -> str:
        told = [f"{name:.64}" for name in self.known[:SHOWN]]
        if more := len(self.known) - len(told):
            told.append(f"and {more} more")
        return f"there is no tool {self.name!r:.200}; there are {', '.join(told) or 'none'}"


class BadArguments(KeeveError, ValueError):
    """A model called a tool (`name`) with arguments that do not fit; `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"the arguments of {self.name} do not fit: {self.reason}"

    @property
    def logged(self) -> str:
        return "the arguments of a call do not fit: its result says what about them"  # `reason` may name what was said


class ToolFailed(KeeveError):
    """A tool (`name`) of a server says that it has failed; `said` is how it puts that."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(name, said)
        self.name = name
        self.said = said

    def __str__(self) -> str:
        return f"{self.name} failed: {self.said}"


class ApprovalWanted(KeeveError, quotes=False):
    """A tool (`name`) was not called, because a person has to approve of the call first."""

    ordinary: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name} was not called yet: wait until a person has approved of it, whom a session or a Toolbox asks"
        )


class CallRefused(KeeveError):
    """A person has refused a call, which was not made; the message has their reason."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
