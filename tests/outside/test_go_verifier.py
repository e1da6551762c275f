"""What a host signs and proves, checked by a program that shares nothing with it: Go's `golang.org/x/mod`.

`verifier.go` hands our files to `sumdb/note` and `sumdb/tlog`. It needs Go and that module's source, as Debian's
packages `golang-go` and `golang-golang-x-mod-dev` bring them; elsewhere these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from dataspace.proofs.notes import Note
from dataspace.proofs.signers import SigningKey
from keeve import Session, open_host

SOURCES = Path("/usr/share/gocode")
MODULE = SOURCES / "src" / "golang.org" / "x" / "mod"

pytestmark = [
    pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed (Debian: golang-go)"),
    pytest.mark.skipif(not MODULE.exists(), reason=f"{MODULE} is not there (Debian: golang-golang-x-mod-dev)"),
]

KEY = SigningKey.of_seed(bytes(32))
OTHER = SigningKey.of_seed(bytes([1]) * 32)


@pytest.fixture(scope="session")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    folder = tmp_path_factory.mktemp("go")
    environment = {
        **os.environ,
        "GO111MODULE": "off",
        "GOPATH": str(SOURCES),
        "GOCACHE": str(folder / "cache"),
        "GOFLAGS": "",
    }
    program = folder / "verifier"
    source = Path(__file__).with_name("verifier.go")
    subprocess.run(["go", "build", "-o", program, source], env=environment, check=True, cwd=folder)
    return program


def judged(verifier: Path, *cases: dict[str, Any]) -> list[str]:
    ran = subprocess.run([verifier], input=json.dumps(cases), capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


async def lived(folder: Path) -> tuple[list[str], list[tuple[str, str, list[str]]], list[tuple[str, str]]]:
    """A store that had three owners: its keys, pairs of checkpoints with proofs, receipts with hashes of records."""
    notes: list[str] = []
    extensions: list[tuple[str, str, list[str]]] = []
    receipts: list[tuple[str, str]] = []
    for life, (key, former) in enumerate(((KEY, None), (KEY, None), (OTHER, KEY))):
        async with open_host(folder, signer=key, former=former) as host:
            s = await (host.spawn(Session, "s1") if life == 0 else host.get("s1"))
            for turn in range(1 + 12 * life):
                _, receipt = await s.turn(f"turn {turn} of life {life}", receipt=True)
                receipts.append((str(receipt), b64encode(receipt.header.hash).decode()))
            for old in notes:
                size = int(old.split("\n")[1])
                above, _, note = host.checkpoint(since=size).partition("\n\n")
                extensions.append((old, note, above.split("\n")[1:]))
            notes.append(host.checkpoint())
            for seq in (1, 2, 3):
                receipt = host.receipt("s1", seq)
                receipts.append((str(receipt), b64encode(receipt.header.hash).decode()))
            keys = host.log_keys()
    return keys, extensions, receipts


async def test_what_a_host_signs_and_proves_is_accepted_and_what_was_altered_is_not(
    store_folder: Path, verifier: Path
) -> None:
    keys, extensions, receipts = await lived(store_folder)
    assert len(extensions) == 3
    good: list[dict[str, Any]] = [{"Keys": keys, "New": note} for _, note, _ in extensions]
    good += [{"Keys": keys, "Old": old, "New": new, "Proof": proof} for old, new, proof in extensions]
    good += [{"Keys": keys, "File": file, "Record": record} for file, record in receipts]
    assert judged(verifier, *good) == ["ok"] * len(good)

    old, new, proof = extensions[-1]
    file, record = receipts[-1]
    size, root = new.split("\n")[1:3]
    stranger = str(OTHER.verifier(keys[0].partition("+")[0]))
    wrong_root = b64encode(bytes(32)).decode()
    bad: list[dict[str, Any]] = [
        {"Keys": keys, "New": new.replace(f"\n{size}\n", f"\n{int(size) + 1}\n")},
        {"Keys": keys, "New": new.replace(root, wrong_root)},
        {"Keys": [], "New": new},
        {"Keys": [keys[0]], "New": new},
        {"Keys": keys, "Old": old, "New": new, "Proof": proof[:-1]},
        {"Keys": keys, "Old": old, "New": new, "Proof": [wrong_root, *proof[1:]]},
        {"Keys": keys, "Old": new, "New": old, "Proof": proof},
        {"Keys": keys, "File": file, "Record": wrong_root},
        {"Keys": keys, "File": file.replace("index ", "index 1"), "Record": record},
        {"Keys": [stranger], "File": receipts[0][0], "Record": receipts[0][1]},
    ]
    said = judged(verifier, *bad)
    assert len(said) == len(bad)
    assert "ok" not in said, said


async def test_what_is_in_the_store_s_own_file_is_accepted(store_folder: Path, verifier: Path) -> None:
    async with open_host(store_folder, signer=KEY) as host:
        await (await host.spawn(Session, "s1")).turn("hello")
        keys = host.log_keys()
    note = (store_folder / "checkpoint").read_text()
    assert Note.parse(note).signatures
    assert judged(verifier, {"Keys": keys, "New": note}) == ["ok"]
