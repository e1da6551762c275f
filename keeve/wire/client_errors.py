"""What a client raises of itself; all else is what the server raised. Here, since the client itself needs an extra.

The one rule: whether something was done is said wherever it is not plain.
"""

from __future__ import annotations

import ssl
from typing import ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.urls import shown

_OTHER_NAME: Final = frozenset((62, 64))
_OTHER_TIME: Final = frozenset((9, 10))
"""As OpenSSL numbers what is wrong with a certificate: it is not of this name or address; not of this time."""


def unreachable(url: str, error: Exception) -> Unreachable:
    """Why a server cannot be reached, where an attempt has failed with that."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return NotTrusted(url, error)
    return NoTLS(url, error) if isinstance(error, ssl.SSLError) else Unreachable(url, error)


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


class NotTrusted(Unreachable):
    """The certificate of a server is not believed here, so that nothing was said to it."""

    def __init__(self, url: str, error: ssl.SSLCertVerificationError) -> None:
        super().__init__(url, error)
        remedy = "name the file of the CA that has signed it (PEM) in SSL_CERT_FILE"
        if error.verify_code in _OTHER_NAME:
            remedy = "connect by a name that it has, or have one made for this name"
        elif error.verify_code in _OTHER_TIME:
            remedy = "have another one made, or set the clock of this machine"
        self.args = (f"the certificate of the server at {url} is not trusted here ({error.verify_message}): {remedy}",)


class NoTLS(Unreachable):
    """What is spoken at the address of a server is not the TLS that its URL says."""

    def __init__(self, url: str, error: ssl.SSLError) -> None:
        super().__init__(url, error)
        reason = (error.reason or str(error)).replace("_", " ").lower()
        self.args = (
            f"TLS cannot be spoken with the server at {url} ({reason}): if it speaks none, connect to http://",
        )


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

    def __init__(self, url: object, meant: str = "", *, beside: bool = False) -> None:
        """`meant` is what may have been; `beside`: it has what belongs into no URL of a server."""
        said = shown(url) if isinstance(url, str) and "://" in url else url
        why = " with a user, a password, a query or a fragment in it" if beside else ""
        why += f", did you mean {meant}?" if meant else ""
        super().__init__(
            f"{said!r} cannot be connected to{why}: give http(s)://host:port, "
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
