"""`open_host`: everything that a host needs, put together.

The one rule: for a host, the real clock, the real randomness and the real disk are chosen here; the packages below are
handed what they use. (Beside hosts, the command line and what makes keys reach for them too.)
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import attrs
import trio

from actors.directory import Directory
from actors.models import EchoModel
from actors.responding import Responding
from actors.session import Session
from dataspace.catalog.catalog import Catalog
from dataspace.catalog.peeking import peek
from dataspace.catalog.schema import CATALOG
from dataspace.checkpoints.checkpoints import Checkpoints, Seen
from dataspace.checkpoints.keys import origin_of
from dataspace.in_logs import in_log
from dataspace.log.files import Files
from dataspace.log.layout import Layout, State
from dataspace.log.marks import Head
from dataspace.log.segments import SEGMENT_BYTES, SegmentStore
from dataspace.log.store import NotAStore, Store, StoreOwned
from dataspace.log.verdicts import Evidence, LogCorrupt, LogTampered, LogTruncated
from dataspace.observe.dataspace import Dataspace
from dataspace.proofs.proofs import Receipt
from keeve.archive_places import look_in
from keeve.entropy import Entropy
from keeve.guard import guard
from keeve.host_keys import HostKey, as_host_key
from keeve.key_files import Signer, as_key
from keeve.opening import opened_by_async_with
from keeve.served import SOCKET, is_served
from vat.devices.devices import methods_of
from vat.devices.vault import Vault
from vat.errors import BadCall
from vat.host.engine import Engine
from vat.host.host import Host
from vat.host.sessions import Sessions
from vat.host.settings import Settings
from vat.objects.types import BadActorType, Types

log = logging.getLogger("keeve")

OURS: Final = (Session, Responding)
"""The actor types that run without being given."""


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


@opened_by_async_with
async def open_host(
    path: str | os.PathLike[str],
    *,
    actors: Sequence[type] = (),
    devices: Mapping[str, object] | None = None,
    vault: Vault | None = None,
    readonly: bool = False,
    unknown: Literal["break", "hold"] | None = None,
    signer: Signer | None = None,
    former: Signer | None = None,
    expect: str | bytes | Receipt | None = None,
    key: HostKey | None = None,
    archives: Sequence[str | os.PathLike[str]] = (),
    by: str = "local",
    via: str = "python",
    settings: Settings | None = None,
    clock: Callable[[], int] = now,
    entropy: Callable[[int], bytes] | None = None,
    files: Files | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> AsyncIterator[Host]:
    """Open the store at `path`, making it if there is nothing there, and run its host for as long as the block lasts.

    actors: the actor types that may run here, besides Keeve's own (`Session`, and `Responding` of the server).
    devices: what sessions may call, by name. What an earlier host has left for one that is not among them waits. Unless
      it is given, `model` is an echo, which answers only what is asked while this host runs.
    vault: where credentials are found.
    readonly: read a store that another process may own.
    unknown: what becomes of an effect of unknown outcome after a crash: `"break"` (its promise breaks with
      `OutcomeUnknown`) or `"hold"` (it waits for `Host.resolve`); None: as `Settings.hold_unknown` says.
    signer: what signs checkpoints and receipts: the path of a file with an Ed25519 key, or a `SigningKey`. The first
      one is put into the log; another one only with `former`, the one until then, which signs that.
    expect: a receipt or a checkpoint: the log has to have all that was seen in it.
    key: the host's key, with which a new store is encrypted and without which it does not open again: 32 bytes, the
      path of a file that `host_key` makes, or a function that gives them.
    archives: folders where content that was archived is now, if it is not where it went.
    by, via: who asks through this host, and in which way: what the records and facts of its requests say.

    Raises `NotAStore`, `NoFolder`, `StoreOwned`, `NewerFormat`, `TestRunGuard`, `BadActorType`, `NotADevice`, or what
    the disk refuses; with a signer `BadKeyFile`, `WrongKey`, and `LogTruncated` or `LogTampered` when the log does not
    extend what was signed before; these two with `expect` as well; of keys `HostKeyNeeded`, `WrongHostKey`,
    `BadHostKey`, `NotEncrypted` and the `KeyFileError`s; with archives `NotAnArchive`. At the end of the block all that
    was accepted is durable.
    """
    folder = Path(path)
    guard(folder)
    if unknown not in (None, "break", "hold"):
        raise ValueError(f'unknown={unknown!r}: it is "break" or "hold"')
    if not isinstance(settings, Settings | None):
        raise BadCall(f"settings is a {type(settings).__name__}: give Settings(vats=100), with what is to differ")
    _check(actors, devices or {})
    signing, before = as_key(signer), as_key(former)
    if readonly and signing is not None:
        raise ValueError("a host that only reads signs nothing: leave out the signer, or readonly=True")
    seen = None if expect is None else Seen.of(expect)
    if seen is not None:
        _check_seen(Layout(folder), seen)
    given = settings or Settings()
    if unknown is not None:
        given = attrs.evolve(given, hold_unknown=unknown == "hold")
    store, catalog = open_store(
        folder,
        readonly=readonly,
        clock=clock,
        entropy=entropy,
        files=files,
        segment_bytes=segment_bytes,
        seen=None if seen is None else seen.head,
        key=as_host_key(key),
        archives=archives,
    )
    try:
        if expect is not None and isinstance(store.fault, LogTruncated | LogTampered):
            raise store.fault
        if store.readonly:
            signing = None
        checkpoints = Checkpoints(
            store, catalog, signing, former=before, now=clock, salts=entropy or os.urandom, expect=expect
        )
        async with run_host(
            store,
            catalog,
            actors=actors,
            devices=devices,
            vault=vault,
            settings=given,
            clock=clock,
            entropy=entropy,
            checkpoints=checkpoints,
        ) as host:
            yield host.asking(by, via)
    finally:
        catalog.close()
        store.close()


def _check(actors: Sequence[type], devices: Mapping[str, object]) -> None:
    """Raise for what no host can be given, before a store is made for it."""
    if isinstance(actors, type):
        raise BadActorType(actors, f"actors is a list of types: write actors=[{actors.__name__}]")
    if not isinstance(devices, Mapping):
        raise BadCall(f"devices is a {type(devices).__name__}: give each a name, devices={{'shop': Shop()}}")
    Types([*OURS, *actors])
    for device in devices.values():
        methods_of(device)


def _check_seen(layout: Layout, seen: Seen) -> None:
    """Raise for what was seen of another log, before anything is opened or made."""
    if layout.state() is State.NEW:
        what = f"nothing is there, and a checkpoint of {seen.checkpoint.size} records was seen"
        raise NotAStore(str(layout.folder), what)
    log_id = layout.log_id()
    if log_id is not None and origin_of(log_id) != seen.checkpoint.origin:
        raise LogTampered(1, 0, f"it is {origin_of(log_id)}, and a checkpoint of {seen.checkpoint.origin} was seen")


def open_store(
    folder: Path,
    *,
    readonly: bool = False,
    clock: Callable[[], int] = now,
    entropy: Callable[[int], bytes] | None = None,
    files: Files | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    seen: Head | None = None,
    key: bytes | None = None,
    archives: Sequence[str | os.PathLike[str]] = (),
) -> tuple[SegmentStore, Catalog]:
    """The store in a folder and its catalog, recovered. A head that somebody has `seen` is held against the log.

    `key` is the host's, of an encrypted store; `archives` are folders where archived content is now.
    """
    path = folder / CATALOG
    peeked = peek(path)
    newest = None if peeked is None else peeked.newest()
    evidence = Evidence(seen=() if seen is None else (seen,))
    if peeked is not None:
        evidence = attrs.evolve(evidence, start=peeked.mark, heads=peeked.heads)
    opens = partial(
        SegmentStore,
        folder,
        now=clock,
        salts=entropy or os.urandom,
        files=files,
        readonly=readonly,
        segment_bytes=segment_bytes,
        key=key,
    )
    try:
        store = opens(evidence=evidence)
    except StoreOwned as error:
        if is_served(folder / SOCKET):
            raise StoreOwned(error.path, error.pid, served=True) from None
        raise
    finally:
        if peeked is not None:
            peeked.close()
    try:
        look_in(store, archives)
        if newest is not None and not readonly:
            store.check_keys(newest)
        try:
            catalog = _catalog(path, store)
        except LogCorrupt:  # there is no catalog any more, and none can be made: the log is judged without it
            if store.readonly:
                raise
            store.close()
            store = opens(evidence=Evidence(seen=evidence.seen))
            look_in(store, archives)
            catalog = _catalog(path, store)
        if store.fault is not None:
            said = "%s can only be read, and what is read of it may not be all; who was deleted behind position %d is "
            said += "there again, if neither the catalog, nor the key file, nor a tombstone that is left says so: %s"
            log.warning(said, folder, store.head.position, in_log(store.fault))
        return store, catalog
    except BaseException:
        store.close()
        raise


def _catalog(path: Path, store: SegmentStore) -> Catalog:
    try:
        return Catalog(path, store)
    except LogCorrupt:
        if not store.readonly or store.fault is not None:
            raise
        store.distrust()
        return Catalog(path, store)


@asynccontextmanager
async def run_host(
    store: Store,
    catalog: Catalog,
    *,
    actors: Sequence[type] = (),
    devices: Mapping[str, object] | None = None,
    vault: Vault | None = None,
    settings: Settings | None = None,
    clock: Callable[[], int] = now,
    entropy: Callable[[int], bytes] | None = None,
    checkpoints: Checkpoints | None = None,
) -> AsyncIterator[Host]:
    """Run the host of a store that is open; see `open_host`."""
    directory = Directory()
    every: dict[str, Any] = {"model": EchoModel(), "directory": directory, **(devices or {})}
    engine = Engine(
        store,
        Dataspace(store, catalog),
        Types([*OURS, *actors]),
        devices=every,
        stand_ins={"model"} - set(devices or ()),
        vault=vault or Vault(),
        clock=clock,
        entropy=entropy or Entropy(),
        settings=settings or Settings(),
        checkpoints=checkpoints,
    )
    directory.sessions = sessions = Sessions(engine)
    host = Host(engine, sessions, directory)
    await engine.reclaiming.shredding.begin()
    failed: Exception | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(engine.run)
        try:
            yield host
        except Exception as error:  # noqa: BLE001  # it leaves the block as it is, not in a group
            failed = error
        await engine.stop()
        nursery.cancel_scope.cancel()
    if failed is not None:
        raise failed
