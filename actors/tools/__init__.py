"""Tools that a model calls: plain functions (`Tools`), with their JSON schema from hints and docstrings, each under its
own policy; `@tool`, with which a function declares it; and what can be wrong with a call.

`errors`, `offering`, `signatures`, `shortening`, `declaring` and `device` are private to `actors`; what is public is
named here.
"""

from actors.tools.declaring import tool
from actors.tools.device import Source, Tools
from actors.tools.errors import ApprovalWanted, BadArguments, BadTool, CallRefused, NoSuchTool, ToolFailed
from actors.tools.shortening import LONGEST

__all__ = [
    "LONGEST",
    "ApprovalWanted",
    "BadArguments",
    "BadTool",
    "CallRefused",
    "NoSuchTool",
    "Source",
    "ToolFailed",
    "Tools",
    "tool",
]
