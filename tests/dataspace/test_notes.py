"""Signed notes and checkpoints: what is read and written, what counts as signed, and what is refused."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from dataspace.proofs.notes import (
    LONGEST,
    SIGNATURES,
    BadNote,
    BadSignature,
    Checkpoint,
    Note,
    NotSigned,
    Signature,
    checked_checkpoint,
)
from dataspace.proofs.verifiers import Algorithm, BadKey, Verifier, key_id, witness_time, witnessed

TEXT = "This is an example message.\n"
FOO = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
NOTE = (
    TEXT + "\n— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1"
    "Yu72IneyaQM=\n"
)
"""A key and a note from C2SP's `signed-note`."""


def private(name: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(sha256(name.encode()).digest())


def verifier(name: str, algorithm: Algorithm = Algorithm.NOTE) -> Verifier:
    return Verifier(name, algorithm, private(name).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def signature(name: str, text: str) -> Signature:
    return Signature(name, verifier(name).id, private(name).sign(text.encode()))


def cosignature(name: str, text: str, time: int) -> Signature:
    data = time.to_bytes(8, "big") + private(name).sign(witnessed(text, time))
    return Signature(name, verifier(name, Algorithm.WITNESS).id, data)


CHECKPOINT = Checkpoint("example.com/log", 42, sha256(b"root").digest())
SIGNED = Note(CHECKPOINT.text, (signature("example.com/log", CHECKPOINT.text),))


# Keys


def test_a_key_is_read_as_others_write_it_and_written_as_it_was_read():
    key = Verifier.parse(FOO)
    assert (key.name, key.id.hex(), key.algorithm) == ("example.com/foo", "530d903a", Algorithm.NOTE)
    assert str(key) == FOO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com/foo",
        "example.com/foo+530d903a",
        FOO.replace("530d903a", "530d903b"),
        FOO.replace("530d903a", "530D903A"),
        FOO.replace("foo+", "bar+"),
        FOO[:-4],
        FOO + "=",
        FOO + "\n",
        FOO.replace("Aeky", "Aek!"),
        FOO.replace("+530d903a+", "+530d903a+ "),
        " " + FOO,
    ],
)
def test_a_malformed_key_is_refused(text: str):
    with pytest.raises(BadKey):
        Verifier.parse(text)


def test_what_is_a_key_already_is_taken_and_nothing_else_is():
    key = Verifier.parse(FOO)
    assert Verifier.parse(key) is key
    for wrong in (None, 1, FOO.encode()):
        with pytest.raises(BadKey, match="neither a Verifier"):
            Verifier.parse(wrong)  # type: ignore[arg-type] # that is what is tried


def test_a_key_for_another_algorithm_is_refused_by_its_number():
    key = b"\x02" + bytes(32)
    text = f"x+{key_id('x', key).hex()}+{b64encode(key).decode()}"
    with pytest.raises(BadKey, match="algorithm 2"):
        Verifier.parse(text)


PRIME = 2**255 - 19
EIGHTH = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
"""The y of a point of order 8."""
LOW = [0, 1, PRIME - 1, EIGHTH, PRIME - EIGHTH]
FORMS = [y | sign << 255 for y in (*LOW, PRIME, PRIME + 1) for sign in (0, 1)]


@pytest.mark.parametrize("encoded", FORMS, ids=hex)
def test_a_key_of_low_order_is_refused_in_every_form(encoded: int):
    with pytest.raises(BadKey):
        Verifier("x", Algorithm.NOTE, encoded.to_bytes(32, "little"))


def test_a_key_that_is_no_point_of_the_curve_is_refused():
    with pytest.raises(BadKey, match="no point"):
        Verifier("x", Algorithm.NOTE, (2).to_bytes(32, "little"))


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\n", "a ", "a" * 1001, "\ud800"])
def test_a_name_that_no_line_could_hold_is_refused(name: str):
    with pytest.raises(BadKey):
        Verifier(name, Algorithm.NOTE, verifier("x").public)


