"""Every error that users of Keeve can meet, by name: all of them are `KeeveError`s.

`usage` on a class says that what was asked cannot be; otherwise it can, and failed. `docs/hosts.md`, `docs/sessions.md`
and `docs/devices.md` say when each comes and what to do.

The one rule: nothing is defined here. An error lives with what raises it.
"""

from __future__ import annotations

from actors.approvals import CallWithdrawn, NothingWaits
from actors.chat import BadAnswer, BadInput
from actors.directory import NoHost
from actors.mcp import NotFetched, NotInstalled, ServerGone, ServerUnavailable
from actors.models import (
    BadModelSetting,
    BadModelURL,
    ModelBusy,
    ModelCut,
    ModelError,
    ModelNonsense,
    ModelRefused,
    ModelUnreachable,
    NotJSON,
    ScriptMismatch,
)
from actors.responding import BadRequest, NotCalled, TurnRuns
from actors.session import BadSetting, TurnInterrupted, TurnOver
from actors.tools import ApprovalWanted, BadArguments, BadTool, CallRefused, NoSuchTool, ToolFailed
from dataspace.checkpoints.checkpoints import NotCovered, NotSigning
from dataspace.checkpoints.keys import WrongKey
from dataspace.encryption.errors import (
    BadHostKey,
    HostKeyNeeded,
    KeyFileDamaged,
    KeyFileError,
    KeyFileMissing,
    KeyFileNewer,
    KeyFileOfAnotherLog,
    KeyFileOlder,
    KeyFileWithoutLog,
    NotEncrypted,
    WrongHostKey,
)
from dataspace.errors import KeeveError
from dataspace.facts import BadName
from dataspace.log.archives import Archived, NotAnArchive
from dataspace.log.backup import BackupFailed, StillChanging
from dataspace.log.files import DiskFull, NoFolder, NotWritable, ReadFailed, SyncFailed, WriteFailed
from dataspace.log.layout import PlaceTaken
from dataspace.log.ownership import NoLocks
from dataspace.log.store import (
    BodyErased,
    NotAStore,
    RecordTooLarge,
    StaleOwner,
    StoreClosed,
    StoreDamaged,
    StoreFailed,
    StoreMoved,
    StoreOwned,
    StoreReadOnly,
)
from dataspace.log.unsound import NoFrame
from dataspace.log.verdicts import (
    LogCorrupt,
    LogError,
    LogTampered,
    LogTruncated,
    NewerFormat,
    PastDamaged,
    SessionDamaged,
)
from dataspace.observe.cursor import BadCursor, CursorAhead, CursorChanged, CursorOfAnotherLog, WrongCursor
from dataspace.observe.dataspace import NoSuchSession, ObserverFailed
from dataspace.observe.events import NotProven
from dataspace.patterns import BadPattern
from dataspace.proofs.notes import BadNote, BadSignature, NotSigned
from dataspace.proofs.proofs import BadReceipt
from dataspace.proofs.signers import SignerFailed
from dataspace.proofs.verifiers import BadKey
from dataspace.values import FrozenValue, NotAValue
from dataspace.values.encoding import BadEncoding
from keeve.archive_places import NotFromTheRoot
from keeve.guard import TestRunGuard
from keeve.host_thread import OwnThread
from keeve.key_files import BadKeyFile
from keeve.looking import NoMessages, NoSuchLook, SeveralWait, StatesNoTurns
from keeve.opening import NotAsync, NotTrio
from keeve.settings import NoSuchModel
from keeve.wire.calls import NoSuchPromise, NotARef, Stopped
from keeve.wire.channels import ChannelClosed
from keeve.wire.client_errors import BadURL, ClientClosed, ClientTooLarge, NoTLS, NoToken, NotTrusted, Unreachable
from keeve.wire.connection import Silent, Stopping
from keeve.wire.frames import BadFrame
from keeve.wire.guarding import TooLarge, TooMany, Untaken
from keeve.wire.messages import WrongVersion
from keeve.wire.revocations import BadRevocations, NoTokenId
from keeve.wire.sturdy import BadRef
from keeve.wire.tokens import BadCaveat, BadToken, TokenRefused
from vat.crank.upgrading import UpgradeFailed
from vat.crank.vat import RequestConflict
from vat.devices.devices import BadPolicy, NotADevice
from vat.devices.outcomes import (
    DeviceFailed,
    EffectCancelled,
    EffectError,
    EffectTimeout,
    OutcomeTooLarge,
    OutcomeUnknown,
    UnknownDevice,
)
from vat.devices.vault import NoCredential
from vat.errors import (
    BadCall,
    Broken,
    ChangedType,
    CrankOverrun,
    Deleted,
    Failed,
    FiberDiverged,
    Forked,
    NoSuchActor,
    NoSuchFact,
    NoSuchMethod,
    NotAssignable,
    NothingTakenUp,
    NotOwed,
    OtherParameters,
    OtherShape,
    OutsideCrank,
    PromiseCycle,
    PromiseGone,
    ReadOnly,
    Refused,
    Revoked,
    Unpaid,
)
from vat.heap.memory import BadSnapshotPage
from vat.heap.messages import BadRequestId
from vat.heap.refs import NotNear
from vat.heap.restore import BrokenChain, NoSuchPoint
from vat.host.asking import NotRunning
from vat.host.following import Outrun
from vat.host.host import BadSessionId, ErasureUnfinished, IdInUse, NothingToArchive, NothingToErase
from vat.host.resolving import BadOutcome, NoSuchEffect
from vat.host.salvaging import NothingSound
from vat.host.sessions import Busy, SnapshotMismatch
from vat.host.settings import BadHostSetting
from vat.host.watching import HeardElsewhere
from vat.objects.actor import NotDeclared
from vat.objects.types import BadActorType, NewerVersion, UnknownActorType
from vat.objects.waiting import NotAwaitable, TimeLimit

