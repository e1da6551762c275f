"""The reader: the text of a pattern, taken apart.

    pattern = "(" label term* ("#:" word term)* [". _"] ")"
    label   = word | "_" | "?" [word]
    term    = "_" | "?" [word] | "(" term* [". _"] ")" | "{" (string ":" term [","])* [". _"] "}" | literal
    literal = word | number | string | "#t" | "#f" | "#nil" | "+inf.0" | "-inf.0" | "+nan.0" | bytes
            | "#ref(" [bytes] number ")" | "#promise(" number ")" | "#blob(" string bytes ")"
            | "#int(" string ")" | "#nan(" bytes ")"
    bytes   = '#"' hex '"'

Strings are JSON's; literals are what `render` writes. It promises `BadPattern`, with the place, for every
text that is no pattern, and nothing else, in time linear in the text.

The one rule: one token of lookahead and no state but the place. What a term means is for `terms` to say.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any, Final, NamedTuple

from dataspace.facts import WORDS, is_word
from dataspace.patterns.terms import ANY, BadPattern, Capture, Literal, Term, dict_term, list_term
from dataspace.values import MAX_DEPTH, Blob, Promise, Ref, Symbol, freeze

_TOKEN = re.compile(
    r"""
    \s* (?:
    (?P<mark>    [(){},:] )
  | (?P<string>  "(?:[^"\\]|\\.)*" )
  | (?P<bytes>   \#"[^"]*" )
  | (?P<form>    \#[a-z]+\( )
  | (?P<keyword> \#:[^\s(){},"\[\]]* )
  | (?P<capture> \?[^\s(){},"\[\]]* )
  | (?P<atom>    [^\s(){},"\[\]]+ )
  | (?P<end>     \Z )
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER = re.compile(r"[0-9]{1,20}")
_HEX_INTEGER = re.compile(r"-?[0-9a-fA-F]+")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_NAMED: Final[dict[str, Any]] = {
    "#nil": None,
    "#t": True,
    "#f": False,
    "+inf.0": float("inf"),
    "-inf.0": float("-inf"),
    "+nan.0": float("nan"),
}
_MAX_DIGITS: Final = 4000  # decimal is read in quadratic time, and Python refuses a little more than this
_UNREADABLE: Final = {
    '"': "this string is never closed",
    "[": "lists are written in parentheses, `(1 2)`",
    "]": "lists are written in parentheses, `(1 2)`",
}
_ENDS: Final = frozenset({")", "}", ".", ""})


class Parts(NamedTuple):
    """What a pattern consists of."""

    label: str | Term
    fields: tuple[Term, ...]
    keywords: dict[str, Term]
    open: bool


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def read_pattern(text: str) -> Parts:
    """The parts of the pattern that `text` is. Raises `BadPattern`."""
    return _Reader(text).pattern()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._token = _Token("", "", 0)
        self._take()

    def pattern(self) -> Parts:
        self._expect("(", "a pattern, `(label term … )`")
        label = self._label()
        fields: list[Term] = []
        keywords: dict[str, Term] = {}
        while (token := self._token).text not in _ENDS:
            if token.kind == "keyword":
                name = self._word(self._take(), 2, "a word after `#:`, such as `#:input`")
                if name in keywords:
                    raise self._bad(f"the keyword {token.text} comes twice", token)
                keywords[name] = self._term(f"a term for {token.text}", 0)
            elif keywords:
                raise self._bad("expected another keyword: positional terms come before the keywords")
            else:
                fields.append(self._term("a term, `#:keyword`, `. _` or `)`", 0))
        open = self._rest(")")
        if self._token.kind != "end":
            raise self._bad("expected nothing after the pattern")
        return Parts(label, tuple(fields), keywords, open)

    def _label(self) -> str | Term:
        wanted = "a label: a word, `_` or `?name`"
        if self._token.kind not in ("atom", "capture"):
            raise self._bad(f"expected {wanted}")
        token = self._take()
        if token.text == "_":
            return ANY
        return self._capture(token) if token.kind == "capture" else self._word(token, 0, wanted)

    def _term(self, wanted: str, depth: int) -> Term:
        token = self._token
        if token.kind == "mark" and token.text in "({":
            if depth >= MAX_DEPTH:
                raise self._bad(f"lists and dicts nest more than {MAX_DEPTH} deep")
            self._take()
            return self._list(depth + 1) if token.text == "(" else self._dict(depth + 1)
        if token.kind == "capture":
            return self._capture(self._take())
        if token.kind == "string":
            return Literal(self._string(wanted))
        if token.kind == "bytes":
            return Literal(self._bytes(wanted))
        if token.kind == "form":
            return Literal(self._form())
        if token.kind != "atom" or token.text == ".":
            raise self._bad(f"expected {wanted}")
        self._take()
        return ANY if token.text == "_" else Literal(self._atom(token))

    def _list(self, depth: int) -> Term:
        items: list[Term] = []
        while self._token.text not in _ENDS:
            if self._token.kind == "keyword":
                raise self._bad('keywords are for the fact itself; a dict is written `{"key": term}`')
            items.append(self._term("a term, `. _` or `)`; blanks, no commas, stand between terms", depth))
        return list_term(items, self._rest(")"))

    def _dict(self, depth: int) -> Term:
        entries: dict[str, Term] = {}
        while self._token.text not in _ENDS:
            token = self._token
            name = self._string("a key in double quotes, `. _` or `}`")
            if name in entries:
                raise self._bad(f"the key {token.text} comes twice", token)
            self._expect(":", f"`:` after the key {token.text}")
            entries[name] = self._term(f"a term for the key {token.text}", depth)
            if self._token.text == ",":
                self._take()
        return dict_term(entries, self._rest("}"))

    def _rest(self, closing: str) -> bool:
        """Takes `. _`, if it is there, and the closing bracket."""
        open = self._token.text == "."
        if open:
            self._take()
            self._expect("_", "`_` after the dot")
        self._expect(closing, f"`{closing}`" + (", since `. _` comes last" if open else ""))
        return open

    def _capture(self, token: _Token) -> Term:
        return Capture(self._word(token, 1, "a word after `?`, such as `?input`") if token.text != "?" else None)

    def _atom(self, token: _Token) -> Any:
        text = token.text
        if is_word(text):
            return Symbol(text)
        if _INTEGER.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                raise self._bad(f'an integer of more than {_MAX_DIGITS} digits is written in hex, `#int("…")`', token)
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if text in _NAMED:
            return _NAMED[text]
        if text == "#erased":
            raise self._bad("erased content cannot be asked for: only `_` and captures accept it", token)
        raise self._bad("neither a term nor a number; text goes in double quotes", token)

    def _form(self) -> Any:
        form = self._take()
        if form.text == "#ref(":
            value: Any = Ref(self._uid() if self._token.kind == "bytes" else None, self._number("an actor's number"))
        elif form.text == "#promise(":
            value = Promise(self._number("a promise's number"))
        elif form.text == "#blob(":
            value = Blob(self._string("a media type in double quotes"), self._bytes('content, as `#"hex"`'))
        elif form.text == "#int(":
            value = self._big_integer()
        elif form.text == "#nan(":
            value = self._nan()
        else:
            raise self._bad("expected #ref(, #promise(, #blob(, #int( or #nan(", form)
        self._expect(")", "`)`")
        return value

    def _uid(self) -> bytes:
        token = self._token
        uid = self._bytes("a session's uid")
        if len(uid) != 16:
            raise self._bad("expected a session's uid, 32 hex digits", token)
        return uid

    def _number(self, wanted: str) -> int:
        token = self._token
        if not _NUMBER.fullmatch(token.text):
            raise self._bad(f"expected {wanted}")
        return int(self._take().text)

    def _big_integer(self) -> int:
        token = self._token
        digits = self._string("hex digits in double quotes")
        if not _HEX_INTEGER.fullmatch(digits):
            raise self._bad("expected hex digits", token)
        return int(digits, 16)

    def _nan(self) -> float:
        token = self._token
        bits = self._bytes('the bits of a NaN, as `#"hex"`')
        value = float(struct.unpack(">d", bits)[0]) if len(bits) == 8 else 0.0
        if value == value:
            raise self._bad("expected the 64 bits of a NaN, 16 hex digits", token)
        return value

    def _string(self, wanted: str) -> str:
        if self._token.kind != "string":
            raise self._bad(f"expected {wanted}")
        token = self._take()
        try:
            return str(freeze(json.loads(token.text, strict=False)))
        except json.JSONDecodeError as error:
            raise BadPattern(f"not as JSON writes it: {error.msg}", self._text, token.at + error.pos) from None

    def _bytes(self, wanted: str) -> bytes:
        if self._token.kind != "bytes":
            raise self._bad(f"expected {wanted}")
        token = self._take()
        if not _HEX.fullmatch(token.text, 2, len(token.text) - 1):
            raise self._bad("expected pairs of hex digits between the quotes", token)
        return bytes.fromhex(token.text[2:-1])

    def _word(self, token: _Token, skip: int, wanted: str) -> str:
        name = token.text[skip:]
        if not is_word(name):
            raise self._bad(f"expected {wanted} ({WORDS})", token)
        return name

    def _expect(self, text: str, wanted: str) -> None:
        if self._token.text != text:
            raise self._bad(f"expected {wanted}")
        self._take()

    def _take(self) -> _Token:
        """The token at hand; the next one takes its place."""
        taken = self._token
        found = _TOKEN.match(self._text, self._end)
        if found is None:
            at = len(self._text) - len(self._text[self._end :].lstrip())
            raise BadPattern(_UNREADABLE[self._text[at]], self._text, at)
        kind = str(found.lastgroup)
        self._token = _Token(kind, found[kind], found.start(kind))
        self._end = found.end()
        return taken

    def _bad(self, problem: str, token: _Token | None = None) -> BadPattern:
        return BadPattern(problem, self._text, (token or self._token).at)