def test_a_key_of_low_order_would_let_one_signature_fit_many_texts():
    # What the check is for: with the neutral point as the key, R = [S]B is a signature of any text.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    neutral = Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little"))
    forged = (1).to_bytes(32, "little") + bytes(32)
    neutral.verify(forged, b"one")
    neutral.verify(forged, b"another")


# Notes


def test_a_note_is_read_as_others_write_it_and_checked():
    note = Note.parse(NOTE)
    assert note.text == TEXT
    assert str(note) == NOTE
    assert note.checked([Verifier.parse(FOO)]) == [Verifier.parse(FOO)]
    assert Note.parse(NOTE.encode()) == note


def test_the_text_ends_at_the_last_empty_line():
    text = "one\n\ntwo\n\n\n"
    note = Note.parse(f"{text}\n{signature('a', text)}")
    assert note.text == text
    assert note.checked([verifier("a")])


def test_a_changed_note_is_refused_and_not_taken_for_unsigned():
    for changed in (NOTE.replace("example message", "example massage"), NOTE.replace("yaQM=", "yaQI=")):
        with pytest.raises(BadSignature):
            Note.parse(changed).checked([Verifier.parse(FOO)])


def test_a_note_that_no_known_key_has_signed_is_refused():
    for keys in ([], [verifier("somebody")], [verifier("example.com/foo")]):
        with pytest.raises(NotSigned):
            Note.parse(NOTE).checked(keys)


def test_signatures_of_unknown_keys_are_passed_over():
    note = Note.parse(NOTE).signed(Signature("stranger", b"\0\0\0\1", b"whatever"))
    assert note.checked([Verifier.parse(FOO)]) == [Verifier.parse(FOO)]
    assert Note.parse(str(note)) == note


def test_one_false_signature_of_a_known_key_spoils_the_note():
    note = Note.parse(NOTE).signed(Signature("a", verifier("a").id, bytes(64)))
    with pytest.raises(BadSignature):
        note.checked([Verifier.parse(FOO), verifier("a")])


def test_signing_again_takes_the_place_of_the_signature_before():
    note = SIGNED.signed(cosignature("w", SIGNED.text, 5)).signed(cosignature("w", SIGNED.text, 7))
    assert [each.name for each in note.signatures] == ["example.com/log", "w"]
    assert witness_time(note.signatures[1].data) == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "text\n",
        "text\n\n",
        "text\n\n— a\n",
        NOTE[:-1],
        NOTE + "\n",
        NOTE.replace("— ", "- "),
        NOTE.replace("— ", "—  "),
        NOTE.replace("example.com/foo ", "example.com/foo  "),
        NOTE.replace("example.com/foo ", "example.com+foo "),
        NOTE.replace("yaQM=", "yaQN="),
        NOTE.replace("yaQM=", "yaQM"),
        NOTE.replace("This", "Th\tis"),
        NOTE.replace("\n", "\r\n"),
        "text\n\n— a AAAAAA==\n",
    ],
)
def test_what_is_no_signed_note_is_refused(text: str):
    with pytest.raises(BadNote):
        Note.parse(text)


def test_a_note_is_refused_when_it_is_not_utf_8_or_too_large():
    for data in (b"\xff\n\n" + NOTE.encode(), "x" * LONGEST + NOTE, "\ud800" + NOTE):
        with pytest.raises(BadNote):
            Note.parse(data)
    line = str(signature("a", TEXT))
    assert len(Note.parse(f"{TEXT}\n{line * SIGNATURES}").signatures) == SIGNATURES
    with pytest.raises(BadNote):
        Note.parse(f"{TEXT}\n{line * (SIGNATURES + 1)}")


# Checkpoints


