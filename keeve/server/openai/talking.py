"""From a request to a turn: which session is meant, and who may; and the turn that it is, however often it is asked.

    nothing said before     a session is made, and the turn is its first
    after a response        the turn comes after that in its session; if something else came there already, in a fork at
                            the end of that response
    in a conversation       the turn is the next one

What is not to be kept is asked in a session of its own, made or forked for it (`keeve.server.openai.unstored`).

All of it is done under request ids that follow from the client's `Idempotency-Key`, so repeating it gives the same.

The one rule: whoever may not reach a session is answered as if it were not there.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import Any, Final
from urllib.parse import quote

import attrs
import trio
from starlette.requests import Request

from actors.responding import Responding
from dataspace.catalog.recent import SessionRow
from dataspace.observe.dataspace import NoSuchSession
from keeve.faces import ENDS
from keeve.server.auth import Principal
from keeve.server.errors import Refusal
from keeve.server.heard import TYPE
from keeve.server.openai.asking import Wanted
from keeve.server.openai.following import TurnFollower
from keeve.server.openai.ids import turn_of, uid_of
from keeve.server.openai.items import Json
from keeve.server.openai.keys import made_of
from keeve.server.openai.unstored import VIA as UNSTORED
from keeve.server.openai.unstored import Unstored
from keeve.server.repeating import key_of
from keeve.server.serving import Serving
from keeve.wire.verbs import verb_of
from vat.errors import Deleted
from vat.host.host import Host, NothingToErase
from vat.host.outside import HostRef, place
from vat.host.repetitions import is_known, is_made, made_for, sent

VIA: Final = "openai"


def missing(what: str, id: str) -> Refusal:
    """There is nothing of that id, for who asks."""
    said = what.replace("_", " ")
    return Refusal(404, f"no_such_{what}", f"there is no {said} {id!r:.120}", f"use the id of a {said} of your own")


@attrs.frozen
class Shared:
    """What the endpoints of a server share."""

    serving: Serving
    unstored: Unstored


@attrs.frozen
class Talk:
    """A session as who asks reaches it."""

    host: Host
    row: SessionRow
    ref: HostRef[Any]

    @property
    def uid(self) -> bytes:
        """Its uid."""
        return self.row.uid


@attrs.frozen
class AskedTurn:
    """A turn that was asked for, and what follows it from before it was, if that was wanted."""

    talk: Talk
    turn: int
    following: TurnFollower | None = None


class Talking:
    """What one request does with sessions."""

    def __init__(self, shared: Shared, request: Request) -> None:
        self._serving = serving = shared.serving
        self._unstored = shared.unstored
        self._principal: Principal = serving.principal(request)
        self.host: Host = serving.host.asking(self._principal.name, VIA)
        self.key: str | None = key_of(request)

    @property
    def by(self) -> str:
        """The name of who asks."""
        return self._principal.name

    # Which session.

    async def reached(self, uid: bytes | None, verb: str, *, any_type: bool = False) -> Talk | None:
        """The session of that uid, for who does that with it; None if they reach none. Raises a `Refusal` (403).

        any_type: of whatever type, to have its `turn` called.
        """
        self._principal.must(verb)
        try:
            row = None if uid is None else self.host.row(uid)
            if row is None or (row.type != TYPE and not any_type):
                return None
            row = self._serving.auth.row(self._principal, row.id, verb)
        except (NoSuchSession, Deleted):
            return None
        talk = Talk(self.host, row, await self.host.get(row.id))
        if any_type:  # which may need more for what is asked of it
            self._principal.must(verb_of(self.host, talk.ref, "turn"))
        return talk

    async def response(self, id: str, verb: str = "read") -> tuple[Talk, int, Json]:
        """The turn that a response is, with what is told of it. Raises a `Refusal` (404)."""
        named = turn_of(id)
        talk = None if named is None else await self.reached(named.uid, verb)
        told = None if talk is None or named is None else await talk.ref.response(named.turn)
        if talk is None or named is None or told is None:
            raise missing("response", id)
        return talk, named.turn, told

    def must_reach_all(self, talk: Talk, turn: Json) -> None:
        """Raise a `Refusal` (403) unless who asks reaches each session, from this one on back, in which a turn is."""
        row = talk.row
        while row.parent is not None and turn["span"].get("first", 0) <= row.parent_seq:
            try:
                row = self.host.row(row.parent)
            except Deleted:
                return
            if not self._serving.auth.reaches(self._principal, row):
                what = "this response was given in a session that is not yours, from which this one was forked later"
                raise Refusal(403, "not_allowed", what, "delete the conversation that you have, which is your own")

    async def conversation(self, id: str, verb: str = "read") -> Talk:
        """The session that a conversation is. Raises a `Refusal` (404)."""
        talk = await self.reached(uid_of(id) if isinstance(id, str) else None, verb)
        if talk is None:
            raise missing("conversation", str(id))
        return talk

    async def made(self, what: str, name: str | None = None, key: str | None = None) -> Talk:
        """A new session; the same one again under the same key of the client's. `what` says what it is made for."""
        self._must_make()
        key = self.key if key is None else key
        request = None if key is None else made_of(key, f"{VIA} {what}")
        async with self._serving.quota.room(self._principal, made=is_made(self.host, request)):
            ref = await self.host.spawn(Responding, name, request=request)
        return self._talk(ref)

    def found(self, what: str) -> Talk | None:
        """The session that was `made` for this request before, if one was."""
        if self.key is None or self._principal.sessions is not None:
            return None
        ref = made_for(self.host, made_of(self.key, f"{VIA} {what}"))
        return None if ref is None else self._talk(ref)

    def _talk(self, ref: HostRef[Any]) -> Talk:
        return Talk(self.host, self.host.row(place(ref)[0]), ref)

    async def knows(self, talk: Talk | None, wanted: Wanted) -> bool:
        """Whether that session was asked for the same under the client's key before."""
        return talk is not None and await is_known(talk.host, talk.ref, sent(self.key, *wanted.sent))

    async def unstored(self, ending: AsyncExitStack, talk: Talk | None = None, after: int | None = None) -> Talk:
        """A session for this request alone, which is deleted at the `ending`; with `talk` a fork of that, at the end of
        the turn `after`, or of all that was said. A repetition finds the same one. Raises a `Refusal`.
        """
        self._must_make()
        name = self._principal.name
        id, host = self._unstored.id(name, self.key), self._serving.host.asking(name, UNSTORED)
        self._unstored.use(id)
        ending.push_async_callback(self._unstored.let_go, id)
        async with self._unstored.looking(id) as row:
            if row is None:
                at = None if talk is None else await self._end(talk, after)
                # Half of it would be a session that nobody lets go of.
                with trio.CancelScope(shield=True):
                    async with self._serving.quota.room(self._principal):
                        if talk is None:
                            await host.spawn(Responding, id)
                        else:
                            await (await host.get(talk.row.id)).fork(at=at, into=id)
                row = host.row(id)
        return Talk(self.host, row, await self.host.get(id))

    async def _end(self, talk: Talk, after: int | None) -> int:
        """The seq at which a turn is over, or all of them, which is waited for."""
        if after is not None:
            await over(talk, after)
            seq: int | None = await talk.ref.point(after)
            if seq is None:
                raise missing("response", "to go on from, since it never began")
            return seq
        while True:
            status = await talk.ref.status()
            head: int = (await talk.ref.describe())["seq"]
            if status["running"] is None and status == await talk.ref.status():
                return head
            await over(talk, status["accepted"])

    def _must_make(self) -> None:
        """Raise a `Refusal` (403) unless who asks may make sessions, which they reach then."""
        self._principal.must("manage")
        if self._principal.sessions is not None:
            remedy = "use a token that is not narrowed to some sessions"
            raise Refusal(403, "not_allowed", "this token makes no sessions, and no forks", remedy)

    # Which turn.

    async def asked(self, talk: Talk, wanted: Wanted, after: int | None = None, *, follow: bool = False) -> AskedTurn:
        """The turn that this request is, in that session or, if another one came after `after` already, in a fork."""
        self._principal.must("turn")
        asked = await self._accepted(talk, wanted, after, follow)
        if asked is not None:
            return asked
        assert after is not None
        self._must_make()
        seq = await self._end(talk, after)
        request = None if self.key is None else made_of(self.key, after="fork")
        known = await is_known(self.host, talk.ref, request)
        async with self._serving.quota.room(self._principal, made=known):
            other = self._talk(await talk.ref.fork(at=seq, request=request))
        asked = await self._accepted(other, wanted, after, follow)
        if asked is None:
            what = (
                f"the fork {other.row.id!r}, which was to go on from this response, was gone on with by another request"
            )
            raise Refusal(409, "moved_on", what, "ask again, with another Idempotency-Key")
        return asked

    async def _accepted(self, talk: Talk, wanted: Wanted, after: int | None, follow: bool) -> AskedTurn | None:
        """The turn, if it can be in that session. For one that it was asked for before, nothing is looked up."""
        request = sent(self.key, *wanted.sent)
        if await is_known(self.host, talk.ref, request):
            accepted = await talk.ref.respond([], {}, request=request)
            if "moved" in accepted:
                return None
            model = ((await talk.ref.response(accepted["turn"])) or {"asked": {}})["asked"].get("model", "model")
            return AskedTurn(talk, accepted["turn"], self.following(talk, model) if follow else None)
        input, how = await wanted.made()
        await self._offered(talk, how)
        following = self.following(talk, how["model"]) if follow else None
        try:
            accepted = await talk.ref.respond(input, how, after=after, request=request)
        except BaseException:
            if following is not None:
                following.close()
            raise
        if "moved" not in accepted:
            return AskedTurn(talk, accepted["turn"], following)
        if following is not None:
            following.close()
        return None

    def following(self, talk: Talk, model: str) -> TurnFollower:
        """What follows a turn of that session, in which that model is asked, from now on."""
        return TurnFollower(self.host, talk.ref, talk.row.id, model, self._serving.heard)

    async def _offered(self, talk: Talk, how: Json) -> None:
        """The session has the schemas of the host's tools, as they are now, if any of them are offered."""
        if how["own"] is False or self._serving.tools is None:
            return
        schemas = self._serving.tools.schemas
        if await talk.ref.offered != schemas:
            await talk.ref.offer(schemas)


async def over(talk: Talk, n: int) -> None:
    """Wait until a turn is over."""
    events = talk.host.observe("(_ . _)", after="head", session=talk.uid)
    if await talk.ref.status_of(n) not in ("queued", "in_progress"):
        return
    async for event in events:
        fact = event.value
        if fact.label in ENDS and fact.fields[0] == n:
            return


async def erased(talk: Talk, n: int) -> None:
    """Take what was said in a turn out of the session and all of its forks, for ever."""
    with suppress(NothingToErase):
        await talk.host.erase(talk.row.id, turn=n, force=True)


def header(id: str) -> str:
    """The id of a session, as a header can carry it."""
    return quote(id, safe=" !#$&'()*+,/:;=?@[]~")
