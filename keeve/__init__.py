"""The front door: what users import."""

from __future__ import annotations

from keeve import _ours

_ours.check()
