"""Heaps as trees of immutable pages: what a snapshot writes and a restore reads.

`ListTree`, `MapTree` and `SetTree` are the collections of a heap, as persistent trees (`Tree`): a change gives
another tree that shares what did not change. A `PageDraft` (or `write`, at once) gives the nodes that no `Page` holds
yet to a `Writer`, a `WholeDraft` all of them; a `Loader` finds a `Node` by its `PageRef` again when somebody passes
through (`nowhere` finds none: of a tree that is in memory whole); `encode_node`, `decode_node` and `decode_tree` are
the bytes of it. `leading` finds the refs in a tree, `through` all that is in it. `PageCache` keeps the pages of all
vats of a host in memory, up to a limit, and tells its `CacheStatistics`; `MemoryPages` is for tests.
"""

from snapshots.cache import CacheStatistics, PageCache
from snapshots.keyed import MapTree, NoSuchKey, SetTree
from snapshots.leading import leading, through
from snapshots.lists import ListTree, OutOfRange
from snapshots.memory import MemoryPages, MissingPage
from snapshots.nodes import Loader, Node, NoLoader, PageRef, nowhere
from snapshots.pages import BadPage, Writer, decode_node, decode_tree, encode_node
from snapshots.tree import Tree, Unwritten
from snapshots.writing import Page, PageDraft, WholeDraft, write

__all__ = [
    "BadPage",
    "CacheStatistics",
    "ListTree",
    "Loader",
    "MapTree",
    "MemoryPages",
    "MissingPage",
    "NoLoader",
    "NoSuchKey",
    "Node",
    "OutOfRange",
    "Page",
    "PageCache",
    "PageDraft",
    "PageRef",
    "SetTree",
    "Tree",
    "Unwritten",
    "WholeDraft",
    "Writer",
    "decode_node",
    "decode_tree",
    "encode_node",
    "leading",
    "nowhere",
    "through",
    "write",
]
