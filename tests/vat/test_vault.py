"""Credentials: found at each use, shown nowhere."""

from __future__ import annotations

import base64
import html
import json
import os
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.values import Blob, Symbol, Text, freeze
from dataspace.values.encoding import encode
from vat.devices import vault as vault_module
from vat.devices.vault import REMEMBERED, SHORTEST_SECRET, Environment, File, NoCredential, Vault, forms_of

SECRET = "sk-canary-93a1\\'\"/+"


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return path


def test_a_credential_is_found_in_a_variable_in_a_file_or_by_a_function(key_file):
    vault = Vault({"a": Environment("KEY", {"KEY": "one"}), "b": File(key_file), "c": lambda: "three"})
    assert [vault.resolve(name) for name in vault.names()] == ["one", SECRET, "three"]


def test_a_rotated_credential_is_used_from_the_next_time_on():
    environ = {"KEY": "old"}
    vault = Vault({"a": Environment("KEY", environ)})
    assert vault.resolve("a") == "old"
    environ["KEY"] = "new"
    assert vault.resolve("a") == "new"


def test_a_name_that_the_vault_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(NoCredential, match=r"no credential 'c': this host's vault has a, b; add"):
        Vault({"b": lambda: "", "a": lambda: ""}).resolve("c")


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(NoCredential, match="variable KEY is not set"):
        Vault({"a": Environment("KEY", {"KEY": ""})}).resolve("a")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_file_that_others_may_touch_is_refused_with_the_remedy(key_file, mode):
    key_file.chmod(mode)
    with pytest.raises(NoCredential, match=f"mode {mode:04o}.*chmod 600 {key_file}"):
        Vault({"a": File(key_file)}).resolve("a")


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(NoCredential, match="is not a file"):
        Vault({"a": File(tmp_path / "pipe")}).resolve("a")


@pytest.mark.parametrize("content", [b"", b"\n", b"canary-\xff\xfe", b"x" * 70_000])
def test_a_file_without_one_readable_value_is_refused_without_showing_it(key_file, content):
    key_file.write_bytes(content)
    with pytest.raises(NoCredential) as caught:
        Vault({"a": File(key_file)}).resolve("a")
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NoCredential, match=r"nowhere: No such file or directory; put it there"):
        Vault({"a": File(tmp_path / "nowhere")}).resolve("a")


def test_an_error_of_a_source_is_not_shown_as_it_may_quote_the_value():
    def source():
        raise ValueError(SECRET)

    with pytest.raises(NoCredential, match="its source raised ValueError") as caught:
        Vault({"a": source}).resolve("a")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("value", [None, "", b"bytes", 3])
def test_a_source_has_to_give_a_str(value):
    with pytest.raises(NoCredential, match="has to give a str"):
        Vault({"a": lambda: value}).resolve("a")


def test_a_vault_shows_names_and_where_they_are_found_and_no_value():
    vault = Vault({"a": Environment("KEY", {"KEY": SECRET}), "b": lambda: SECRET})
    vault.resolve("a")
    assert repr(vault) == "Vault(a=Environment(variable='KEY'), b=...)"


@pytest.mark.parametrize(
    "text",
    ["{}", "before {} after", "{0}{0}", "Bearer {}", "{!r}"],
)
def test_a_value_is_taken_out_of_text(text):
    vault = Vault({"a": lambda: SECRET})
    vault.resolve("a")
    clean = vault.redact(text.format(SECRET))
    assert "canary" not in clean
    assert "‹credential a›" in clean


