"""`/v1/conversations`: conversations and their items.

A conversation is a session, its items are the messages of it.

The one rule: what is changed between turns is changed at once and whole; while one runs it is refused.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keeve.server.openai.asking import body_of, check_names, metadata_of
from keeve.server.openai.contents import LABEL, item_in, page_in
from keeve.server.openai.events import page_of
from keeve.server.openai.ids import conversation_id, item_of
from keeve.server.openai.items import Json, items_of, messages_of, refused
from keeve.server.openai.keys import made_of
from keeve.server.openai.objects import listing
from keeve.server.openai.talking import Shared, Talk, Talking, missing


def routes(shared: Shared) -> list[BaseRoute]:
    """The routes of this part."""
    here = Conversations(shared)
    one, items = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
    return [
        Route("/v1/conversations", here.create, methods=["POST"]),
        Route(one, here.retrieve, methods=["GET"]),
        Route(one, here.update, methods=["POST"]),
        Route(one, here.delete, methods=["DELETE"]),
        Route(items, here.add, methods=["POST"]),
        Route(items, here.list, methods=["GET"]),
        Route(f"{items}/{{item}}", here.item, methods=["GET"]),
        Route(f"{items}/{{item}}", here.remove, methods=["DELETE"]),
    ]


class Conversations:
    """The endpoints."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def _talk(self, request: Request, verb: str) -> tuple[Talking, Talk]:
        talking = Talking(self._shared, request)
        return talking, await talking.conversation(request.path_params["id"], verb)

    async def create(self, request: Request) -> Response:
        """A new conversation."""
        body = await body_of(request)
        check_names(body, frozenset(("items", "metadata")))
        metadata = metadata_of(body)
        messages = messages_of(body.get("items", []), "items")
        talking = Talking(self._shared, request)
        talk = await talking.made("conversation")
        if metadata:
            await talk.ref.describe_as(metadata, request=_step(talking, "metadata"))
        if messages:
            await talk.ref.add(messages, request=_step(talking, "items"))
        return JSONResponse(await face(talk))

    async def retrieve(self, request: Request) -> Response:
        """A conversation."""
        _, talk = await self._talk(request, "read")
        return JSONResponse(await face(talk))

    async def update(self, request: Request) -> Response:
        """Note something else about a conversation."""
        body = await body_of(request)
        check_names(body, frozenset(("metadata",)))
        metadata = metadata_of(body)
        talking, talk = await self._talk(request, "manage")
        await talk.ref.describe_as(metadata, request=talking.key)
        return JSONResponse(await face(talk))

    async def delete(self, request: Request) -> Response:
        """Delete a conversation, with all that was said in it."""
        _, talk = await self._talk(request, "manage")
        await talk.host.delete(talk.row.id, force=True)
        id = conversation_id(talk.uid)
        return JSONResponse({"id": id, "object": "conversation.deleted", "deleted": True})

    async def add(self, request: Request) -> Response:
        """Put items at the end of a conversation."""
        body = await body_of(request)
        check_names(body, frozenset(("items",)))
        given = body.get("items")
        if not isinstance(given, list) or not given:
            raise refused("it has to be a list of items, and not empty", "items")
        messages = messages_of(given, "items")
        talking, talk = await self._talk(request, "turn")
        added: list[Json] = []
        if messages:
            where = await talk.ref.add(messages, request=talking.key)
            added = items_of(await talk.ref.listed(where["from"], where["to"]), talk.uid, LABEL)
        return JSONResponse(listing(added, False))

    async def list(self, request: Request) -> Response:
        """A page of the items of a conversation."""
        page = page_of(request)
        _, talk = await self._talk(request, "read")
        return JSONResponse(await page_in(talk, page))

    async def item(self, request: Request) -> Response:
        """An item of a conversation."""
        _, talk = await self._talk(request, "read")
        id = request.path_params["item"]
        found = await item_in(talk, id)
        if found is None:
            raise missing("item", id)
        return JSONResponse(found)

    async def remove(self, request: Request) -> Response:
        """Take an item out of a conversation; with a call goes what came of it."""
        talking, talk = await self._talk(request, "manage")
        id = request.path_params["item"]
        named = item_of(id)
        if named is None or named.uid != talk.uid:
            raise missing("item", id)
        if not await talk.ref.remove(named.number, None if id.startswith("fco_") else named.part, request=talking.key):
            raise missing("item", id)
        return JSONResponse(await face(talk))


def _step(talking: Talking, name: str) -> str | None:
    return None if talking.key is None else made_of(talking.key, after=name)


async def face(talk: Talk) -> Json:
    """A conversation in JSON."""
    metadata: dict[str, Any] = dict(await talk.ref.metadata)
    created = talk.row.created // 1_000_000
    return {"id": conversation_id(talk.uid), "object": "conversation", "created_at": created, "metadata": metadata}
