"""The page about the store's folder says what is so."""

from __future__ import annotations

import re
from pathlib import Path

from dataspace.log.files import Files
from dataspace.log.layout import Layout
from dataspace.log.marks import Mark
from dataspace.log.ownership import Ownership
from dataspace.log.publishing import LENGTH, Published, pack, unpack

PAGE = (Path(__file__).parents[2] / "docs" / "store.md").read_text()


def test_the_format_file_is_the_one_on_the_page(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.write_format(Files(), b"Keeve's log no 1")
    assert f"```\n{layout.format.read_text()}```" in PAGE
    assert layout.log_id() == b"Keeve's log no 1"


def test_the_lock_file_is_the_one_on_the_page(tmp_path: Path) -> None:
    owner = Ownership(tmp_path / "lock", Files())
    owner.claim(3)
    said = (tmp_path / "lock").read_text()
    assert len(said) == 46
    lines = re.sub(r"pid \d+", "pid 4711", said).rstrip()
    assert f"```\n{lines}\n```" in PAGE
    owner.release()
    former = re.search(r"`(epoch \d+ process \d+)`", PAGE)
    assert former is not None
    (tmp_path / "lock").write_text(f"{former[1]}\n")
    assert Ownership(tmp_path / "lock", Files()).epoch == 3


def test_the_head_file_has_the_fields_of_the_page() -> None:
    mark = Mark(1 << 8, 2 << 8, 3 << 8, b"h" * 32, b"c" * 32)
    data = pack(b"i" * 16, 4 << 8, mark)
    fields = [(int(at), int(size)) for at, size in re.findall(r"^\| (\d+) \| (\d+) \|", PAGE, re.MULTILINE)]
    pieces = [data[at : at + size] for at, size in fields]
    assert b"".join(pieces) == data
    assert len(data) == LENGTH == 124
    number = [(n << 8).to_bytes(8, "little") for n in range(5)]
    assert pieces[:-1] == [b"KEEVEHED", b"i" * 16, number[4], *number[1:4], b"h" * 32, b"c" * 32]
    assert unpack(data) == Published(b"i" * 16, 4 << 8, mark)


def test_a_head_file_with_any_byte_wrong_says_nothing() -> None:
    data = pack(b"i" * 16, 1, Mark(1, 2, 3, b"h" * 32, b"c" * 32))
    for at in range(len(data)):
        assert unpack(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None
        assert unpack(data[:at]) is None
