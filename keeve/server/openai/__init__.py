"""The endpoints of OpenAI's API, `/v1/…`: what clients, SDKs and agents that know that API can do here without knowing
Keeve. `docs/openai.md` says what there is of each.

    ids, keys       what the ids that clients are given name; what clients name themselves
    items           messages as items, and back
    asking          parameters, and what a session is asked
    objects         responses, completions, lists
    following, drafts       a turn as it goes on, as a story, and the answer that is being given; `response_events`
                            tells it as events, `chunks` as chunks
    talking, contents       which session and turn a request means, and items in it; `unstored` has those that are not
                            to be kept
    responses, conversations, chat, catalog     the endpoints; `sessions` for those of other types
"""

from starlette.routing import BaseRoute

from keeve.server.openai import catalog, chat, conversations, responses
from keeve.server.openai.talking import Shared
from keeve.server.openai.unstored import Unstored
from keeve.server.serving import Serving

__all__ = ["routes", "start"]


def routes(serving: Serving) -> list[BaseRoute]:
    """The routes of this part."""
    shared = Shared(serving, Unstored(serving))
    talking = [route for part in (responses, conversations, chat) for route in part.routes(shared)]
    return [*talking, *catalog.routes(serving)]


async def start(serving: Serving) -> None:
    """What comes before the first request: hear what models say, and delete what was left that was not to be kept."""
    serving.heard.listen()
    await Unstored(serving).sweep()
