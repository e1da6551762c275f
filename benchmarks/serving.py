"""A server to measure: `keeve serve` in a process of its own, and a client of HTTP that costs as little as one can.

The one rule: what is measured is the server, so whoever asks it here does nothing but write and read bytes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import trio

LIMITS: Final = ("--requests", "10000000", "--streams", "10000", "--connections", "10000", "--idle-seconds", "600")
"""A server has its limits against one who asks too much; here that is what is wanted."""
END: Final = b"\r\n\r\n"
LENGTH: Final = b"content-length:"
CLOSE: Final = b"\r\nconnection: close\r\n"


class NoAnswer(Exception):
    """A server says something else than what was asked for."""


@attrs.frozen
class Served:
    """A server that runs. `pid` is its process's; `token` its owner's."""

    store: Path
    address: str
    token: str
    pid: int

    @property
    def memory(self) -> int:
        """Bytes of its memory that are in use."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise NoAnswer(f"the system does not say how much memory {self.pid} uses")

    @asynccontextmanager
    async def http(self) -> AsyncIterator[Http]:
        """A connection to it."""
        http = Http(int(self.address.rstrip("/").rpartition(":")[2]), self.token)
        try:
            yield http
        finally:
            await http.close()


class Http:
    """A connection that is kept: one request after another. When the server says that it ends, there is another one."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._headers = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._stream: trio.SocketStream | None = None
        self._came = b""

    async def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """Ask, and give the body of the answer. Raises `NoAnswer` unless it is a success with a length."""
        data = b"" if body is None else json.dumps(body).encode()
        kind = "" if body is None else "Content-Type: application/json\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._headers}{kind}Content-Length: {len(data)}\r\n\r\n"
        await self._send(head.encode() + data)
        said = await self._head()
        at = said.find(LENGTH)
        length = int(said[at + len(LENGTH) : said.index(b"\r", at)]) if at >= 0 else 0
        while len(self._came) < length:
            await self._more()
        answer, self._came = self._came[:length], self._came[length:]
        if CLOSE in said:
            await self.close()
        return answer

    async def follow(self, path: str, until: bytes) -> None:
        """Begin a stream of events, and read of it until that has come. The rest comes when it does."""
        await self._send(f"GET {path} HTTP/1.1\r\n{self._headers}Accept: text/event-stream\r\n\r\n".encode())
        await self._head()
        while until not in self._came:
            await self._more()
        self._came = b""

    async def close(self) -> None:
        """End it."""
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)
            self._stream = None

    async def _send(self, data: bytes) -> None:
        if self._stream is None:
            self._stream = await trio.open_tcp_stream("127.0.0.1", self._port)
        await self._stream.send_all(data)

    async def _head(self) -> bytes:
        while (end := self._came.find(END)) < 0:
            await self._more()
        head, self._came = self._came[: end + 2], self._came[end + len(END) :]
        if not head.startswith(b"HTTP/1.1 2"):
            raise NoAnswer(f"{head.decode('latin-1')}{self._came.decode('latin-1')}")
        return head.lower()

    async def _more(self) -> None:
        assert self._stream is not None
        data = await self._stream.receive_some(1 << 16)
        if not data:
            raise NoAnswer("the connection is over")
        self._came += data


@asynccontextmanager
async def served(store: Path, *words: str, python: Sequence[str] = (sys.executable,)) -> AsyncIterator[Served]:
    """A server of that store with an echo for its model, at a port that is free, until the block ends."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("KEEVE_", "OPENAI_"))}
    command = [*python, "-m", "keeve", "serve", str(store), "--port", "0", "--json", *LIMITS, *words]
    with store.with_suffix(".log").open("ab") as log:
        process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=log, env=others)
    assert process.stdout is not None
    try:
        said = b""
        while not said.endswith(b"\n"):
            data = await process.stdout.receive_some()
            if not data:
                raise NoAnswer(f"the server has not started: {store.with_suffix('.log').read_text()}")
            said += data
        yield Served(store, json.loads(said)["address"], (store / "token").read_text().strip(), process.pid)
    finally:
        with trio.CancelScope(shield=True):
            process.terminate()
            with trio.move_on_after(20):
                await process.wait()
            process.kill()
            await process.wait()
            await process.stdout.aclose()


def room_for(connections: int) -> None:
    """Have this process, and those that it starts from now on, open so many connections and what else they need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 500
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
