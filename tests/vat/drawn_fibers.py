"""Actors whose async methods are drawn: statements as data, and the Python that they stand for.

A method is a list of statements; each may hold others. `method` gives it as text, in which a reader finds what
went wrong; `build` makes a class of several. A method begins only those after it, so that there is an end.

The one rule: whatever is drawn runs; a statement that finds nothing to work on does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import Any

from hypothesis import strategies as st

from vat.heap.refs import Promise, Ref, cancel, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set
from vat.objects.waiting import TimeLimit, gather, within

METHODS = 3
Statement = Sequence[Any]

BEGINNING = """\
parts, promises, refs, n = [], [], [], 0
alias, names, chance = parts, {"parts": parts, "a": 1}, me.random
items, table, tags = me.log, me.named, me.tags
view, frozen, started = items.view(), me.value, me.now()
"""

END = """\
me.value = [n, len(parts), alias is parts, names["parts"] is parts, started]
return [n, parts[-3:], len(view), frozen]
"""

SIMPLE = {
    "ask": "parts.append(await me.device('tool').use({0}))",
    "ask both": "parts.append(await gather(me.device('tool').use({0}), me.device('tool').use('and')))",
    "want": "promises.append(me.device('tool').use({0}, list(parts[-1:])))",
    "lend": "promises.append(me.device('tool').look(items.view(), {0}))",
    "send": "promises.append(me.ref.plain({0}))",
    "send wrong": "promises.append(me.ref.fail({0}))",
    "tell": "promises.append(me.peer.plain({0}))\nnames['told'] = {0}",
    "wait": "if promises:\n    parts.append(await promises.pop({0} % len(promises)))",
    "wait again": "if promises:\n    parts.append(await promises[{0} % len(promises)])",
    "forget": "if promises:\n    del promises[{0} % len(promises)]",
    "all": "some, promises = promises[-{0} - 1 :], promises[: -{0} - 1]\nparts.append(shown(await gather(some)))",
    "all or failures": "parts.append(shown(await gather(promises[-{0} - 1:], failures=True)))",
    "all in time": "parts.append(shown(await within({0} + 1, gather(promises[-{0} - 1:], failures={0} % 2 == 0))))",
    "in time": "if promises:\n    parts.append(await within({0} + 1, promises.pop({0} % len(promises))))",
    "cancel": "if promises:\n    parts.append(cancel(promises[{0} % len(promises)], ValueError('given up')))",
    "react": "if promises:\n    promises.append(promises[{0} % len(promises)].then(me.plain, {0}, broken=me.broke))",
    "near": "parts.append(near(me.ref).plain({0}))",
    "near wrong": "try:\n    near(me.ref).fail({0})\nexcept ValueError as error:\n    parts.append(str(error))",
    "near reads": "parts.append(near(refs[0] if refs else me.ref).many())",
    "spawn": "refs.append(me.spawn(type(me)))\nnear(refs[-1]).plain({0})",
    "count": "me.count += {0}\nn += 1",
    "append": "items.append([{0}, *parts[-2:]])",
    "take out": "if items:\n    del items[{0} % len(items)]",
    "put": "table[f'k{0}'] = names['a']\nnames['a'] = [n, {0}]",
    "tag": "tags.add({0})\nparts.append(sorted(tags)[:2])",
    "alias": "alias.append({0})\nnames['parts'].append(len(alias))",
    "other alias": "alias = names['parts'] = list(alias)\nparts = alias",
    "chance": "parts.append(chance.integer(0, {0} + 9))",
    "chance again": "chance = me.random",
    "view": "view = items.view()",
    "look": "parts.append([len(view), list(view)[-1:], len(items)])",
    "frozen": "frozen = me.value\nparts.append(frozen)",
    "time": "parts.append(me.now() - started)",
    "id": "names['id'] = me.new_id()",
    "say": "me.assert_fact('drawn.said', n, what={0})",
    "fail": "raise ValueError('drawn {0}')",
}
WAITS = ("ask", "ask both", "wait", "all", "all or failures", "all in time", "in time")
BEGINS = ("begin", "go", "visit")
"""A method of this actor at once, by a message, of the other session's."""


