"""An error that quotes something is met at each place that tells a log of errors: its words are in no line."""

from __future__ import annotations

import ast
import io
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, MagicMock, PropertyMock

import pytest
import trio

from dataspace.checkpoints.checkpoints import Checkpoints
from dataspace.log.verdicts import SessionDamaged
from dataspace.log.writer import Writer
from dataspace.observe.events import Event
from keeve import KeeveError, Session, host_thread
from keeve.server import listening, middleware, streams, wire
from keeve.server.logs import Secrets, make_log
from keeve.server.openai.unstored import Unstored
from keeve.testing import memory_host
from tests.cli_runner import ROOT
from tests.keeve.quoting import (
    CANARY,
    Quoting,
    QuotingOrdinary,
    QuotingRead,
    QuotingTampered,
    QuotingWrite,
    caused,
    ending,
    quoting,
    raising,
    raising_later,
)
from tests.keeve.test_lines_of_logs import calls_of_loggers, sources
from vat.crank.upgrading import UpgradeFailed
from vat.crank.vat import Step
from vat.devices.outcomes import EffectOutcome, trace_of
from vat.host.asking import NotRunning
from vat.host.basing import Basing
from vat.host.following import Following
from vat.host.host import Host
from vat.host.observers import Observer
from vat.host.reclaiming import Reclaiming
from vat.host.residents import Job
from vat.host.shredding import Shredding

Patch = pytest.MonkeyPatch


# Where a host tells of errors.


async def basing(host: Host, patch: Patch) -> None:
    row = host.row("s1")
    me = MagicMock(_do=AsyncMock(side_effect=[None, None]), _written=AsyncMock(side_effect=quoting()))
    me._catalog.lineage.return_value = [SimpleNamespace(uid=row.uid, upto=1)]
    me._catalog.by_uid.return_value = row
    await Basing._base(me, row, {row.uid: MagicMock(size=lambda *_: 1 << 20)}, MagicMock())


async def care(host: Host, patch: Patch) -> None:
    vat = MagicMock(id="s1", collect=raising(quoting()), snapshot=raising(quoting()))
    patch.setattr(host._engine.care, "_wants_snapshot", lambda vat: True)
    host._engine.care.after(MagicMock(damage=None), vat)
    host._engine.care._not_upgraded(vat, UpgradeFailed("s1", "notes.note", 1, quoting()))


async def catalog(host: Host, patch: Patch) -> None:
    catalog, records = host._engine.dataspace.catalog, [MagicMock(position=1)]
    patch.setattr(catalog, "take_in", raising(quoting()))
    catalog.note(records)
    patch.undo()


async def commits(host: Host, patch: Patch) -> None:
    patch.setattr(host._engine.commits, "_release", raising(caused()))
    host._engine.commits._let_go(MagicMock(uid=host.row("s1").uid), MagicMock())


async def engine(host: Host, patch: Patch) -> None:
    engine, uid = host._engine, host.row("s1").uid
    resident = engine.residents.get(uid)
    assert resident is not None
    patch.setattr(engine.errands, "take_up", raising(quoting()))
    engine._take_up(resident)
    patch.setattr(engine.mail, "waits_for", lambda uid: True)
    patch.setattr(engine.turns, "post", lambda uid, job: job.failed(quoting()))
    engine._wake(uid)


async def errands(host: Host, patch: Patch) -> None:
    errands, uid = host._engine.errands, host.row("s1").uid
    wanted = MagicMock(session="s1", device="model", key=(uid, 7))
    for name in ("_unreadable", "_later", "_offer"):
        patch.setattr(errands, name, lambda *_: None)
    for error in (quoting(), QuotingRead(CANARY), caused()):
        patch.setattr("vat.host.errands._wanted", raising(error))
        errands.want(MagicMock(id="s1", uid=uid), 1)
    for error in (QuotingOrdinary(CANARY), quoting(), caused()):
        trace = trace_of(error, str)
        errands._settled(wanted, EffectOutcome(error=error, trace=trace))
    errands._outcomes.clear()
    patch.setattr(errands, "hearing", MagicMock(of=lambda wanted: [raising(caused())]))
    errands._progress(wanted, None)
    patch.undo()
    patch.setattr(errands, "_post", lambda uid, job: job.failed(quoting()))
    patch.setattr(errands, "_later", lambda *_: None)
    errands._offer((uid, 7))


async def following(_: Host, patch: Patch) -> None:
    await Following.run(MagicMock(_seconds=0, refresh=MagicMock(side_effect=[QuotingRead(CANARY), quoting()])))


