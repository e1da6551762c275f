"""What is refused, in one shape: a status, a stable code, what was wrong, and what to do.

    {"error": {"code": "no_such_session", "message": "...", "remedy": "...", "type": "invalid_request_error",
               "param": null, "request_id": "..."}}

The code of an error of Keeve's is the name of its class in small letters (`NoSuchSession`: `no_such_session`), so that
a new error has one as well. `ANSWERS` says which status each has, and what to do about it over HTTP.

The one rule: who gets an answer learns what they asked wrongly, and nothing of the inside. What is not ours is
`internal`, and its message is a request id under which the log has the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs
from starlette.responses import JSONResponse

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from keeve import errors as known
from keeve.remedies import worded
from vat.devices.outcomes import alone

OPENAI: Final = "/v1/"
"""Paths whose clients show nothing of an error but its message."""


@attrs.define(eq=False)
class Refusal(Exception):
    """An answer that is an error. `param` names what of the request is meant, where that is one thing."""

    status: int
    code: str
    message: str
    remedy: str = ""
    param: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)

    def __str__(self) -> str:
        return self.message

    @property
    def type(self) -> str:
        """The kind of error, in the words that clients of OpenAI's API know."""
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        return kinds.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")

    def whole(self) -> Refusal:
        """The same, its message saying all of it, for clients that show nothing else of an error."""
        said = self.message
        if self.param and self.param not in said:
            said = f"{self.param}: {said}"
        if self.remedy and self.remedy not in said:
            said += f" {self.remedy[0].upper()}{self.remedy[1:]}" if said[-1:] in ".?!" else f"; {self.remedy}"
        return attrs.evolve(self, message=said)

    def at(self, path: str) -> Refusal:
        """As it is told to who asks at that path."""
        return self.whole() if path.startswith(OPENAI) else self

    def document(self, request_id: str | None = None) -> dict[str, Any]:
        """The JSON document."""
        said = {"code": self.code, "message": self.message, "remedy": self.remedy}
        return {"error": {**said, "type": self.type, "param": self.param, "request_id": request_id}}

    def response(self, request_id: str | None = None) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.document(request_id), self.status, headers=dict(self.headers))


@attrs.frozen
class ErrorAnswer:
    """How an error is answered: the status, what to do, and what is said instead of its own message.

    of_set_up: it is about how the server was set up. Who asks learns no more than that, and its log has the rest.
    """

    status: int
    remedy: str
    message: Callable[[Any], str] | None = None
    of_set_up: bool = False


def of_set_up(what: str) -> ErrorAnswer:
    """How something is answered that only whoever keeps the server can mend: names and paths of it are in its log."""
    return ErrorAnswer(503, SET_UP, lambda _: what, of_set_up=True)


LIST: Final = "GET /api/v1/sessions lists those that you can reach"
LATER: Final = "ask again later, with the same Idempotency-Key"
ANEW: Final = "ask again later, with another Idempotency-Key: that turn has failed"
AGAIN: Final = "correct it and ask again"
KEEPER: Final = "whoever keeps the server has to see to it"
IN_SESSION: Final = "in session "
"""How the note of an error begins that says which session it met."""
SET_UP: Final = f"{KEEPER}: its log says what is missing"
TURNS: Final = "GET the session: its turns have their seqs"
OF_ITS_TYPE: Final = "a program calls what this type has, as that takes it, with keeve.client"
TOKEN: Final = "use a ref, or a token, that may"

