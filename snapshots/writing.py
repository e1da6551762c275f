"""Writing trees: the pages of what changed, or all of them.

A draft writes the nodes of trees that are not written yet, children before parents, trees inside items before
the items. Nodes that several trees, or several versions of one, have in common are written once. A `WholeDraft` writes
those again that were written, so that its pages stand for themselves.

The one rule: a draft leaves every tree as it was until it is settled. Pages that never became durable are then
simply forgotten.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from snapshots.items import with_trees
from snapshots.leading import leads
from snapshots.nodes import Branch, Child, Loader, Node, PageRef
from snapshots.pages import Writer, encode_node
from snapshots.tree import Tree

_AnyTree = TypeVar("_AnyTree", bound=Tree)


class Page(NamedTuple):
    """A page that was written: its name, the node that loading it gives, and its length in bytes."""

    ref: PageRef
    node: Node
    size: int


class PageDraft:
    """The pages that some trees need beyond those that are written already.

    `pages` has them in the order in which they were put.
    """

    def __init__(self, writer: Writer) -> None:
        self.pages: list[Page] = []
        self._put = writer.put
        # Nodes are kept beside their pages, so that no id is used again while the draft lives.
        self._refs: dict[int, PageRef] = {}
        self._written: list[tuple[Node, Page]] = []
        self._handles: list[tuple[Tree, PageRef]] = []

    def write(self, tree: _AnyTree) -> _AnyTree:
        """The same tree with its root a written page. Costs what was not written: one `put` a node.

        `tree` itself stays as it is until `settle`.
        """
        root = tree.root
        if root is None or type(root) is PageRef:
            return tree
        ref = self._page(root)
        self._handles.append((tree, ref))
        return type(tree)(ref, tree.count)

    def settle(self) -> None:
        """The pages can be loaded now and for good: the trees let go of the nodes that are in them.

        Trees that were made from these in the meantime keep what they share, and never write it again.
        """
        for node, page in self._written:
            node.ref = page.ref
            if isinstance(node, Branch) and isinstance(page.node, Branch):
                node.children[:] = page.node.children
        for tree, ref in self._handles:
            tree.root = ref

    def _page(self, node: Child) -> PageRef:
        """The page of a node, written now unless it was before."""
        if type(node) is PageRef:
            return node
        assert isinstance(node, Node)
        ref = node.ref or self._refs.get(id(node))
        if ref is None:
            page = self._encoded(node)
            ref = self._refs[id(node)] = page.ref
            self.pages.append(page)
            self._written.append((node, page))
        return ref

    def _encoded(self, node: Node) -> Page:
        """A node as loading it will give it, over written pages and written trees alone; put."""
        stored = node.mapped(self._page, self._item)
        data = encode_node(stored)
        named = self._put(data)
        return Page(PageRef(named.seq, named.number, named.digest, leads(stored)), stored, len(data))

    def _item(self, item: Any) -> Any:
        """An item with the trees in it written; the very same when there are none that were not."""
        return with_trees(item, self.write)


class WholeDraft(PageDraft):
    """All pages of some trees, written anew: they lead to no page that was there before. The trees stay as they are,
    and there is nothing to settle. Costs the loading of every page, and memory for none of them."""

    def __init__(self, writer: Writer, loader: Loader) -> None:
        super().__init__(writer)
        self._loader = loader
        self._anew: dict[tuple[int, int], PageRef] = {}
        self._kept: list[Node] = []

    def write(self, tree: _AnyTree) -> _AnyTree:
        """The same tree, of pages of this draft alone."""
        return tree if tree.root is None else type(tree)(self._page(tree.root), tree.count)

    def settle(self) -> None:
        """Nothing is to be done."""

    def _page(self, node: Child) -> PageRef:
        was = node if type(node) is PageRef else node.ref  # type: ignore[union-attr]  # mypy narrows no union by `type() is`
        if was is not None:
            ref = self._anew.get((was.seq, was.number))
            if ref is None:
                loaded = self._loader(node) if type(node) is PageRef else node
                assert isinstance(loaded, Node)
                ref = self._anew[was.seq, was.number] = self._encoded(loaded).ref
            return ref
        assert isinstance(node, Node)
        ref = self._refs.get(id(node))
        if ref is None:
            ref = self._refs[id(node)] = self._encoded(node).ref
            self._kept.append(node)  # so that no id is used again
        return ref


def write(tree: _AnyTree, writer: Writer) -> _AnyTree:
    """The tree with its root a written page, settled at once: for writers whose `put` is final."""
    draft = PageDraft(writer)
    written = draft.write(tree)
    draft.settle()
    return written
