"""Refs in words: which actor of which session one leads to. In JSON each is `{"$ref": "#ref(3)"}`, which tells people
nothing.

The one rule: of a session that is not there for who asks, nothing is said but its uid, which the ref has anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from keeve.looking.reading import Reading
from vat.errors import NoSuchActor
from vat.heap.heap import ROOT_ACTOR, Heap, State
from vat.heap.refs import DIRECTORY

# In a text of JSON every quote is escaped, so that nothing that somebody said looks like this.
_FACE: Final = re.compile(r'\{\s*"\$ref":\s*("#ref\((?:#\\"[0-9a-f]*\\" )?\d+\)")\s*\}')
_TEXT: Final = re.compile(r'#ref\((?:#"([0-9a-f]*)" )?(\d+)\)')


def with_refs(text: str, says: Callable[[str], str]) -> str:
    """JSON, as text, in which words stand for each ref; `says` gives them for a ref as it is written.

    >>> with_refs('["{#ref(3)}", {"$ref": "#ref(3)"}]', lambda ref: "a door")
    '["{#ref(3)}", <a door>]'
    """
    return _FACE.sub(lambda found: f"<{says(json.loads(found[1]))}>", text)


def refs_in_words(given: Any, heap: Heap, store: Reading) -> dict[str, str]:
    """The refs in some JSON, as they are written, each with words for it. Costs a walk over all of it."""
    written = dict.fromkeys(json.loads(each) for each in _FACE.findall(json.dumps(given, ensure_ascii=False)))
    return {each: ref_in_words(each, heap, store) for each in written}


def ref_in_words(written: str, heap: Heap, store: Reading) -> str:
    """Words for a ref that this heap has, as it is written."""
    found = _TEXT.fullmatch(written)
    if found is None:
        return written
    actor = int(found[2])
    if found[1] is None:
        return _of_this_session(heap, actor)
    uid = bytes.fromhex(found[1])
    if uid == DIRECTORY:
        return "the directory"
    row = store.catalog.by_uid(uid)
    of = "" if actor == ROOT_ACTOR else f"actor {actor} of "
    if row is None or not store.reaches(row):
        return f"{of}the session of uid {found[1]}"
    return f"{of}{'deleted ' if row.deleted else ''}session {row.id} ({row.type})"


def _of_this_session(heap: Heap, actor: int) -> str:
    state = actor_behind(heap, actor)
    if state is None:
        return f"actor {actor}, which is not there any more"
    return f"{state.type} (actor {state.id}{', narrowed' if state.id != actor else ''})"


def actor_behind(heap: Heap, actor: int) -> State | None:
    """The actor that an id leads to, narrowed as it may be; None where there is none any more."""
    try:
        return heap.state(heap.behind(actor))
    except NoSuchActor:
        return None