ANSWERS: Final[Mapping[type[Exception], ErrorAnswer]] = {
    # What was asked cannot be.
    known.NoSuchSession: ErrorAnswer(404, LIST, lambda error: f"there is no session {error.session!r}"),
    known.Deleted: ErrorAnswer(410, "its id does not come back: choose another one"),
    known.IdInUse: ErrorAnswer(409, "choose another id, or none", lambda error: f"the id {error.id!r} is in use"),
    known.BadSessionId: ErrorAnswer(422, "an id is 1 to 200 characters, none of them control characters"),
    known.RequestConflict: ErrorAnswer(
        409,
        "repeat exactly what was sent first, or use a new Idempotency-Key",
        lambda _: "this Idempotency-Key was sent before, with something else",
    ),
    known.BadRequest: ErrorAnswer(400, AGAIN),
    known.BadRequestId: ErrorAnswer(
        422, "an Idempotency-Key is 1 to 1,000 characters of text", lambda _: "the Idempotency-Key can be none"
    ),
    known.BadSetting: ErrorAnswer(422, AGAIN),
    known.BadInput: ErrorAnswer(422, AGAIN),
    known.BadPattern: ErrorAnswer(422, "(turn . _) is one: docs/patterns.md has how they are written"),
    known.Busy: ErrorAnswer(409, "wait until its work is done, or give force=true"),
    known.NoSuchPoint: ErrorAnswer(422, TURNS),
    known.PastDamaged: ErrorAnswer(409, "fork it at its last good seq"),
    known.NoSuchEffect: ErrorAnswer(404, "GET the session: it lists its effects that have no outcome"),
    known.NothingWaits: ErrorAnswer(404, "GET its approvals: they are the calls that wait"),
    known.CallWithdrawn: ErrorAnswer(409, "ask the session anew for what it was to do"),
    known.BadOutcome: ErrorAnswer(422, "give exactly one of value, error and again"),
    known.BadCursor: ErrorAnswer(422, 'a cursor is "start", "head", a position, or what an event carried'),
    known.WrongCursor: ErrorAnswer(409, "begin again from start, or find the store that the cursor is of"),
    known.SnapshotMismatch: ErrorAnswer(409, "give it as it was given out, to the server that made it"),
    known.NotSigning: ErrorAnswer(409, "start the server with a signer"),
    known.NotCovered: ErrorAnswer(409, "ask for a receipt without naming a checkpoint"),
    known.StatesNoTurns: ErrorAnswer(422, f"POST it as a turn, which waits for its answer; {OF_ITS_TYPE}"),
    known.NoSuchMethod: ErrorAnswer(422, OF_ITS_TYPE),
    known.OtherParameters: ErrorAnswer(422, OF_ITS_TYPE),
    known.NothingToErase: ErrorAnswer(404, TURNS),
    known.Forked: ErrorAnswer(409, "ask again: what was under way stayed with the session that it was forked from"),
    known.TurnInterrupted: ErrorAnswer(409, "ask again, with another Idempotency-Key, if it is still wanted"),
    known.TurnOver: ErrorAnswer(409, "ask again, as another turn"),
    known.TurnRuns: ErrorAnswer(409, "wait for it or interrupt it, and ask again"),
    known.RecordTooLarge: ErrorAnswer(413, "send it in smaller pieces"),
    known.ReadOnly: ErrorAnswer(403, TOKEN),
    known.Refused: ErrorAnswer(403, TOKEN),
    known.Revoked: ErrorAnswer(403, "ask whoever gave it for another"),
    # What was asked is fine, and failed.
    known.NotRunning: ErrorAnswer(503, LATER, lambda _: "the server is stopping"),
    known.NothingTakenUp: ErrorAnswer(503, LATER),
    known.StoreReadOnly: ErrorAnswer(503, f"the store can only be read now: {KEEPER}"),
    known.StoreFailed: ErrorAnswer(503, "the store writes no more: whoever keeps the server has to open it again"),
    known.StoreDamaged: ErrorAnswer(503, f"the store can only be read now: {KEEPER}"),
    known.Archived: ErrorAnswer(
        503,
        "whoever keeps the server has to bring the archive back to its place, or to name its folder in KEEVE_ARCHIVES",
        lambda error: f"content of the record at position {error.position} is in an archive that is not there",
    ),
    known.SessionDamaged: ErrorAnswer(500, "fork the session at a seq before the damage"),
    known.DiskFull: ErrorAnswer(507, LATER, lambda _: "the disk of the server is full"),
    known.ErasureUnfinished: ErrorAnswer(
        507,
        "nothing: the server takes them out when there is space",
        lambda _: "it is erased, and nobody reads it any more; its bytes are in the server's files yet",
    ),
    known.WriteFailed: ErrorAnswer(503, LATER, lambda _: "the disk of the server refuses to write"),
    known.SyncFailed: ErrorAnswer(503, LATER, lambda _: "the disk of the server refuses to write"),
    known.ModelBusy: ErrorAnswer(503, ANEW),
    known.ModelUnreachable: ErrorAnswer(502, ANEW),
    known.ModelRefused: ErrorAnswer(502, f"send what the model takes; where it is the key or the address, {KEEPER}"),
    known.ModelError: ErrorAnswer(502, ANEW),
    known.ServerUnavailable: ErrorAnswer(
        503, 'see that it can be started and reached, and ask again; with "tools": [] a session is made without tools'
    ),
    # What was asked is fine, and the server is not set up for it.
    known.NoCredential: of_set_up("the server has not the credential that this needs"),
    known.BadTool: of_set_up("the server's tools are not what was said of them"),
    known.NotInstalled: of_set_up("the server has not the package that its tools need"),
    known.SignerFailed: of_set_up("what signs the log of the server does not answer"),
    known.BadKeyFile: of_set_up("what signs the log of the server has no key"),
    known.WrongKey: of_set_up("what signs the log of the server has another key than that log"),
    known.KeyFileError: of_set_up("the key file of the server's store cannot be used"),
    known.HostKeyNeeded: of_set_up("the server has not the key of its store"),
    known.WrongHostKey: of_set_up("the server has another key than its store"),
    known.StoreMoved: of_set_up("the store of the server is not where it was"),
    known.StaleOwner: of_set_up("the store of the server was taken over by another one"),
    known.UpgradeFailed: of_set_up("the session cannot be brought to the version of its type that the server has"),
    known.NewerVersion: of_set_up("the session is of a newer version of its type than the server has"),
    # What the server asks has failed.
    known.BadAnswer: ErrorAnswer(502, KEEPER),
    known.NotCalled: ErrorAnswer(502, "name another model, or leave tool_choice out"),
    known.OutcomeUnknown: ErrorAnswer(502, "find out what came of it: whether it may be asked again nobody here knows"),
    known.EffectError: ErrorAnswer(502, "find out what came of it before you ask again"),
    known.UnknownDevice: ErrorAnswer(502, "name a model or a tool that the server has"),
    known.UnknownActorType: ErrorAnswer(422, "start the server with the module that has this type"),
    known.Failed: ErrorAnswer(502, f"if it goes on, {KEEPER}"),
}
"""How errors are answered; one that is not here as its nearest base is, and else by its `usage`: 422, or 500."""