def test_a_value_is_taken_out_of_a_url_and_of_json():
    vault = Vault({"a": lambda: SECRET})
    vault.resolve("a")
    text = vault.redact('?key=sk-canary-93a1%5C%27%22%2F%2B {"key": "sk-canary-93a1\\\\\'\\"/+"}')
    assert text == '?key=‹credential a› {"key": "‹credential a›"}'


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
@pytest.mark.parametrize("after", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_is_taken_out_of_base64_wherever_it_stands_in_it(before, after, encode):
    vault = Vault({"a": lambda: SECRET})
    vault.resolve("a")
    clean = vault.redact(f"Basic {encode((before + SECRET + after).encode()).decode()}")
    assert "‹credential a›" in clean
    start, _, rest = clean.removeprefix("Basic ").partition("‹credential a›")
    assert len(start) <= len(before) * 8 // 6 + 1
    assert len(rest) <= 4 + len(after) * 8 // 6 + 1


@pytest.mark.parametrize(
    "encode",
    [
        lambda value: value.encode().hex(),
        lambda value: value.encode().hex().upper(),
        html.escape,
        urllib.parse.quote,
        urllib.parse.quote_plus,
        lambda value: urllib.parse.quote(value, safe="").lower(),
        lambda value: json.dumps({"key": value}, ensure_ascii=False),
        lambda value: json.dumps({"key": value}).replace("/", "\\/"),
        lambda value: repr(value.encode()),
    ],
)
def test_a_value_is_taken_out_in_each_form_that_an_echo_of_a_request_has(encode):
    secret = "sk-canary-93a1 &<'\"/+~"
    vault = Vault({"a": lambda: secret})
    vault.resolve("a")
    clean = vault.redact(f"before {encode(secret)} after")
    assert "‹credential a›" in clean
    assert "93a1" not in clean
    assert "39336131" not in clean


@pytest.mark.parametrize("blanks", ["{} ", " {}", "\t{}\r\n", "\u00a0{}\u2028", "  {}\n\n"])
@pytest.mark.parametrize("taken_off", [str.strip, str.lstrip, str.rstrip, lambda value: value.strip(" \t")])
@pytest.mark.parametrize(
    "encode",
    [
        str,
        repr,
        json.dumps,
        html.escape,
        urllib.parse.quote,
        lambda value: value.encode().hex(),
        lambda value: base64.b64encode(f"user:{value}".encode()).decode(),
        lambda value: repr(value.encode()),
    ],
)
def test_a_value_is_taken_out_without_the_blanks_around_it_as_well(blanks, taken_off, encode):
    """Invariant 20. Devices take them off before they send it, so this is what comes back."""
    vault = Vault({"a": lambda: blanks.format(SECRET)})
    vault.resolve("a")
    clean = vault.redact_value(f"before {encode(taken_off(blanks.format(SECRET)))} after")
    assert "‹credential a›" in clean
    assert "93a1" not in clean
    assert "39336131" not in clean


def test_a_placeholder_with_blanks_around_it_stays_in_results():
    vault = Vault({"a": lambda: "ollama     "})
    vault.resolve("a")
    assert vault.redact_value("ollama is a program") == "ollama is a program"
    assert vault.redact("bad key: ollama") == "bad key: ‹credential a›"


def test_a_marked_text_stays_one_without_the_value():
    vault = Vault({"a": lambda: "canary-canary"})
    vault.resolve("a")
    clean = vault.redact_value(freeze({"x": Text("say canary-canary"), "y": Symbol("canary-canary")}))
    assert clean == {"x": "say ‹credential a›", "y": "‹credential a›"}
    assert type(vault.redact_value(Text("say canary-canary"))) is Text


def test_of_two_values_the_longer_one_goes_first_so_that_nothing_is_left_over():
    values = iter(["canary-1", "canary-1-and-more"])
    vault = Vault({"a": lambda: next(values)})
    vault.resolve("a")
    vault.resolve("a")
    assert vault.redact("canary-1-and-more") == "‹credential a›"


def test_values_from_before_a_rotation_are_still_taken_out_and_memory_stays_bounded():
    numbers = iter(range(1000))
    vault = Vault({"a": lambda: f"canary-{next(numbers):04}"})
    for _ in range(1000):
        vault.resolve("a")
    assert vault.redact("canary-0998") == "‹credential a›"
    assert len(vault._forms) <= REMEMBERED * len(forms_of("canary-0000"))


def test_a_value_is_taken_out_of_results_at_any_depth():
    vault = Vault({"a": lambda: "canary-canary"})
    vault.resolve("a")
    value = freeze(
        {"x": ["say canary-canary", {"canary-canary": b"canary-canary", "b": Blob("a/b", b"canary-canary")}]}
    )
    clean = vault.redact_value(value)
    assert "canary" not in repr(clean)
    assert clean["x"][1]["b"] == Blob("a/b", "‹credential a›".encode())


@given(
    st.recursive(
        st.one_of(
            st.text(max_size=3),
            st.text(max_size=3).map(Text),
            st.sampled_from([Symbol("canary-canary"), Symbol("x:canary-canary")]),
            st.just("canary-canary"),
            st.just(b"\xffcanary-canary"),
            st.builds(Blob, st.sampled_from(["a/b", "text/canary-canary"]), st.sampled_from([b"", b"canary-canary"])),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["a", "canary-canary", "x=canary-canary"]), inner),
        ),
        max_leaves=8,
    )
)
def test_a_value_is_taken_out_of_every_string_that_a_result_has(value):
    vault = Vault({"a": lambda: "canary-canary"})
    vault.resolve("a")
    frozen = freeze(value)
    clean = vault.redact_value(frozen)
    assert b"canary" not in encode(clean)
    assert (clean is frozen) == (b"canary" not in encode(frozen))


def test_a_value_that_is_no_utf_8_is_taken_out_of_a_result_which_cannot_hold_it_as_it_is():
    for secret in STRANGE.values():
        vault = Vault({"odd": lambda secret=secret: secret})
        vault.resolve("odd")
        if len(secret) >= SHORTEST_SECRET:
            assert vault.redact_value(freeze({"x": f"it is {secret}!"})) == {"x": "it is ‹credential odd›!"}


def test_a_result_without_a_credential_comes_back_as_it_is():
    vault = Vault({"a": lambda: "canary-canary"})
    vault.resolve("a")
    value = freeze({"x": [1, "fine", b"fine", None]})
    assert vault.redact_value(value) is value


def test_the_placeholders_of_local_servers_stay_in_results_and_leave_errors():
    vault = Vault({"a": lambda: "ollama"})
    vault.resolve("a")
    assert vault.redact_value("ollama is a program") == "ollama is a program"
    assert vault.redact("bad key: ollama") == "bad key: ‹credential a›"


