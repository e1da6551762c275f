"""Where the commands go, what they say of a server that cannot be had, and what they import for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from actors.session import Session
from keeve.wire.tokens import mint, sessions
from tests.cli_runner import ROOT, environment, keeve
from tests.served_stores import asked, served_store

FILES = (
    ("verify",),
    ("dump",),
    ("rekey", "--to", "new.key"),
    ("doctor",),
    ("check", "receipt"),
    ("checkpoint", "--signer", "log.pem"),
)


@pytest.mark.parametrize("words", FILES)
def test_what_needs_files_says_so_by_its_name(words: tuple[str, ...]) -> None:
    said = keeve(*words, "--server", "http://127.0.0.1:1")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"keeve: keeve {words[0]}")
    assert "works on the files of a store, and not on a server (http://127.0.0.1:1): name the folder" in said.err


@pytest.mark.parametrize("command", ["serve", "config"])
def test_what_makes_a_server_takes_no_other_one(tmp_path: Path, command: str) -> None:
    store = tmp_path / "data"
    for option in ("--server", "--token-file"):
        refused = keeve(command, store, option, "http://127.0.0.1:1")
        assert (refused.code, refused.out, option in refused.err) == (2, "", True)
        assert option not in keeve(command, "--help").out
    assert not store.exists()


def test_a_server_that_cannot_be_had_is_told_in_a_line(tmp_path: Path) -> None:
    token = {"KEEVE_TOKEN": "not-a-token-of-any-server"}
    away = keeve("ls", "--server", "http://127.0.0.1:1", env=token)
    assert (away.code, away.out, away.err.count("\n")) == (1, "", 1)
    assert "http://127.0.0.1:1 cannot be reached" in away.err
    assert keeve("ls", "--server", "elsewhere", env=token).code in (1, 2)
    assert away.err.endswith("is it running?\n")  # nothing was asked that could have been done
    bare = keeve("ls", "--server", "127.0.0.1:1")
    assert (bare.code, "did you mean http://127.0.0.1:1?" in bare.err) == (2, True)
    both = keeve("ls", "--server", "http://127.0.0.1:1", "--store", tmp_path)
    assert (both.code, both.err.count("\n")) == (2, 1)
    assert "give either --store (a folder) or --server (a URL)" in both.err
    none = keeve("ls", "--server", "https://keeve.example")
    assert (none.code, none.err.count("\n")) == (2, 1)
    assert "there is no token for https://keeve.example" in none.err
    assert "KEEVE_STORE" in none.err
    assert "KEEVE_STORE" in both.err


@pytest.mark.parametrize(
    "server", ["https://me:canary@a.example", "https://a.example?token=canary", "http://a#canary", "http://[canary@a"]
)
def test_what_may_be_a_secret_in_the_url_of_a_server_is_not_shown(server: str) -> None:
    """Invariant 20."""
    told = [keeve(*words, "--server", server) for words in (["ls"], ["dump"])]
    told.append(keeve("ls", "--server", server, env={"KEEVE_TOKEN": "not-a-token-of-any-server"}))
    for each in told:
        assert (each.code, each.out, each.err.count("\n"), "canary" in each.err) == (2, "", 1, False), each.err
    assert "cannot be connected to" in told[-1].err
    assert ("with a user, a password, a query or a fragment in it" in told[-1].err) == ("[" not in server)


def test_what_is_no_json_is_told_as_what_can_be_typed(tmp_path: Path) -> None:
    for words, meant in (
        (("create", "--field", "model=slow"), "--field 'model=\"slow\"'"),
        (("resolve", "ff", "--value", "was sent"), "--value '\"was sent\"'"),
    ):
        said = keeve(*words, "--store", tmp_path / "data")
        assert (said.code, said.err.endswith(f"as in {meant}\n")) == (2, True), said


async def test_tokens_are_found_refused_and_heeded(tmp_path: Path) -> None:
    store = tmp_path / "data"
    async with served_store(store) as there:
        for id in ("s1", "s2"):
            await there.host.spawn(Session, id)
        beside = await asked("ls", "--ids", "--server", there.url, env={"KEEVE_STORE": str(store)})
        assert (beside.code, beside.out) == (0, "s1\ns2\n")
        wrong = await asked("ls", "--server", there.url, env={"KEEVE_TOKEN": "a-token-of-somebody-else"})
        assert (wrong.code, wrong.out, wrong.err.count("\n")) == (2, "", 1)
        assert "token is refused" in wrong.err
        file = tmp_path / "narrow"
        file.write_text(str(mint(there.token, bytes(16)).narrow(sessions("s1"))))
        open_to_all = await asked("ls", "--server", there.url, "--token-file", file)
        assert (open_to_all.code, "chmod 600" in open_to_all.err) == (2, True)
        file.chmod(0o600)
        assert (await asked("ls", "--ids", "--server", there.url, "--token-file", file)).out == "s1\n"
        hidden = await asked("show", "s2", "--server", there.url, "--token-file", file)
        assert (hidden.code, "s2" in hidden.err) == (2, True)
        for words in (("facts", "(spawn . _)"), ("log", "(spawn . _)")):
            told = await asked(*words, "--server", there.url, "--token-file", file)
            assert (told.code, told.out.count("spawn"), '(spawn "s1"' in told.out) == (0, 1, True), (words, told)


async def test_a_server_of_another_version_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served_store(tmp_path / "data") as there:
        monkeypatch.setattr("keeve.client.client.VERSION", 99)
        said = await asked("ls", "--server", there.socket)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "version 99 of the protocol is not spoken here, version 1 is: update the older end" in said.err


def test_a_flag_counts_before_the_environment(tmp_path: Path) -> None:
    keeve("chat", "s1", "--store", tmp_path, input="hello\n")
    said = keeve("ls", "--ids", "--store", tmp_path, env={"KEEVE_SERVER": "http://127.0.0.1:1"})
    assert (said.code, said.out) == (0, "s1\n")


def test_help_imports_nothing_of_the_client_or_the_server() -> None:
    heavy = ("keeve.client", "keeve.server", "wsproto", "starlette", "hypercorn", "jinja2", "structlog")
    code = f"import sys; from keeve.cli import run; run(['--help']); print([n for n in {heavy} if n in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]"
