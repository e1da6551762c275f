"""What runs in vats: `Session`, a conversation with a model that calls tools; the models that it is given as devices
(`ChatModel`, `EchoModel`, `ScriptedModel`; more in `actors.models`) and the tools (`Tools`); and the `Directory`, which
spawns, finds, lists and deletes sessions by message.

Everything here is written with what any user of Keeve has, but for the labels of the facts that a session states.
"""

from actors.approvals import NothingWaits
from actors.chat import BadAnswer, BadInput
from actors.directory import Directory, NoHost
from actors.mcp import NotFetched, NotInstalled, ServerGone, ServerUnavailable
from actors.models import ChatModel, EchoModel, ScriptedModel
from actors.session import BadSetting, Session, TurnInterrupted, TurnOver
from actors.tools import ApprovalWanted, BadArguments, BadTool, CallRefused, NoSuchTool, ToolFailed, Tools

__all__ = [
    "ApprovalWanted",
    "BadAnswer",
    "BadArguments",
    "BadInput",
    "BadSetting",
    "BadTool",
    "CallRefused",
    "ChatModel",
    "Directory",
    "EchoModel",
    "NoHost",
    "NoSuchTool",
    "NotFetched",
    "NotInstalled",
    "NothingWaits",
    "ScriptedModel",
    "ServerGone",
    "ServerUnavailable",
    "Session",
    "ToolFailed",
    "Tools",
    "TurnInterrupted",
    "TurnOver",
]
