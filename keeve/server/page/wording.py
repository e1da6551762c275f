"""What is refused, in words of the page: elsewhere it is said for who asks over HTTP, with paths and headers.

The one rule: only what is said to do is put in other words here, and what names a header. What was wrong stays.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from keeve.server.errors import Refusal, refusal_of

LOOK: Final = "look at the session: it says what there is"
REMEDIES: Final[Mapping[str, str]] = {
    "bad_body": "go back, and change it",
    "bad_query": "go back, and change it",
    "bad_request_id": "load the page again, and send it anew",
    "bad_seq": LOOK,
    "busy": "wait until its work is done",
    "no_such_effect": "load the page again: it shows the effects that have no outcome",
    "no_such_point": LOOK,
    "no_such_session": "the list of sessions has those that you can reach",
    "no_such_turn": LOOK,
    "nothing_to_erase": LOOK,
    "nothing_waits": "load the page again: it shows the calls that wait",
    "request_conflict": "load the page again, and send it anew",
    "states_no_turns": "say it and wait for its answer",
}
"""What is to be done, by the code of what is refused."""

OF_HEADERS: Final = re.compile(r"[,;]? with (?:the same|another|an) Idempotency-Key[^:;.]*")
MESSAGES: Final[Mapping[str, str]] = {
    "request_conflict": "this form was sent before, with something else in it",
    "bad_request_id": "the form has no key that can be one",
}


def told(error: BaseException) -> Refusal | None:
    """How an error is told on a page; None for one that is not ours, which nobody is to be told of."""
    refusal = refusal_of(error)
    if refusal is None:
        return None
    remedy = REMEDIES.get(refusal.code) or OF_HEADERS.sub("", refusal.remedy)
    return attrs.evolve(refusal, message=MESSAGES.get(refusal.code, refusal.message), remedy=remedy)
