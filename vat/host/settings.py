"""How a host behaves: every number that may be changed, in one place.

The one rule: nothing here changes what a session's records say, only when and how many are in memory.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

import attrs

from dataspace.errors import KeeveError

_LEAST: Final = {
    "vats": 0,
    "cache": 0,
    "first_snapshot": 1,
    "snapshot_records": 1,
    "snapshot_bytes": 1,
    "closing_records": 1,
}
_SECONDS: Final = ("grace", "closing", "retry", "slow", "reclaim", "follow")
_TAKES_UP: Final = ("all", "asked", "nothing")


class BadHostSetting(KeeveError, ValueError):
    """A setting of a host, `name`, cannot be meant; `what` it can be."""

    usage: ClassVar[bool] = True

    def __init__(self, name: str, given: object, what: str) -> None:
        super().__init__(f"Settings({name}={given!r}): it is {what}")
        self.name = name


@attrs.frozen
class Settings:
    """How a host behaves. Raises `BadHostSetting` for what cannot be meant.

    vats: how many sessions stay in memory while they are idle.
    cache: bytes of heap pages kept in memory, for all vats together.
    first_snapshot, snapshot_records, snapshot_bytes: a session is snapshotted after so many records once, and then
      whenever so many records or bytes have come since.
    closing_records: at an orderly stop, a session is snapshotted when so many records have come since.
    grace: seconds that effects have to end at an orderly stop, if nobody would know what came of them (`on_crash` is
      `"unknown"`); those that may run again, and timers, are not waited for.
    closing: seconds for which messages between sessions are still carried on at an orderly stop.
    retry: seconds until what waits for the store to write again is tried again.
    slow: seconds after which, a quarter of that later at the latest, whatever holds the event loop is reported by name,
      with its stack: a crank, a device, an observer's handler, the disk. CPython cannot stop it.
    reclaim: seconds after a deletion, and after the start, until what was deleted goes from the files by itself, as far
      as no file is concerned that is written to and has less than a mebibyte, and until what the disk has refused is
      tried again; None: only when somebody asks for it.
    follow: seconds between two looks at a store that another process owns.
    hold_unknown: whether an effect of unknown outcome stays open until somebody resolves it.
    takes_up: whose effects, messages and subscriptions are carried out here: of `"all"` sessions, those with pending
      work being loaded at the start; of those that somebody has `"asked"` for; of none (`"nothing"`), so that they
      stay as they are for another host, and a call that would wait for one raises `NothingTakenUp`; but a session that
      is called takes its timers first whose time has come. For tools that do not have an application's devices.
    """

    vats: int = 1000
    cache: int = 32 << 20
    first_snapshot: int = 16
    snapshot_records: int = 128
    snapshot_bytes: int = 1 << 20
    closing_records: int = 8
    grace: float = 5.0
    closing: float = 5.0
    retry: float = 1.0
    slow: float = 1.0
    reclaim: float | None = 60.0
    follow: float = 0.25
    hold_unknown: bool = False
    takes_up: Literal["all", "asked", "nothing"] = "all"

    def __attrs_post_init__(self) -> None:
        for name, least in _LEAST.items():
            given: Any = getattr(self, name)
            if type(given) is not int or given < least:
                raise BadHostSetting(name, given, f"a whole number, {least} or more")
        for name in _SECONDS:
            given = getattr(self, name)
            if given is None and name == "reclaim":
                continue
            if isinstance(given, bool) or not isinstance(given, int | float) or not given >= 0:
                raise BadHostSetting(name, given, "a number of seconds, 0 or more")
        if not isinstance(self.hold_unknown, bool):
            raise BadHostSetting("hold_unknown", self.hold_unknown, "True or False")
        if self.takes_up not in _TAKES_UP:
            raise BadHostSetting("takes_up", self.takes_up, f"one of {', '.join(map(repr, _TAKES_UP))}")
