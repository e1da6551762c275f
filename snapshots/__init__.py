"""Heaps as trees of immutable pages: what a snapshot writes and a restore reads.

`ListTree`, `MapTree` and `SetTree` are the collections of a heap, as persistent trees: a change gives another tree
that shares what did not change. A `Draft` writes the nodes that no page holds yet; a loader reads them again when
somebody passes through; `walk` names every page that a tree stands on, `leading` finds the refs in it, and `twin` is
for heaps that part. `PageCache` keeps the pages of all vats of a
host in memory, up to a limit.
"""

from snapshots.cache import CacheStatistics, PageCache
from snapshots.memory import MemoryPages, MissingPage
from snapshots.nodes import Loader, Node, NoLoader, PageRef
from snapshots.pages import BadPage, Writer, decode_node, decode_tree, encode_node
from snapshots.trees import (
    Draft,
    ListTree,
    MapTree,
    NoSuchKey,
    OutOfRange,
    Page,
    SetTree,
    Tree,
    Unwritten,
    leading,
    twin,
    walk,
    write,
)

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
