"""The page on verification: its commands run, on a store in which one bit changes on the way; its tables are whole."""

from __future__ import annotations

from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import attrs
import pytest
from test_cli_docs import carried_out, examples

from dataspace.checkpoints.checking import Testimony
from dataspace.log.findings import Counts
from tests.cli_runner import ROOT
from vat.host.reports import Completeness, Integrity, Report, Touched, Trouble

PAGE = (ROOT / "docs" / "verification.md").read_text()


def damage(store: Path) -> None:
    segment = store / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[data.index(b"something to remember")] ^= 1
    segment.write_bytes(data)


def test_the_examples_of_the_page_run_and_say_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    wrong, before = [], ""
    for command, shown in examples(PAGE):
        if command == before == "keeve verify":
            damage(Path("data"))
        before = command
        got = carried_out(command)
        if not OutputChecker().check_output(shown, got, ELLIPSIS):
            wrong.append(f"$ {command}\nshown:\n{shown}\ngot:\n{got}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", [Report, Integrity, Completeness, Testimony, Counts, Trouble, Touched])
def test_the_page_names_every_field_of_the_report(kind: type) -> None:
    table = PAGE.partition("### The report")[2].partition("### What it costs")[0]
    assert [field.name for field in attrs.fields(kind) if f"`{field.name}`" not in table] == []
