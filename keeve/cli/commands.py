"""All commands of the program, and the names by which they are called.

The one rule: a command is a command by standing in the list here, and nowhere else.
"""

from __future__ import annotations

from typing import Final

from cyclopts import App

from keeve.cli.completion import Shell, tell_completion
from keeve.cli.options import OPTIONS, Options
from keeve.version import installed

COMMANDS: Final[dict[str, str]] = {
    "chat": "keeve.cli.chat:chat",
    "create": "keeve.cli.verbs:create",
    "turn": "keeve.cli.verbs:turn",
    "queue": "keeve.cli.verbs:queue",
    "steer": "keeve.cli.verbs:steer",
    "interrupt": "keeve.cli.verbs:interrupt",
    "ls": "keeve.cli.sessions:ls",
    "show": "keeve.cli.sessions:show",
    "state": "keeve.cli.verbs:state",
    "messages": "keeve.cli.pages:messages",
    "chain": "keeve.cli.pages:chain",
    "log": "keeve.cli.log:log",
    "facts": "keeve.cli.verbs:facts",
    "fork": "keeve.cli.fork:fork",
    "snapshot": "keeve.cli.verbs:snapshot",
    "effects": "keeve.cli.effects:effects",
    "resolve": "keeve.cli.effects:resolve",
    "approve": "keeve.cli.approving:approve",
    "refuse": "keeve.cli.approving:refuse",
    "delete": "keeve.cli.removing:delete",
    "verify": "keeve.cli.verify:verify",
    "doctor": "keeve.cli.doctor:doctor",
    "checkpoint": "keeve.cli.proving:checkpoint",
    "prove": "keeve.cli.proving:prove_record",
    "check": "keeve.cli.proving:check",
    "keys": "keeve.cli.proving:keys",
    "new-key": "keeve.cli.rekeying:new_key",
    "rekey": "keeve.cli.rekeying:rekey",
    "backup": "keeve.cli.backup:backup",
    "dump": "keeve.cli.mending:dump",
    "salvage": "keeve.cli.mending:salvage",
    "gc": "keeve.cli.removing:gc",
    "erase": "keeve.cli.removing:erase",
    "archive": "keeve.cli.archive:archive",
    "serve": "keeve.cli.serve:serve",
    "config": "keeve.cli.serve:config",
    "token": "keeve.cli.tokens:tokens",
}
"""By name, each with the module and the function that it is, which are imported when it is called or its help is asked
for. `token` has commands of its own; `completion` is told of all of them, below."""


app = App(
    name="keeve",
    help="""Conversations that survive: talk to them, look at them, look after their store.

Every command takes `--store PATH` or `--server URL`, `--json` and `--debug`, before it or behind it. Its `--help` has
an example.""",
    version=installed,
    help_format="markdown",
    version_format="plaintext",  # else what reads Markdown is imported for it, which costs more than the rest
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)

for name, command in COMMANDS.items():
    app.command(command, name=name)


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
