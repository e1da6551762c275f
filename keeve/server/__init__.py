"""The server: one process that owns a store and answers over HTTP. `serve` runs it as `ServerSettings` say;
`application` is its ASGI application, of the `Serving` that all parts are handed.

Its parts are modules with `routes(serving)`, listed in `keeve/server/app.py`: Keeve's own API under `/api/v1`, the
health of the process, and what others add. It needs the extra `keeve[server]`; the rest of Keeve does not import it,
but for the command line where it serves.
"""

from keeve.server.app import application
from keeve.server.auth import Auth, Principal
from keeve.server.errors import Refusal, refusal_of
from keeve.server.running import link, serve
from keeve.server.serving import Serving
from keeve.settings import ServerSettings, settings_from, shown

__all__ = [
    "Auth",
    "Principal",
    "Refusal",
    "ServerSettings",
    "Serving",
    "application",
    "link",
    "refusal_of",
    "serve",
    "settings_from",
    "shown",
]
