"""Commands that are printed for somebody to type: each is one, whatever the ids and folders in it are called."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

from dataspace.remedies import command
from keeve.cli.commands import COMMANDS
from keeve.remedies import WORDS
from tests.cli_runner import keeve

ROOT = Path(__file__).parents[2]
FILES = sorted(path for package in ("dataspace", "vat", "actors", "keeve") for path in (ROOT / package).rglob("*.py"))
COMMAND = rf"\bkeeve (?:{'|'.join(COMMANDS)})"
IN_A_COMMAND = re.compile(COMMAND + r"(?: (?:--?[a-z-]+|[A-Z]+|0|'[^']*'))* '?$")
"""What ends in the middle of a command: the value that stands there is a word of it."""
QUOTING = {"quote", "command"}


def unquoted(source: str) -> list[int]:
    """The lines of f-strings with a value in a command that is put there as it is."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        said = ""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                call = part.value
                safe = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in QUOTING
                if IN_A_COMMAND.search(said) and not safe:
                    found.append(part.lineno)
                said += "0"
            elif isinstance(part, ast.Constant):
                said += str(part.value)
    return found


def test_no_command_is_printed_with_an_id_or_a_folder_as_it_is() -> None:
    wrong = [f"{path.relative_to(ROOT)}:{line}" for path in FILES for line in unquoted(path.read_text())]
    assert not wrong, "have dataspace.remedies.command make it: " + ", ".join(wrong)


@pytest.mark.parametrize("id", ["s1", "two words", 'it\'s "one"', "-x", "--store", "$HOME", "a;b", "\u00e9t\u00e9"])
def test_what_is_printed_is_typed_and_found(tmp_path: Path, id: str) -> None:
    assert keeve("create", "--store", tmp_path, "--", id).code == 0
    for typed in (command("show", id, store=tmp_path), command("log", "(_ . _)", session=id, store=tmp_path)):
        [program, *words] = shlex.split(typed)
        said = keeve(*words)
        assert (program, said.code) == ("keeve", 0), said.err
    refused = keeve("erase", "--turn", "1", "--store", tmp_path, "--", id).err
    [there] = re.findall(r"--seq: (keeve chain .*?) tells them", refused)
    assert shlex.split(there) == ["keeve", "chain", *(["--"] if id.startswith("-") else []), id]
    refused = keeve("fork", "--turn", "9", "--store", tmp_path, "--", id).err
    [there] = re.findall(r"a seq that (keeve chain .*) tells", refused)
    assert shlex.split(there)[-1] == id


def test_every_remedy_has_what_it_names_as_a_word_of_its_command() -> None:
    for code, words in WORDS.items():
        for said in filter(None, words):
            assert not re.search(COMMAND + r"(?: [\w-]+)* '?\{\w+\}", said), code
