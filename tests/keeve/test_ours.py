"""`import keeve` says when its packages are hidden by others of the same name.

Each case runs in a Python of its own, with the foreign thing first on the import path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keeve import _ours

HOME = Path(_ours.__file__).parent.parent


def import_keeve(*first: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path[:0] = {[*map(str, first), str(HOME)]!r}\n{before}\nimport keeve; print('fine')"
    return _run(code)


def _run(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, *flags, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=environment)


def test_our_own_packages_pass() -> None:
    assert import_keeve().stdout == "fine\n"


@pytest.mark.parametrize("name", _ours.NAMES)
def test_a_foreign_module_is_named_with_what_to_do(tmp_path: Path, name: str) -> None:
    foreign = tmp_path / f"{name}.py"
    foreign.touch()
    error = import_keeve(tmp_path).stderr
    assert "HiddenPackage" in error
    assert f"{foreign} hides keeve's package {name!r}" in error
    assert str(HOME / name / "__init__.py") in error
    assert "Rename it" in error


def test_a_foreign_module_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "actors.py").write_text("print('I ran')")
    assert import_keeve(tmp_path).stdout == ""


def test_a_foreign_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "vat").mkdir()
    (tmp_path / "vat" / "__init__.py").touch()
    assert f"{tmp_path}/vat/__init__.py hides" in import_keeve(tmp_path).stderr


def test_a_folder_that_is_no_package_hides_nothing_that_python_would_not_take(tmp_path: Path) -> None:
    (tmp_path / "actors").mkdir()
    assert import_keeve(tmp_path).stdout == "fine\n"


def test_a_folder_that_python_takes_as_a_namespace_is_named(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("keeve", "dataspace", "snapshots", "vat"):
        (tmp_path / "lib" / name).symlink_to(HOME / name)
    (tmp_path / "here" / "actors").mkdir(parents=True)
    code = f"import sys; sys.path[:0] = {[str(tmp_path / 'here'), str(tmp_path / 'lib')]!r}; import keeve"
    ran = _run(code, "-S")
    assert f"{tmp_path}/here/actors hides keeve's package 'actors'" in ran.stderr


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(_ours.HiddenPackage, match="install keeve again") as caught:
        _ours.check(("a_package_that_nobody_has",))
    assert caught.value.name == "a_package_that_nobody_has"
    assert caught.value.path is None


def test_a_foreign_module_that_was_imported_before_is_named(tmp_path: Path) -> None:
    (tmp_path / "vat.py").touch()
    error = import_keeve(before=f"sys.path.insert(0, {str(tmp_path)!r}); import vat; sys.path.pop(0)").stderr
    assert f"{tmp_path}/vat.py hides" in error
    assert "was imported before keeve" in error


def test_a_module_made_by_hand_is_named() -> None:
    error = import_keeve(before="import types; sys.modules['vat'] = types.ModuleType('vat')").stderr
    assert "a module made in memory" in error


def test_a_checkout_reached_through_a_link_is_ours(tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(HOME)
    assert import_keeve(tmp_path / "linked").stdout == "fine\n"
