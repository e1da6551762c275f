"""What becomes of credentials that a device lets out."""

from __future__ import annotations

import attrs
import pytest

from tests.effect_host import Device, Host, error_of, running
from vat.devices.outcomes import EffectOutcome
from vat.devices.vault import NoCredential, Vault

CANARY = "sk-canary-5f0c9d"


@attrs.define
class Telltale(Exception):
    """An error that quotes what it knows in every way."""

    key: str

    def __str__(self):
        return f"refused: {self.key}"


def quoting(make):
    async def act(effect):
        key = effect.credential("openai")
        effect.progress(f"using {key}")
        raise make(key) from RuntimeError(key)

    return act


def noted(key):
    error = ValueError("refused")
    error.add_note(f"the key was {key}")
    return error


def attributed(key):
    error = ValueError("refused")
    error.request = {"headers": [("Authorization", f"Bearer {key}")]}
    return error


@pytest.mark.parametrize(
    "make",
    [
        ValueError,
        lambda key: ValueError({"deep": [(f"Bearer {key}",)]}),
        lambda key: ValueError(key.encode()),
        lambda key: FileNotFoundError(2, "no such file", f"/keys/{key}"),
        lambda key: UnicodeDecodeError("utf-8", key.encode(), 0, 1, key),
        lambda key: ExceptionGroup(key, [ValueError(key), Telltale(key)]),
        lambda key: type(key, (Exception,), {})(),
        SystemExit,
        Telltale,
        noted,
        attributed,
    ],
)
async def test_a_credential_is_in_no_error_no_trace_and_no_progress(make):
    """Invariant 20."""
    async with running(Host(Device(), vault=Vault({"openai": lambda: CANARY}))) as host:
        host.want(1, "again", quoting(make))
        outcome = await host.outcome()
    error = outcome.error
    everything = [
        repr(error),
        str(error),
        repr(vars(error)),
        repr(error.args),
        type(error).__name__,
        outcome.trace,
        outcome.at,
    ]
    assert CANARY not in "".join([*everything, repr(outcome), repr(host.happened)])
    assert "‹credential openai›" in outcome.trace


async def test_an_error_that_quotes_a_credential_keeps_its_class_where_it_can():
    async with running(Host(Device(), vault=Vault({"openai": lambda: CANARY}))) as host:
        host.want(1, "again", quoting(lambda key: LookupError(f"no user {key}")))
        error = (await host.outcome()).error
    assert (type(error), str(error)) == (LookupError, "no user ‹credential openai›")


async def test_a_credential_is_in_no_result():
    """Invariant 20."""

    async def act(effect):
        return {"headers": {"authorization": f"Bearer {effect.credential('openai')}"}}

    async with running(Host(Device(), vault=Vault({"openai": lambda: CANARY}))) as host:
        host.want(1, "again", act)
        assert await host.outcome() == EffectOutcome({"headers": {"authorization": "Bearer ‹credential openai›"}})


async def test_a_credential_that_the_host_does_not_have_is_an_outcome():
    async def act(effect):
        effect.credential("openai")

    error = await error_of(act)
    assert isinstance(error, NoCredential)
    assert "add the name to it" in str(error)


async def test_a_credential_is_resolved_at_each_use():
    values = iter(["first", "second"])

    async def act(effect):
        return len(effect.credential("openai")), len(effect.credential("openai"))

    async with running(Host(Device(), vault=Vault({"openai": lambda: next(values)}))) as host:
        host.want(1, "again", act)
        assert await host.outcome() == EffectOutcome([5, 6])
