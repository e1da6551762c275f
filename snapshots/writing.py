"""Writing trees: the pages of what changed.

A draft writes the nodes of trees that are not written yet, children before parents, trees inside items before
the items. Nodes that several trees, or several versions of one, have in common are written once.

The one rule: a draft leaves every tree as it was until it is settled. Pages that never became durable are then
simply forgotten.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from snapshots.items import with_trees
from snapshots.leading import leads
from snapshots.nodes import Branch, Child, Node, PageRef
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
            # The node as loading it will give it: over written pages and written trees alone.
            stored = node.mapped(self._page, self._item)
            data = encode_node(stored)
            named = self._put(data)
            ref = self._refs[id(node)] = PageRef(named.seq, named.number, named.digest, leads(stored))
            page = Page(ref, stored, len(data))
            self.pages.append(page)
            self._written.append((node, page))
        return ref

    def _item(self, item: Any) -> Any:
        """An item with the trees in it written; the very same when there are none that were not."""
        return with_trees(item, self.write)


def write(tree: _AnyTree, writer: Writer) -> _AnyTree:
    """The tree with its root a written page, settled at once: for writers whose `put` is final."""
    draft = PageDraft(writer)
    written = draft.write(tree)
    draft.settle()
    return written
