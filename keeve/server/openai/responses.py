"""`/v1/responses`: make one, look at it, cancel it, delete it, and what it was asked.

A response is a turn of a session. Its events are told as `keeve.server.openai.response_events` says.

The one rule: a turn goes on whoever listens. To end it is to cancel it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dataspace.observe.cursor import number_in
from keeve.server.openai.asking import RESPONSES, Wanted, body_of, check_names, flag, how_of, meant, metadata_of
from keeve.server.openai.contents import item_named
from keeve.server.openai.events import Events, page_of, paged
from keeve.server.openai.following import TurnFollower
from keeve.server.openai.items import Json, items_of, messages_of, refused
from keeve.server.openai.objects import failure_of, label_of, response_of
from keeve.server.openai.response_events import ResponseEvents
from keeve.server.openai.talking import AskedTurn, Shared, Talk, Talking, erased, header, missing, over
from keeve.server.openai.unstored import GONE, while_there
from keeve.server.streams import Put, Sent
from vat.host.sessions import Busy

ECHOED: Final = (
    *("background", "max_output_tokens", "parallel_tool_calls", "temperature", "text", "reasoning", "tool_choice"),
    *("store", "user", "safety_identifier", "prompt_cache_key", "top_p"),
)
"""Parameters that are in the response as they were in the request."""


def routes(shared: Shared) -> list[BaseRoute]:
    """The routes of this part."""
    responses = Responses(shared)
    return [
        Route("/v1/responses", responses.create, methods=["POST"]),
        Route("/v1/responses/{id}", responses.retrieve, methods=["GET"]),
        Route("/v1/responses/{id}", responses.delete, methods=["DELETE"]),
        Route("/v1/responses/{id}/cancel", responses.cancel, methods=["POST"]),
        Route("/v1/responses/{id}/input_items", responses.input_items, methods=["GET"]),
    ]


class Responses:
    """The endpoints."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._serving = shared.serving

    async def create(self, request: Request) -> Response:
        """Ask a model."""
        body = await body_of(request)
        check_names(body, RESPONSES)
        stream, background, keep = flag(body, "stream"), flag(body, "background"), flag(body, "store", True)
        if background and not keep:
            raise refused("what is done in the background is stored", "store", "leave one of them out")
        if keep or stream:
            return await self._answered(request, body, stream=stream, background=background, keep=keep)
        answer = Response(status_code=GONE)
        async with while_there(request):
            answer = await self._answered(request, body, stream=False, background=False, keep=False)
        return answer  # noqa: RET504  # the block may be left before it is given

    async def _answered(self, request: Request, body: Json, *, stream: bool, background: bool, keep: bool) -> Response:
        talking = Talking(self._shared, request)
        async with AsyncExitStack() as ending:
            asked = await self._asked(talking, body, None if keep else ending, follow=stream)
            headers = _named(asked.talk)
            if asked.following is not None:
                return self._stream(asked.talk, asked.turn, asked.following, -1, headers, ending.pop_all())
            if not background:
                await over(asked.talk, asked.turn)
            turn = await asked.talk.ref.response(asked.turn)
            if turn is None:
                raise missing("response", "that was asked for: it has been deleted meanwhile")
            if turn["status"] == "failed" and not background:
                raise failure_of(turn)
            return JSONResponse(response_of(turn, asked.talk.uid), headers=headers)

    async def _asked(self, talking: Talking, body: Json, ending: AsyncExitStack | None, *, follow: bool) -> AskedTurn:
        """The turn; with an `ending` one of which nothing is kept after that."""
        if "input" not in body:
            raise refused(
                "it has to be there", "input", "send a text, or a list of items", "missing_required_parameter"
            )
        previous, conversation = body.get("previous_response_id"), body.get("conversation")
        if isinstance(conversation, dict):
            conversation = conversation.get("id")
        about: Json = {"metadata": metadata_of(body), "request": {name: body[name] for name in ECHOED if name in body}}
        tools = body.get("tools")
        about["request"]["host_tools"] = (
            [tool for tool in tools if _is_host_tool(tool)] if isinstance(tools, list) else []
        )
        if previous is not None and conversation is not None:
            what = "a response goes on from another one, or in a conversation, and not both"
            raise refused(what, "previous_response_id", "leave one of them out")
        if previous is not None and not isinstance(previous, str):
            raise refused("it has to be the id of a response", "previous_response_id")
        about |= {"previous": previous, "conversation": conversation}

        async def made() -> tuple[list[Json], Json]:
            how = await how_of(self._serving, body, about)
            return messages_of(await self._resolved(talking, body["input"])), how

        wanted = Wanted(("response", meant(body)), made)
        talk: Talk | None = None
        after: int | None = None
        if conversation is not None:
            talk = await talking.conversation(conversation, "turn")
        elif previous is not None:
            talk, after, _ = await talking.response(previous, "turn")
            if self._shared.unstored.holds(talk.row):
                raise missing("response", previous)
        if not await talking.knows(talk or talking.found("response"), wanted):
            await wanted.made()  # what cannot be is refused before anything is made
        if ending is not None:
            talk, after = await talking.unstored(ending, talk, after), None
        elif talk is None:
            talk = await talking.made("response")
        return await talking.asked(talk, wanted, after, follow=follow)

    async def _resolved(self, talking: Talking, input: Any) -> Any:
        """The input with the items that it only refers to."""
        if not isinstance(input, list):
            return input
        resolved = []
        for place, item in enumerate(input):
            if not isinstance(item, dict) or item.get("type") != "item_reference":
                resolved.append(item)
                continue
            found = await item_named(talking, str(item.get("id")))
            if found is None:
                raise refused(f"there is no item {item.get('id')!r:.120}", f"input[{place}].id")
            resolved.append(found)
        return resolved

    def _stream(
        self,
        talk: Talk,
        n: int,
        following: TurnFollower,
        after: int,
        headers: dict[str, str],
        ending: AsyncExitStack,
    ) -> Response:
        ending.callback(following.close)

        async def produce(put: Put) -> None:
            async def tell(event: Json) -> None:
                await put(Sent(event, event["type"], str(event["sequence_number"])))

            await following.run(n, ResponseEvents(tell, talk.uid, after))

        return Events(self._serving, produce, headers, ending)

    async def retrieve(self, request: Request) -> Response:
        """A response as it is now; with `stream=true` its events, from after `starting_after` on."""
        talking = Talking(self._shared, request)
        talk, n, turn = await talking.response(request.path_params["id"])
        query, headers = request.query_params, _named(talk)
        if query.get("stream") not in ("true", "True", "1"):
            return JSONResponse(response_of(turn, talk.uid), headers=headers)
        given = query.get("starting_after") or request.headers.get("last-event-id") or "-1"
        after = number_in(given.removeprefix("-"))
        if after is None:
            raise refused("it has to be the number of an event", "starting_after")
        following = talking.following(talk, str(turn["asked"].get("model", "model")))
        return self._stream(talk, n, following, -1 if given[0] == "-" else after, headers, AsyncExitStack())

    async def cancel(self, request: Request) -> Response:
        """End a response that is not complete."""
        talk, n, turn = await Talking(self._shared, request).response(request.path_params["id"], "turn")
        if turn["status"] in ("queued", "in_progress"):
            await talk.ref.interrupt(turn=n)
            await over(talk, n)
            turn = await talk.ref.response(n)
        return JSONResponse(response_of(turn, talk.uid), headers=_named(talk))

    async def delete(self, request: Request) -> Response:
        """Delete a response: the whole session where it is the only turn, and else what was said in it, for ever."""
        id = request.path_params["id"]
        talking = Talking(self._shared, request)
        talk, n, turn = await talking.response(id, "manage")
        if turn["status"] in ("queued", "in_progress"):
            await talk.ref.interrupt(turn=n)
            await over(talk, n)
        if not await self._deleted_alone(talk, n, turn):
            talking.must_reach_all(talk, turn)
            await talk.ref.forget(n)
            await erased(talk, n)
        return JSONResponse({"id": id, "object": "response", "deleted": True})

    async def _deleted_alone(self, talk: Talk, n: int, turn: Json) -> bool:
        """Delete the session of a turn, if that is all that there is in it."""
        if n != 1 or turn["asked"].get("about", {}).get("conversation") is not None:
            return False
        said = await talk.ref.response(n)
        if (await talk.ref.status())["accepted"] != 1 or await talk.ref.extent() != said["span"].get("to"):
            return False
        try:
            await talk.host.delete(talk.row.id)
        except Busy:
            return False  # something has come just now
        return True

    async def input_items(self, request: Request) -> Response:
        """What a response was asked, as items."""
        talk, n, turn = await Talking(self._shared, request).response(request.path_params["id"])
        told = await talk.ref.input_of(n) or []
        return JSONResponse(paged(page_of(request), items_of(told, talk.uid, label_of(turn))))


def _named(talk: Talk) -> dict[str, str]:
    """The header that says in which session a response is."""
    return {"x-keeve-session": header(talk.row.id)}


def _is_host_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and tool.get("type") == "mcp"
