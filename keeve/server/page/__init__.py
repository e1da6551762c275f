"""The page at `/`: what this server has, for people with a browser. Made on the server; what JavaScript adds can be
missed: reading, and saying something, need none.

    /                   log in; then the sessions
    /sessions/{id}      one of them, and what is done with it
    /forks              the trees of forks, as pictures
    /log                what was stated, by a pattern, and on with what comes
    /waiting            what wants a person's word, and what has no outcome
    /static/…           the styles and the modules, which anyone may have

It stands on the API: what is done is done by its operations, as who asks. What is shown is what they give, and what the
host itself tells of sessions that who asks reaches. So nobody sees or may more here than there.
`OPEN` are its paths: without a token the page says how one logs in.
"""

from typing import Final

from starlette.routing import BaseRoute

from keeve.server.page.entering import log_in, log_out
from keeve.server.page.listing import make_session, show_sessions
from keeve.server.page.serving_files import files_route
from keeve.server.page.tailing import show_log
from keeve.server.page.talking import fork, interrupt, say, say_word, show_session
from keeve.server.page.travelling import go_to, show_forks, show_past, take_snapshot
from keeve.server.page.visits import Place, for_strangers, nothing_there, routes_of
from keeve.server.page.waiting import settle, show_waiting
from keeve.server.serving import Serving

__all__ = ["OPEN", "for_strangers", "nothing_there", "routes"]

OPEN: Final = ("/", "/login", "/logout", "/sessions", "/sessions/*", "/forks", "/log", "/waiting", "/static/*")
"""Paths that need no token."""

PLACES: Final = (
    Place("/", reads=show_sessions),
    Place("/login", takes=log_in, free=True),
    Place("/logout", takes=log_out),
    Place("/sessions", takes=make_session),
    Place("/sessions/{id}", reads=show_session),
    Place("/sessions/{id}/say", takes=say),
    Place("/sessions/{id}/interrupt", takes=interrupt),
    Place("/sessions/{id}/approvals/{call}", takes=say_word),
    Place("/sessions/{id}/fork", takes=fork),
    Place("/sessions/{id}/effects/{effect}/resolve", takes=settle),
    Place("/sessions/{id}/snapshot", takes=take_snapshot),
    Place("/sessions/{id}/at", reads=go_to),
    Place("/sessions/{id}/at/{seq}", reads=show_past),
    Place("/forks", reads=show_forks),
    Place("/log", reads=show_log),
    Place("/waiting", reads=show_waiting),
)
"""All places of the page, and what is done there."""


def routes(serving: Serving) -> list[BaseRoute]:
    """Every place, and the files."""
    return [*routes_of(PLACES, serving), files_route()]
