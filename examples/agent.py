"""An agent that is killed and goes on: a loop, three tools, and a person who is asked before one of them is called.

    python examples/agent.py                  # the show: it is killed twice, and ends what it began
    python examples/agent.py ./trip           # the same in a folder that you name, in place of a temporary one
    python examples/agent.py ./trip serve     # the agent alone: kill it yourself, as often as you like; answer with yes

The show starts the agent as a process of its own, ends it with SIGKILL while a tool runs, ends it again while it waits
for the person, and then lets it finish. The model plays a script, so that this runs anywhere. With `KEEVE_MODEL`,
`KEEVE_MODEL_URL` and `KEEVE_MODEL_KEY` in the environment, as `keeve chat` takes them, it is a real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import trio

from keeve import (
    Actor,
    Effect,
    Event,
    List,
    Model,
    Promise,
    Text,
    Toolbox,
    Tools,
    Vault,
    actor,
    blocking,
    effect,
    gather,
    model_from_environment,
    near,
    tool,
    user,
)

# The agent. Nothing in it is about crashes.


@actor("example.agent", version=1)
class Agent(Actor):
    """Asks the model, calls the tools that it asks for, and asks again, until it answers."""

    model: Model
    tools: Toolbox
    messages: List[dict[str, Any]]
    last: Promise | None = None

    def turn(self, text: Text) -> Promise:
        """One input, and what the model answers in the end. One turn at a time: each waits for the one before it."""
        self.last = near(self.ref)._answer(text, self.last)
        return self.last

    async def _answer(self, text: Text, before: Promise | None) -> Text:
        """The turn, when the one before it is over."""
        if before is not None:
            await gather(before, failures=True)
        self.messages.append(user(text))
        while True:
            reply = await self.model.complete(self.messages.view(), tools=self.tools.view())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                answer: Text = reply["content"]
                return answer
            for call, outcome in await self.tools.run_all(reply["tool_calls"]):
                message = tool(call, outcome)
                self.messages.append(message)
                self.assert_fact("example.told", call["function"]["name"], message["content"])


# Its tools. What they do to the world is a line in a file, which is on the disk before they go on.

CALLS = Path("calls.txt")


def done(what: str) -> None:
    """Put down what a tool has done."""
    with CALLS.open("a") as file:
        file.write(f"{what}\n")
        file.flush()
        os.fsync(file.fileno())
    print(f"  tool: {what}", flush=True)


@tool(on_crash="retry")
def find_trains(to: str) -> str:
    """Find the trains to a city. Tells which of them have a seat that is reserved already."""
    reserved = "reserve R20" in CALLS.read_text().splitlines() if CALLS.exists() else False
    done(f"find_trains {to}")
    return f"R20 leaves at 8:05{', a seat is reserved for you' if reserved else ''}; R22 leaves at 10:10"


@tool
async def reserve(train: str) -> str:
    """Reserve a seat in a train."""
    done(f"reserve {train}")
    await trio.sleep(10)  # the seat is taken, and the railway takes its time to say so
    return f"a seat in {train} is reserved"


@tool(approval=True)
def pay(train: str, amount: int) -> str:
    """Pay for a seat that is reserved. A person has to approve."""
    done(f"pay {train} {amount}")
    return "paid"


# The model, where the environment names none: what it says next follows from how often it has spoken.


def calls(name: str, arguments: str) -> dict[str, Any]:
    """A message of a model that calls a tool."""
    function = {"name": name, "arguments": arguments}
    call = {"id": f"call_{name}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class Script:
    """A model that plays a part."""

    says = (
        calls("find_trains", '{"to": "Oslo"}'),
        calls("reserve", '{"train": "R20"}'),
        calls("find_trains", '{"to": "Oslo"}'),  # it was told that the outcome is unknown, and finds out
        calls("pay", '{"train": "R20", "amount": 40}'),
        {"role": "assistant", "content": "You leave at 8:05 with R20. The seat is reserved and paid."},
    )

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> dict[str, Any]:
        """The next message."""
        spoken = sum(message["role"] == "assistant" for message in messages)
        return {"message": self.says[spoken], "usage": None}


# The process of the agent. It does the same at every start, whatever happened to the one before.


def serve() -> None:
    """Give the agent its input, and print what it answers. With a request id each, the second time nothing begins."""
    chosen = model_from_environment(os.environ)
    model = chosen.device if os.environ.get("KEEVE_MODEL") else Script()
    tools = Tools(find_trains, reserve, pay)
    devices, vault = {"model": model, "tools": tools}, Vault(chosen.credentials)
    with blocking.open_host("data", actors=[Agent], devices=devices, vault=vault) as host:
        agent = host.spawn(Agent, "trip", request="trip", tools=tools)
        host.observe("(approval-wanted . _)", partial(ask, agent.tools), after="start")
        answer = agent.turn("Get me to Oslo on Friday morning.", request="friday")
        print(f"  answer: {answer}", flush=True)


def ask(approvals: Any, event: Event) -> None:
    """Ask the person at the terminal about every call that waits, also if it did so before this process."""
    for call in approvals.waiting():
        print(f"  approve of {call['name']} {call['arguments']}?", flush=True)
        said = sys.stdin.readline().strip()
        if said == "yes":
            approvals.approve(call["id"])
        elif said:
            approvals.refuse(call["id"], said)


# The show.


def show() -> None:
    """Start the agent, kill it, and look at what happened."""
    run(kill_at="  tool: reserve")
    run(kill_at="  approve of pay")
    run()
    print("What the tools have done, by the file that is outside of the store:")
    lines = CALLS.read_text().splitlines()
    for line in dict.fromkeys(lines):
        print(f"  {lines.count(line)} time(s): {line}")
    print("What the log says:")
    with blocking.open_host("data", readonly=True) as host:
        for event in host.observe("(_ . _)"):
            print(f"{event.position:4}  {event.value}")


def run(kill_at: str | None = None) -> None:
    """Run the agent, up to a line that begins so; say yes when it asks."""
    print("The agent starts.")
    command = [sys.executable, str(PROGRAM), ".", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="")
            if kill_at is not None and line.startswith(kill_at):
                process.kill()
                print("It is killed.")
                return
            if line.startswith("  approve of"):
                print("  yes")
                print("yes", file=process.stdin, flush=True)


PROGRAM = Path(__file__).resolve()

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="keeve-agent-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
    except OSError as error:
        sys.exit(f"{folder} is no folder, and none can be made there ({error.strerror}): name another one")
    if "serve" in sys.argv[2:]:
        try:
            serve()
        except KeyboardInterrupt:
            sys.exit(130)  # the next start goes on
    elif any(Path().iterdir()):
        sys.exit(
            f"{folder} is not empty: `python examples/agent.py {folder} serve` goes on with an agent that is in it; "
            "for the show, name another one"
        )
    else:
        show()
        print(f"All of it is in {Path().resolve()}")
