"""Hosts that sign, and what they are asked: for tests of receipts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keeve
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import Verifier
from keeve import Actor, actor, open_host

KEY = SigningKey.of_seed(bytes(32))
OTHER = SigningKey.of_seed(bytes([1]) * 32)


@actor("proofs.till", version=1)
class Till(Actor):
    money: int = 0

    def pay(self, amount: int) -> int:
        self.money += amount
        return self.money

    def refuse(self) -> None:
        raise ValueError("no")

    @keeve.read
    def total(self) -> int:
        return self.money


def opened(folder: Path, signer: Any = KEY, **how: Any) -> Any:
    return open_host(folder, actors=[Till], signer=signer, **how)


def verifiers(host: Any) -> list[Verifier]:
    return [Verifier.parse(text) for text in host.log_keys()]
