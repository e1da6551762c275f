"""What a coroutine holds: the refs, promises and views in its locals, which nothing in the heap may refer to.

Walks what Python says that an object refers to, from the coroutine through its helpers and the containers in them. It
stops at what leads to the whole program (modules, classes, tracebacks, the crank) and has no refs of its own.

The one rule: when in doubt, it is held.
"""

from __future__ import annotations

import gc
from collections.abc import Coroutine, Iterable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from dataspace import values
from snapshots.tree import Tree
from vat.crank.transaction import Transaction
from vat.heap.heap import Heap
from vat.heap.stored import PLAIN
from vat.objects.types import Field
from vat.objects.views import View

_ENDS = (type, ModuleType, CodeType, FrameType, TracebackType, BuiltinFunctionType, Transaction, Heap, Field)


def in_locals(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> tuple[set[int], set[int], list[Tree]]:
    """The actors and promises that coroutines hold, and the trees of their views."""
    actors: set[int] = set()
    promises: set[int] = set()
    trees: list[Tree] = []
    seen: dict[int, Any] = {}  # with the objects, so that no id is given twice
    todo: list[Any] = list(coroutines)
    while todo:
        here = todo.pop()
        if type(here) in PLAIN or isinstance(here, _ENDS) or id(here) in seen:
            continue
        seen[id(here)] = here
        if isinstance(here, values.Ref):
            if here.session is None:
                actors.add(here.actor)
        elif isinstance(here, values.Promise):
            promises.add(here.id)
        elif hasattr(type(here), "__keeve_root__"):
            actors.add(here._actor)
        elif isinstance(here, View):
            trees.append(here._tree)
        elif isinstance(here, FunctionType):
            todo += [here.__closure__, here.__defaults__, here.__kwdefaults__]
        elif isinstance(here, MethodType):
            todo.append(here.__self__)
            todo.append(here.__func__)
        elif isinstance(here, BaseException):
            todo += [here.args, vars(here), here.__cause__, here.__context__]
        else:
            todo += gc.get_referents(here)
            actor = getattr(type(here), "_actor", None)
            if actor is not None:  # a handle on a collection
                actors.add(here._actor)
    return actors, promises, trees
