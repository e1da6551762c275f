"""All operations of the API, in one table.

The one rule: a line here is all that an operation needs to be served and described.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from actors.session import Session
from keeve.server.api import shapes, taken, waiting_shapes
from keeve.server.api.dataspace import list_facts, query_dataspace, stream_dataspace
from keeve.server.api.places import head_of
from keeve.server.api.proofs import (
    checkpoint_text,
    list_chain,
    log_keys,
    newest_checkpoint,
    receipt_of,
    receipt_text,
    verify_store,
)
from keeve.server.api.sessions import (
    create_session,
    delete_session,
    fork_session,
    list_messages,
    list_sessions,
    list_turns,
    show_session,
    show_state,
    snapshot_session,
)
from keeve.server.api.space import archive_content, bring_back_content, reclaim_space
from keeve.server.api.table import Asked, Document, Operation
from keeve.server.api.turns import interrupt_turn, queue_turn, steer_turn, stream_turn, take_turn
from keeve.server.api.waiting import list_approvals, list_effects, list_waiting, resolve_effect, say_word
from keeve.server.beginning import kinds_of
from keeve.version import installed
from keeve.wire.verbs import AT_THE_DESK, verb_in
from vat.objects.types import type_of

EVENTS: Final = ("application/x-ndjson", "text/event-stream")
TEXT: Final = ("text/plain",)


async def about(asked: Asked) -> Document:
    """What this is, and who asks."""
    serving = asked.serving
    principal, head = serving.principal(asked.request), head_of(serving.host)
    return {
        "version": installed(),
        "log": head.log_id.hex(),
        "head": str(head),
        "principal": principal.name,
        "verbs": sorted(principal.verbs),
        "models": list(serving.named),
        "types": list(kinds_of(serving)),
    }


_ONE: Final = "/sessions/{id}"
_asked: Final = partial(verb_in, type_of(Session))
"""The verb of a method of sessions."""

TABLE: Final = (
    Operation("GET", "", about, "What this is, and who asks", "server", shapes.About),
    Operation(
        "GET", "/sessions", list_sessions, "List sessions", "sessions", shapes.SessionList, query=taken.ListQuery
    ),
    Operation(
        *("POST", "/sessions", create_session, "Make a session", "sessions", shapes.SessionFace),
        takes=taken.NewSession,
        status=201,
        located="/sessions/{}",
        keyed=True,
        verb=AT_THE_DESK["spawn"],
    ),
    Operation("GET", _ONE, show_session, "Show a session", "sessions", shapes.Shown),
    Operation(
        *("GET", f"{_ONE}/state", show_state, "Show a session as it was", "sessions", shapes.StateFace),
        query=taken.StateQuery,
    ),
    Operation(
        *("DELETE", _ONE, delete_session, "Delete a session, for ever", "sessions", shapes.Deleted),
        query=taken.DeleteQuery,
        verb=AT_THE_DESK["delete"],
    ),
    Operation(
        *("GET", f"{_ONE}/turns", list_turns, "List the turns of a session", "sessions", shapes.TurnList),
        query=taken.PageQuery,
    ),
    Operation(
        *("GET", f"{_ONE}/messages", list_messages, "Read the conversation", "sessions", shapes.MessageList),
        query=taken.PageQuery,
    ),
    Operation(
        *("POST", f"{_ONE}/turn", take_turn, "Say something, and get the answer", "turns", shapes.TurnDone),
        takes=taken.Said,
        streams=("text/event-stream",),
        tells=stream_turn,
        keyed=True,
        verb=_asked("turn"),
    ),
    Operation(
        *("POST", f"{_ONE}/queue", queue_turn, "Say something, and do not wait", "turns", shapes.Accepted),
        takes=taken.Said,
        status=202,
        keyed=True,
        verb=_asked("turn"),
    ),
    Operation(
        *("POST", f"{_ONE}/steer", steer_turn, "Say something to the turn that runs", "turns", shapes.Accepted),
        takes=taken.Said,
        status=202,
        keyed=True,
        verb=_asked("steer"),
    ),
    Operation(
        *("POST", f"{_ONE}/interrupt", interrupt_turn, "End a turn", "turns", shapes.Interrupted),
        takes=taken.Interrupt,
        keyed=True,
        verb=_asked("interrupt"),
    ),
    Operation(
        *("POST", f"{_ONE}/snapshot", snapshot_session, "Take a snapshot", "sessions", shapes.SnapshotFace),
        keyed=True,
        verb=_asked("snapshot"),
    ),
    Operation(
        *("POST", f"{_ONE}/fork", fork_session, "Make a session from this one", "sessions", shapes.SessionFace),
        takes=taken.Fork,
        status=201,
        located="/sessions/{}",
        keyed=True,
        verb=_asked("fork"),
    ),
    Operation(
        *("GET", "/waiting", list_waiting, "List what waits in all sessions", "waiting", waiting_shapes.WaitingList),
        query=taken.AllWaitingQuery,
    ),
    Operation(
        *(
            "GET",
            f"{_ONE}/approvals",
            list_approvals,
            "List calls that want approval",
            "waiting",
            waiting_shapes.ApprovalList,
        ),
        query=taken.WaitingQuery,
    ),
    Operation(
        *(
            "POST",
            f"{_ONE}/approvals/{{call}}",
            say_word,
            "Approve of a call, or refuse it",
            "waiting",
            shapes.SaidWord,
        ),
        takes=taken.Word,
        keyed=True,
        verb=AT_THE_DESK["approve"],
    ),
    Operation(
        *(
            "GET",
            f"{_ONE}/effects",
            list_effects,
            "List effects without an outcome",
            "waiting",
            waiting_shapes.EffectList,
        ),
        query=taken.WaitingQuery,
    ),
    Operation(
        *("POST", f"{_ONE}/effects/{{effect}}/resolve", resolve_effect, "Settle an effect", "waiting", shapes.Settled),
        takes=taken.Outcome,
        keyed=True,
        verb=AT_THE_DESK["resolve"],
    ),
    Operation(
        *("GET", f"{_ONE}/chain", list_chain, "Read the chain of a session", "proofs", shapes.ChainFace),
        query=taken.ChainQuery,
    ),
    Operation(
        *("GET", f"{_ONE}/receipts/{{seq}}", receipt_of, "Prove that a record is in the log", "proofs"),
        shapes.ReceiptFace,
        query=taken.ReceiptQuery,
        streams=TEXT,
        tells=receipt_text,
    ),
    Operation(
        *("GET", "/dataspace", query_dataspace, "Read what was stated, past and live", "dataspace", shapes.EventList),
        query=taken.DataspaceQuery,
        streams=EVENTS,
        tells=stream_dataspace,
    ),
    Operation("GET", "/facts", list_facts, "Read what holds", "dataspace", shapes.HeldList, query=taken.FactsQuery),
    Operation(
        *("GET", "/checkpoint", newest_checkpoint, "Get the newest signed checkpoint", "proofs"),
        shapes.CheckpointFace,
        query=taken.CheckpointQuery,
        streams=TEXT,
        tells=checkpoint_text,
    ),
    Operation("GET", "/keys", log_keys, "Get the keys that the log was signed with", "proofs", shapes.KeyList),
    Operation("POST", "/verify", verify_store, "Verify the store", "proofs", shapes.VerifyFace, verb="admin"),
    Operation(
        *("POST", "/reclaim", reclaim_space, "Have what was deleted go from the files", "space", shapes.ReclaimedFace),
        keyed=True,
        verb="admin",
    ),
    Operation(
        *("POST", "/archive", archive_content, "Have content that no session needs go to an archive", "space"),
        shapes.ArchivedFace,
        takes=taken.Archive,
        keyed=True,
        verb="admin",
    ),
    Operation(
        *("POST", "/bring-back", bring_back_content, "Have all that was archived come back", "space"),
        shapes.ArchivedFace,
        takes=taken.BringBack,
        keyed=True,
        verb="admin",
    ),
)
"""Every operation."""
