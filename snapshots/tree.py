"""What a tree is to those who hold one: a root and a count.

Where the root is (a node in memory, or the `PageRef` of a written page) may change under a handle when a draft
settles, and nobody can tell but by cost. A handle is an item like any other: it may stand in another tree,
anywhere inside a list or a dict, and is then encoded as the name of its root page.

The one rule: a handle stands for one content for ever; a change gives another handle.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dataspace.errors import KeeveError
from dataspace.values.encoding import encode
from snapshots.nodes import Child, Loader, Node, PageRef, nowhere


class Unwritten(KeeveError, ValueError, quotes=False):
    """A tree with nodes in memory was encoded; only a written one has a name."""

    usage = True

    def __init__(self, count: int) -> None:
        super().__init__(f"a tree of {count} items is not written yet: write it and encode what that returns")
        self.count = count


class Tree:
    """What lists, maps and sets have in common. `root` is None in an empty one."""

    __slots__ = ("count", "root")
    kind: ClassVar[int]

    def __init__(self, root: Child | None = None, count: int = 0) -> None:
        self.root = root
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        root = self.root
        where = f"page {root.seq}.{root.number}" if type(root) is PageRef else "memory" if root else "nothing"
        return f"<{type(self).__name__} of {self.count}, in {where}>"

    def __tree_ext__(self) -> bytes:
        """What the encoding keeps of a tree: its kind, its count, and its root's name unless it is empty."""
        root = self.root
        if root is None:
            return encode([self.kind, 0])
        if type(root) is PageRef:
            return encode([self.kind, self.count, *root])
        if isinstance(root, Node) and root.ref is not None:
            return encode([self.kind, self.count, *root.ref])
        raise Unwritten(self.count)

    @property
    def leads(self) -> bool:
        """Whether a ref or promise may stand in it: true for what is not written, as nobody has looked."""
        root = self.root
        if isinstance(root, Node):
            root = root.ref
        return root.leads if type(root) is PageRef else self.root is not None

    def walked(self, loader: Loader = nowhere) -> Any:
        """Items, pairs or keys in order, whatever the kind."""
        raise NotImplementedError
