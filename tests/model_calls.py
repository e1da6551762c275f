"""Ways to call a model in tests: by itself, and under a runner with the policy that it declares."""

from __future__ import annotations

import trio

from actors.models import ModelBusy, ModelCut, ModelUnreachable
from vat.devices.attempts import Wanted
from vat.devices.devices import Effect, Policy
from vat.devices.outcomes import EffectOutcome
from vat.devices.runner import EffectRunner
from vat.devices.vault import Vault

KEY = "sk-canary-71aa90"
HELLO = [{"role": "user", "content": "hello"}]


class Call:
    """One call of a model, outside of any host."""

    def __init__(self, key: str = KEY, attempt: int = 1) -> None:
        self.heard = []
        self.effect = Effect(
            id="0123456789abcdef0123456789abcdef",
            device="model",
            method="complete",
            session="s1",
            attempt=attempt,
            progress=self.heard.append,
            credential=Vault({"openai": lambda: key}).resolve,
        )

    async def __call__(self, device, messages=HELLO, **more):
        return await device.complete(self.effect, messages, **more)


async def ask(device, messages=HELLO, **more):
    return await Call()(device, messages, **more)


async def run_to_outcome(device, messages=HELLO, key=KEY):
    """The outcome of a model under the runner, with the policy that it declares."""
    settled = []

    def settle(wanted, outcome):
        settled.append(outcome)
        nursery.cancel_scope.cancel()

    async def never(wanted):
        raise AssertionError("a model may run again, so nothing is recorded before it is called")

    async def at_once(wanted):
        pass

    async with trio.open_nursery() as nursery:
        runner = EffectRunner(
            {"model": device},
            Vault({"openai": lambda: key}),
            clock=lambda: 0,
            mark_started=never,
            in_time=at_once,
            settle=settle,
            random=lambda: 0.0,
            progress=lambda wanted, value: None,
        )
        runner.want(Wanted((b"S" * 16, 1), "id-1", "s1", "model", "complete", (messages,)))
        nursery.start_soon(runner.run)
    return settled[0]


def impatient(**more) -> Policy:
    return Policy(on_crash="retry", backoff=0, retry_on=(ModelUnreachable, ModelBusy, ModelCut), **more)


def content(outcome: EffectOutcome) -> str:
    return outcome.value["message"]["content"]
