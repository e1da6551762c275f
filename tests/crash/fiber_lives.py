"""A host whose sessions run drawn async methods, through processes that die, stop, and hold few sessions at a time.

    calls, one after another, each until nothing moves any more; then what is open has its outcome, one after another

Devices answer when the story lets them, and always the same, so two stories differ in nothing but what happens to the
host.

The one rule: what a story lets happen next follows from what is open, never from time or from how far a process came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from dataspace.errors import KeeveError
from keeve.api import open_host
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from keeve.testing.lives import suppress_crash
from tests.crash.crash_audit import audited, check_messages, constant, standing, without
from tests.crash.crash_world import SETTINGS, in_time
from tests.vat.hosts import settled
from vat.devices.devices import Effect, effect
from vat.host.asking import NotRunning
from vat.objects.actor import Actor

ENOUGH = 300
"""Outcomes after which a story is too long."""


class Outside:
    """What is outside the store: what devices were called for, and what they may answer by now."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        """How often each effect that must not be repeated was carried out."""
        self.unknown: set[str] = set()
        """Of these the ones that were found unknown."""
        self.given: set[str] = set()
        self.gates: dict[str, trio.Event] = {}

    def give(self, id: str) -> None:
        """Let an effect have its outcome."""
        self.given.add(id)
        if id in self.gates:
            self.gates[id].set()

    async def asked(self, id: str) -> None:
        """Wait until an effect may have its outcome."""
        if id not in self.given:
            self.gates[id] = trio.Event()
            await self.gates[id].wait()


class Broken(KeeveError):
    """What a device raises."""


def answer(method: str, args: Sequence[Any]) -> Any:
    """What a device answers; some of it is an error."""
    value = args[-1] if method == "look" else args[0]
    if value == 2:
        raise Broken(f"no {method} of {value}")
    return [method, value, {"long": "text " * 80}] if value == 3 else [method, value]


class Tool:
    """The device of drawn methods. What is looked at must not be looked at again."""

    def __init__(self, outside: Outside, files: CrashFiles) -> None:
        self._outside = outside
        self._files = files

    @effect(on_crash="retry")
    async def use(self, effect: Effect, *args: Any) -> Any:
        await self._outside.asked(effect.id)
        return answer("use", args)

    @effect()
    async def look(self, effect: Effect, *args: Any) -> Any:
        if not self._files.dead:
            self._outside.calls[effect.id] += 1
        await self._outside.asked(effect.id)
        return answer("look", args)


@attrs.frozen
class Trouble:
    """What happens to one process: it dies in an operation, or is stopped before a move. `vats` stay in memory."""

    dies: int | None = None
    stops: int | None = None
    partial: int = 0
    vats: int = 1000


class Story:
    """Calls to two sessions, and what becomes of them."""

    def __init__(self, folder: Path, cls: type[Actor], calls: Sequence[tuple[int, int]]) -> None:
        self.folder = folder
        self.cls = cls
        self.calls = calls
        self.outside = Outside()
        self.answers: dict[int, str] = {}
        self.done = 0
        """Calls that were made."""
        self.over = False
        self.too_long = False
        self.deaths = 0

    def tell(self, troubles: Sequence[Trouble] = ()) -> None:
        """Lead one life for each trouble, and a last one to the end, unless it is too long."""
        for trouble in [*troubles, Trouble()]:
            if not self.over:
                files = CrashFiles(trouble.dies, partial=trouble.partial)
                self.outside.gates.clear()
                with suppress_crash():
                    trio.run(self._live, files, trouble)
                self.deaths += files.dead
        assert self.over or self.too_long

    async def _live(self, files: CrashFiles, trouble: Trouble) -> None:
        async with (
            in_time(),
            open_host(
                self.folder,
                files=files,
                actors=[self.cls],
                devices={"tool": Tool(self.outside, files)},
                settings=attrs.evolve(SETTINGS, vats=trouble.vats, hold_unknown=True, grace=0, closing=0),
                clock=standing,
                entropy=constant,
                segment_bytes=9000,
            ) as host,
            trio.open_nursery() as nursery,
        ):
            sessions = [await host.spawn(self.cls, id, request=id) for id in ("a", "b")]
            for session, other in (sessions, sessions[::-1]):
                await session.meet(other, request="meet")
            moves = 0
            for at, (which, method) in enumerate(self.calls):
                if at >= self.done and moves == trouble.stops:
                    nursery.cancel_scope.cancel()
                    return
                moves += at >= self.done
                nursery.start_soon(self._call, sessions[which % 2], method, at)
                await settled(host)
                self.done = max(self.done, at + 1)
            for _ in range(ENOUGH):
                if moves == trouble.stops or not await self._one_more(host):
                    break
                moves += 1
            else:
                self.too_long = True
            nursery.cancel_scope.cancel()
            self.over = not (files.dead or self.too_long or moves == trouble.stops)

    async def _call(self, session: Any, method: int, at: int) -> None:
        try:
            said = repr(await getattr(session, f"m{method}")(method, request=f"call {at}"))
        except (NotRunning, SimulatedCrash):
            return
        except (KeeveError, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
        assert self.answers.setdefault(at, said) == said

    async def _one_more(self, host: Any) -> bool:
        """Let the first of what is open have its outcome."""
        errands = host._engine.errands
        open = [wanted for wanted in (*errands.running(), *errands.held.values()) if wanted.device == "tool"]
        if not open:
            return False
        first = min(open, key=lambda wanted: (wanted.session, wanted.key[1]))
        if first.key in errands.held:
            self.outside.unknown.add(first.id)
            try:
                value = {"value": answer("look", first.args)}
            except Broken as error:
                value = {"error": error}
            await host.resolve(first.id, **value)
        else:
            self.outside.give(first.id)
        await settled(host)
        return True

    def left(self) -> dict[bytes, Any]:
        """The heaps in the end, but for the seqs in them: which one a record has follows from how often hosts ended."""
        found = audited(self.folder, self.folder.parent / "spare")
        check_messages(found)
        assert max(self.outside.calls.values(), default=1) == 1, "something was done twice"
        for heap in found.heaps.values():
            heap["system"]["facts"] = [presence for _, presence in heap["system"]["facts"]]
        return {uid: without(heap, "in") for uid, heap in found.heaps.items()}
