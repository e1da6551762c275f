"""Fibers, run again in processes that hash otherwise: does each do the same as it did?

    fibers_run_again(folder, Agent)

The order of a set of strings is another one in each process, and so may be whatever follows from it. A fiber that
depends on it breaks only after a restart, and only sometimes; here it is found at once.

The one rule: the store is only read, and no fiber goes on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from actors.session import Session
from dataspace.errors import KeeveError
from keeve.api import now, open_store
from keeve.guard import guard
from keeve.host_keys import host_key_from
from vat.host.again import run_again
from vat.objects.types import Types

_CHILD = "from keeve.testing.again import in_a_process_of_its_own as run; run()"


class CannotBeFound(KeeveError, TypeError):
    """An actor type that another process cannot import."""

    usage: ClassVar[bool] = True

    def __init__(self, cls: type) -> None:
        super().__init__(
            f"{cls.__module__}.{cls.__qualname__} cannot be found by another process: "
            "write it at the top level of a module that can be imported"
        )


def fibers_run_again(folder: str | os.PathLike[str], *actors: type, seeds: Sequence[int] = (0, 1, 2)) -> int:
    """Run all fibers that wait in the store at `folder` again, in a process for each hash seed; gives how many wait.

    `actors` are the types that its host was given. No host may have the store open; the key of an encrypted one is
    named by the environment, as for the commands. Raises `AssertionError` if any does otherwise than it did, with what
    was recorded and what it does now, or `CannotBeFound`. Costs a process for each
    seed, and all parts of all fibers.
    """
    path = Path(folder)
    guard(path)
    asked = {"store": str(path.resolve()), "actors": [_named(cls) for cls in actors]}
    count = 0
    for seed in seeds:
        ran = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {_CHILD}"],
            input=json.dumps(asked),
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        told = json.loads(ran.stdout)
        count = told["fibers"]
        assert not told["diverged"], f"with PYTHONHASHSEED={seed}: " + "\n".join(told["diverged"])
    return count


def in_a_process_of_its_own() -> None:
    """What each of the processes does; what is asked and told is JSON on its standard streams."""
    asked = json.load(sys.stdin)
    types = Types([Session, *(_found(*name) for name in asked["actors"])])
    store, catalog = open_store(Path(asked["store"]), readonly=True, key=host_key_from(os.environ))
    try:
        count, diverged = run_again(store, catalog, types, clock=now, entropy=os.urandom)
    finally:
        catalog.close()
        store.close()
    sys.stdout.write(json.dumps({"fibers": count, "diverged": [str(error) for error in diverged]}))


def _named(cls: type) -> tuple[str, str]:
    module = sys.modules.get(cls.__module__)
    if cls.__module__ == "__main__" or getattr(module, cls.__qualname__, None) is not cls:
        raise CannotBeFound(cls)
    return cls.__module__, cls.__qualname__


def _found(module: str, name: str) -> type:
    __import__(module)
    found: type = getattr(sys.modules[module], name)
    return found