def answer_to(kind: type[KeeveError]) -> ErrorAnswer | None:
    """How errors of a class are answered, by the nearest base that is in the table."""
    return next((ANSWERS[base] for base in kind.__mro__ if base in ANSWERS), None)


def refusal_of(error: BaseException) -> Refusal | None:
    """How an error is answered; None for one that is not ours, which nobody is to be told of."""
    if isinstance(error, Refusal):
        return error
    if not isinstance(error, KeeveError):
        return None
    answer = answer_to(type(error)) or (ErrorAnswer(422, AGAIN) if error.usage else ErrorAnswer(500, KEEPER))
    message = worded(str(error), "http") if answer.message is None else answer.message(error)
    return Refusal(answer.status, code_of(error), message, answer.remedy)


def set_up_of(error: BaseException) -> str | None:
    """What the log says of an error that is about how the server was set up, with the session that met it; None for
    another one. Of what a client is refused with that is what it was refused for."""
    while isinstance(error, Refusal) and error.__cause__ is not None:
        error = alone(error.__cause__)
    answer = answer_to(type(error)) if isinstance(error, KeeveError) else None
    if answer is None or not answer.of_set_up:
        return None
    where = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str) and note.startswith(IN_SESSION)]
    return "; ".join([in_log(error), *where])


def there_are(names: Iterable[str]) -> str:
    """What there is, as the end of a sentence.

    >>> there_are(["a", "b", "c"]), there_are(["a"]), there_are([])
    ("there are 'a', 'b' and 'c'", "there is 'a'", 'there is none')
    """
    *most, last = [repr(name) for name in names] or ["none"]
    return f"there are {', '.join(most)} and {last}" if most else f"there is {last}"


def code_of(error: BaseException) -> str:
    """The stable code of an error.

    >>> code_of(known.NoSuchSession("s1"))
    'no_such_session'
    """
    return code_named(error.kind if isinstance(error, known.Failed) else type(error).__name__)


def code_named(name: str) -> str:
    """The stable code of the error of that name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def internal() -> Refusal:
    """What is said of a mistake of ours."""
    return Refusal(
        500, "internal", "the server has made a mistake", "tell whoever keeps it the request id: its log says more"
    )


def no_model(name: Any, known: Iterable[str], param: str = "model", status: int = 404) -> Refusal:
    """There is no model of that name."""
    return Refusal(status, "model_not_found", f"there is no model {name!r:.100} here", there_are(known), param=param)