async def loading(host: Host, patch: Patch) -> None:
    for error in (quoting(), SessionDamaged("s1", 2, 2, "its body is not what was written")):
        host._engine.loader.trouble(host.row("s1").uid, error)


async def mail(host: Host, patch: Patch) -> None:
    uid = host.row("s1").uid
    host._engine.mail._failed(MagicMock(), uid, 1, uid, {}, quoting())


async def observers(host: Host, patch: Patch) -> None:
    for pattern in (f'(turn ? "{CANARY}" . _)', "(_ . _)", f"({CANARY}"):
        await Observer(MagicMock(observe_with=AsyncMock(side_effect=quoting())), pattern, print, {}).run()
    with suppress(KeeveError):
        await host.observe('(turn ? "s1" . _)', fails_at_an_event, after="start", until="head").wait()


def fails_at_an_event(_: Event) -> None:
    raise caused()


async def reclaiming(host: Host, patch: Patch) -> None:
    await Reclaiming.begin(MagicMock(finish=AsyncMock(side_effect=quoting())))
    for error in (quoting(), caused()):
        scope = trio.CancelScope()
        me = MagicMock(_after=0, _store=MagicMock(fault=quoting()), finish=ending(scope, error))
        me._deleted.wait = trio.lowlevel.checkpoint
        me._deleted.is_set.side_effect = [True, False]
        type(me).pending = PropertyMock(side_effect=[quoting()])
        with scope:
            await Reclaiming.run(me)


async def resolving(host: Host, patch: Patch) -> None:
    catalog = host._engine.dataspace.catalog
    patch.setattr(catalog, "with_pending", lambda: [host.row("s1").uid])
    patch.setattr(host._engine, "tended", lambda uid: False)
    patch.setattr("vat.host.resolving.read_stored", raising(quoting()))
    assert list(host._resolving._dormant()) == []


async def scheduling(host: Host, patch: Patch) -> None:
    turns, uid = host._engine.turns, host.row("s1").uid
    with patch.context() as meanwhile:
        meanwhile.setattr(turns._commits, "add", raising(NotRunning()))
        with suppress(NotRunning):
            turns._recorded(MagicMock(), MagicMock(id="s1"), Step(None, failure=quoting()), Job(None))
    for error in (caused(RuntimeError), quoting()):
        turns.post(uid, Job(None, None, raising(error)))
        await host._engine.quiet()
    patch.setattr(turns, "_after", raising(caused()))
    turns.post(uid, Job(None, None, lambda vat: ()))
    await host._engine.quiet()
    patch.setattr(turns, "_load", raising(caused()))
    resident = host._engine.residents.get(uid)
    assert resident is not None
    resident.let_go()
    turns.post(uid, Job(None, lambda error: None, lambda vat: ()))
    await host._engine.quiet()


async def shredding(_: Host, patch: Patch) -> None:
    await Shredding.shred(MagicMock(_encrypted=True, _store=MagicMock(destroy=raising(quoting()))), b"u" * 16)


async def waking(host: Host, patch: Patch) -> None:
    patch.setattr(host._engine.waking, "_wake", raising(quoting()))
    await host._engine.waking.all([host.row("s1").uid])


async def subscriptions(host: Host, patch: Patch) -> None:
    subscriptions, uid = host._engine.subscriptions, host.row("s1").uid
    for error in (quoting(), caused()):
        scope = trio.CancelScope()
        patch.setattr(subscriptions, "_dataspace", MagicMock(observe=ending(scope, error)))
        await subscriptions._read(uid, 1, f"({CANARY} . _)", "start", scope)
    patch.setattr(subscriptions, "_done", AsyncMock(side_effect=[QuotingWrite(CANARY), None]))
    patch.setattr(subscriptions, "_retry", 0)
    await subscriptions._bring(uid, MagicMock())


async def hearing(host: Host, patch: Patch) -> None:
    space = host._engine.dataspace
    with suppress(TypeError):
        space._told["turn"] = (raising(caused()),)
    await (await host.get("s1")).turn("hello")


async def certifying(_: Host, patch: Patch) -> None:
    for error in (QuotingTampered(CANARY),):
        assert Checkpoints.pending(MagicMock(_to_keep=[], _size=1, _kept=0, _signed=raising(error))) is None


async def writing(_: Host, patch: Patch) -> None:
    certifier = MagicMock(pending=raising(quoting()))
    writer = Writer(MagicMock(fault=None), on_durable=print, on_failed=print, certifier=certifier)
    writer.keep_now()
    await writer._settle()


