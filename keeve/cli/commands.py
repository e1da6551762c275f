"""All commands of the program, and the names by which they are called.

The one rule: a command is a command by standing in the list here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cyclopts import App

from keeve.cli.app import OPTIONS, Options, chat, doctor, effects, fork, log, ls, resolve, show, verify
from keeve.cli.approving import approve, refuse
from keeve.cli.archive import archive
from keeve.cli.backup import backup
from keeve.cli.completion import Shell, tell_completion
from keeve.cli.mending import dump, salvage
from keeve.cli.pages import chain, messages
from keeve.cli.proving import check, checkpoint, keys, prove_record
from keeve.cli.rekeying import new_key, rekey
from keeve.cli.removing import delete, erase, gc
from keeve.cli.serve import config, serve
from keeve.cli.tokens import tokens
from keeve.cli.verbs import create, facts, interrupt, queue, snapshot, state, steer, turn
from keeve.version import installed

COMMANDS: Final[dict[str, Callable[..., int]]] = {
    "chat": chat,
    "create": create,
    "turn": turn,
    "queue": queue,
    "steer": steer,
    "interrupt": interrupt,
    "ls": ls,
    "show": show,
    "state": state,
    "messages": messages,
    "chain": chain,
    "log": log,
    "facts": facts,
    "fork": fork,
    "snapshot": snapshot,
    "effects": effects,
    "resolve": resolve,
    "approve": approve,
    "refuse": refuse,
    "delete": delete,
    "verify": verify,
    "doctor": doctor,
    "checkpoint": checkpoint,
    "prove": prove_record,
    "check": check,
    "keys": keys,
    "new-key": new_key,
    "rekey": rekey,
    "backup": backup,
    "dump": dump,
    "salvage": salvage,
    "gc": gc,
    "erase": erase,
    "archive": archive,
    "serve": serve,
    "config": config,
}
"""By name. `token` has commands of its own, in `keeve.cli.tokens`; `completion` is told of all of them, below."""


app = App(
    name="keeve",
    help="""Conversations that survive: talk to them, look at them, look after their store.

Every command takes `--store PATH` or `--server URL`, `--json` and `--debug`, before it or behind it. Its `--help` has
an example.""",
    version=installed,
    help_format="markdown",
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

for name, command in COMMANDS.items():
    app.command(command, name=name)
app.command(tokens)


@app.command
def completion(shell: Shell, /, *, common: Options = OPTIONS) -> int:
    """Give the script with which a shell completes the words of a command, the ids of sessions among them.

    ```
    keeve completion bash > ~/.local/share/bash-completion/completions/keeve
    keeve completion zsh > ~/.zfunc/_keeve
    keeve completion fish > ~/.config/fish/completions/keeve.fish
    ```

    Parameters
    ----------
    shell
        Which one: bash, zsh or fish.
    """
    tell_completion(app, common.output, shell)
    return 0
