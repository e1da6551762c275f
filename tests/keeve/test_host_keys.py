"""Where a host's key comes from, and what is none."""

from __future__ import annotations

import base64
import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from keeve import host_key
from keeve.errors import BadHostKey
from keeve.host_keys import as_host_key, host_key_from

KEY = bytes(range(32))
TEXT = f"keeve host key 1\n{KEY.hex()}\n"


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    made = host_key(tmp_path / "key", make=True)
    assert len(made) == 32
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert host_key(tmp_path / "key", make=True) == made
    assert host_key(tmp_path / "other", make=True) != made


@pytest.mark.parametrize("text", [TEXT, TEXT.upper().replace("KEEVE HOST KEY", "keeve host key"), TEXT.rstrip()])
def test_a_file_is_read_as_its_page_says(tmp_path: Path, text: str) -> None:
    assert host_key(private(tmp_path / "key", text)) == KEY


def test_a_key_may_be_in_base64(tmp_path: Path) -> None:
    text = f"keeve host key 1\n{base64.b64encode(KEY).decode()}\n"
    assert host_key(private(tmp_path / "key", text)) == KEY


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        KEY.hex(),
        f"keeve host key 2\n{KEY.hex()}\n",
        TEXT[:-3] + "\n",
        TEXT + "more\n",
        "\xff\xfe",
        "x" * 50_000,
    ],
)
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadHostKey):
        host_key(private(tmp_path / "key", text))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    private(tmp_path / "key", TEXT).chmod(mode)
    with pytest.raises(BadHostKey, match="chmod 600"):
        host_key(tmp_path / "key")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "nothing", tmp_path, tmp_path / "pipe", tmp_path / "no" / "folder"):
        with pytest.raises(BadHostKey):
            host_key(path)
    with pytest.raises(BadHostKey, match="make=True"):
        host_key(tmp_path / "nothing")
    with pytest.raises(BadHostKey, match="cannot be made"):
        host_key(tmp_path / "no" / "folder", make=True)


def test_a_key_is_bytes_a_path_or_a_function(tmp_path: Path) -> None:
    private(tmp_path / "key", TEXT)
    given = [KEY, bytearray(KEY), str(tmp_path / "key"), tmp_path / "key", lambda: KEY]
    assert [as_host_key(each) for each in given] == [KEY] * len(given)
    assert as_host_key(None) is None


@pytest.mark.parametrize("wrong", [b"", KEY[:31], KEY + b"\0", lambda: KEY[:5], lambda: None, lambda: "text"])
def test_anything_else_is_no_key(wrong: object) -> None:
    with pytest.raises(BadHostKey):
        as_host_key(wrong)  # type: ignore[arg-type] # what somebody may give


def test_what_a_function_raises_is_raised() -> None:
    def fails() -> bytes:
        raise TimeoutError("the key service does not answer")

    with pytest.raises(TimeoutError):
        as_host_key(fails)
    with pytest.raises(TypeError):
        as_host_key(7)  # type: ignore[arg-type] # neither


def test_the_environment_names_a_key_or_its_file(tmp_path: Path) -> None:
    private(tmp_path / "key", TEXT)
    assert host_key_from({}) is None
    assert host_key_from({"KEEVE_KEY": ""}) is None
    assert host_key_from({"KEEVE_KEY": KEY.hex()}) == KEY
    assert host_key_from({"KEEVE_KEY": base64.b64encode(KEY).decode()}) == KEY
    assert host_key_from({"KEEVE_KEY_FILE": str(tmp_path / "key")}) == KEY
    with pytest.raises(BadHostKey, match="both"):
        host_key_from({"KEEVE_KEY": KEY.hex(), "KEEVE_KEY_FILE": str(tmp_path / "key")})
    with pytest.raises(BadHostKey, match="KEEVE_KEY"):
        host_key_from({"KEEVE_KEY": "secret"})


@pytest.mark.parametrize("text", [KEY.hex()[:-2], "keeve host key 1\n" + KEY.hex()[:-2]])
def test_no_error_says_what_a_key_is(tmp_path: Path, text: str) -> None:
    """Invariant 20: a secret is in no error."""
    for read in (lambda: host_key(private(tmp_path / "key", text)), lambda: host_key_from({"KEEVE_KEY": text})):
        with pytest.raises(BadHostKey) as caught:
            read()
        assert KEY.hex()[:8] not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_a_key_that_cannot_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """And it can be made when there is space again."""

    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        if call == "write":
            patch.setattr("builtins.open", lambda *args, **keywords: Full(*args, **keywords))
        else:
            patch.setattr(os, call, full)
        with pytest.raises(BadHostKey, match="No space left on device"):
            host_key(tmp_path / "key", make=True)
    assert list(tmp_path.iterdir()) == []
    assert len(host_key(tmp_path / "key", make=True)) == 32
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


class Full(io.FileIO):
    """A file on a disk that is full after the first byte."""

    def __init__(self, path: str, mode: str, opener: Any) -> None:
        super().__init__(path, "x", opener=opener)

    def write(self, data: Any) -> int:
        super().write(bytes(data)[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
