"""Facts are frozen, checked at the line that makes them, and equal by their content."""

from __future__ import annotations

import datetime

import pytest

from dataspace.errors import KeeveError
from dataspace.facts import BadName, fact
from dataspace.values import FrozenValue, NotAValue, Text


def test_a_fact_is_written_with_its_label_bare_and_its_keywords_marked():
    assert str(fact("turn", 1, "s1", input="hello")) == '(turn 1 "s1" #:input "hello")'


def test_what_enters_a_fact_is_frozen():
    tags = ["a"]
    made = fact("shop.order", tags, items={"a": [1]})
    tags.append("b")
    assert made.fields == (["a"],)
    with pytest.raises(FrozenValue):
        made.keywords["items"]["a"].append(2)
    with pytest.raises(FrozenValue):
        made.keywords["more"] = 1


@pytest.mark.parametrize(
    "label", ["", "_", "two words", "1st", "a(b", 'a"b', "a\nb", "?x", "#:x", ".", "a\ud800", None, 1]
)
def test_a_label_that_could_not_be_read_back_is_refused(label):
    with pytest.raises(BadName) as refused:
        fact(label)
    assert refused.value.role == "label"
    assert isinstance(refused.value, KeeveError)
    assert repr(label) in str(refused.value)


def test_a_keyword_that_could_not_be_read_back_is_refused():
    with pytest.raises(BadName, match="'my key' cannot be a keyword"):
        fact("turn", **{"my key": 1})


def test_what_is_no_value_is_named_by_its_place_in_the_fact():
    moment = datetime.datetime(2020, 1, 1)
    with pytest.raises(NotAValue, match=r"^turn\[1\]\[0\]\.at: datetime is not a value"):
        fact("turn", 1, [{"at": moment}])
    with pytest.raises(NotAValue, match=r"^turn\.input\.at: datetime is not a value"):
        fact("turn", 1, input={"at": moment})


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0), ("turn", b"turn"), ([], {})])
def test_fields_of_other_types_make_another_fact(one, other):
    assert fact("turn", one) != fact("turn", other)
    assert fact("turn", x=one) != fact("turn", x=other)


def test_equal_facts_are_one_in_a_set_whatever_the_order_of_keywords():
    assert len({fact("turn", 1, a=1, b=2), fact("turn", 1, b=2, a=1)}) == 1
    assert fact("turn", float("nan")) == fact("turn", float("nan"))


def test_label_fields_and_keywords_are_told_apart():
    assert len({fact("a", "b"), fact("b", "a"), fact("a", x="b"), fact("a", {"x": "b"})}) == 4


def test_a_fact_is_no_value():
    with pytest.raises(NotAValue):
        fact("turn", fact("turn"))


def test_a_value_as_deep_as_values_may_be_can_be_stated():
    deep: list[object] = []
    for _ in range(63):
        deep = [deep]
    made = fact("turn", deep, input=deep)
    assert made == fact("turn", deep, input=deep)
    with pytest.raises(NotAValue, match="64 deep"):
        fact("turn", [deep])


def test_text_is_a_plain_string_in_a_fact():
    assert type(fact("turn", Text("hi")).fields[0]) is str