async def in_a_thread(_: Host, patch: Patch) -> None:
    future: Any = MagicMock(result=raising(quoting()))
    with suppress(Quoting):
        host_thread._outcome(future)
    host_thread._first(BaseExceptionGroup("several", [quoting(), caused()]))


# Where a server does.


def serving() -> Any:
    """What stands for a server; its log goes to that of the tests."""
    told = make_log(Secrets(), out=_Lines())  # type: ignore[arg-type]  # it is written to
    return MagicMock(log=told)


class _Lines(io.StringIO):
    def write(self, text: str) -> int:
        logging.getLogger("keeve.server").info("%s", text)
        return len(text)


async def served(_: Host, patch: Patch) -> None:
    patch.setattr(wire, "serve", raising_later)
    await wire._serve_stream(serving(), MagicMock(), MagicMock())


async def answered(_: Host, patch: Patch) -> None:
    async def app(*_: Any) -> None:
        raise caused()

    scope = {"type": "http", "headers": [], "method": "GET", "path": "/"}
    with suppress(TypeError):
        await middleware.ErrorBoundary(app, serving())(scope, AsyncMock(), AsyncMock())


async def streamed(_: Host, patch: Patch) -> None:
    async def produce(send: Any) -> None:
        raise caused()

    into, out = trio.open_memory_channel[Any](1)
    await streams.EventStream._producing(MagicMock(_serving=serving(), _produce=produce), into, {})
    out.close()


async def unstored(_: Host, patch: Patch) -> None:
    me: Any = MagicMock(_serving=serving())
    me._serving.host.made_by.return_value = ("ann", "")
    me._serving.host.asking.return_value.delete = raising_later
    await Unstored._delete(me, "s1")


async def connected(_: Host, patch: Patch) -> None:
    patch.setattr(listening, "Http1Server", raising(caused()))
    await listening.HttpListener._serve(MagicMock(_settings=MagicMock(idle_seconds=1, body_seconds=1)), MagicMock())


PLACES: dict[str, Callable[[Host, Patch], Awaitable[None]]] = {
    "dataspace/checkpoints/checkpoints.py": certifying,
    "dataspace/log/writer.py": writing,
    "dataspace/observe/hearers.py": hearing,
    "keeve/host_thread.py": in_a_thread,
    "keeve/server/listening.py": connected,
    "keeve/server/middleware.py": answered,
    "keeve/server/openai/unstored.py": unstored,
    "keeve/server/streams.py": streamed,
    "keeve/server/wire.py": served,
    "dataspace/catalog/catalog.py": catalog,
    "vat/host/basing.py": basing,
    "vat/host/care.py": care,
    "vat/host/commits.py": commits,
    "vat/host/engine.py": engine,
    "vat/host/errands.py": errands,
    "vat/host/following.py": following,
    "vat/host/loading.py": loading,
    "vat/host/mail.py": mail,
    "vat/host/observers.py": observers,
    "vat/host/reclaiming.py": reclaiming,
    "vat/host/resolving.py": resolving,
    "vat/host/scheduling.py": scheduling,
    "vat/host/shredding.py": shredding,
    "vat/host/subscriptions.py": subscriptions,
    "vat/host/waking.py": waking,
}
"""By the file that tells a log of errors, what brings it to."""

NOTHING_SAID = {"keeve/api.py", "keeve/server/running.py"}
"""Those whose errors are of the store's files, and of a socket's: nobody has said anything there."""


def tells_of_errors(path: Path) -> list[int]:
    """The lines in a file that tell a log of errors."""
    told = re.compile(r"in_log\(|traced\(|\.logged|=trace\b")
    return [call.lineno for call in calls_of_loggers(ast.parse(path.read_text())) if told.search(ast.unparse(call))]


def test_every_file_that_tells_a_log_of_errors_is_looked_at() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in sources() if tells_of_errors(path)}
    assert found == PLACES.keys() | NOTHING_SAID


@pytest.mark.parametrize("place", PLACES)
async def test_what_an_error_quotes_is_in_no_line(place: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "keeve")
    async with memory_host() as host:
        await (await host.spawn(Session, "s1")).turn("hello")
        with pytest.MonkeyPatch.context() as patch:
            await PLACES[place](host, patch)
        records = list(caplog.records)
    assert "CANARY" not in caplog.text
    if not place.startswith("keeve/server"):  # whose log is another one, that says nothing of lines
        lines = {record.lineno for record in records if record.pathname.endswith(place)}
        assert lines >= set(tells_of_errors(ROOT / place))
    assert "Quoting" in caplog.text, "it is told that there was such an error"
