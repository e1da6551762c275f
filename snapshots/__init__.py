"""Heaps as trees of immutable pages: what a snapshot writes and a restore reads.

`ListTree`, `MapTree` and `SetTree` are the collections of a heap, as persistent trees (`Tree`): a change gives another
tree that shares what did not change. A `Draft` (or `write`, at once) gives the nodes that no `Page` holds yet to a
`Writer`; a `Loader` finds a `Node` by its `PageRef` again when somebody passes through; `encode_node`, `decode_node`
and `decode_tree` are the bytes of it. `walk` names every page that a tree stands on, `leading` finds the refs in it,
and `twin` is for heaps that part. `PageCache` keeps the pages of all vats of a host in memory, up to a limit, and tells
its `CacheStatistics`; `MemoryPages` is for tests.
"""

from snapshots.cache import CacheStatistics, PageCache
from snapshots.handle import Tree, Unwritten
from snapshots.keyed import MapTree, NoSuchKey, SetTree
from snapshots.leading import leading
from snapshots.lists import ListTree, OutOfRange
from snapshots.memory import MemoryPages, MissingPage
from snapshots.nodes import Loader, Node, NoLoader, PageRef
from snapshots.pages import BadPage, Writer, decode_node, decode_tree, encode_node
from snapshots.trees import Draft, Page, walk, write
from snapshots.twins import twin

__all__ = [
    "BadPage",
    "CacheStatistics",
    "Draft",
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
    "PageRef",
    "SetTree",
    "Tree",
    "Unwritten",
    "Writer",
    "decode_node",
    "decode_tree",
    "encode_node",
    "leading",
    "twin",
    "walk",
    "write",
]
