"""Patterns: what they fit, what they capture, how they read and how they refuse."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pattern_strategies import facts, patterns_that_fit, values

from dataspace.errors import KeeveError
from dataspace.facts import fact
from dataspace.patterns import ANY, BadPattern, capture, parse, pattern
from dataspace.values import ERASED, Blob, NotAValue, Promise, Ref, Symbol, render

TURN = fact("turn", 1, "s1", input="hello", by="ada")


class FarRef(Ref):
    """As the runtime has them: a ref with behaviour."""


def fits(text, given):
    return parse(text).match(given) is not None


# What fits


@pytest.mark.parametrize(
    "text",
    [
        "(turn . _)",
        "(_ . _)",
        '(turn _ "s1" . _)',
        '(turn 1 "s1" #:input "hello" #:by "ada")',
        '(turn 1 "s1" #:by "ada" #:input "hello")',
        '(turn 1 "s1" #:by _ #:input ?)',
        '(turn #:by "ada" . _)',
        "(?what 1 ?who #:input ? #:by ?)",
        '\n( turn\t1\n"s1" . _ )\n',
    ],
)
def test_these_fit_the_turn(text):
    assert fits(text, TURN)


@pytest.mark.parametrize(
    "text",
    [
        '(turn 1 "s1")',
        '(turn 1 "s1" #:input "hello")',
        '(turn 1 "s1" #:input _ #:by _ #:via _)',
        '(turn 1 "s1" #:via _ . _)',
        "(turn 1 #:input _ #:by _)",
        '(turn 1 "s1" _ . _)',
        "(turn 1 s1 . _)",
        '(turn 1.0 "s1" . _)',
        '(turn #t "s1" . _)',
        '(turn 2 "s1" . _)',
        '(turn-done 1 "s1" . _)',
        '(turn 1 "s1" #:by "bob" . _)',
    ],
)
def test_these_do_not_fit_the_turn(text):
    assert not fits(text, TURN)


DISTINCT = [
    *(None, True, False, 1, 0, 2**80, 1.0, 0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan),
    *("turn", b"turn", Symbol("turn"), "", [], {}, [1], [True], {"a": 1}, {"a": 1.0}),
    *(Ref(None, 1), Ref(bytes(16), 1), Promise(1), Blob("a", b"")),
]


def test_a_literal_fits_its_own_value_and_no_other():
    for at, asked in enumerate(DISTINCT):
        fitting = [n for n, said in enumerate(DISTINCT) if pattern("x", asked).match(fact("x", said))]
        assert fitting == [at]


def test_a_ref_fits_whatever_class_stands_for_it():
    assert pattern("x", Ref(None, 3)).match(fact("x", FarRef(None, 3)))


def test_a_dict_fits_whatever_the_order_of_its_keys():
    assert fits('(x {"a": 1, "b": (2)})', fact("x", {"b": [2], "a": 1}))


def test_a_list_is_looked_into():
    said = fact("x", [1, ["a", "b"], 3])
    assert fits("(x (1 . _))", said)
    assert fits('(x (_ ("a" ?) 3))', said)
    assert not fits("(x (1 _))", said)
    assert not fits("(x (1 _ 3 _ . _))", said)
    assert not fits('(x (1 ("b" . _) _))', said)
    assert not fits("(x (. _))", fact("x", "text"))


def test_a_dict_is_looked_into():
    said = fact("model-output", message={"role": "assistant", "content": {"text": "hi"}})
    found = parse('(model-output #:message {"content": {"text": ?t} . _})').match(said)
    assert found is not None
    assert found["t"] == "hi"
    assert not fits('(model-output #:message {"role": "user" . _})', said)
    assert not fits('(model-output #:message {"content": ?})', said)
    assert not fits('(model-output #:message {"name": _ . _})', said)
    assert not fits("(x {. _})", fact("x", ["role"]))


def test_keywords_are_never_positional():
    assert not fits("(x 1)", fact("x", a=1))
    assert not fits("(x #:a 1)", fact("x", 1))


# What is captured


def test_names_capture_by_name_and_bare_marks_in_order():
    found = parse("(turn ? ?who #:by ? #:input ?said)").match(TURN)
    assert found is not None
    assert found.named == {"who": "s1", "said": "hello"}
    assert found.values == (1, "ada")
    assert (found["who"], found[1]) == ("s1", "ada")


def test_a_label_is_captured_as_the_symbol_that_it_is_written_as():
    found = parse("(?label . _)").match(TURN)
    assert found is not None
    assert found["label"] == Symbol("turn")
    assert fits("(?x ?x)", fact("turn", Symbol("turn")))
    assert not fits("(?x ?x)", fact("turn", "turn"))


def test_a_name_that_comes_twice_must_capture_the_same_value():
    assert fits("(x ?a ?a)", fact("x", [1, {"k": 2}], [1, {"k": 2}]))
    assert not fits("(x ?a ?a)", fact("x", 1, True))
    assert not fits("(x ?a #:k (?a))", fact("x", 1, k=[2]))
    assert fits("(x ? ?)", fact("x", 1, 2))


def test_erased_content_fits_wildcards_and_captures_alone():
    gone = fact("x", ERASED)
    assert fits("(x _)", gone)
    found = parse("(x ?a)").match(gone)
    assert found is not None
    assert found["a"] is ERASED
    for text in ('(x "")', "(x #nil)", "(x (. _))", "(x {. _})"):
        assert not fits(text, gone)


def test_erased_content_is_not_the_same_as_anything_itself_included():
    assert not fits("(x ?a ?a)", fact("x", ERASED, ERASED))
    assert not fits("(x ?a ?a)", fact("x", [1, {"k": ERASED}], [1, {"k": ERASED}]))


def test_erased_content_cannot_be_asked_for():
    for asked in (ERASED, [1, {"a": ERASED}]):
        with pytest.raises(BadPattern, match="erased content cannot be asked for"):
            pattern("x", asked)


@given(st.data())
def test_a_pattern_made_from_a_fact_fits_it_and_captures_what_was_there(data):
    said = data.draw(facts())
    made, named, unnamed = data.draw(patterns_that_fit(said))
    found = made.match(said)
    assert found is not None
    assert {name: render(value) for name, value in found.named.items()} == {n: render(v) for n, v in named.items()}
    assert [*map(render, found.values)] == [*map(render, unnamed)]


@given(st.data(), values)
def test_a_value_changed_anywhere_no_longer_fits(data, other):
    said = data.draw(facts().filter(lambda said: said.fields))
    at = data.draw(st.integers(0, len(said.fields) - 1))
    changed = fact(said.label, *[other if n == at else v for n, v in enumerate(said.fields)], **said.keywords)
    asked = pattern(said.label, *said.fields, **said.keywords)
    assert (asked.match(changed) is not None) == (changed == said)


# Text and Python


@given(st.data())
def test_the_text_of_a_pattern_reads_as_that_pattern(data):
    made, _, _ = data.draw(patterns_that_fit(data.draw(facts())))
    again = parse(str(made))
    assert again == made
    assert str(again) == str(made)
    assert hash(again) == hash(made)
    assert again.skeleton() == made.skeleton()


@given(facts())
def test_the_text_of_a_fact_is_the_pattern_that_fits_it_alone(said):
    assert parse(str(said)).match(said) is not None


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('(turn ? "s1" . _)', pattern("turn", capture(), "s1", ...)),
        ("(turn _ #:by ?who)", pattern("turn", ANY, by=capture("who"))),
        ("(?l . _)", pattern(capture("l"), ...)),
        ("(_)", pattern(ANY)),
        ("(x (1 ?a . _) (2 3))", pattern("x", [1, capture("a"), ...], (2, 3))),
        ('(x {"a": ?a . _})', pattern("x", {"a": capture("a"), ...: ...})),
        ('(x {"a":1 "b":2})', pattern("x", {"a": 1, "b": 2})),
        ("(x (. _) {. _})", pattern("x", [...], {...: ...})),
        ("(x () {})", pattern("x", [], {})),
        ("(x #nil #t #f sym)", pattern("x", None, True, False, Symbol("sym"))),
        ('(x "\\u0041" #"00ff")', pattern("x", "A", b"\0\xff")),
        ("(x +inf.0 -inf.0 -0.0 1e3)", pattern("x", math.inf, -math.inf, -0.0, 1000.0)),
        ('(x "\\ud800")', pattern("x", "\ufffd")),
        ("(turn)", pattern(Symbol("turn"))),
    ],
)
def test_text_and_python_make_the_same_pattern(text, made):
    assert parse(text) == made


def test_patterns_that_ask_for_different_things_are_different():
    asked = [pattern("x", value) for value in DISTINCT]
    asked += [parse(text) for text in ("(x)", "(x . _)", "(x _)", "(x ?)", "(x ?a)", "(x #:a _)", "(_ . _)", "(y)")]
    assert len(set(asked)) == len(asked)


def test_a_literal_is_frozen_when_the_pattern_is_made():
    tags = ["a"]
    made = pattern("x", tags)
    tags.append("b")
    assert made.match(fact("x", ["a"]))


def test_the_repr_of_a_pattern_makes_it_again():
    made = pattern("x", "it's", ...)
    assert eval(repr(made)) == made


# What is refused


def place(text):
    """The problem, and what stands over the caret."""
    with pytest.raises(BadPattern) as refused:
        parse(text)
    problem, line, caret = str(refused.value).rsplit("\n", 2)
    assert problem == refused.value.problem
    assert refused.value.text == text
    return problem, line[caret.index("^") :]


@pytest.mark.parametrize(
    ("text", "problem", "over"),
    [
        ("", "a pattern", ""),
        ("turn", "a pattern", "turn"),
        ("(", "a label", ""),
        ("()", "a label", ")"),
        ('("turn" 1)', "a label", '"turn" 1)'),
        ("(1 2)", "a label", "1 2)"),
        ("(turn 1", "`)`", ""),
        ("(turn 1))", "nothing after the pattern", ")"),
        ("(turn {1})", "a key in double quotes", "1})"),
        ('(turn {"a" 1})', 'after the key "a"', "1})"),
        ('(turn {"a": })', 'a term for the key "a"', "})"),
        ('(turn {"a": 1, "a": 2})', 'the key "a" comes twice', '"a": 2})'),
        ('(turn {"a": 1)', "`}`", ")"),
        ("(turn (1})", "`)`", "})"),
        ("(turn [1])", "parentheses", "[1])"),
        ("(turn 1, 2)", "a term", ", 2)"),
        ('(turn "abc)', "never closed", '"abc)'),
        (r'(turn "a\x")', "escape", r'\x")'),
        ("(turn #:)", "a word after `#:`", "#:)"),
        ("(turn #:by)", "a term for #:by", ")"),
        ("(turn #:by 1 2)", "another keyword", "2)"),
        ("(turn #:by 1 #:by 2)", "#:by comes twice", "#:by 2)"),
        ("(turn (#:by 1))", "keywords are for the fact itself", "#:by 1))"),
        ("(turn . 1)", "`_` after the dot", "1)"),
        ("(turn . _ 1)", "`. _` comes last", "1)"),
        ("(turn ?1)", "a word after `?`", "?1)"),
        ("(turn done?)", "neither a term nor a number", "done?)"),
        ("(turn 1x)", "neither a term nor a number", "1x)"),
        ("(turn 'x')", "text goes in double quotes", "'x')"),
        ('(turn #"abc")', "pairs of hex digits", '#"abc")'),
        ("(turn #erased)", "cannot be asked for", "#erased)"),
        ("(turn #what(1))", "#ref(", "#what(1))"),
        ('(turn #ref(#"00" 1))', "32 hex digits", '#"00" 1))'),
        ("(turn #ref(x))", "an actor's number", "x))"),
        ("(turn #promise(-1))", "a promise's number", "-1))"),
        ('(turn #blob("a" 1))', "content", "1))"),
        ('(turn #int("xyz"))', "hex digits", '"xyz"))'),
        ('(turn #nan(#"7ff0000000000000"))', "NaN", '#"7ff0000000000000"))'),
        ("(turn #ref(1 2))", "`)`", "2))"),
        ("(turn\n  1 ]\n)", "parentheses", "]"),
    ],
)
def test_a_text_that_is_no_pattern_is_refused_with_a_caret_under_the_place(text, problem, over):
    said, under = place(text)
    assert problem in said
    assert under == over


def test_the_caret_of_a_long_text_shows_what_is_around_it():
    text = f"(turn {'1 ' * 500}] {'2 ' * 500})"
    with pytest.raises(BadPattern) as refused:
        parse(text)
    _, line, caret = str(refused.value).split("\n")
    assert len(line) < 150
    assert line[caret.index("^")] == "]"
    assert refused.value.at == text.index("]")


def test_nesting_too_deep_is_refused_at_the_bracket():
    assert fits(f"(x {'(' * 64}{')' * 64})", fact("x", eval("[" * 64 + "]" * 64)))
    problem, _ = place(f"(x {'(' * 100_000}")
    assert "more than 64 deep" in problem


def test_an_integer_too_long_for_decimal_is_refused_and_read_in_hex():
    problem, _ = place(f"(x {'9' * 5000})")
    assert "#int(" in problem
    assert fits(str(pattern("x", 16**9000)), fact("x", 16**9000))


SOUP = [
    *'(){}[].,:?|_#"\\\0\ud800é- \n',
    *("(", ")", "#:", "#:by", "#t", "turn", "?x", '"a"', "1", "2.5", '#"ff"', "#ref(", "#nan(", "#int(", " . _"),
]


@given(st.lists(st.sampled_from(SOUP), max_size=20).map("".join) | st.text(max_size=20), st.booleans())
def test_any_text_is_a_pattern_or_refused_as_none(text, wrapped):
    text = f"(x {text})" if wrapped else text
    try:
        made = parse(text)
    except BadPattern as error:
        refused, made = error, None
    if made is None:
        assert 0 <= refused.at <= len(text)
        assert "^" in str(refused)
    else:
        assert parse(str(made)) == made


def test_a_refused_pattern_is_an_error_of_ours_and_a_value_error():
    with pytest.raises(KeeveError) as refused:
        parse("(")
    assert isinstance(refused.value, ValueError)
    assert refused.value.usage


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        (("turn", ..., 1), r"term 1: `\.\.\.` leaves the rest open"),
        (("turn", 1, [2, ..., 3]), r"term 2\[1\]: `\.\.\.` leaves the rest open"),
        (("two words",), "'two words' cannot be a label"),
        ((1,), "1 cannot be a label"),
    ],
)
def test_what_python_cannot_mean_is_refused_with_its_place(terms, problem):
    with pytest.raises(BadPattern, match=problem):
        pattern(*terms)


def test_names_that_could_not_be_written_are_refused():
    with pytest.raises(BadPattern, match="'my key' cannot be a keyword"):
        pattern("turn", **{"my key": 1})
    with pytest.raises(BadPattern, match="'a b' cannot name a capture"):
        capture("a b")


def test_what_is_no_value_is_refused_with_its_place():
    with pytest.raises(NotAValue, match=r"term 2\[1\]\.at: object is not a value"):
        pattern("turn", 1, [ANY, {"at": object()}])
    with pytest.raises(NotAValue, match="input: object is not a value"):
        pattern("turn", input=object())


def test_a_list_that_contains_itself_is_refused():
    loop: list[object] = [ANY]
    loop.append(loop)
    with pytest.raises(BadPattern, match="contain themselves"):
        pattern("turn", loop)
