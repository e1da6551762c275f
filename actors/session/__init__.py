"""A conversation with a model that calls tools, as an actor: `Session`.

`session` has the turn from its input to its end, `queueing` the turns that wait, `calls` the tool calls of one answer,
`steering` the inputs that join a turn while it runs, `usage` what models have used, `settings` what a session is set
to, `forking` what a fork leaves with its parent.
"""

from actors.messages import NOT_RUN, UNKNOWN
from actors.session.session import Session, TurnInterrupted, TurnOver
from actors.session.settings import MODES, BadSetting, check

__all__ = ["MODES", "NOT_RUN", "UNKNOWN", "BadSetting", "Session", "TurnInterrupted", "TurnOver", "check"]
