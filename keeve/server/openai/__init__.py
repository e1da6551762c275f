"""The endpoints of OpenAI's API, `/v1/…`: what clients, SDKs and agents that know that API can do here without knowing
Keeve. `docs/openai.md` says what there is of each.

    ids, keys       what the ids that clients are given name; what clients name themselves
    items           messages as items, and back
    asking          parameters, and what a session is asked
    objects         responses, completions, lists
    following               a turn as it goes on, as a story; `telling` tells it as events, `chunks` as chunks;
                            `heard` has what was told before one began to follow
    talking, contents       which session and turn a request means, and items in it; `unstored` has those that are not
                            to be kept
    responses, conversations, chat, catalog     the endpoints; `sessions` for those of other types
"""

from starlette.routing import BaseRoute

from keeve.server.openai import catalog, chat, conversations, responses
from keeve.server.openai.heard import Heard
from keeve.server.openai.talking import Shared
from keeve.server.openai.unstored import Unstored
from keeve.server.serving import Serving

__all__ = ["routes"]


def routes(serving: Serving) -> list[BaseRoute]:
    """The routes of this part."""
    shared = Shared(serving, Heard(), Unstored(serving))
    serving.host.on_progress(shared.heard.hear)
    shared.unstored.sweep()
    talking = [route for part in (responses, conversations, chat) for route in part.routes(shared)]
    return [*talking, *catalog.routes(serving)]
