"""The shape of the project, read from its text: what may import what, and what a file may not hold.

A rule that nobody checks is soon a wish. Each test names the places that break it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent

BELOW = {
    "dataspace": set(),
    "snapshots": {"dataspace"},
    "vat": {"snapshots", "dataspace"},
    "actors": {"vat", "snapshots", "dataspace"},
    "keeve": {"actors", "vat", "snapshots", "dataspace"},
}
"""Each package, and the packages that it may import."""

ROOMS = ("errors", "failures", "heap", "objects", "crank", "devices", "host")
"""What is in `vat`, in its own order: each may import itself and those before it."""

CORE = {
    *(
        "dataspace.values",
        "dataspace.values.encoding",
        "dataspace.patterns",
        "dataspace.observe.interest",
        "dataspace.records",
    ),
    *("dataspace.log.frames", "dataspace.log.recovery"),
    *("snapshots.pages", "snapshots.writing"),
}
"""The pure core: these, and whatever of ours they import, are functions of their arguments."""

WORLD = {
    *("asyncio", "datetime", "os", "random", "secrets", "shutil", "signal", "socket", "subprocess", "tempfile"),
    *("threading", "time", "trio", "uuid"),
}
"""Where clocks, files, randomness and waiting come from."""

SHARED = {
    *("dataspace.catalog", "dataspace.log", "dataspace.patterns"),
    *("vat.heap", "vat.objects", "vat.devices"),
    "actors.tools",
}
"""Rooms whose private modules are there for the other rooms of their package."""

LONGEST = 400
"""A file that is longer is asking to be two ideas."""


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """Every module of the packages, by its name."""
    return {module_of(file): file for package in BELOW for file in sorted((ROOT / package).rglob("*.py"))}


@cache
def texts() -> dict[Path, str]:
    """Every Python file of the project."""
    folders = [*BELOW, "tests", "examples", "benchmarks", "docs"]
    files = [*ROOT.glob("*.py"), *(file for folder in folders for file in (ROOT / folder).rglob("*.py"))]
    return {file: file.read_text() for file in sorted(files)}


def comments(pattern: str) -> Iterator[tuple[str, str]]:
    """Every comment of the project in which a pattern is found, with its place. A file that has it nowhere has none."""
    for file, text in texts().items():
        if re.search(pattern, text):
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT and re.search(pattern, token.string):
                    yield f"{file.relative_to(ROOT)}:{token.start[0]}", token.string


@cache
def imports(name: str) -> list[tuple[int, str, str | None]]:
    """What a module imports, wherever in it: line, module, and the name taken from it, if one is."""
    file = modules()[name]
    found: list[tuple[int, str, str | None]] = []
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(texts()[file])):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            found += ((node.lineno, origin, alias.name) for alias in node.names)
    return found


def targets(name: str) -> set[str]:
    """The modules of ours that a module imports itself."""
    return {
        target
        for _, origin, taken in imports(name)
        if (target := module if (module := f"{origin}.{taken}") in modules() else origin) in modules()
    }


def test_imports_go_downwards_only() -> None:
    wrong = [
        f"{modules()[name].relative_to(ROOT)}:{line}: {package} imports {origin}"
        for name in modules()
        for line, origin, _ in imports(name)
        if (package := name.partition(".")[0]) != (other := origin.partition(".")[0])
        if other in BELOW and other not in BELOW[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rooms_of_the_runtime_import_downwards_only() -> None:
    def place(name: str) -> int:
        return ROOMS.index(name.split(".")[1])

    runtime = [name for name in modules() if name.startswith("vat.")]
    wrong = [
        f"{modules()[name].relative_to(ROOT)}: {target}"
        for name in runtime
        for target in targets(name)
        if target.startswith("vat.") and place(target) > place(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_package_imports_tests_examples_or_benchmarks() -> None:
    beside = {"tests", "examples", "benchmarks", "docs", "conftest"}
    wrong = [f"{name}:{line}" for name in modules() for line, origin, _ in imports(name) if origin in beside]
    assert not wrong, "\n".join(wrong)


def test_the_core_is_pure() -> None:
    reached, waiting = set(), set(CORE)
    while waiting:
        reached |= waiting
        waiting = {target for name in waiting for target in targets(name)} - reached
    wrong = [
        f"{modules()[name].relative_to(ROOT)}:{line}: {origin}"
        for name in sorted(reached)
        for line, origin, _ in imports(name)
        if origin.partition(".")[0] in WORLD
    ]
    assert not wrong, "\n".join(wrong)


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {name: targets(name) for name in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from None


def test_no_private_name_is_taken_from_another_package() -> None:
    wrong = [
        f"{modules()[name].relative_to(ROOT)}:{line}: {origin}.{taken}"
        for name in modules()
        for line, origin, taken in imports(name)
        if origin.partition(".")[0] in BELOW.keys() - {name.partition(".")[0]}
        if any(part.startswith("_") for part in f"{origin}.{taken}".split(".") if not part.endswith("__"))
    ]
    assert not wrong, "\n".join(wrong)


@cache
def rooms() -> dict[str, set[str]]:
    """The packages within packages, each with what its `__all__` names as public: modules of it, or names."""
    return {
        name: set(ast.literal_eval(node.value))
        for name, file in modules().items()
        if file.name == "__init__.py" and "." in name
        for node in ast.parse(texts()[file]).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    }


def private_imports(room: str) -> Iterator[tuple[str, str]]:
    """What is taken from a room besides what it names as public: by which module, and what, with its place."""
    for name in modules():
        for line, origin, taken in imports(name):
            first = f"{origin}.{taken}".removeprefix(f"{room}.").partition(".")[0]
            if f"{origin}.".startswith(f"{room}.") and first not in rooms()[room]:
                yield name, f"{modules()[name].relative_to(ROOT)}:{line}: {origin}.{taken}"


def test_other_packages_take_only_what_a_room_names_as_public() -> None:
    wrong = [
        place
        for room in rooms()
        for name, place in private_imports(room)
        if name.partition(".")[0] != room.partition(".")[0]
    ]
    assert not wrong, "\n".join(wrong)


def test_other_rooms_take_only_what_a_room_names_as_public() -> None:
    wrong = [
        place
        for room in rooms().keys() - SHARED
        for name, place in private_imports(room)
        if not f"{name}.".startswith(f"{room}.")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_name_of_ours_in_a_docstring_is_there() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for file, text in texts().items()
        for name in re.findall(rf"`((?:{'|'.join(BELOW)})(?:\.\w+)+)", text)
        if not there(name)
    ]
    assert not wrong, "\n".join(wrong)


def there(name: str) -> bool:
    """Whether a dotted name is a module of ours, or something that is made in one."""
    if name in modules():
        return True
    parts = name.split(".")
    module = next(".".join(parts[:end]) for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in modules())
    if modules()[module].name != "__init__.py" and parts[module.count(".") + 1] in {n for *_, n in imports(module)}:
        return False
    found: object = import_module(module)
    for part in parts[module.count(".") + 1 :]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def test_every_module_says_what_it_is() -> None:
    silent = [name for name, file in modules().items() if not ast.get_docstring(ast.parse(texts()[file]))]
    assert not silent, silent


def test_no_file_is_too_long() -> None:
    lengths = ((file.relative_to(ROOT), text.count("\n")) for file, text in texts().items())
    long = [f"{file}: {lines} lines" for file, lines in lengths if lines > LONGEST]
    assert not long, "\n".join(long)


def test_every_rule_that_is_ignored_names_itself_and_the_reason() -> None:
    reasoned = re.compile(
        r"(type: ignore\[[\w, -]+\]|noqa: ?[A-Z]+\d+(, ?[A-Z]+\d+)*)\W+\w+"  # a code, and then words
    )
    wrong = [
        f"{place}: {comment}"
        for place, comment in comments(r"#\s*(type: ?ignore|noqa|mypy:|pyright:|ruff:)")
        if not reasoned.search(comment)
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_left_to_do_in_a_comment() -> None:
    wrong = [place for place, _ in comments(r"\b(TODO|FIXME|XXX|HACK)\b")]
    assert not wrong, "\n".join(wrong)
