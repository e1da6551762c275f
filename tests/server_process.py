"""A real server, for tests: `keeve serve` in a process of its own, on a port of this machine that is free.

The one rule: nothing waits for a time. What is waited for is what the server says.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import attrs
import httpx2

from tests.cli_runner import PROGRAM, environment
from tests.forks import Fork


@cache
def trusted() -> ssl.SSLContext:
    """Which authorities a client trusts, read once: it takes longer than a request."""
    return httpx2.create_ssl_context(trust_env=False)


@attrs.define
class Server:
    """A server that runs, its address and the token of its owner."""

    process: subprocess.Popen[bytes] | Fork
    store: Path
    address: str
    token: str
    log: Path
    said: str

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.address.rstrip("/").rpartition(":")[2])

    @property
    def headers(self) -> dict[str, str]:
        """What its owner sends."""
        return {"authorization": f"Bearer {self.token}"}

    def client(self, token: str | None = None) -> httpx2.Client:
        """A client of its owner, or of another principal."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        return httpx2.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False, verify=trusted())

    def raw(self, data: bytes) -> bytes:
        """What comes for these bytes, to the end of the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(data)
            return self.rest(connection)

    def rest(self, connection: socket.socket) -> bytes:
        """What comes until the server ends a connection."""
        came = b""
        try:
            while piece := connection.recv(1 << 16):
                came += piece
        except ConnectionResetError:
            pass  # as good an end as another
        return came

    def events(self) -> list[dict[str, object]]:
        """What stands in its log, where that is JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it, and wait until it has ended."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextmanager
def server(store: Path, *words: str | Path, env: Mapping[str, str] | None = None, port: int = 0) -> Iterator[Server]:
    """A server of that store, with these words behind `keeve serve`; it is killed at the end if it still runs.

    A store that is there already is opened by a program that starts from nothing, with hashes of its own.
    """
    log = store.parent / f"{store.name}.log"
    words = ("serve", str(store), "--port", str(port), "--log", "json", "--json", *map(str, words))
    ours, theirs = os.pipe()
    with open(ours, "rb") as out, log.open("ab") as errors:
        try:
            process = _started(words, theirs, errors.fileno(), environment(env), afresh=store.exists())
        finally:
            os.close(theirs)
        try:
            said = out.readline()
            assert said, log.read_text()
            address = json.loads(said)["address"]
            yield Server(process, store, address, (store / "token").read_text().strip(), log, said.decode())
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def _started(
    words: Sequence[str], out: int, errors: int, env: Mapping[str, str], afresh: bool
) -> subprocess.Popen[bytes] | Fork:
    if afresh:
        return subprocess.Popen([*PROGRAM, *words], stdout=out, stderr=errors, env=env)
    return Fork(words, (0, out, errors), env)
