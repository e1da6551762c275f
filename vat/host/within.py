"""What a host has, for who shows it whole: its dataspace, with the catalog and the store behind it; its keys; the
effects that it has in hand.

The one rule: it is to read. What writes goes through the host.
"""

from __future__ import annotations

from dataspace.observe.dataspace import Dataspace
from vat.host.host import Host
from vat.host.resolving import EffectStatus


def dataspace_of(host: Host) -> Dataspace:
    """The dataspace of a host. What is durable stands in it, and nothing else."""
    return host._engine.dataspace


def in_hand(host: Host) -> list[EffectStatus]:
    """The open effects that a host has to do with, of all sessions. Reads nothing."""
    return host._resolving.in_hand()


def keys_of(host: Host) -> list[tuple[str, int]]:
    """The verifier keys of a host's log, each with the position since which it signs."""
    return [(str(each.verifier), each.position) for each in host._engine.checkpoints.keys]
