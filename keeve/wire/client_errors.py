"""What a client raises of itself; all else is what the server raised. Here, since the client itself needs an extra.

The one rule: whether something was done is said wherever it is not plain.
"""

from __future__ import annotations

from typing import ClassVar

from dataspace.errors import KeeveError


class Unreachable(KeeveError, ConnectionError):
    """The server cannot be reached. `asked`: something was asked for and not answered, and may have been done."""

    def __init__(self, url: str, why: object, *, asked: bool = False) -> None:
        self.url = url
        self.why = why
        may = (
            " What was asked and not answered may have been carried out; with the same request id a retry is safe"
            if asked
            else ""
        )
        super().__init__(f"the server at {url} cannot be reached ({why}): is it running?{may}")


class ClientClosed(KeeveError, RuntimeError):
    """A ref, a promise or an observation of a client that has ended."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(
            "this client is closed: use another; its client.live(...) takes the refs whose sturdy form you kept"
        )


class BadURL(KeeveError, ValueError):
    """What was to be connected to is nothing that is known."""

    usage: ClassVar[bool] = True

    def __init__(self, url: object, meant: str = "") -> None:
        super().__init__(
            f"{url!r} cannot be connected to{f', did you mean {meant}?' if meant else ''}: give http(s)://host:port, "
            "ws(s)://host:port/wire, unix:/path/of/socket, or the folder of the server's store"
        )


class NoToken(KeeveError, ValueError):
    """A client was given no token, and found none."""

    usage: ClassVar[bool] = True

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no token was given, and none found ({why}): give connect(url, token=...) one of the server's, such as "
            "its owner's, which is in the file `token` in the folder of its store"
        )


class ClientTooLarge(KeeveError, ValueError):
    """A call of more bytes than the server takes in one message; it was not made."""

    usage: ClassVar[bool] = True

    def __init__(self, method: str, size: int, limit: int) -> None:
        super().__init__(f"{method}() has {size} bytes of arguments, and the server takes {limit} at once: send less")
