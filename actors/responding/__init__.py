"""A conversation by requests: a `Session` each of whose turns is asked for whole, and can be continued from
(`Responding`). It is what the endpoints of other people's programs are answered by.

`asking` has what a request may ask for, `numbering` which message is which, `keeping` what is kept of the requests.
"""

from actors.responding.asking import ROLES, BadRequest, NotCalled, names_in
from actors.responding.keeping import TurnRuns
from actors.responding.responding import CLIENT, Responding

__all__ = ["CLIENT", "ROLES", "BadRequest", "NotCalled", "Responding", "TurnRuns", "names_in"]
