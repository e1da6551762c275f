"""Chained tokens: what is minted of the owner's token, and narrowed by whoever holds it.

The one rule: such a token is checked at each request, against the owner's token, the clock and the revocations, and
nothing of it is remembered.
"""

from __future__ import annotations

from typing import Final

from dataspace.errors import KeeveError
from keeve.principals import OWNER
from keeve.server.auth import Principal, unknown
from keeve.settings import VERBS
from keeve.wire.revocations import Revocations
from keeve.wire.tokens import Allowance, BadToken, Token, TokenRefused, check, is_token

_ASK: Final = "ask who gave it for another"


class Chains:
    """Tokens that were minted with `secret`: one of the `ways` of `Auth`."""

    def __init__(self, secret: str, revocations: Revocations) -> None:
        self._secret = secret
        self._revocations = revocations

    def __call__(self, token: str) -> Principal | None:
        if not is_token(token):
            return None
        try:
            return principal_of(check(self._secret, Token.parse(token), self._revocations.ids))
        except BadToken as error:
            raise unknown(f"the token is none: {error.what}", "copy it whole, or ask for another") from None
        except TokenRefused as error:
            raise unknown(str(error), _ASK) from None
        except KeeveError as error:  # the revocations cannot be read
            raise unknown(
                f"no such token is taken now ({type(error).__name__})", "tell whoever keeps the server"
            ) from None


def principal_of(allowance: Allowance) -> Principal:
    """Who asks with a token that allows this.

    Its verbs are those of HTTP, where `methods` names them; over a connection each method is looked at by itself.
    """
    limited = allowance.own or allowance.read_only or allowance.sessions is not None or allowance.methods is not None
    verbs = {"read"} if allowance.read_only else set(VERBS) - {"admin"}
    if not limited and allowance.name is None:
        verbs.add("admin")
    if allowance.methods is not None:
        verbs &= allowance.methods
    return Principal(
        allowance.name or OWNER,
        frozenset(verbs),
        allowance.sessions,
        allowance.until,
        everyone=not allowance.own,
        allowance=allowance,
    )