__all__ = [
    "ApprovalWanted",
    "Archived",
    "BackupFailed",
    "BadActorType",
    "BadAnswer",
    "BadArguments",
    "BadCall",
    "BadCaveat",
    "BadCursor",
    "BadEncoding",
    "BadFrame",
    "BadHostKey",
    "BadHostSetting",
    "BadInput",
    "BadKey",
    "BadKeyFile",
    "BadModelSetting",
    "BadModelURL",
    "BadName",
    "BadNote",
    "BadOutcome",
    "BadPattern",
    "BadPolicy",
    "BadReceipt",
    "BadRef",
    "BadRequest",
    "BadRequestId",
    "BadRevocations",
    "BadSessionId",
    "BadSetting",
    "BadSignature",
    "BadSnapshotPage",
    "BadToken",
    "BadTool",
    "BadURL",
    "BodyErased",
    "Broken",
    "BrokenChain",
    "Busy",
    "CallRefused",
    "CallWithdrawn",
    "ChangedType",
    "ChannelClosed",
    "ClientClosed",
    "ClientTooLarge",
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
    "ErasureUnfinished",
    "Failed",
    "FiberDiverged",
    "Forked",
    "FrozenValue",
    "HeardElsewhere",
    "HostKeyNeeded",
    "IdInUse",
    "KeeveError",
    "KeyFileDamaged",
    "KeyFileError",
    "KeyFileMissing",
    "KeyFileNewer",
    "KeyFileOfAnotherLog",
    "KeyFileOlder",
    "KeyFileWithoutLog",
    "LogCorrupt",
    "LogError",
    "LogTampered",
    "LogTruncated",
    "ModelBusy",
    "ModelCut",
    "ModelError",
    "ModelNonsense",
    "ModelRefused",
    "ModelUnreachable",
    "NewerFormat",
    "NewerVersion",
    "NoCredential",
    "NoFolder",
    "NoFrame",
    "NoHost",
    "NoLocks",
    "NoMessages",
    "NoSuchActor",
    "NoSuchEffect",
    "NoSuchFact",
    "NoSuchLook",
    "NoSuchMethod",
    "NoSuchModel",
    "NoSuchPoint",
    "NoSuchPromise",
    "NoSuchSession",
    "NoSuchTool",
    "NoTLS",
    "NoToken",
    "NoTokenId",
    "NotADevice",
    "NotARef",
    "NotAStore",
    "NotAValue",
    "NotAnArchive",
    "NotAssignable",
    "NotAsync",
    "NotAwaitable",
    "NotCalled",
    "NotCovered",
    "NotDeclared",
    "NotEncrypted",
    "NotFetched",
    "NotFromTheRoot",
    "NotInstalled",
    "NotJSON",
    "NotNear",
    "NotOwed",
    "NotProven",
    "NotRunning",
    "NotSigned",
    "NotSigning",
    "NotTrio",
    "NotTrusted",
    "NotWritable",
    "NothingSound",
    "NothingTakenUp",
    "NothingToArchive",
    "NothingToErase",
    "NothingWaits",
    "ObserverFailed",
    "OtherParameters",
    "OtherShape",
    "OutcomeTooLarge",
    "OutcomeUnknown",
    "Outrun",
    "OutsideCrank",
    "OwnThread",
    "PastDamaged",
    "PlaceTaken",
    "PromiseCycle",
    "PromiseGone",
    "ReadFailed",
    "ReadOnly",
    "RecordTooLarge",
    "Refused",
    "RequestConflict",
    "Revoked",
    "ScriptMismatch",
    "ServerGone",
    "ServerUnavailable",
    "SessionDamaged",
    "SeveralWait",
    "SignerFailed",
    "Silent",
    "SnapshotMismatch",
    "StaleOwner",
    "StatesNoTurns",
    "StillChanging",
    "Stopped",
    "Stopping",
    "StoreClosed",
    "StoreDamaged",
    "StoreFailed",
    "StoreMoved",
    "StoreOwned",
    "StoreReadOnly",
    "SyncFailed",
    "TestRunGuard",
    "TimeLimit",
    "TokenRefused",
    "TooLarge",
    "TooMany",
    "ToolFailed",
    "TurnInterrupted",
    "TurnOver",
    "TurnRuns",
    "UnknownActorType",
    "UnknownDevice",
    "Unpaid",
    "Unreachable",
    "Untaken",
    "UpgradeFailed",
    "WriteFailed",
    "WrongCursor",
    "WrongHostKey",
    "WrongKey",
    "WrongVersion",
]
