"""The index of patterns: it misses nobody, forgets everything, and costs the same with 100,000 as with 10."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_strategies import facts, patterns_that_fit, scalars

from dataspace.facts import fact
from dataspace.observe.interest import Interest
from dataspace.patterns import ANY, capture, parse, pattern
from dataspace.values import ERASED


def interest_in(*texts):
    interest = Interest()
    for text in texts:
        interest.add(text, parse(text))
    return interest


TURN = fact("turn", 1, "s1", input="hello", by="ada")


def test_those_whose_pattern_fits_are_found_and_the_others_are_not():
    wanted = {
        '(turn ? "s1" . _)',
        '(turn _ "s1" #:by "ada" . _)',
        "(_ . _)",
        "(?l 1 . _)",
        "(turn _ _ #:by _ #:input _)",
    }
    others = {
        '(turn ? "s2" . _)',
        '(turn _ "s1" #:by "bob" . _)',
        "(turn-done . _)",
        "(_ 2 . _)",
        "(turn #:via _ . _)",
    }
    others |= {
        "(turn _ _ _ . _)",
        "(turn _ _)",
        "(turn _ _ #:by _)",
        "(turn #t . _)",
        "(turn 1.0 . _)",
        "(turn 1 s1 . _)",
    }
    assert interest_in(*wanted, *others).wanting(TURN) == wanted


def test_constants_inside_lists_and_dicts_are_looked_up():
    interest = interest_in('(x ("a" ? . _))', '(x ("b" ? . _))', '(x {"k": ("c") . _})', '(x ("a" "z"))', "(x ())")
    assert interest.wanting(fact("x", ["a", 1])) == {'(x ("a" ? . _))'}
    assert interest.wanting(fact("x", ["a", "z"])) == {'(x ("a" ? . _))', '(x ("a" "z"))'}
    assert interest.wanting(fact("x", {"k": ["c"]})) == {'(x {"k": ("c") . _})'}
    assert interest.wanting(fact("x", [])) == {"(x ())"}
    assert interest.wanting(fact("x", "a")) == set()


def test_erased_content_is_wanted_by_those_who_take_anything():
    interest = interest_in("(x ?)", '(x "")', "(x #nil)", "(x (1 ?))", "(x ())")
    assert interest.wanting(fact("x", ERASED)) == {"(x ?)"}


def test_bytes_that_look_like_another_value_are_not_taken_for_it():
    interest = interest_in("(x #t)", '(x #"c3")')
    assert interest.wanting(fact("x", True)) == {"(x #t)"}
    assert interest.wanting(fact("x", b"\xc3")) == {'(x #"c3")'}


def test_keywords_in_another_order_are_looked_up_in_the_same_place():
    one, other = parse('(x #:a 1 #:b "c")'), parse('(x #:b "c" #:a 1)')
    assert one.skeleton() == other.skeleton()


def test_a_key_has_one_pattern_the_last_one():
    interest = Interest()
    interest.add("me", parse("(turn . _)"))
    interest.add("me", parse("(fork . _)"))
    assert len(interest) == 1
    assert interest.wanting(TURN) == set()
    assert interest.wanting(fact("fork", "s1")) == {"me"}


def test_who_has_left_hears_no_more_and_the_others_do():
    interest = Interest()
    interest.add(1, parse("(turn . _)"))
    interest.add(2, parse("(turn . _)"))
    interest.discard(1)
    interest.discard(1)
    assert interest.wanting(TURN) == {2}


def test_what_is_found_is_the_callers_own():
    interest = interest_in("(turn . _)")
    interest.wanting(TURN).clear()
    assert interest.wanting(TURN) == {"(turn . _)"}


@given(st.data())
def test_nobody_is_missed_whatever_comes_and_goes(data):
    said = data.draw(st.lists(facts(), min_size=1, max_size=4))
    asked = [data.draw(patterns_that_fit(data.draw(st.sampled_from(said))))[0] for _ in range(8)]
    interest = Interest()
    for key, asks in enumerate(asked):
        interest.add(key, asks)
    gone = data.draw(st.sets(st.sampled_from(range(8))))
    for key in gone:
        interest.discard(key)
    for one in said:
        fitting = {key for key, asks in enumerate(asked) if key not in gone and asks.match(one)}
        assert fitting <= interest.wanting(one)


@given(st.data())
def test_nobody_is_woken_in_vain_by_flat_facts(data):
    said = data.draw(st.lists(facts(scalars), min_size=1, max_size=4))
    asked = [data.draw(patterns_that_fit(data.draw(st.sampled_from(said))))[0] for _ in range(8)]
    interest = Interest()
    for key, asks in enumerate(asked):
        interest.add(key, asks)
    for one in said:
        assert interest.wanting(one) == {key for key, asks in enumerate(asked) if asks.match(one)}


def test_an_index_that_all_have_left_is_as_it_was_new():
    interest = interest_in("(turn . _)", '(turn "a" . _)', '(turn "b" . _)', '(_ #:by ("x" ?))')
    for text in ("(turn . _)", '(turn "a" . _)', '(turn "b" . _)', '(_ #:by ("x" ?))'):
        interest.discard(text)
    assert vars(interest) == vars(Interest())


def lines_run(function, *args):
    """How many lines of Python a call runs, in all that it calls."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(before)
    return count


class Key:
    """A key that counts how often it is looked at."""

    looked_at = 0

    def __hash__(self):
        Key.looked_at += 1
        return id(self)


def one_of_many(n):
    """What observer `n` asks for, in one of five ways."""
    match n % 5:
        case 0:
            return pattern("turn", ANY, f"s{n}", ...)
        case 1:
            return pattern("turn", capture("n"), f"s{n}", ..., by=f"user {n}")
        case 2:
            return pattern("tool-call", ANY, f"s{n}", ...)
        case 3:
            return pattern(ANY, ANY, f"s{n}")
    return pattern("turn", n, [f"s{n}", ANY], ...)


def steps_of_wanting(size):
    """Lines and looks at keys that `wanting` takes with so many observers, of whom two want the fact."""
    interest = Interest()
    for n in range(size):
        interest.add(Key(), one_of_many(n))
    for asked in (pattern("turn", ANY, "mine", ...), pattern("turn", capture("n"), "mine", ..., by="ada")):
        interest.add(Key(), asked)
    said = fact("turn", 1, "mine", input="hello", by="ada")
    assert len(interest.wanting(said)) == 2
    Key.looked_at = 0
    return lines_run(interest.wanting, said), Key.looked_at


def test_invariant_38_finding_who_wants_a_fact_costs_the_same_with_10_and_with_100_000():
    assert steps_of_wanting(10) == steps_of_wanting(100_000)


def test_leaving_costs_the_same_with_10_and_with_10_000():
    def steps(size):
        interest = Interest()
        for n in range(size):
            interest.add(n, pattern("turn", ANY, f"s{n % 3}", ...))
        return lines_run(interest.discard, 5)

    assert steps(10) == steps(10_000)


@pytest.mark.parametrize("asked", ["(turn 1 . _)", "(turn #:input 1 . _)"])
def test_a_long_list_is_not_gone_through_for_those_who_ask_for_a_number(asked):
    interest = interest_in(asked)
    short, long = ([{"n": n} for n in range(size)] for size in (1, 1000))
    costs = [lines_run(interest.wanting, fact("turn", said, input=said)) for said in (short, long)]
    assert costs[0] == costs[1]
    assert interest.wanting(fact("turn", long, input=long)) == set()