def _rendered(statement: Statement) -> str:
    kind, *args = statement
    if kind in SIMPLE:
        return SIMPLE[kind].format(args[0])
    if kind == "try":
        body, handler, final = (_block(part) for part in args)
        told = "    parts.append(type(error).__name__)\n"
        return f"try:\n{body}except Exception as error:\n{told}{handler}finally:\n{final}".rstrip()
    if kind == "finally":
        return f"try:\n{_block(args[0])}finally:\n{_block(args[1])}".rstrip()
    if kind == "loop":
        return f"for n in range(n, n + {args[0] % 3 + 1}):\n{_block(args[1])}".rstrip()
    if kind == "if":
        return f"if len(parts) % 2 == {args[0] % 2}:\n{_block(args[1])}".rstrip()
    if kind == "helper":
        names = "n, view, alias, parts, promises, frozen, chance"
        return f"async def helper():\n    nonlocal {names}\n{_block(args[0])}    return n\nparts.append(await helper())"
    how = {"begin": "near(me.ref)", "go": "me.ref", "visit": "me.peer"}[kind]
    return f"promises.append({how}.m{args[0]}({args[1]}))"


def _block(statements: Sequence[Statement]) -> str:
    return indent("\n".join(map(_rendered, statements)) or "pass", "    ") + "\n"


def method(number: int, statements: Sequence[Statement]) -> str:
    """An async method as text."""
    body = indent(BEGINNING, "    ") + _block(statements) + indent(END, "    ")
    return f"async def m{number}(me, given=0):\n{body}"


def build(methods: Sequence[Sequence[Statement]]) -> type[Actor]:
    """The actor type with these methods, m0, m1 and so on."""
    space: dict[str, Any] = {
        "near": near,
        "cancel": cancel,
        "gather": gather,
        "within": within,
        "TimeLimit": TimeLimit,
        "shown": _shown,
    }
    for number, statements in enumerate(methods):
        exec(compile(method(number, statements), f"<m{number}>", "exec"), space)
    members = {f"m{number}": space[f"m{number}"] for number in range(len(methods))}
    return actor("drawn.agent", version=1)(type("Drawn", (Base,), members))


def _shown(outcomes: Sequence[Any]) -> list[Any]:
    return [str(outcome) if isinstance(outcome, Exception) else outcome for outcome in outcomes]


class Base(Actor):
    """What drawn methods work on."""

    count: int = 0
    value: Any = None
    log: List[Any]
    named: Map[str, Any]
    tags: Set[int]
    peer: Ref | None = None

    def meet(self, peer: Ref) -> None:
        self.peer = peer

    def plain(self, value: Any, *more: Any) -> Any:
        self.log.append([value, *more])
        return [value, len(self.log)]

    def many(self) -> int:
        return len(self.log)

    def fail(self, value: int) -> None:
        self.count += 100
        raise ValueError(f"no {value}")

    def broke(self, error: Exception, *more: Any) -> str:
        self.log.append([type(error).__name__, *more])
        return "mended"

    def sent(self) -> Promise | None:
        return None if self.peer is None else self.peer.plain("sent")


# Drawing.

small = st.integers(0, 3)


def _nested(inner: Any) -> Any:
    some = st.lists(inner, max_size=3)
    return st.one_of(
        st.tuples(st.just("try"), some, some, some),
        st.tuples(st.just("finally"), some, some),
        st.tuples(st.just("loop"), small, some),
        st.tuples(st.just("if"), small, some),
        st.tuples(st.just("helper"), some),
    )


def _statements(number: int) -> Any:
    kinds = st.tuples(st.sampled_from([*SIMPLE, *WAITS * 3]), small)
    if number + 1 < METHODS:
        begins = st.tuples(st.sampled_from(BEGINS), st.integers(number + 1, METHODS - 1), small)
        kinds = st.one_of(kinds, kinds, kinds, kinds, begins)
    return st.lists(st.recursive(kinds, _nested, max_leaves=5), min_size=2, max_size=9)


methods = st.tuples(*(_statements(number) for number in range(METHODS)))
"""The methods of an actor."""


def within_of(statements: Sequence[Any]) -> Iterator[Statement]:
    """All statements of a method, those that others hold as well."""
    for statement in statements:
        yield statement
        for arg in statement[1:]:
            if isinstance(arg, list | tuple):
                yield from within_of(arg)


def concerned(methods: Sequence[Sequence[Statement]], changed: int) -> set[str]:
    """The methods that run code of the changed one in their own parts: itself, and those that begin it at once."""
    found = {changed}
    for number in reversed(range(changed)):
        if any(statement[0] == "begin" and statement[1] in found for statement in within_of(methods[number])):
            found.add(number)
    return {f"m{number}" for number in found}
