"""Every error that users of Keeve can meet, by name: all of them are `KeeveError`s.

`usage` on a class says that what was asked cannot be; otherwise it can, and failed. `docs/hosts.md`, `docs/sessions.md`
and `docs/devices.md` say when each comes and what to do.

The one rule: nothing is defined here. An error lives with what raises it.
"""

from __future__ import annotations

from actors.chat import BadAnswer, BadInput
from actors.models import (
    BadModelSetting,
    BadModelURL,
    ModelBusy,
    ModelCut,
    ModelNonsense,
    ModelRefused,
    ModelUnreachable,
    NotJSON,
    ScriptMismatch,
)
from actors.session import BadSetting, TurnInterrupted
from actors.tools import BadArguments, BadTool, NoSuchTool
from dataspace.errors import KeeveError
from dataspace.facts import BadName
from dataspace.log.files import DiskFull, SyncFailed, WriteFailed
from dataspace.log.store import (
    NotAStore,
    RecordTooLarge,
    StaleOwner,
    StoreFailed,
    StoreMoved,
    StoreOwned,
    StoreReadOnly,
)
from dataspace.log.verdicts import LogCorrupt, LogError, LogTampered, LogTruncated, NewerFormat, SessionDamaged
from dataspace.observe.cursor import BadCursor, CursorAhead, CursorChanged, CursorOfAnotherLog, WrongCursor
from dataspace.observe.dataspace import NoSuchSession, ObserverFailed
from dataspace.observe.events import NotProven
from dataspace.patterns import BadPattern
from dataspace.values import FrozenValue, NotAValue
from keeve.guard import TestRunGuard
from vat.crank.upgrading import UpgradeFailed
from vat.crank.vat import RequestConflict
from vat.devices.devices import BadPolicy, NotADevice
from vat.devices.outcomes import (
    DeviceFailed,
    EffectCancelled,
    EffectError,
    EffectTimeout,
    OutcomeUnknown,
    UnknownDevice,
)
from vat.devices.vault import NoCredential
from vat.errors import (
    Broken,
    CrankOverrun,
    Deleted,
    Failed,
    Forked,
    NoSuchActor,
    NoSuchMethod,
    NotAssignable,
    OutsideCrank,
    PromiseCycle,
    PromiseGone,
    ReadOnly,
    Refused,
    Revoked,
)
from vat.heap.messages import BadRequestId
from vat.heap.refs import NotNear
from vat.heap.restore import BrokenChain, NoSuchPoint
from vat.host.asking import NotRunning
from vat.host.host import BadOutcome, BadSessionId, Busy, IdInUse, NoSuchEffect, SnapshotMismatch
from vat.objects.actor import NotDeclared
from vat.objects.types import BadActorType, NewerVersion, UnknownActorType

__all__ = [
    "BadActorType",
    "BadAnswer",
    "BadArguments",
    "BadCursor",
    "BadInput",
    "BadModelSetting",
    "BadModelURL",
    "BadName",
    "BadOutcome",
    "BadPattern",
    "BadPolicy",
    "BadRequestId",
    "BadSessionId",
    "BadSetting",
    "BadTool",
    "Broken",
    "BrokenChain",
    "Busy",
    "CrankOverrun",
    "CursorAhead",
    "CursorChanged",
    "CursorOfAnotherLog",
    "Deleted",
    "DeviceFailed",
    "DiskFull",
    "EffectCancelled",
    "EffectError",
    "EffectTimeout",
    "Failed",
    "Forked",
    "FrozenValue",
    "IdInUse",
    "KeeveError",
    "LogCorrupt",
    "LogError",
    "LogTampered",
    "LogTruncated",
    "ModelBusy",
    "ModelCut",
    "ModelNonsense",
    "ModelRefused",
    "ModelUnreachable",
    "NewerFormat",
    "NewerVersion",
    "NoCredential",
    "NoSuchActor",
    "NoSuchEffect",
    "NoSuchMethod",
    "NoSuchPoint",
    "NoSuchSession",
    "NoSuchTool",
    "NotADevice",
    "NotAStore",
    "NotAValue",
    "NotAssignable",
    "NotDeclared",
    "NotJSON",
    "NotNear",
    "NotProven",
    "NotRunning",
    "ObserverFailed",
    "OutcomeUnknown",
    "OutsideCrank",
    "PromiseCycle",
    "PromiseGone",
    "ReadOnly",
    "RecordTooLarge",
    "Refused",
    "RequestConflict",
    "Revoked",
    "ScriptMismatch",
    "SessionDamaged",
    "SnapshotMismatch",
    "StaleOwner",
    "StoreFailed",
    "StoreMoved",
    "StoreOwned",
    "StoreReadOnly",
    "SyncFailed",
    "TestRunGuard",
    "TurnInterrupted",
    "UnknownActorType",
    "UnknownDevice",
    "UpgradeFailed",
    "WriteFailed",
    "WrongCursor",
]
