"""What the pages point at is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_path_of_the_project_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(
        r"`((?:dataspace|snapshots|vat|actors|keeve|tests|examples|docs)/[\w/.]*)`", page.read_text()
    )
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(), re.MULTILINE)
    assert [target for target in named if target not in targets] == []
