"""`keeve checkpoint`, `prove`, `check`, `keys`, and `verify` with what somebody has seen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dataspace.proofs.notes import Checkpoint, Note
from dataspace.proofs.proofs import Receipt
from keeve.key_files import signing_key
from tests.cli_runner import keeve


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    chat(path, "s1", "hello", "again")
    return path


@pytest.fixture
def signer(tmp_path: Path) -> Path:
    path = tmp_path / "log.pem"
    signing_key(path, make=True)
    return path


def chat(store: Path, id: str, *lines: str) -> None:
    assert keeve("chat", id, "--store", store, input="".join(f"{line}\n" for line in lines)).code == 0


def saved(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def troubles(said: Any) -> str:
    return " ".join(trouble["what"] for trouble in said.json["troubles"])


def test_a_checkpoint_is_signed_kept_and_given(store: Path, signer: Path) -> None:
    said = keeve("checkpoint", "--store", store, "--signer", signer)
    assert said.code == 0, said.err
    checkpoint = Checkpoint.parse(Note.parse(said.out).text)
    assert keeve("checkpoint", "--store", store).out == said.out
    told = keeve("checkpoint", "--store", store, "--json").json
    assert (told["note"], told["size"], told["origin"]) == (said.out, checkpoint.size, checkpoint.origin)
    assert (store / "checkpoint").read_text() == said.out
    assert keeve("checkpoint", "--store", store, "--since", 3).out.startswith("old 3\n")


def test_the_key_is_made_if_that_is_wanted(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.pem"
    refused = keeve("checkpoint", "--store", store, "--signer", path)
    assert (refused.code, path.exists()) == (2, False)
    assert keeve("checkpoint", "--store", store, "--signer", path, "--make").code == 0
    assert path.exists()


def test_a_log_that_was_never_signed_says_so(store: Path) -> None:
    for words in (("checkpoint",), ("prove", "s1", 1)):
        said = keeve(*words, "--store", store)
        assert said.code == 2
        assert "keeve checkpoint --signer" in said.err
    assert keeve("keys", "--store", store).code == 1


def test_a_receipt_is_given_and_checked_anywhere(store: Path, signer: Path, tmp_path: Path) -> None:
    keeve("checkpoint", "--store", store, "--signer", signer)
    said = keeve("prove", "s1", 2, "--store", store)
    assert said.code == 0, said.err
    assert Receipt.parse(said.out).header.seq == 2
    receipt = saved(tmp_path / "s1-2.tlog-proof", said.out)
    keys = saved(tmp_path / "keys.txt", keeve("keys", "--store", store).out)
    elsewhere = ("--store", tmp_path / "nowhere")
    for key in (keys, keys.read_text().strip()):
        found = keeve("check", receipt, "--key", key, *elsewhere)
        assert found.code == 0, found.err
        assert found.out.startswith("proven: record ")
    told = keeve("check", receipt, "--key", keys, *elsewhere, "--json").json
    assert (told["proven"], told["seq"], told["held_against"]) == (True, 2, "keys")
    with_store = keeve("check", receipt, "--store", store)
    assert "the log in the store has all of them" in with_store.out


def test_a_receipt_by_an_earlier_checkpoint(store: Path, signer: Path, tmp_path: Path) -> None:
    note = keeve("checkpoint", "--store", store, "--signer", signer).out
    earlier = saved(tmp_path / "earlier", note)
    chat(store, "s1", "more")
    keeve("checkpoint", "--store", store, "--signer", signer)
    said = keeve("prove", "s1", 2, "--store", store, "--checkpoint", earlier)
    assert said.out.endswith(note)
    newest = int(keeve("show", "s1", "--store", store, "--json").json["seq"])
    refused = keeve("prove", "s1", newest, "--store", store, "--checkpoint", earlier)
    assert (refused.code, "newer checkpoint" in refused.err) == (2, True)


def test_what_is_not_proven_is_said_and_ends_with_another_code(store: Path, signer: Path, tmp_path: Path) -> None:
    keeve("checkpoint", "--store", store, "--signer", signer)
    text = keeve("prove", "s1", 2, "--store", store).out
    keys = keeve("keys", "--store", store).out.strip()
    index = text.split("\n")[2]
    wrong = saved(tmp_path / "wrong", text.replace(index, "index 0"))
    assert keeve("check", wrong, "--key", keys).code == 2
    signature = text.rsplit(" ", 1)[1]
    forged = saved(tmp_path / "forged", text.replace(signature, signature[:20] + "A" * 8 + signature[28:]))
    assert keeve("check", forged, "--key", keys).code == 1
    good = saved(tmp_path / "good", text)
    other = signing_key(tmp_path / "other.pem", make=True).verifier("somebody")
    assert keeve("check", good, "--key", other).code == 1
    for key in ("nonsense", tmp_path / "nothing", "a+b+c"):
        assert keeve("check", good, "--key", key).code == 2
    assert keeve("check", tmp_path / "nothing", "--key", keys).code == 2


def test_verify_finds_an_older_copy_that_is_sound_in_itself(store: Path, signer: Path, tmp_path: Path) -> None:
    keeve("checkpoint", "--store", store, "--signer", signer)
    shutil.copytree(store, tmp_path / "copy")
    chat(store, "s1", "more")
    seen = saved(tmp_path / "seen", keeve("checkpoint", "--store", store, "--signer", signer).out)
    assert keeve("verify", "--store", store, "--expect", seen).code == 0
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "copy", store)
    assert keeve("verify", "--store", store).code == 0
    said = keeve("verify", "--store", store, "--expect", seen, "--json")
    assert said.code == 1
    assert "it ends at position" in troubles(said)


def test_verify_checks_checkpoints_and_keys(store: Path, signer: Path, tmp_path: Path) -> None:
    keeve("checkpoint", "--store", store, "--signer", signer)
    keys = keeve("keys", "--store", store).out.strip()
    said = keeve("verify", "--store", store, "--key", keys)
    assert said.code == 0, said.out
    assert "1 checkpoint" in said.out
    other = signing_key(tmp_path / "other.pem", make=True).verifier("somebody")
    said = keeve("verify", "--store", store, "--key", other, "--json")
    assert (said.code, "never signed with" in troubles(said)) == (1, True)


def test_a_key_takes_over_from_the_former_one(store: Path, signer: Path, tmp_path: Path) -> None:
    first = saved(tmp_path / "first", keeve("checkpoint", "--store", store, "--signer", signer).out)
    other = tmp_path / "other.pem"
    signing_key(other, make=True)
    refused = keeve("checkpoint", "--store", store, "--signer", other)
    assert refused.code == 2
    assert "--former" in refused.err
    assert keeve("checkpoint", "--store", store, "--signer", other, "--former", signer).code == 0
    assert len(keeve("keys", "--store", store).out.splitlines()) == 2
    assert keeve("check", first, "--store", store).code == 0


def test_openssl_makes_a_key_too(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "openssl.pem"
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True)
    path.chmod(0o600)
    assert keeve("checkpoint", "--store", store, "--signer", path).code == 0


def test_a_key_that_was_made_and_is_refused_is_not_left_behind(store: Path, signer: Path, tmp_path: Path) -> None:
    chat(store, "s1", "hello")
    assert keeve("checkpoint", "--store", store, "--signer", signer).code == 0
    assert keeve("checkpoint", "--store", store, "--signer", tmp_path / "new.pem", "--make").code != 0
    assert not (tmp_path / "new.pem").exists()
    assert keeve("checkpoint", "--store", store, "--signer", signer).code == 0


def test_what_a_record_has_stated_is_proven_with_its_receipt(store: Path, signer: Path, tmp_path: Path) -> None:
    assert keeve("checkpoint", "--store", store, "--signer", signer).code == 0
    keys = saved(tmp_path / "keys.txt", keeve("keys", "--store", store).out)
    given = keeve("prove", "s1", "2", "--words", "--store", store).out
    file = saved(tmp_path / "words", given)
    for held in (("--key", keys), ("--store", store)):
        said = keeve("check", file, *held)
        assert said.code == 0, said.err
        assert 'proven: that record states + (turn 1 "s1" #:input "hello"' in said.out
    changed = saved(tmp_path / "changed", given.replace("facts k", "facts l"))
    assert changed.read_text() != given
    said = keeve("check", changed, "--key", keys)
    assert (said.code, said.out) == (1, "")
    assert "its record says something else" in said.err


def test_what_is_to_be_checked_without_a_key_needs_the_log(store: Path, signer: Path, tmp_path: Path) -> None:
    keeve("checkpoint", "--store", store, "--signer", signer)
    receipt = tmp_path / "receipt"
    receipt.write_text(keeve("prove", "s1", 1, "--store", store).out)
    said = keeve("check", receipt, "--store", tmp_path / "nowhere")
    assert said.code == 2
    for part in (str(receipt), "no store is at", "--key", "keeve keys", "--store"):
        assert part in said.err
    (tmp_path / "nothing").write_text("hello\n")
    said = keeve("check", tmp_path / "nothing", "--store", tmp_path / "nowhere")
    assert (said.code, "no store is at" in said.err) == (2, False)


def test_no_key_is_made_for_a_log_that_is_signed_already(store: Path, tmp_path: Path) -> None:
    first, other = tmp_path / "first.pem", tmp_path / "k2.pem"
    assert keeve("checkpoint", "--store", store, "--signer", first, "--make").code == 0
    said = keeve("checkpoint", "--store", store, "--signer", other, "--make")
    assert (said.code, other.exists()) == (2, False)
    assert f"--signer {other} --make --former" in said.err
    assert keeve("checkpoint", "--store", store, "--signer", other, "--make", "--former", first).code == 0
