"""For the tests of those who build on Keeve: hosts without a disk, crashes, and folders whose stores a test may open.

    memory_host, MemoryLog, FakeClock          a host on a store in memory, and a clock that stands still
    Lives                                      a store that lives through several processes, which crash where told
    fibers_run_again                           do waiting fibers come back in processes that hash otherwise?
    CrashFiles, SimulatedCrash, Mode           a disk that dies, fails, or loses what was not synced
    folder_for_stores                          a folder whose stores a test run may open (see `keeve.guard`)

`keeve.testing.plugin` has fixtures for pytest, `keeve.testing.stores` the test class for every kind of store. A model
that plays a script is `keeve.ScriptedModel`.
"""

from __future__ import annotations

from dataspace.log.memory import MemoryLog
from keeve.testing.again import fibers_run_again
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from keeve.testing.disk import Mode
from keeve.testing.folders import folder_for_stores
from keeve.testing.hosts import FakeClock, memory_host
from keeve.testing.lives import Lives

__all__ = [
    "CrashFiles",
    "FakeClock",
    "Lives",
    "MemoryLog",
    "Mode",
    "SimulatedCrash",
    "fibers_run_again",
    "folder_for_stores",
    "memory_host",
]
