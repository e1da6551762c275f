"""The front door: what users import.

    open_host, Host, HostRef, Settings      a store and its sessions (`keeve.blocking` has the same without await)
    Session                                 a conversation with a model
    Actor, actor, read, near, Ref, Promise  what actors are written with
    List, Map, Set, Text, Symbol, Blob      what their fields hold
    Device, effect, Effect, Policy          what touches the world
    pattern, parse, ANY, capture            what observers ask for
    KeeveError                              the root of every error

`keeve.testing` is for the tests of those who build on Keeve.
"""

from __future__ import annotations

from keeve import _ours

_ours.check()

from actors.models import ChatModel, EchoModel, ScriptedModel
from actors.session import Session
from dataspace.cursor import Cursor
from dataspace.errors import KeeveError
from dataspace.events import CaughtUp, Event
from dataspace.facts import Fact
from dataspace.patterns import ANY, Pattern, capture, parse, pattern
from dataspace.values import ERASED, Blob, NotAValue, Symbol, Text
from keeve.api import open_host
from vat.actor import Actor, Device, actor
from vat.collections import List, Map, Set
from vat.devices import Effect, Policy, effect
from vat.engine import Settings
from vat.host import Host
from vat.outside import HostRef, Snapshot
from vat.refs import Promise, Ref, near
from vat.types import read
from vat.vault import Environment, File, Vault

__version__ = "0.1.0"

__all__ = [
    "ANY",
    "ERASED",
    "Actor",
    "Blob",
    "CaughtUp",
    "ChatModel",
    "Cursor",
    "Device",
    "EchoModel",
    "Effect",
    "Environment",
    "Event",
    "Fact",
    "File",
    "Host",
    "HostRef",
    "KeeveError",
    "List",
    "Map",
    "NotAValue",
    "Pattern",
    "Policy",
    "Promise",
    "Ref",
    "ScriptedModel",
    "Session",
    "Set",
    "Settings",
    "Snapshot",
    "Symbol",
    "Text",
    "Vault",
    "actor",
    "capture",
    "effect",
    "near",
    "open_host",
    "parse",
    "pattern",
    "read",
]
