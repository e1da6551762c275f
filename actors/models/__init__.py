"""Models: devices that answer a conversation with the next message of it.

A model device has one method, `complete(effect, messages, *, tools=None, **options)`. `messages` is the conversation in
OpenAI chat form, `tools` are in that form as well, and the answer is a dict:

    {"message": {"role": "assistant", "content": ..., "tool_calls": [...]}, "usage": {...} or None,
     "model": its name, "finish_reason": "stop", "tool_calls", "length", ... or None}

`EchoModel` says again what was said, `ScriptedModel` plays a transcript, `ChatModel` asks any OpenAI-compatible
service. `model_from_environment` gives the one that the environment names, as a `ChosenModel`.
"""

from actors.models.answers import NotJSON
from actors.models.chat import ChatModel
from actors.models.echo import EchoModel
from actors.models.environment import BadModelSetting, ChosenModel, model_from_environment
from actors.models.failures import (
    BadModelURL,
    ModelBusy,
    ModelCut,
    ModelError,
    ModelNonsense,
    ModelRefused,
    ModelUnreachable,
)
from actors.models.scripted import ScriptedModel, ScriptMismatch

__all__ = [
    "BadModelSetting",
    "BadModelURL",
    "ChatModel",
    "ChosenModel",
    "EchoModel",
    "ModelBusy",
    "ModelCut",
    "ModelError",
    "ModelNonsense",
    "ModelRefused",
    "ModelUnreachable",
    "NotJSON",
    "ScriptMismatch",
    "ScriptedModel",
    "model_from_environment",
]
