"""What `open_host` gives: a host that `async with` opens, on trio, and that says so to whoever does otherwise.

The one rule: nothing is opened, and nothing is left behind, before `async with` asks for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import Never, ParamSpec, TypeVar

import trio

from dataspace.errors import KeeveError

P = ParamSpec("P")
T = TypeVar("T")


class NotAsync(KeeveError, TypeError):
    """`open_host` was used without `async with`."""

    usage = True

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}() is opened by `async with {name}(...) as host:`, in an async function that trio runs; use "
            "`with keeve.blocking.open_host(...) as host:` for a program without async"
        )


class NotTrio(KeeveError, RuntimeError):
    """A host was to be opened where trio does not run, as under asyncio."""

    usage = True

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name}() needs trio, and it is not what runs this: start the program with `trio.run(main)`. A program on "
            "asyncio uses keeve.blocking, through `await asyncio.to_thread(...)`, or keeve.client and a server"
        )


class Opening(AbstractAsyncContextManager[T, bool | None]):
    """Something that `async with` opens and closes."""

    def __init__(self, name: str, opened: AbstractAsyncContextManager[T, bool | None]) -> None:
        self._name = name
        self._opened = opened

    async def __aenter__(self) -> T:
        if not trio.lowlevel.in_trio_task():
            raise NotTrio(self._name)
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opened.__aexit__(kind, error, trace)

    def __enter__(self) -> Never:
        raise NotAsync(self._name)

    def __exit__(self, *_: object) -> None:
        """Never comes: Python looks for it before it enters."""

    def __await__(self) -> Never:
        raise NotAsync(self._name)


def opened_by_async_with(opens: Callable[P, AsyncIterator[T]]) -> Callable[P, Opening[T]]:
    """`contextlib.asynccontextmanager`, of which other uses raise `NotAsync`, and those without trio `NotTrio`."""
    manage = asynccontextmanager(opens)

    @wraps(opens)
    def opening(*args: P.args, **keywords: P.kwargs) -> Opening[T]:
        return Opening(opens.__name__, manage(*args, **keywords))

    return opening
