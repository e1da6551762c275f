"""The front door: what users import. `docs/` says how each is used; `keeve.errors` has what can be raised.

    open_host, Host, HostRef, Snapshot, Settings            a store and its sessions
    SessionRow, EffectStatus, Piece, Reclaimed              what a host lists, and what watching and reclaiming give
    ArchivedContent                                         and what archiving gives
    Session, Tools, McpTools, tool, TurnInterrupted         a conversation with a model, and its tools
    Model, Toolbox, Approvals, user, tool, with_results     and what one of your own is made with
    ChatModel, EchoModel, ScriptedModel                     models, and
    model_from_environment                                  the one that the environment names
    Actor, actor, read, manage, near, Ref, Promise          what actors are written with
    gather, within, cancel, TimeLimit, FiberDiverged        and what their async methods wait with
    List, Map, Set, Text, Symbol, Blob, ERASED, NotAValue   what their fields hold
    freeze                                                  and whether something is a value
    Device, effect, Effect, Policy                          what touches the world
    Vault, Environment, File                                where its credentials are
    pattern, parse, Pattern, ANY, capture, fact             what observers ask for
    Event, Fact, Cursor, CaughtUp                           and what they are given
    Receipt, Verifier, SigningKey, signing_key              what proves to others that a record is in the log
    host_key, rekey                                         what an encrypted store is opened with
    KeeveError                                              the root of every error

`keeve.blocking` has the same names without `await`, `keeve.testing` what tests of your own need.
"""

from __future__ import annotations

from keeve import _ours, starting

starting.starts()
_ours.check()

from actors.approvals import Approvals
from actors.mcp import McpTools
from actors.messages import user, with_results
from actors.models import ChatModel, EchoModel, ScriptedModel, model_from_environment
from actors.session import Session, TurnInterrupted
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import Tools, tool
from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.facts import Fact, fact
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import CaughtUp, Event
from dataspace.patterns import ANY, Pattern, capture, parse, pattern
from dataspace.proofs.proofs import Receipt
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import Verifier
from dataspace.values import ERASED, Blob, NotAValue, Symbol, Text, freeze
from keeve.api import open_host
from keeve.host_keys import host_key, rekey
from keeve.key_files import signing_key
from vat.devices.devices import Effect, Policy, effect
from vat.devices.vault import Environment, File, Vault
from vat.errors import FiberDiverged
from vat.heap.refs import Promise, Ref, cancel, near
from vat.host.host import ArchivedContent, Host, Reclaimed
from vat.host.outside import HostRef, Snapshot
from vat.host.pieces import Piece
from vat.host.resolving import EffectStatus
from vat.host.settings import Settings
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import manage, read
from vat.objects.waiting import TimeLimit, gather, within

__version__ = "0.1.0"

__all__ = [
    "ANY",
    "ERASED",
    "Actor",
    "Approvals",
    "ArchivedContent",
    "Blob",
    "CaughtUp",
    "ChatModel",
    "Cursor",
    "Device",
    "EchoModel",
    "Effect",
    "EffectStatus",
    "Environment",
    "Event",
    "Fact",
    "FiberDiverged",
    "File",
    "Host",
    "HostRef",
    "KeeveError",
    "List",
    "Map",
    "McpTools",
    "Model",
    "NotAValue",
    "Pattern",
    "Piece",
    "Policy",
    "Promise",
    "Receipt",
    "Reclaimed",
    "Ref",
    "ScriptedModel",
    "Session",
    "SessionRow",
    "Set",
    "Settings",
    "SigningKey",
    "Snapshot",
    "Symbol",
    "Text",
    "TimeLimit",
    "Toolbox",
    "Tools",
    "TurnInterrupted",
    "Vault",
    "Verifier",
    "actor",
    "cancel",
    "capture",
    "effect",
    "fact",
    "freeze",
    "gather",
    "host_key",
    "manage",
    "model_from_environment",
    "near",
    "open_host",
    "parse",
    "pattern",
    "read",
    "rekey",
    "signing_key",
    "tool",
    "user",
    "with_results",
    "within",
]
