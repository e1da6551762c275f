"""The table of data keys: who holds what, and what is left when somebody's wraps are destroyed."""

from __future__ import annotations

import os

import pytest
from cryptography.exceptions import InvalidTag
from hypothesis import given
from hypothesis import strategies as st

from dataspace.encryption.keys import Beginning, HostKey, Keys, Name
from dataspace.records import STORE_UID

LOG = b"a log's own name"
HOST = HostKey(bytes(range(32)), LOG)
PARENT = b"the parent's uid"
CHILD = b"the child's own."
OTHER = b"another session."


def table() -> Keys:
    """A parent with three epochs, of which a child shares two; and somebody else."""
    begun = Beginning(Keys.new(LOG, HOST, os.urandom), HOST, os.urandom)
    begun.begin(PARENT, 1, None)
    begun.begin(PARENT, 5, (PARENT, 1))
    begun.begin(PARENT, 9, (PARENT, 2))
    begun.begin(CHILD, 9, (PARENT, 2))
    begun.begin(CHILD, 12, (CHILD, 1))
    begun.begin(OTHER, 1, None)
    return begun.keys


def opens(keys: Keys) -> set[Name]:
    """The data keys that the host can have."""
    names = {(uid, epoch) for uid in (PARENT, CHILD, OTHER, STORE_UID) for epoch in range(1, 5)}
    return {name for name in names if keys.key(name, HOST) is not None}


def only(keys: Keys, *wraps: Name) -> Keys:
    """The table with no wraps but these."""
    return Keys(keys.log_id, keys.serial, {name: keys.wraps[name] for name in wraps}, keys.links)


def test_every_session_and_epoch_has_a_key_of_its_own() -> None:
    keys = table()
    found = [keys.key(name, HOST) for name in sorted(opens(keys))]
    assert len(found) == len(set(found)) == 7


def test_a_fork_reads_the_shared_past_and_not_what_its_parent_said_later() -> None:
    assert opens(only(table(), (CHILD, 2))) == {(CHILD, 2), (CHILD, 1), (PARENT, 2), (PARENT, 1)}


def test_a_parent_reads_nothing_of_its_fork() -> None:
    assert opens(only(table(), (PARENT, 3))) == {(PARENT, 3), (PARENT, 2), (PARENT, 1)}


def test_an_earlier_key_opens_nothing_later() -> None:
    assert opens(only(table(), (PARENT, 2))) == {(PARENT, 2), (PARENT, 1)}


def test_a_key_is_the_same_by_its_wrap_and_by_a_link() -> None:
    keys = table()
    assert keys.key((PARENT, 1), HOST) == only(keys, (CHILD, 2)).key((PARENT, 1), HOST)


def test_destroying_a_parent_leaves_its_fork_whole() -> None:
    """Invariant 26: deleting a parent leaves its forks whole."""
    keys = table().without([PARENT])
    assert opens(keys) == {(CHILD, 2), (CHILD, 1), (PARENT, 2), (PARENT, 1), (OTHER, 1), (STORE_UID, 1)}
    assert keys.destroyed == {PARENT}


def test_destroying_a_fork_leaves_its_parent_whole() -> None:
    """Invariant 26: and the other way round."""
    keys = table().without([CHILD])
    assert opens(keys) == {(PARENT, 1), (PARENT, 2), (PARENT, 3), (OTHER, 1), (STORE_UID, 1)}
    assert set(keys.links) == {(PARENT, 2), (PARENT, 3)}


def test_content_goes_when_its_last_user_goes() -> None:
    """Invariant 26: content goes when its last user goes."""
    for order in ([PARENT, CHILD], [CHILD, PARENT]):
        keys = table()
        for uid in order:
            keys = keys.without([uid])
        assert opens(keys) == {(OTHER, 1), (STORE_UID, 1)}
        assert not keys.links


def test_a_session_that_never_came_to_be_holds_nobodys_past() -> None:
    keys = table()
    assert keys.forks([PARENT]) == {CHILD}
    assert opens(keys.without([PARENT], unborn=[CHILD])) == {(OTHER, 1), (STORE_UID, 1)}
    assert keys.without([PARENT], unborn=[CHILD]).destroyed == {PARENT}


def test_the_key_of_the_stores_own_chain_is_never_destroyed() -> None:
    assert (STORE_UID, 1) in opens(table().without([STORE_UID]))


def test_a_seq_tells_the_epoch_that_covers_it() -> None:
    begun = Beginning(table(), HOST, os.urandom)
    found = [begun.covering(CHILD, seq) for seq in (1, 4, 5, 8, 9, 11, 12, 99)]
    assert found == [(PARENT, 1)] * 2 + [(PARENT, 2)] * 2 + [(CHILD, 1)] * 2 + [(CHILD, 2)] * 2
    assert begun.covering(b"nobody's own uid", 1) is None


def test_a_new_host_key_opens_all_that_the_old_one_opened_and_the_old_one_nothing() -> None:
    new = HostKey(bytes(32), LOG)
    before = table()
    after = before.rewrapped(HOST, new, os.urandom)
    assert {name: after.key(name, new) for name in opens(before)} == {
        name: before.key(name, HOST) for name in opens(before)
    }
    assert after.links == before.links
    with pytest.raises(InvalidTag):
        after.key((PARENT, 1), HOST)


def test_a_wrap_is_bound_to_its_session_its_epoch_and_its_log() -> None:
    wrap = table().wraps[PARENT, 1]
    for host, name in [
        (HOST, (PARENT, 2)),
        (HOST, (CHILD, 1)),
        (HostKey(bytes(range(32)), LOG[::-1]), (PARENT, 1)),
    ]:
        with pytest.raises(InvalidTag):
            host.unwrap(name, wrap)


def test_a_link_is_bound_to_the_seq_and_to_both_of_its_ends() -> None:
    keys = table()
    link = keys.links[CHILD, 1]
    for wrong in (link._replace(first=8), link._replace(before=(PARENT, 1)), link._replace(before=(OTHER, 1))):
        changed = Keys(LOG, 1, {(CHILD, 1): keys.wraps[CHILD, 1]}, {(CHILD, 1): wrong})
        with pytest.raises(InvalidTag):
            changed.key(wrong.before, HOST)


@given(st.lists(st.integers(0, 5), max_size=20), st.sets(st.integers(0, 20)))
def test_what_is_left_is_what_the_living_can_reach(parents: list[int], deleted: set[int]) -> None:
    """Forks of forks, in any order, some of them deleted: each keeps its own past and nothing else opens."""
    begun = Beginning(Keys.new(LOG, HOST, os.urandom), HOST, os.urandom)
    uids = [bytes((1, 0)).ljust(16, b"r")]
    begun.begin(uids[0], 1, None)
    past: dict[bytes, set[Name]] = {uids[0]: {(uids[0], 1)}}
    for number, at in enumerate(parents, 1):
        parent, child = uids[at % len(uids)], bytes((1, number)).ljust(16, b"c")
        here = (parent, begun.newest[parent])
        begun.begin(parent, 10 * number, here)
        begun.begin(child, 10 * number, here)
        past[child] = {name for name in past[parent] if name != (parent, begun.newest[parent])} | {(child, 1)}
        past[parent] = past[parent] | {(parent, begun.newest[parent])}
        uids.append(child)
    gone = {uid for number, uid in enumerate(uids) if number in deleted}
    keys = begun.keys.without(gone)
    wanted = set().union(*(past[uid] for uid in uids if uid not in gone))
    every = {(uid, epoch) for uid in uids for epoch in range(1, begun.newest[uid] + 1)}
    assert {name for name in every if keys.key(name, HOST) is not None} == wanted
