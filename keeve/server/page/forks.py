"""The tree of forks as a picture: where each line lies, and which points on it can be gone to.

A session is a line from left to right, in the order of its seqs; a fork leaves its parent's line where it parted. Seqs
are not drawn to scale: each that has a point has a column.

The one rule: a function of rows. It draws what it is given, and asks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

LANE: Final = 34
MARGIN: Final = 22
WIDEST: Final = 900
"""Pixels that the columns have, unless they would be too narrow to be hit."""
NARROWEST: Final = 16
LETTERS: Final = 36
"""Letters of an id that are shown; all of it is in its title."""
NARROW: Final = 312
"""Pixels of a picture that a small screen has. Of a name that begins well within them, as much is shown as fits."""
LETTER: Final = 9
"""Pixels of a letter, about."""
FEWEST: Final = 4
"""Letters of which a name is shown no fewer."""
MOST: Final = 200
"""Lines of one picture."""


@attrs.frozen
class Point:
    """A place on a line: the end of a turn, a place where something parted, or the head."""

    x: int
    seq: int
    what: str
    here: bool = False


@attrs.frozen
class Line:
    """A session. `known`: whether it can be reached; one that cannot is drawn as far as its forks tell of it."""

    id: str
    label: str
    y: int
    start: int
    end: int
    path: str
    points: tuple[Point, ...]
    depth: int
    known: bool
    current: bool
    at: int | None
    seq: int
    brief: str
    """What is shown of the id on a small screen."""


@attrs.frozen
class Picture:
    """A tree, with how large it is; `cut` lines were left out."""

    width: int
    height: int
    lines: tuple[Line, ...]
    cut: int


@attrs.define
class _Node:
    id: str
    seq: int
    at: int | None = None
    known: bool = True
    updated: str = ""
    children: list[_Node] = attrs.field(factory=list)


def trees_of(rows: Iterable[Mapping[str, Any]]) -> list[_Node]:
    """The trees that these sessions make; a parent that is not among them is a root that cannot be reached."""
    nodes = {row["id"]: _Node(row["id"], row["seq"], updated=row["updated"]) for row in rows}
    roots: list[_Node] = []
    for row in rows:
        node, parted = nodes[row["id"]], row["forked_from"]
        if parted is None:
            roots.append(node)
            continue
        node.at = parted["at"]
        name = parted["session"]
        parent = nodes.get(name) if name is not None else None
        if parent is None:
            parent = _Node(name or "", parted["at"], known=False)
            if name is not None:
                nodes[name] = parent
            roots.append(parent)
        if not parent.known:
            parent.seq = max(parent.seq, parted["at"])
        parent.children.append(node)
    return roots


def walked(node: _Node, depth: int = 0) -> Iterator[tuple[_Node, int]]:
    """A node and all below it. What parted later comes first, so that no line crosses another."""
    stack = [(node, depth)]
    while stack:
        here, deep = stack.pop()
        yield here, deep
        children = sorted(here.children, key=lambda child: (-(child.at or 0), child.id), reverse=True)
        stack += [(child, deep + 1) for child in children]


def newest_in(node: _Node) -> str:
    """When something last came in a tree."""
    return max(each.updated for each, _ in walked(node))


def picture(
    root: _Node, ends: Mapping[str, Sequence[int]], current: str | None = None, here: int | None = None
) -> Picture:
    """The picture of a tree. `ends`: by session the seqs at which turns were over. `here`: a seq of the current one."""
    every = list(walked(root))
    nodes = every[:MOST]
    marks: dict[str, dict[int, str]] = {}
    for node, _ in nodes:
        said = dict.fromkeys(ends.get(node.id, ()), "the end of a turn")
        said |= {child.at: f"where {child.id} parted" for child in node.children if child.at is not None}
        said[node.seq] = "the head" if node.known else "as far as its forks tell"
        if here is not None and node.id == current:
            said.setdefault(here, "here")
        marks[node.id] = said
    columns = sorted({seq for said in marks.values() for seq in said} | {node.at or 1 for node, _ in nodes})
    step = max(NARROWEST, min(60, WIDEST // len(columns)))
    x = {seq: MARGIN + step * n for n, seq in enumerate(columns)}
    y = {id(node): MARGIN + LANE * n for n, (node, _) in enumerate(nodes)}
    over = {id(child): y[id(node)] for node, _ in nodes for child in node.children}
    lines = []
    for node, depth in nodes:
        start, end, level = x[node.at or 1], x[node.seq], y[id(node)]
        above = over.get(id(node))
        path = f"M{start} {level}H{end}"
        if above is not None:
            path = f"M{start} {above}V{level - 10}Q{start} {level} {start + 10} {level}H{max(end, start + 10)}"
        points = tuple(
            Point(x[seq], seq, what, node.id == current and seq == here) for seq, what in sorted(marks[node.id].items())
        )
        label = _short(node.id, LETTERS)
        fits = (NARROW - end) // LETTER
        lines.append(
            Line(
                *(node.id, label, level, start, end, path, points, depth, node.known, node.id == current),
                node.at,
                node.seq,
                _short(label, fits) if fits > FEWEST else label,
            )
        )
    widest = max(line.end + LETTER * len(line.label) for line in lines)
    return Picture(widest + 3 * MARGIN, MARGIN * 2 + LANE * (len(nodes) - 1), tuple(lines), len(every) - len(nodes))


def _short(text: str, most: int) -> str:
    """A text of no more letters than that.

    >>> _short("abcdef", 6), _short("abcdef", 4)
    ('abcdef', 'abc…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
