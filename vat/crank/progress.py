"""A crank in progress: its record so far, what is to leave with that, what is still to be delivered, and what runs now.

The one rule: whatever is of one crank alone is here, and nothing else. So a crank begins with a new one of these, and
is put aside as one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Protocol

from dataspace import values
from dataspace.drafts import Draft
from dataspace.values import Value
from vat.crank.deliveries import Delivery, Resume
from vat.heap.messages import NOBODY, Asker, Outcome
from vat.heap.refs import Promise
from vat.objects.randomness import Random

HERE, OUTWARD, INWARD, STATED = range(4)
"""Where a value goes that is frozen: it stays, it leaves the vat, it has come to it, it is a fact."""

NOBODY_WAITS: Final[Mapping[int, Any]] = {}


class Refers(Protocol):
    """Says how a ref or promise is kept where the value that is being frozen goes."""

    def reference(self, value: values.Ref | values.Promise) -> Value: ...


class CrankDraft(Draft):
    """The record of a crank; hands the refs and promises in what it is given to the crank."""

    __slots__ = ("crank",)
    crank: Refers

    def reference(self, value: values.Ref | values.Promise) -> Value:
        return self.crank.reference(value)


class Progress:
    """What there is of one crank. Without a `draft` there is none."""

    __slots__ = (
        "advanced",
        "answer",
        "asker",
        "at",
        "cancelled",
        "draft",
        "due",
        "failure",
        "given_up",
        "ids",
        "lent",
        "making",
        "mode",
        "moment",
        "previous",
        "queue",
        "random",
        "read_only",
        "seed",
        "sent",
        "settled",
        "settling",
        "silent",
        "subscriptions",
        "thread",
        "torn",
        "unheard",
        "wanted",
        "watched",
    )

    def __init__(
        self,
        draft: CrankDraft | None = None,
        thread: int = 0,
        previous: bytes = b"",
        asker: Asker = NOBODY,
        silent: bool = False,
        watched: Mapping[int, Any] = NOBODY_WAITS,
    ) -> None:
        self.draft = draft
        self.thread = thread
        """The thread that it runs in."""
        self.previous = previous
        """The hash of the record before its own."""
        self.asker = asker
        self.silent = silent
        """Whether it writes no record."""
        self.watched = watched
        """The promises that callers outside wait for."""

        self.queue: deque[Delivery | Resume] = deque()
        self.settling: deque[tuple[int, Outcome]] = deque()
        self.advanced: list[int] = []
        """The fibers whose coroutines were started or resumed, in order."""

        self.sent: list[tuple[int, bytes, Value]] = []
        """Messages to other vats: number, uid, message (stored)."""
        self.wanted: list[int] = []
        """Numbers of the effects that it wants."""
        self.cancelled: list[int] = []
        """Numbers of the effects that it gives up."""
        self.given_up: dict[int, bool] = {}
        """The promises of those, with whether the effect may have begun outside."""
        self.due: float | None = None
        """When a timer's time came, in seconds since 1970, where this crank is what that has brought."""
        self.settled: list[tuple[int, Outcome]] = []
        """The promises that got their outcome."""
        self.lent: list[int] = []
        """Actors that a silent crank hands out the first refs to."""
        self.subscriptions = False
        """Whether it may have begun or ended subscriptions."""
        self.answer: Outcome | Promise | None = None
        """What the caller outside gets: an outcome, or the promise that will have it."""
        self.failure: BaseException | None = None
        """The last exception that a delivery was undone for, with its traceback."""

        self.unheard: list[str] = []
        """What failed and nobody waits for, and what cannot go on, in words."""

        self.at: tuple[int, str] | None = None
        """The actor and the method that run now."""
        self.read_only = silent
        """Whether what runs now must not change anything."""
        self.mode = HERE
        """Where the value goes that is frozen now."""
        self.making: list[Promise] | None = None
        """The promises that were made since an async method runs."""
        self.torn: BaseException | None = None
        """What cut something off in the middle: the delivery fails with it, whatever user code made of it."""
        self.seed: bytes | None = None
        """What the chance of all its deliveries comes from, once somebody has asked for some."""
        self.moment = 0
        """The number of the operation with which the running delivery began: where its own chance comes from."""
        self.random: Random | None = None
        self.ids = 0
        """How many ids the running delivery was given."""

    def new_moment(self) -> None:
        """A delivery begins."""
        draft = self.draft
        self.moment = 0 if draft is None else len(draft.operations)
        self.random = None
        self.ids = 0

    def keep_moment(self) -> tuple[int, Random | None, int]:
        """Where the running delivery is, to go `back_to`."""
        return self.moment, self.random, self.ids

    def back_to(self, moment: tuple[int, Random | None, int]) -> None:
        """The delivery goes on that began at that moment."""
        self.moment, self.random, self.ids = moment
