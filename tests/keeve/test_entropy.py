"""Random bytes are never given twice."""

from __future__ import annotations

import os

import pytest

from keeve.entropy import Entropy


def test_bytes_are_as_many_as_asked_for_and_never_the_same() -> None:
    entropy = Entropy()
    taken = [entropy(count) for count in (16, 48, 1, 20_000, 32, *[32] * 1000)]
    assert [len(each) for each in taken[:5]] == [16, 48, 1, 20_000, 32]
    assert len(set(taken[4:])) == 1001


def test_the_system_is_asked_once_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: asked.append(count) or urandom(count))
    entropy = Entropy()
    for _ in range(100):
        entropy(48)
    assert len(asked) == 1


def test_a_forked_child_fetches_its_own() -> None:
    entropy = Entropy()
    entropy(16)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, entropy(16))
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 16) != entropy(16)
    os.close(read)
    os.close(write)
