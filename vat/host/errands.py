"""Errands: the effects of all vats, from the durable record that wants them to the durable record of their outcome.

The runner (`vat.devices.runner`) calls the devices. What came of a call is kept here until its session has recorded it,
so an outcome that could not be made durable is offered again, and no effect is run a second time meanwhile.

What an earlier host has left of a device that this one has not is left for one that has it (`absent`): whatever this
one did with it would be for ever.

The one rule: an effect of a heap is with the runner, or held, or absent, or has its outcome here, or is wanted anew.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced
from dataspace.interrupts import is_interrupt
from dataspace.log.files import ReadFailed
from dataspace.log.store import RecordTooLarge
from dataspace.remedies import Remedy
from dataspace.values import Value, freeze
from snapshots.tree import Tree
from vat.crank.vat import Step, Vat
from vat.devices.attempts import Key, Wanted
from vat.devices.outcomes import EffectOutcome, OutcomeUnknown
from vat.devices.runner import EffectRunner
from vat.devices.vault import Vault
from vat.errors import Deleted
from vat.failures import failure_of
from vat.heap.entries import Effect
from vat.heap.messages import Ended, Outcome
from vat.host.hearing import Hearing
from vat.host.residents import Job, Work
from vat.objects.views import view_of

log = logging.getLogger("keeve")


OPEN_WITH_DEVICE: Final = Remedy(
    "open-with-device",
    "Open the store with devices={{'{device}': ...}}, or settle it: keeve resolve {id}, or host.resolve",
)


class Errands:
    """Has effects carried out.

    post: puts a job into a mailbox. done: does a job, a timely one or not, and returns when it is durable. overdue: see
    `Timely`. later: has a session taken up again after a while. head: the newest durable position. stand_ins: devices
    in place of ones that were not given; they answer only what is asked now.
    """

    def __init__(
        self,
        devices: Mapping[str, object],
        vault: Vault,
        *,
        stand_ins: Collection[str] = (),
        clock: Callable[[], int],
        random: Callable[[], float],
        hold: bool,
        post: Callable[[bytes, Job], None],
        done: Callable[[bytes, Work, bool], Awaitable[None]],
        overdue: Callable[[bytes, float], float | None],
        later: Callable[[bytes], None],
        head: Callable[[], int],
    ) -> None:
        self._post = post
        self._done = done
        self._overdue = overdue
        self._later = later
        self._hold = hold
        self._stand_ins = frozenset(stand_ins)
        self.runner = EffectRunner(
            devices,
            vault,
            clock=clock,
            mark_started=self._mark_started,
            in_time=self._in_time,
            settle=self._settled,
            random=random,
            progress=self._progress,
        )
        self._running: dict[Key, Wanted] = {}
        self._outcomes: dict[Key, tuple[Wanted, Outcome]] = {}
        self.held: dict[Key, Wanted] = {}
        """Effects of unknown outcome that wait for somebody to resolve them."""
        self.absent: dict[Key, Wanted] = {}
        """Effects that an earlier host has left, and that wait for one with their devices."""
        self._asked_here: set[Key] = set()
        """Effects without an outcome that a crank of this host wants."""
        self._offered: set[Key] = set()
        """Outcomes that wait in their session's mailbox."""
        self._uncalled: dict[Key, Wanted] = {}
        """Effects that are on record as started by this host, and that it has not given to their devices yet. It does
        when it can, also those that the runner has let go meanwhile."""
        self._by_hand: set[Key] = set()
        """Effects that somebody is settling now: nobody else carries them out meanwhile."""
        self.hearing = Hearing(head)
        """Those who want to hear what running effects tell."""

    def running(self) -> list[Wanted]:
        """The effects that are carried out here, or about to be, and those that have an outcome which the log does not
        have yet."""
        ended = {key: wanted for key, (wanted, _) in self._outcomes.items()}
        return list({**self._running, **ended, **self._uncalled}.values())

    def waits_for(self, uid: bytes) -> bool:
        """Whether an outcome waits for a session to record it."""
        return any(key[0] == uid for key in self._outcomes)

    def take_up(self, vat: Vat) -> None:
        """A vat has come into memory: see to the effects that it wants."""
        for number, _ in list(vat.heap.system["effects"].items(loader=vat.heap.page)):
            self.want(vat, number)

    def asked_here(self, uid: bytes, numbers: Iterable[int]) -> None:
        """A crank of this host wants these effects, and its record is durable."""
        self._asked_here.update((uid, number) for number in numbers)

    def want(self, vat: Vat, number: int) -> None:
        """Have an effect carried out whose record is durable."""
        key = (vat.uid, number)
        if key in self._running or key in self._by_hand:
            return
        if key in self._outcomes:
            self._offer(key)
            return
        entry = vat.heap.find("effects", number)
        if entry is None:  # a later record, which is not durable yet, has ended it
            return
        try:
            wanted = _wanted(vat, number, entry)
            if key in self._uncalled:
                wanted.state = "wanted"
            if key not in self._asked_here and not self._has(wanted):
                self._leave(wanted)
            elif wanted.state == "started" and self._hold and not self.runner.repeatable(wanted):
                self.held[key] = wanted
            else:
                self._run(wanted)
        except ReadFailed as error:
            log.warning("session %s: the arguments of an effect cannot be read now: %s", vat.id, in_log(error))
            self._later(vat.uid)
        except KeeveError as error:
            log.warning("session %s: the arguments of an effect cannot be read: %s", vat.id, in_log(error))
            self._unreadable(vat, number, entry, error)
        except Exception as error:
            # Whatever is wrong with this one, those that are wanted after it are carried out.
            log.error("session %s: an effect cannot be carried out", vat.id, exc_info=traced(error))
            self._running.pop(key, None)
            self._unreadable(vat, number, entry, error)

    def _unreadable(self, vat: Vat, number: int, entry: Sequence[Any], error: Exception) -> None:
        """An effect that cannot be called: it breaks, or if it may have happened, it is known to be unknown."""
        wanted = _wanted_as(vat, number, entry, [], {})
        if wanted.state == "started":
            error = OutcomeUnknown(f"{wanted.device}.{wanted.method}", wanted.id)
        self._outcomes[wanted.key] = wanted, Outcome(False, freeze(failure_of(error)))
        self._offer(wanted.key)

    def _has(self, wanted: Wanted) -> bool:
        return wanted.device not in self._stand_ins and self.runner.has(wanted.device, wanted.method)

    def _leave(self, wanted: Wanted) -> None:
        """An effect waits for a host that has its device. Said once."""
        if wanted.key not in self.absent:
            self.absent[wanted.key] = wanted
            log.warning(
                "session %s: %s.%s waits: it was asked for before this host opened, which was given no device %r that "
                "has it. %s",
                wanted.session,
                wanted.device,
                wanted.method,
                wanted.device,
                OPEN_WITH_DEVICE(device=wanted.device, id=wanted.id),
            )

    def _run(self, wanted: Wanted) -> None:
        self.held.pop(wanted.key, None)
        self._running[wanted.key] = wanted
        self.runner.want(wanted)

    async def _mark_started(self, wanted: Wanted) -> None:
        number = wanted.key[1]
        waits = True

        def work(vat: Vat) -> Sequence[Step]:
            if not waits:
                return ()  # it is not called any more, so no record may say that it started
            step = vat.started(number)
            if step is None:
                raise LookupError(f"effect {wanted.id} is not wanted any more")
            return (step,)

        try:
            with self._let_go_of(wanted):
                await self._done(wanted.key[0], work, True)
        finally:
            waits = False
        wanted.state = "started"
        self._uncalled[wanted.key] = wanted

    async def _in_time(self, wanted: Wanted) -> None:
        """Have the session take its timers whose time has come, and make durable what comes of that. Raises when the
        effect is not wanted then."""
        uid, number = wanted.key
        upto, taken = math.inf, False

        def work(vat: Vat) -> Sequence[Step]:
            nonlocal taken
            if vat.heap.find("effects", number) is None:
                raise LookupError(f"effect {wanted.id} is not wanted any more")
            taken = self._overdue(uid, upto) is None  # here the vat is in memory, however soon it leaves it
            return ()

        with self._let_go_of(wanted):
            while not taken and (newest := self._overdue(uid, upto)) is not None:
                upto = min(upto, newest)  # what is wanted from now on finds it under way
                await self._done(uid, work, True)
        self._uncalled.pop(wanted.key, None)

    @contextmanager
    def _let_go_of(self, wanted: Wanted) -> Iterator[None]:
        """If this fails, the runner lets an effect go, and it is wanted again when its session is taken up again."""
        try:
            yield
        except Exception:
            self._running.pop(wanted.key, None)
            self._later(wanted.key[0])
            raise

    def _settled(self, wanted: Wanted, outcome: EffectOutcome) -> None:
        if isinstance(outcome.error, KeeveError) and outcome.error.ordinary:
            log.info("session %s: %s", wanted.session, outcome.error.logged)
        elif outcome.trace:
            # A `KeeveError` says in its message what is wrong; of any other the message may say little.
            error = outcome.error
            said = f"\n{outcome.trace}"
            if isinstance(error, KeeveError) and error.logged != str(error):  # the trace would quote what was said
                said = f": {in_log(error)}"
            level = logging.INFO if isinstance(error, KeeveError) else logging.WARNING
            log.log(level, "session %s: %s failed%s", wanted.session, wanted.name, said)
        if outcome.error is None:
            came = Outcome(True, outcome.value)
        else:
            at = {"at": outcome.at} if outcome.at else {}
            came = Outcome(False, freeze({**failure_of(outcome.error), **at}))
        self._outcomes[wanted.key] = wanted, came
        self._running.pop(wanted.key, None)
        self._offer(wanted.key)

    def _offer(self, key: Key) -> None:
        if key in self._offered:  # or each time that its session is loaded for one there would be one more
            return
        self._offered.add(key)
        uid, number = key

        def work(vat: Vat) -> Sequence[Step]:
            waiting = self._outcomes.get(key)
            if waiting is None:
                self._offered.discard(key)
                return ()
            step = vat.take(Ended(number, waiting[1]))
            self._offered.discard(key)
            step.replies.append((told, waiting[1]))
            return (step,)

        def told(outcome: Outcome) -> None:
            # The same one, when it is durable; a failure, when it is not.
            waiting = self._outcomes.get(key)
            if waiting is not None and outcome is waiting[1]:
                del self._outcomes[key]
                self._over(key)

        def failed(error: BaseException) -> None:
            self._offered.discard(key)
            if isinstance(error, Deleted):
                self._outcomes.pop(key, None)
                self._over(key)
            elif isinstance(error, RecordTooLarge) and key in self._outcomes:
                self._outcomes[key] = self._outcomes[key][0], Outcome(False, freeze(failure_of(error)))
                self._offer(key)
            else:  # it is offered again when its session is taken up the next time
                session = self._outcomes[key][0].session if key in self._outcomes else uid.hex()
                log.info("session %s: the outcome of an effect waits: %s", session, in_log(error))
                self._later(uid)

        self._post(uid, Job(None, failed, work))

    @contextmanager
    def by_hand(self, key: Key) -> Iterator[bool]:
        """While somebody settles an effect that is not carried out here, nobody else does: not even by loading its
        session. `False` if somebody does already."""
        if key in self._by_hand:
            yield False
            return
        self._by_hand.add(key)
        held, absent = self.held.pop(key, None), self.absent.pop(key, None)
        try:
            yield True
            self._asked_here.discard(key)
        except BaseException:
            if held is not None:
                self.held[key] = held
            if absent is not None:
                self.absent[key] = absent
            self._later(key[0])
            raise
        finally:
            self._by_hand.discard(key)

    def settling(self, key: Key) -> bool:
        """Whether somebody settles an effect by hand now."""
        return key in self._by_hand

    def again(self, wanted: Wanted, *, recorded: bool = False) -> None:
        """Run an effect again that was held. `recorded`: it is on record that it starts, so that it is run, whatever
        holds that up."""
        wanted = attrs.evolve(wanted, state="wanted")
        if recorded:
            self._uncalled[wanted.key] = wanted
        self._run(wanted)

    def cancel(self, key: Key) -> None:
        """An effect is given up: what comes of it is not waited for."""
        self.held.pop(key, None)
        self.absent.pop(key, None)
        self._outcomes.pop(key, None)
        self._over(key)
        self.runner.cancel(key)

    def _over(self, key: Key) -> None:
        self._asked_here.discard(key)
        self._uncalled.pop(key, None)

    def bury(self, uid: bytes) -> None:
        """A session has been deleted: what runs for it is abandoned."""
        for keys in (self._running, self.held, self.absent, self._outcomes, self._asked_here, self._uncalled):
            for key in [key for key in keys if key[0] == uid]:
                self.cancel(key)

    def _progress(self, wanted: Wanted, value: Value) -> None:
        hearing = self.hearing.of(wanted)
        if not hearing:
            return
        piece = self.hearing.piece(wanted, value)
        for hear in hearing:
            try:
                hear(piece)
            except BaseException as error:  # what the effect does is not undone by who listens to it
                if is_interrupt(error):
                    raise
                what = "session %s: a listener failed at progress of %s"
                log.error(what, wanted.session, wanted.device, exc_info=traced(error))


def _wanted(vat: Vat, number: int, entry: Sequence[Any]) -> Wanted:
    """An effect as the runner takes it: with its arguments in read form, and views as they are."""
    args, keywords = entry[3], entry[4]
    heap = vat.heap
    read = [view_of(heap, arg) if isinstance(arg, Tree) else heap.read(arg) for arg in args]
    named = {name: view_of(heap, arg) if isinstance(arg, Tree) else heap.read(arg) for name, arg in keywords}
    return _wanted_as(vat, number, entry, read, named)


def _wanted_as(vat: Vat, number: int, entry: Sequence[Any], args: list[Any], keywords: dict[str, Any]) -> Wanted:
    id, device, method = entry[: Effect.ARGS]
    state: Any = "started" if entry[Effect.STARTED] else "wanted"
    return Wanted((vat.uid, number), id.hex(), vat.id, device, method, args, keywords, state)
