"""When the effect of a timer is due, as its arguments say, by place or by name."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from vat.heap.deadlines import deadline_in, deadline_of


@pytest.mark.parametrize(
    ("args", "keywords", "due"),
    [
        ([5], {}, 5),
        ([5.5], {}, 5.5),
        ([], {"at": 7}, 7),
        ([math.inf], {}, math.inf),
        ([-1], {}, -1),
        ([math.nan], {}, None),
        ([-math.inf], {}, None),
        ([10**400], {}, None),
        ([True], {}, None),
        (["5"], {}, None),
        ([], {}, None),
        ([5, 6], {}, None),
        ([5], {"at": 5}, None),
        ([], {"when": 5}, None),
    ],
)
def test_a_time_is_a_deadline_and_whatever_the_device_will_refuse_is_none(
    args: list[Any], keywords: dict[str, Any], due: float | None
) -> None:
    assert deadline_of(args, keywords) == due
    heap: Any = SimpleNamespace(read=lambda stored: stored)
    stored = deadline_in(heap, [b"id", "timer", "until", args, list(keywords.items()), 1, False])
    assert stored == due
    assert stored is None or type(stored) is float
