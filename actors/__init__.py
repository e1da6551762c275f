"""What runs in vats: `Session`, a conversation with a model that calls tools; the models that it is given as devices
(`ChatModel`, `EchoModel`, `ScriptedModel`; more in `actors.models`) and the tools (`Tools`); and the `Directory`, which
spawns, finds, lists and deletes sessions by message.

Everything here is written with what any user of Keeve has, but for the labels of the facts that a session states.
"""

from actors.chat import BadAnswer, BadInput
from actors.directory import Directory
from actors.models import ChatModel, EchoModel, ScriptedModel
from actors.session import BadSetting, Session, TurnInterrupted
from actors.tools import BadArguments, BadTool, NoSuchTool, Tools

__all__ = [
    "BadAnswer",
    "BadArguments",
    "BadInput",
    "BadSetting",
    "BadTool",
    "ChatModel",
    "Directory",
    "EchoModel",
    "NoSuchTool",
    "ScriptedModel",
    "Session",
    "Tools",
    "TurnInterrupted",
]
