"""`/v1/chat/completions`: one answer to a list of messages; and, in a session that the client names, to what is new.

Without a session the whole conversation is in the request, and becomes a session of its own, like any turn of it on
record. With `X-Keeve-Session` (or `X-Hermes-Session-Id`) what was said before is the session's: of the messages only
those count that come after the last answer among them, and the system message.

The one rule: a session that the client names is its own. One of that name that it cannot reach is not there for it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from actors.responding import ROLES
from dataspace.observe.dataspace import NoSuchSession
from keeve import errors as known
from keeve.server.errors import Refusal
from keeve.server.heard import TYPE
from keeve.server.openai import sessions
from keeve.server.openai.asking import CHAT, Wanted, body_of, chat_how, check_names, flag, meant, metadata_of
from keeve.server.openai.chunks import Chunks
from keeve.server.openai.events import Events
from keeve.server.openai.following import TurnFollower
from keeve.server.openai.items import Json, refused, text_in
from keeve.server.openai.keys import SESSIONS, session_of
from keeve.server.openai.objects import completion_of, failure_of
from keeve.server.openai.talking import Shared, Talk, Talking, header, missing, over
from keeve.server.openai.unstored import GONE, while_there
from keeve.server.streams import Put
from vat.errors import Deleted


def routes(shared: Shared) -> list[BaseRoute]:
    """The routes of this part."""
    return [Route("/v1/chat/completions", Completions(shared).create, methods=["POST"])]


class Completions:
    """The endpoint."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._serving = shared.serving

    async def create(self, request: Request) -> Response:
        """Ask a model."""
        body = await body_of(request)
        check_names(body, CHAT)
        stream, keep = flag(body, "stream"), flag(body, "store", True)
        if keep or stream:
            return await self._answered(request, body, stream=stream, keep=keep)
        answer = Response(status_code=GONE)
        async with while_there(request):
            answer = await self._answered(request, body, stream=False, keep=False)
        return answer  # noqa: RET504  # the block may be left before it is given

    async def _answered(self, request: Request, body: Json, *, stream: bool, keep: bool) -> Response:
        talking = Talking(self._shared, request)
        name = session_of(request)
        if name is not None and not keep:
            what = f"what is said in a session of your own is kept there ({name!r:.100}), and is not to be kept"
            raise refused(what, "store", f"leave it out, or {' and '.join(SESSIONS)}")
        system, messages = parted(body.get("messages"), new=name is not None)
        talk = None if name is None else await named(talking, name)
        if talk is not None and talk.row.type != TYPE:
            return await sessions.answered(self._serving, talking, talk, body, system, messages)

        async def made() -> tuple[list[Json], Json]:
            return messages, await chat_how(self._serving, body, system, {"metadata": metadata_of(body)})

        wanted = Wanted(("completion", system, messages, meant(body, "messages")), made)
        if not await talking.knows(talk or talking.found("completion"), wanted):
            await wanted.made()  # what cannot be is refused before anything is made
        async with AsyncExitStack() as ending:
            if talk is None:
                talk = await (talking.made("completion") if keep else talking.unstored(ending))
            asked = await talking.asked(talk, wanted, follow=stream)
            headers = {"x-keeve-session": header(talk.row.id)}
            if name is not None and "x-hermes-session-id" in request.headers:
                headers["x-hermes-session-id"] = header(talk.row.id)
            if asked.following is not None:
                return self._stream(asked.talk, asked.turn, asked.following, body, headers, ending.pop_all())
            await over(talk, asked.turn)
            turn = await talk.ref.response(asked.turn)
            if turn is None:
                raise missing("completion", "that was asked for: it has been deleted meanwhile")
            if turn["status"] != "completed":
                raise failure_of(turn)
            return JSONResponse(completion_of(turn, talk.uid), headers=headers)

    def _stream(
        self, talk: Talk, n: int, following: TurnFollower, body: Json, headers: dict[str, str], ending: AsyncExitStack
    ) -> Response:
        ending.callback(following.close)
        options = body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True

        async def produce(put: Put) -> None:
            await following.run(n, Chunks(put, talk.uid, n, usage))

        return Events(self._serving, produce, headers, ending)


async def named(talking: Talking, name: str) -> Talk:
    """The session of that name, for who asks; made if there is none. Beside one that they cannot reach, which is there
    or was, they have one of their own, which is found again by its request alone.
    """
    with suppress(NoSuchSession, Deleted):
        talk = await talking.reached(talking.host.row(name).uid, "turn", any_type=True)
        if talk is not None:
            return talk
    with suppress(known.IdInUse, Deleted):
        return await talking.made("session", name, name)
    try:
        return await talking.made("session beside", None, name)
    except Deleted:
        what = f"the session {name!r:.100} was deleted"
        raise Refusal(410, "deleted", what, "choose another name") from None


def parted(messages: Any, *, new: bool) -> tuple[str, list[Json]]:
    """The system message, and the others of a request; with `new` those behind the last answer. Raises a `Refusal`."""
    if not isinstance(messages, list) or not messages:
        raise refused("it has to be a list of messages, and not empty", "messages")
    system: list[str] = []
    others: list[Json] = []
    for place, message in enumerate(messages):
        at = f"messages[{place}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise refused(f"a message has to have one of the roles {', '.join(ROLES)}", at)
        if message["role"] in ("system", "developer") and not others:
            system.append(text_in(message.get("content")))
        elif new and message["role"] == "assistant":
            others.clear()
            others.append({})  # what comes from now on is behind an answer, also a system message
        else:
            others.append(_kept(message, at))
    others = [message for message in others if message]
    if new and not others:
        raise refused(
            "nothing comes after the last answer", "messages", "send what is to be answered as the last message"
        )
    return "\n\n".join(system), others


def _kept(message: Json, at: str) -> Json:
    role, content = message["role"], message.get("content")
    if role == "tool":
        if not isinstance(message.get("tool_call_id"), str):
            raise refused("tool_call_id has to be there, as a text", at)
        return {"role": "tool", "content": content or "", "tool_call_id": message["tool_call_id"]}
    if content is None and role != "assistant":
        raise refused("content has to be there", at)
    kept = {name: value for name, value in message.items() if value is not None}
    return {"role": role, "content": content, **{name: kept[name] for name in kept if name not in ("role", "content")}}
