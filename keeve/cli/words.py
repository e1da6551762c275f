"""The words of a command line, put in the order in which they are read.

`keeve --store elsewhere ls` is `keeve ls --store elsewhere`: what every command takes may stand before the command.

The one rule: nothing is judged here but what stands before the command.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from cyclopts import CycloptsError, UnusedCliTokensError

from dataspace.errors import KeeveError

FLAGS: Final = frozenset(("--json", "--debug"))
VALUED: Final = frozenset(("--store", "--server", "--token-file", "--actors", "--tools", "--config"))
"""What may stand before a command, and is followed by a value."""
HELP: Final = frozenset(("--help", "-h"))
OWN: Final = HELP | {"--version"}
"""What `keeve` itself is asked, without a command."""


class Misplaced(KeeveError):
    """An option stands where no command has been named."""

    usage = True

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{problem}: write keeve COMMAND {option} ...; see the commands with keeve --help")


def said(wrong: CycloptsError) -> str:
    """What is wrong with the words of a command."""
    if isinstance(wrong, UnusedCliTokensError):
        return f"too many words: {shlex.join(wrong.unused_tokens or ())}"
    return str(wrong)


def of_all_commands(words: Sequence[str]) -> bool:
    """Whether words that are in their order ask what commands there are.

    >>> of_all_commands([]), of_all_commands(["--help"]), of_all_commands(["ls", "--help"])
    (True, True, False)
    """
    return not words or words[0] in HELP


def in_order(words: Sequence[str]) -> list[str]:
    """The same, with the command first. Raises `Misplaced`.

    >>> in_order(["--store", "elsewhere", "--json", "ls", "customer-"])
    ['ls', '--store', 'elsewhere', '--json', 'customer-']
    """
    place = 0
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        name, given, _ = word.partition("=")
        if word in OWN:
            return list(words[place:])
        if word not in FLAGS and name not in VALUED:
            raise Misplaced(name, f"{name} stands before the command")
        place += 1 if word in FLAGS or given else 2
    if place and place >= len(words):
        raise Misplaced(words[0].partition("=")[0], "no command is named")
    return [*words[place : place + 1], *words[:place], *words[place + 1 :]]
