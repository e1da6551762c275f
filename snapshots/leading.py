"""Finding what refers to something, without passing through what does not.

Whoever collects garbage looks for refs, promises and the trees that hold them. A history is mostly text, so each
page's name says whether anything under it leads on (`PageRef.leads`), and whole subtrees are passed by.

The one rule: a page's mark follows from its content, and is made once, when the page is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dataspace.values import Promise, Ref
from snapshots.items import contents
from snapshots.nodes import Branch, Loader, Node, PageRef, nowhere
from snapshots.tree import Tree


def leads(node: Node) -> bool:
    """Whether a ref, a promise, or a tree that leads to one, stands under a node whose children are written."""
    if isinstance(node, Branch):
        return any(child.leads for child in node.children if type(child) is PageRef)
    return any(map(_refers, contents(node)))


def leading(tree: Tree, loader: Loader = nowhere) -> Iterator[Any]:
    """The items, keys and values of a tree, without most of those that lead nowhere.

    Costs what is not written yet, and the written pages that lead on, each once; no other page is loaded.
    """
    seen: set[PageRef] = set()
    todo: list[Any] = [tree.root]
    while todo:
        here = todo.pop()
        if here is None:
            continue
        ref = here if type(here) is PageRef else here.ref
        if ref is not None:
            if not ref.leads or ref in seen:
                continue
            seen.add(ref)
        node = loader(here) if type(here) is PageRef else here
        if isinstance(node, Branch):
            todo.extend(node.children)
        else:
            yield from contents(node)


def through(tree: Tree, enter: Callable[[PageRef], bool], loader: Loader = nowhere) -> Iterator[Any]:
    """All items, keys and values of a tree, but for those under pages which `enter` says are not to be entered.

    `enter` is asked once for each way that leads to a page. Costs every node that is passed.
    """
    todo: list[Any] = [tree.root]
    while todo:
        here = todo.pop()
        ref = here if type(here) is PageRef else None
        if here is None or (ref is not None and not enter(ref)):
            continue
        node = here if ref is None else loader(ref)
        if isinstance(node, Branch):
            todo.extend(node.children)
        else:
            yield from contents(node)


def _refers(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_refers, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_refers, value))
    if isinstance(value, Tree):
        return value.leads
    return isinstance(value, Ref | Promise)
