"""`keeve doctor`: what is wrong with this store, or this machine, and what to do.

The checks are in two rows: those of the machine (`keeve.cli.machine_signs`), and those of the store
(`keeve.cli.store_signs`). Each gives `Sign`s: what was looked at, how it is, and, unless it is well, what to do.

The one rule: the doctor looks and changes nothing. (To time the disk it writes a nameless file, which is gone at once.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from keeve.cli.machine_signs import disk, model, versions
from keeve.cli.options import OPTIONS, Options
from keeve.cli.output import Output
from keeve.cli.signs import BAD, NOTE, OK, UNSEEN, WARN, Sign
from keeve.cli.store_signs import store
from keeve.cli.text import counted

_STYLES: Final = {OK: "green", NOTE: "dim", WARN: "yellow", BAD: "red"}


def doctor(*, common: Options = OPTIONS) -> int:
    """Say what is wrong with this store or this machine, and what to do.

    Ends with 1 when something must be done, with 2 when it could not look into an encrypted store. Changes nothing.

    ```
    keeve doctor --store ./data
    ```
    """
    return tell_signs(common.where.files("doctor"), common.output, os.environ)


def examine(folder: Path, environ: Mapping[str, str]) -> Iterator[Sign]:
    """Everything that there is to say of a store and of the machine under it."""
    yield from versions()
    yield from model(environ)
    yield from disk(folder)
    yield from store(folder)


def tell_signs(folder: Path, output: Output, environ: Mapping[str, str]) -> int:
    """Tell how a store is. Gives 1 when something is bad, 2 when nothing is and not all could be looked at."""
    found: list[Sign] = []
    tell: Callable[[Sign], Any] = found.append if output.as_json else lambda sign: _tell(output, sign, found)
    for sign in examine(folder, environ):
        tell(sign)
    bad = sum(sign.state == BAD for sign in found)
    unseen = any(sign.of == UNSEEN for sign in found)
    if output.as_json:
        output.document({"healthy": not bad and not unseen, "signs": [attrs.asdict(sign) for sign in found]})
    else:
        well = "nothing is wrong as far as one can look without the key" if unseen else "healthy"
        output.say(well if not bad else f"{counted(bad, 'thing')} to see to", "bold")
    return 1 if bad else 2 if unseen else 0


def _tell(output: Output, sign: Sign, found: list[Sign]) -> None:
    found.append(sign)
    output.say(f"{sign.state:4}  {sign.of}: {sign.seen}", _STYLES[sign.state])
    if sign.remedy:
        output.say(f"      → {sign.remedy}", "dim")
