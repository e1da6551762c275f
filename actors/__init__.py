"""What runs in vats: `Session`, a conversation with a model that calls tools, and `Responding`, one whose turns are
asked for whole, as other people's programs do (`BadRequest`, `NotCalled`, `TurnRuns`, and `names_in` for the names of
tools); the models that it is given as devices (`ChatModel`, `EchoModel`, `ScriptedModel`; more in `actors.models`)
and the tools (`Tools`, `McpTools`); what a conversation of one's own is made with (`Model`, `Toolbox`, `Approvals`,
the messages `user(...)` and `tool(...)`, and `with_results`, by which each call has one); what a model is told of its
calls (`told`, `tool_message`, `FAILED`, `NOT_RUN`, `UNKNOWN`), and the `ROLES` of messages; `approvals_in`, which reads
what waits for a person (each a `WaitingCall`), and `asking_people`, which actors it can wait at; and the `Directory`,
which spawns, finds, lists and deletes sessions by message.

Everything here is written with what any user of Keeve has, but for the labels of the facts that a session states.
"""

from actors.approvals import Approvals, CallWithdrawn, NothingWaits
from actors.chat import BadAnswer, BadInput, told
from actors.directory import Directory, NoHost
from actors.mcp import McpTools, NotFetched, NotInstalled, ServerGone, ServerUnavailable
from actors.messages import FAILED, NOT_RUN, UNKNOWN, tool_message, user, with_results
from actors.models import ChatModel, EchoModel, ScriptedModel
from actors.responding import ROLES, BadRequest, NotCalled, Responding, TurnRuns, names_in
from actors.session import BadSetting, Session, TurnInterrupted, TurnOver
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import ApprovalWanted, BadArguments, BadTool, CallRefused, NoSuchTool, ToolFailed, Tools, tool
from actors.waiting_calls import WaitingCall, approvals_in, asking_people

__all__ = [
    "FAILED",
    "NOT_RUN",
    "ROLES",
    "UNKNOWN",
    "ApprovalWanted",
    "Approvals",
    "BadAnswer",
    "BadArguments",
    "BadInput",
    "BadRequest",
    "BadSetting",
    "BadTool",
    "CallRefused",
    "CallWithdrawn",
    "ChatModel",
    "Directory",
    "EchoModel",
    "McpTools",
    "Model",
    "NoHost",
    "NoSuchTool",
    "NotCalled",
    "NotFetched",
    "NotInstalled",
    "NothingWaits",
    "Responding",
    "ScriptedModel",
    "ServerGone",
    "ServerUnavailable",
    "Session",
    "ToolFailed",
    "Toolbox",
    "Tools",
    "TurnInterrupted",
    "TurnOver",
    "TurnRuns",
    "WaitingCall",
    "approvals_in",
    "asking_people",
    "names_in",
    "told",
    "tool",
    "tool_message",
    "user",
    "with_results",
]