def test_a_checkpoint_is_three_lines():
    assert CHECKPOINT.text == f"example.com/log\n42\n{b64encode(CHECKPOINT.root).decode()}\n"
    assert Checkpoint.parse(CHECKPOINT.text) == CHECKPOINT
    more = CHECKPOINT._replace(extensions=("more", "and more"))
    assert Checkpoint.parse(more.text) == more


@pytest.mark.parametrize(
    "text",
    [
        "",
        "origin\n42\n",
        CHECKPOINT.text[:-1],
        CHECKPOINT.text + "\n",
        CHECKPOINT.text.replace("example.com/log", ""),
        CHECKPOINT.text.replace("42", "042"),
        CHECKPOINT.text.replace("42", "-1"),
        CHECKPOINT.text.replace("42", "４２"),
        CHECKPOINT.text.replace("42", "1" * 19 + "1"),
        CHECKPOINT.text.replace("42", str(1 << 63)),
        CHECKPOINT.text.replace("=\n", "\n"),
        "origin\n42\nAAAA\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(text: str):
    with pytest.raises(BadNote):
        Checkpoint.parse(text)


def test_a_checkpoint_counts_when_the_log_itself_has_signed_it():
    log, witness = verifier("example.com/log"), verifier("w", Algorithm.WITNESS)
    both = SIGNED.signed(cosignature("w", SIGNED.text, 1_700_000_000))
    assert checked_checkpoint(both, [log, witness]) == (CHECKPOINT, [log, witness])
    assert checked_checkpoint(both, [log]) == (CHECKPOINT, [log])
    with pytest.raises(NotSigned):
        checked_checkpoint(both, [witness])
    stranger = Note(CHECKPOINT.text, (signature("example.com/another", CHECKPOINT.text),))
    with pytest.raises(NotSigned):
        checked_checkpoint(stranger, [verifier("example.com/another")])


def test_a_cosignature_covers_its_time():
    note = SIGNED.signed(cosignature("w", SIGNED.text, 5))
    witness = verifier("w", Algorithm.WITNESS)
    assert note.checked([witness]) == [witness]
    data = note.signatures[1].data
    other = note.signed(note.signatures[1]._replace(data=(6).to_bytes(8, "big") + data[8:]))
    with pytest.raises(BadSignature):
        other.checked([witness])


def test_a_key_for_notes_does_not_pass_for_a_witness():
    as_witness = Note(SIGNED.text, (Signature("w", verifier("w", Algorithm.WITNESS).id, bytes(8) + bytes(64)),))
    with pytest.raises(NotSigned):
        as_witness.checked([verifier("w")])
    with pytest.raises(BadSignature):
        as_witness.checked([verifier("w", Algorithm.WITNESS)])


# Invariant 42: whatever is fed, the answer is a note or the note's own error.


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300)))
def test_anything_may_be_fed(data: bytes | str):
    """Invariant 42: notes, checkpoints and keys raise their own error, whatever they are made of."""
    try:
        note = Note.parse(data)
    except BadNote:
        pass
    else:
        assert str(note) == (data.decode() if isinstance(data, bytes) else data)
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    for read in (Checkpoint.parse, Verifier.parse):
        with pytest.raises((BadNote, BadKey)):
            read(text)


@given(st.data())
def test_a_mutilated_note_is_refused_or_reads_as_what_it_is(data: st.DataObject):
    """Invariant 42: notes that almost are some."""
    whole = str(SIGNED.signed(cosignature("w", SIGNED.text, 5)))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 8)))
    changed = whole[:start] + data.draw(st.text("\n\0 +=—Aa0\x7f\u2003", max_size=4)) + whole[end:]
    keys = [verifier("example.com/log"), verifier("w", Algorithm.WITNESS)]
    try:
        note = Note.parse(changed)
        assert str(note) == changed
        checkpoint, _ = checked_checkpoint(note, keys)
    except (BadNote, BadSignature, NotSigned):
        return
    assert checkpoint == CHECKPOINT
