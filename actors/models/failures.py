"""What can go wrong between a model and us. Each error says what to do; none holds a key.

The one rule: `ModelUnreachable`, `ModelBusy` and `ModelCut` are worth another attempt, the others are not.
"""

from __future__ import annotations

import ssl
from typing import ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy


class ModelError(KeeveError):
    """A model gave no answer."""


class ModelUnreachable(ModelError, quotes=False):
    """No answer came from `url` at all; `cause` is what the network said."""

    def __init__(self, url: str, cause: str) -> None:
        super().__init__(url, cause)
        self.url = url
        self.cause = cause

    def __str__(self) -> str:
        return f"no answer from {self.url} ({self.cause}): is the service running, the address right, the network up?"


class ModelRefused(ModelError):
    """The service refused the request: its `status`, and its own words (`message`), which may quote what was sent."""

    status: int = 0  # where only its message was recorded

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return f"the model refused ({self.status}): {self.message or 'it gave no reason'}{_ADVICE.get(self.status, '')}"

    @property
    def logged(self) -> str:
        return f"status {self.status}" if self.status else super().logged


class BadModelURL(KeeveError, ValueError):
    """A base URL that cannot be used; says why (`reason`), and what it was (`shown`) unless it may hold a key.

    `setting` is where it comes from, as the name of a variable; "" for an argument.
    """

    usage: ClassVar[bool] = True

    def __init__(self, reason: str, shown: str = "", setting: str = "") -> None:
        super().__init__(reason, shown, setting)
        self.reason = reason
        self.shown = shown
        self.setting = setting

    def __str__(self) -> str:
        where = f"{self.setting}=" if self.setting and self.shown else self.setting or "the model's base URL "
        return f"{(where + self.shown).strip()} {self.reason}; give one like https://api.openai.com/v1"


CREDENTIAL: Final = Remedy("credential", "is the right credential in the host's vault, and still valid?")
MAY_USE: Final = Remedy("may-use", "may this credential use this model?")

_ADVICE = {
    400: " [look at the messages, the tools and the options that were sent]",
    401: f" [{CREDENTIAL()}]",
    403: f" [{MAY_USE()}]",
    404: " [is the base URL right (it usually ends in /v1), and the name of the model?]",
    413: " [the conversation is too long for this service]",
}


class ModelBusy(ModelRefused):
    """The service could not answer now; `retry_after` is how many seconds it asked for, or `None`."""

    def __init__(self, status: int, message: str, retry_after: float | None = None) -> None:
        super().__init__(status, message)
        self.args = (status, message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        wait = "" if self.retry_after is None else f"; it asks to wait {self.retry_after:g} s"
        return f"the model is busy or failing ({self.status}): {self.message or 'it gave no reason'}{wait}"


class ModelNonsense(ModelError):
    """An answer came that is none (`what` is wrong with it)."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"the model's answer makes no sense: {self.what}. Is the base URL that of an OpenAI-compatible API?"


class ModelCut(ModelNonsense):
    """An answer began and did not come to its end (`what` happened)."""

    def __str__(self) -> str:
        return f"the model's answer was cut off: {self.what}; ask again"


def words_of(error: BaseException) -> str:
    """What the network said: the class of an error, and the first words that it or what it came of has.

    A library's error may have none of its own, as where TLS fails.
    """
    name, cause = type(error).__name__, error
    while not str(cause) and (before := cause.__cause__ or cause.__context__) is not None:
        cause = before
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLCertVerificationError):
        return f"{name}: no TLS there, {cause.reason or cause}; a service without it has a URL with http://"
    return f"{name}: {cause}" if str(cause) else name
