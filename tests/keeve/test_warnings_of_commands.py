"""What a host warns of while a command runs, and the command ends with, is told once."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from keeve import Session, open_host
from tests.cli_runner import keeve_process


@pytest.mark.parametrize("words", [("turn", "s1", "x"), ("interrupt", "s1"), ("steer", "s1", "x"), ("snapshot", "s1")])
async def test_damage_that_a_command_comes_to_is_told_once_and_by_the_sessions_id(
    words: tuple[str, ...], store_folder: Path
) -> None:
    async with open_host(store_folder) as host:
        await (await host.spawn(Session, "s1")).turn("hello")
    [segment] = (store_folder / "log").glob("*.seg")
    written = bytearray(segment.read_bytes())
    written[written.index(b"model-output") + 2] ^= 1
    segment.write_bytes(written)
    with keeve_process(*words, "--store", store_folder) as process:
        said = (await trio.to_thread.run_sync(process.communicate))[1].decode()
        assert process.returncode == 1
    assert said.count("is damaged at seq") == 1, said
    assert said.startswith("keeve: session s1 is damaged at seq ")
