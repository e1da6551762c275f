"""What somebody outside of a store has seen, held against a log of which only the tree is known."""

from __future__ import annotations

from hashlib import sha256

import pytest
from signed_worlds import KEY, signing, tree, world
from test_notes import cosignature, verifier

from dataspace.checkpoints.checking import Held, witnesses_of
from dataspace.proofs.notes import BadNote, Note
from dataspace.proofs.verifiers import Algorithm
from vat.host.reports import Completeness, Integrity, Touched, Trouble

WITNESS = "witness.example/w"


def held(here, *, upto: int | None = None, end: int | None = None) -> Held:
    made = tree(here)
    origin = signing(here).origin
    return Held(origin, made, made.size if upto is None else upto, made.size if end is None else end)


def test_what_the_log_has_holds():
    here = world()
    checkpoints = signing(here)
    note, receipt = checkpoints.newest(), checkpoints.receipt(2)
    for kind, given in (("checkpoint", str(note)), ("receipt", str(receipt))):
        told = held(here).testimony(given)
        assert (told.kind, told.outcome, told.by) == (kind, "holds", (checkpoints.origin,))


def test_what_comes_after_the_end_of_the_log_is_missing_and_what_comes_after_a_damage_is_not_held():
    here = world()
    note = str(signing(here).newest())
    size = tree(here).size
    assert held(here, upto=size - 1, end=size - 1).testimony(note).outcome == "missing"
    told = held(here, upto=size - 1, end=size).testimony(note)
    assert (told.outcome, str(size - 1) in told.what) == ("not held", True)


def test_other_records_and_another_log_contradict():
    here, other = world(), world(turns=4)
    note = str(signing(other).newest())
    size = tree(other).size
    assert held(here, upto=size, end=size).testimony(note).outcome == "contradicted"
    strange = Held("keeve/another", tree(other), size, size)
    assert strange.testimony(note).outcome == "contradicted"


def test_what_proves_nothing_is_refused():
    with pytest.raises(BadNote):
        held(world()).testimony("nonsense")


def test_a_witness_whose_key_is_given_testifies_with_its_time():
    here = world()
    note = signing(here).newest()
    signed = note.signed(cosignature(WITNESS, note.text, 1_700_000_000))
    witnesses = witnesses_of([str(verifier(WITNESS, Algorithm.WITNESS)), str(KEY.verifier("keeve/x"))])
    (told,) = held(here).cosignatures([signed, note], witnesses)
    assert (told.kind, told.by, told.time, told.outcome) == ("cosignature", (WITNESS,), 1_700_000_000, "holds")
    assert list(held(here).cosignatures([signed], [])) == []


def test_a_cosignature_that_does_not_fit_testifies_nothing():
    here = world()
    note = signing(here).newest()
    forged = note.signed(cosignature(WITNESS, "another text\n", 1_700_000_000))
    assert list(held(here).cosignatures([forged], [verifier(WITNESS, Algorithm.WITNESS)])) == []


def told_by(*outcomes: str):
    here = world()
    note = str(signing(here).newest())
    size = tree(here).size
    made = {
        "holds": held(here).testimony(note),
        "missing": held(here, upto=1, end=1).testimony(note),
        "not held": held(here, upto=1, end=size).testimony(note),
        "contradicted": Held("keeve/another", tree(here), size, size).testimony(note),
    }
    return [made[each] for each in outcomes], size


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([], "not known"),
        (["holds"], "proved"),
        (["not held"], "not known"),
        (["holds", "contradicted"], "contradicted"),
        (["holds", "missing"], "missing"),
        (["contradicted", "missing"], "missing"),
    ],
)
def test_the_worst_testimony_is_the_verdict(outcomes: list[str], verdict: str):
    told, size = told_by(*outcomes)
    complete = Completeness.of(told, 1 if "missing" in outcomes else size)
    assert complete.verdict == verdict
    assert complete.testimonies == tuple(told)


def test_what_the_store_itself_has_published_can_be_missing_and_never_proves():
    assert Completeness.of([], 5, own=7).verdict == "missing"
    assert "7" in Completeness.of([], 5, own=7).what
    assert Completeness.of([], 7, own=7).verdict == "not known"


def test_integrity_is_the_worst_that_was_found():
    harmless = Trouble("log", "a torn tail", harmless=True)
    derived = Trouble("catalog", "a row", nature="derived")
    unread = Trouble("log", "sealed", nature="unread")
    damaged = [Trouble("log", "a body", "s1", 7), Trouble("log", "a cell", "s1", 4), Trouble("log", "a page", "s2")]
    altered = Trouble("log", "a digest", "s3", 2, nature="altered")
    assert Integrity.of([harmless, derived]).verdict == "sound"
    assert Integrity.of([harmless, unread]).verdict == "not looked at"
    assert Integrity.of([*damaged, unread]).verdict == "damaged"
    worst = Integrity.of([*damaged, altered])
    assert worst.verdict == "altered"
    assert worst.sessions == (Touched("s1", 4), Touched("s2", None), Touched("s3", 2))


def test_a_note_without_signatures_is_none_and_says_nothing():
    with pytest.raises(BadNote):
        held(world()).testimony(str(Note("keeve/x\n1\n" + sha256(b"").hexdigest() + "\n")))
