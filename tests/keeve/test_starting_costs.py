"""What a command imports before it does anything: counted, since how long it takes says how busy a machine is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runner import ROOT, environment, keeve

WATCHED = """
import json, sys

by = {}

class Watch:
    def find_spec(name, path=None, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        by.setdefault(name, f"{frame.f_globals['__name__']}, line {frame.f_lineno}")

sys.meta_path.insert(0, Watch)
"""
"""Notes of each module who was the first to import it."""

RUN = "import keeve.cli; keeve.cli.run({words!r})"
SAID = "\nprint('\\n' + json.dumps(by))\n"

HTTP = ("httpx2", "httpcore2", "h11")
SERVER = ("keeve.server", "starlette", "hypercorn", "jinja2", "structlog", "prometheus_client")
PROGRAM = ("cyclopts", "rich", "keeve.cli")
PAGES = ("markdown_it", "pygments", "rich.markdown", "rich.syntax")
CLIENT = ("keeve.client", "anyio", "wsproto")
OTHERS = ("mcp", "pydantic", "asyncio", "openai", "keeve.testing")
"""What nothing imports that was not asked for it."""

TALKING = ("keeve.cli.chat", "keeve.cli.conversation", "keeve.cli.partner", "keeve.host_thread")
CARE = ("keeve.cli.doctor", "keeve.cli.verify", "keeve.cli.salvage", "keeve.cli.dump", "vat.host.salvaging")
EVERYDAY = ("keeve.cli.sessions", "keeve.cli.log", "keeve.cli.fork", "keeve.cli.effects")
COMMANDS = (*TALKING, *CARE, *EVERYDAY, "keeve.cli.tokens", "keeve.cli.serve", "keeve.settings", "keeve.looking")

OWNING = ("keeve.cli.own", "keeve.cli.owning", "keeve.settings", "tomllib")
"""What a host is made of that a command runs."""

NEVER = (*HTTP, *SERVER, *CLIENT, *OTHERS)


def importers(code: str) -> dict[str, str]:
    """All that a Python program imports, with who imports it first."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED + code + SAID], env=environment(), cwd=ROOT, capture_output=True, check=True
    )
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def first(found: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Those of the names that were imported, and by whom."""
    return {name: found[name] for name in names if name in found}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("started") / "data"
    assert keeve("chat", "s1", "--store", path, input="hello\n").code == 0
    return path


@pytest.mark.parametrize(
    ("code", "without"),
    [
        ("import keeve", (*NEVER, *PROGRAM)),
        ("from vat.objects.actor import Actor", (*NEVER, *PROGRAM, "keeve", "actors", "vat.host", "apsw")),
    ],
)
def test_what_a_program_imports_brings_nothing_that_it_did_not_ask_for(code: str, without: tuple[str, ...]) -> None:
    assert first(importers(code), without) == {}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (["--version"], (*NEVER, *PAGES, *COMMANDS)),
        (
            ["ls", "--ids", "--limit", "200", "--"],
            (*NEVER, *PAGES, *TALKING, *CARE, *OWNING),
        ),  # what a shell asks at TAB
        (["ls"], (*NEVER, *PAGES, *TALKING, *CARE, *OWNING)),
        (["show", "s1"], (*NEVER, *PAGES, *TALKING, *CARE, *OWNING)),
        (["verify"], (*NEVER, *PAGES, *TALKING, "keeve.cli.doctor", "keeve.cli.salvage", "keeve.cli.dump")),
        (["chat", "s1"], (*NEVER, *PAGES, *CARE)),
        (["--help"], NEVER),
        (["completion", "bash"], NEVER),
    ],
    ids=" ".join,
)
def test_no_command_imports_what_others_need(store: Path, words: list[str], without: tuple[str, ...]) -> None:
    in_store = [] if words[0] in ("--version", "--help", "completion") else ["--store", str(store)]
    found = importers(RUN.format(words=[words[0], *in_store, *words[1:]]))
    assert "keeve.cli.commands" in found  # it has run, and was watched
    assert first(found, without) == {}


def test_what_is_imported_later_is_imported_where_it_is_needed(store: Path) -> None:
    """Each of the names above is one that is imported, or else it would be missed by mistake."""
    asked = "from actors.models import ChatModel; ChatModel('http://127.0.0.1:1/v1', 'small')"
    assert first(importers(asked), ("httpx2",)) == {"httpx2": found_in("actors/models/service.py", "import httpx2")}
    helped = importers(RUN.format(words=["--help"]))
    assert set(first(helped, (*PAGES, *COMMANDS))) >= {"markdown_it", *EVERYDAY, "keeve.cli.serve"}
    for words, name in ((["doctor"], "keeve.cli.doctor"), (["chat", "s1"], "keeve.cli.owning")):
        assert name in importers(RUN.format(words=[*words, "--store", str(store)]))


def found_in(file: str, line: str) -> str:
    """A line of a file, as it is told of who imports."""
    module = file.removesuffix(".py").replace("/", ".")
    return f"{module}, line {(ROOT / file).read_text().splitlines().index(line) + 1}"