STRANGE = {
    "latin-1": os.fsdecode(b"canary-p\xe4ssword"),
    "no text at all": os.fsdecode(bytes(range(1, 256))),
    "half a pair": "canary-canary-\ud800",
    "both": "canary-canary-\ud800\udce4",
    "only surrogates": "\udce4" * 12,
    "nul": "canary\0canary",
    "nul alone": "\0",
    "one character": "x",
    "one surrogate": "\udcff",
    "long": "canary" * 50_000,
    "lines": "canary-line-1\ncanary-line-2\r\ncanary-line-3",
    "not English": "canary-пароль-密码",
}


@pytest.mark.parametrize("secret", STRANGE.values(), ids=STRANGE)
def test_whatever_characters_a_value_has_it_is_taken_out_and_so_are_others_after_it(secret):
    vault = Vault({"odd": lambda: secret, "api": lambda: "other-canary-2"})
    assert vault.resolve("odd") == vault.resolve("odd") == secret
    assert vault.resolve("api") == "other-canary-2"
    for text in (secret, f"before {secret} after", repr(secret), json.dumps(secret)):
        assert secret not in vault.redact(text).replace("‹credential odd›", "")
        assert "canary" not in vault.redact(text)
    assert "‹credential api›" in vault.redact_value(b"other-canary-2").decode()
    shown = [repr(secret), secret.encode(errors="replace"), secret.encode(errors="ignore")]
    assert "canary" not in repr(vault.redact_value(freeze(shown)))


@pytest.mark.parametrize("show", [repr, bytes.hex, urllib.parse.quote_from_bytes, lambda data: data.decode("latin-1")])
def test_a_value_that_is_no_utf_8_is_taken_out_where_its_bytes_are_shown(show):
    data = b"canary-p\xe4ssword-93a1"
    vault = Vault({"a": lambda: os.fsdecode(data)})
    vault.resolve("a")
    assert vault.redact_value(show(data)).strip("b'") == "‹credential a›"
    assert vault.redact_value(data.decode(errors="replace")) == "‹credential a›"
    assert vault.redact_value(b"x" + data + b"\xff") == "x‹credential a›".encode() + b"\xff"


@given(st.text(st.characters(), min_size=1))
def test_the_forms_of_a_text_can_always_be_told_and_none_is_empty(value):
    forms = forms_of(value)
    assert value in forms
    assert "" not in forms


@given(st.text(st.characters(categories=["Cs"]), min_size=1))
def test_the_forms_of_what_is_no_text_can_be_told_as_well(value):
    vault = Vault({"a": lambda: value})
    vault.resolve("a")
    assert value not in vault.redact(f"{value}!")
    assert vault.redact_value(b"fine") == b"fine"


def test_the_lines_of_a_value_are_taken_out_one_by_one():
    key = "-----BEGIN KEY-----\ncanary-canary-1\ncanary-canary-2\n-----END KEY-----\n"
    vault = Vault({"a": lambda: key})
    vault.resolve("a")
    assert "canary" not in vault.redact("".join(f"  | {line}\n" for line in key.splitlines()))


def test_a_line_of_a_value_is_taken_out_without_the_blanks_around_it_as_well():
    vault = Vault({"a": lambda: '{\n  "user": "canary-1", \n  "key": "canary-2"\n}'})
    vault.resolve("a")
    assert "canary" not in vault.redact_value('bad: "user": "canary-1",|"key": "canary-2"|')


def test_a_value_that_cannot_be_known_again_is_not_given_and_changes_nothing(monkeypatch):
    vault = Vault({"a": lambda: "canary-one", "b": lambda: "canary-two"})
    vault.resolve("a")
    with monkeypatch.context() as patched:
        patched.setattr(vault_module, "forms_of", lambda value: [][0])
        for _ in range(2):
            with pytest.raises(IndexError):
                vault.resolve("b")
    assert vault.redact("canary-one") == "‹credential a›"
    vault.resolve("b")
    assert vault.redact("canary-two") == "‹credential b›"


def test_a_value_that_is_given_again_is_not_forgotten_before_those_given_earlier():
    values = iter(["canary-a", *(f"canary-{n}" for n in range(REMEMBERED - 1)), "canary-a", "canary-z"])
    vault = Vault({"a": lambda: next(values)})
    for _ in range(REMEMBERED + 2):
        vault.resolve("a")
    assert vault.redact("canary-a") == "‹credential a›"


def test_a_source_that_gives_a_str_of_its_own_class_does_not_decide_how_it_is_known_again():
    class Hidden(str):
        __slots__ = ()

        def __eq__(self, other):
            return True

        def encode(self, *_):
            raise RuntimeError

        __hash__ = str.__hash__

    values = iter([Hidden("canary-one"), Hidden("canary-two")])
    vault = Vault({"a": lambda: next(values)})
    assert type(vault.resolve("a")) is str
    vault.resolve("a")
    assert "canary" not in vault.redact("canary-one canary-two")
