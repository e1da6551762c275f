"""What the pages say is there is there, and what they say works works."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import attrs
import pytest

from dataspace.errors import KeeveError
from docs import fill_rooms
from keeve import Host, Settings, blocking, errors, open_host
from tests.pages import ROOT, run
from tests.test_architecture import BELOW, modules, texts
from vat.objects.actor import RESERVED

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAMS = ["actors.md", "backup.md", "checkpoints.md", "fibers.md", "hosts.md", "verification.md"]
"""Pages whose Python blocks are one program, like those of the README."""


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_path_of_the_project_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(r"`((?:dataspace|snapshots|vat|actors|keeve|tests|examples|docs)/[\w/.]*)`", page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(), re.MULTILINE)
    assert [target for target in named if target not in targets] == []


def test_every_page_can_be_found_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [page.name for page in PAGES[1:] if page.name not in readme] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_runs_from_the_first_block_to_the_last(name: str, tmp_path: Path) -> None:
    ran = run(ROOT / "docs" / name, tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


def first_cells(page: str, heading: str) -> list[str]:
    """What stands in code in the first column of the table that begins with `heading`."""
    table = (ROOT / "docs" / page).read_text().partition(heading)[2].partition("\n\n")[0]
    return [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)", row.split(" | ")[0])]


def test_the_page_of_hosts_has_every_option_and_no_other() -> None:
    parameters = list(inspect.signature(open_host).parameters)
    assert first_cells("hosts.md", "| `open_host(path, …)` |") == parameters[1:]


def test_the_page_of_hosts_has_every_setting_with_its_default() -> None:
    text = (ROOT / "docs" / "hosts.md").read_text().partition("| `Settings(…)` |")[2]
    rows = re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", text, re.MULTILINE)
    settings = {field.name: str(field.default) for field in attrs.fields(Settings)}
    assert {name: default.strip('"') for name, default in rows if name in settings} == settings
    assert first_cells("hosts.md", "| `Settings(…)` |") == list(settings)


def test_what_the_page_of_hosts_says_that_a_host_does_it_can() -> None:
    named = first_cells("hosts.md", "## What a host does\n\n")
    assert len(named) > 10
    assert [name for name in named if not hasattr(Host, name)] == []
    text = (ROOT / "docs" / "hosts.md").read_text().partition("**`keeve.blocking`** has")[2]
    lacking = text.partition("(but for ")[2].partition(")")[0]
    assert {name for name in named if not hasattr(blocking.Host, name)} == set(re.findall(r"`(\w+)`", lacking))


def test_the_page_of_actors_has_the_names_that_are_taken() -> None:
    text = (ROOT / "docs" / "actors.md").read_text().partition("These names every actor has")[2].partition("\n- ")[0]
    assert set(re.findall(r"`(\w+)`", text.partition("\n\n")[0])) == RESERVED


@pytest.mark.parametrize("name", ["actors.md", "devices.md", "hosts.md", "observers.md", "sessions.md"])
def test_every_error_that_a_page_names_can_be_imported(name: str) -> None:
    known = {cls.__name__ for cls in subclasses(KeeveError)}
    named = set(re.findall(r"`([A-Z]\w+)`", (ROOT / "docs" / name).read_text())) & known
    assert named
    assert named <= set(errors.__all__)


PAGES_FOR_USERS = [
    "README.md",
    *(
        f"docs/{name}.md"
        for name in (
            "actors",
            "checkpoints",
            "command-line",
            "devices",
            "hosts",
            "observers",
            "patterns",
            "sessions",
            "testing",
        )
    ),
]
"""Pages of which a reader may copy every line into a program."""


@pytest.mark.parametrize("name", PAGES_FOR_USERS)
def test_a_page_for_users_imports_from_the_front_door_only(name: str) -> None:
    imported = re.findall(r"^(?:>>> )?(?:from|import) ([\w.]+)", (ROOT / name).read_text(), re.MULTILINE)
    assert [module for module in imported if module.partition(".")[0] in {*BELOW} - {"keeve"}] == []


def test_the_page_of_hosts_marks_what_is_awaited() -> None:
    table = (ROOT / "docs" / "hosts.md").read_text().partition("## What a host does\n\n")[2].partition("\n\n")[0]
    rows = [row.split(" | ")[0] for row in table.splitlines()[2:]]
    marked = {name: "⏳" in row for row in rows for name in re.findall(r"`(\w+)", row)}
    assert {name for name, awaited in marked.items() if awaited} == {
        name for name in marked if inspect.iscoroutinefunction(getattr(Host, name))
    }


def subclasses(cls: type) -> set[type]:
    """A class and all below it, but for the twins that a restart makes."""
    found = {cls}
    for below in cls.__subclasses__():
        found |= subclasses(below)
    return found


def test_the_page_of_the_architecture_says_of_each_file_what_it_says_of_itself() -> None:
    page, said = fill_rooms.PAGE.read_text(), fill_rooms.rooms()
    assert page == fill_rooms.filled(page, said, fill_rooms.uses(said)), "run make docs"
    rows = [match[1] for line in page.splitlines() if (match := fill_rooms.ROW.match(line))]
    assert sorted(rows) == sorted(said)


def test_every_method_that_the_page_of_the_architecture_names_exists() -> None:
    known: dict[str, tuple[set[str], set[str]]] = {}
    constant = re.compile(r"    ([A-Z]+)\b")
    for file in modules().values():
        lines = texts()[file].split("\n")
        for node in ast.walk(ast.parse(texts()[file])):
            if isinstance(node, ast.ClassDef):
                names, bases = known.setdefault(node.name, (set(), set()))
                names |= {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
                names |= {match[1] for line in lines[node.lineno : node.end_lineno] if (match := constant.match(line))}
                bases |= {base.id for base in node.bases if isinstance(base, ast.Name)}

    def has(cls: str, name: str) -> bool:
        names, bases = known.get(cls, (set(), set()))
        return name in names or any(has(base, name) for base in bases)

    named = re.findall(r"`([A-Z][a-z]\w*)\.(\w+)`", fill_rooms.PAGE.read_text())
    assert len(named) > 30
    assert [f"{cls}.{name}" for cls, name in named if not has(cls, name)] == []


def test_a_file_that_is_new_comes_last_in_the_table_of_its_folder() -> None:
    page = "| `vat/b.py` | old |\n| `vat/gone.py` | |\n\n| `vat/c/d.py` | x |"
    said = {"vat/a.py": "A", "vat/b.py": "B", "vat/c/d.py": "D", "vat/c/e.py": "E"}
    assert fill_rooms.filled(page, said, {}) == (
        "| `vat/b.py` | B |\n| `vat/a.py` | A |\n\n| `vat/c/d.py` | D |\n| `vat/c/e.py` | E |"
    )


def test_a_file_comes_after_those_of_its_folder_that_it_uses() -> None:
    page = "| `vat/b.py` | B |\n| `vat/c.py` | C |"
    said = {"vat/a.py": "A", "vat/b.py": "B", "vat/c.py": "C"}
    uses = {"vat/b.py": {"vat/a.py", "snapshots/z.py"}, "vat/a.py": {"vat/c.py"}}
    assert fill_rooms.filled(page, said, uses) == "| `vat/c.py` | C |\n| `vat/a.py` | A |\n| `vat/b.py` | B |"
