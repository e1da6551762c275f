"""How a tree grows and shrinks.

The rule that keeps it in shape: every node holds at least `HALF` and at most `WIDTH` things, except those at the
right edge, which hold at least one, and a root. The exception packs whatever only grows at its end (a history, ids
that count up) completely, since a full node at the edge is left full and a new one begun beside it.

The shape follows from the operations alone, never from what happens to be loaded or written.
"""

from __future__ import annotations

from typing import Any

from snapshots.nodes import HALF, WIDTH, Branch, Child, Loader, Node, PageRef, Path


def _halved(node: Any) -> list[Any]:
    """The node, or its two halves when it is too wide."""
    width = node.width()
    return [node] if width <= WIDTH else [node.cut(0, width // 2), node.cut(width // 2, width)]


def _filled(node: Any) -> list[Any]:
    """The node as full ones, and a last one with the rest."""
    width = node.width()
    return [node.cut(start, start + WIDTH) for start in range(0, width, WIDTH)] if width > WIDTH else [node]


def grown(path: Path, leaf: Any, branch: type[Branch]) -> Node:
    """The root after `leaf`, which may have one thing too many, took the place where `path` ends."""
    nodes = _halved(leaf)
    for parent, at in reversed(path):
        nodes = _halved(parent.replaced(at, at + 1, nodes))
    root: Node = nodes[0] if len(nodes) == 1 else branch.over(nodes)
    return root


def extended(path: Path, root: Child, leaf: Any, more: Any, branch: type[Branch]) -> Node:
    """The root after the things of `more` came behind `leaf`, the last one, which is full.

    `path` leads from `root` to `leaf`. Full nodes stay as they are, so that nobody writes them again.
    """
    nodes = _filled(more)
    beside = True  # whether `nodes` come beside what is there, or in place of its last one
    for parent, at in reversed(path):
        if beside and parent.width() == WIDTH:
            nodes = _filled(branch.over(nodes))
        else:
            nodes = _filled(parent.replaced(at + 1 if beside else at, at + 1, nodes))
            beside = False
    if beside:
        top = branch.over([path[0][0] if path else leaf, *nodes])
        top.children[0] = root
        nodes = _filled(top)
    while len(nodes) > 1:
        nodes = _filled(branch.over(nodes))
    grown_root: Node = nodes[0]
    return grown_root


def shrunk(path: Path, leaf: Any, loader: Loader) -> Child | None:
    """The root after `leaf`, which lost a thing, took the place where `path` ends; None for an empty tree."""
    edges = []
    at_edge = True
    for parent, at in path:
        at_edge = at_edge and at == parent.width() - 1
        edges.append(at_edge)
    node = leaf
    for (parent, at), at_edge in zip(reversed(path), reversed(edges), strict=True):
        width = node.width()
        if width >= HALF or (at_edge and width):
            node = parent.replaced(at, at + 1, [node])
        elif at_edge:
            node = parent.replaced(at, at + 1, [])
        else:
            # Away from the edge a parent has a second child, so a neighbour is there.
            left = at - 1 if at else 0
            neighbour = parent.children[left if at else 1]
            if type(neighbour) is PageRef:
                neighbour = loader(neighbour)
            pair = neighbour.join(node) if at else node.join(neighbour)
            node = parent.replaced(left, left + 2, _halved(pair))
    if not node.width():
        return None
    if path and node.width() == 1:
        # One is enough: the child is a leaf or was kept at half its width by the lines above.
        child: Child = node.children[0]
        return child
    root: Node = node
    return root
