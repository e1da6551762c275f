"""`keeve verify`: is everything in a store what was written?

The looking is done by `vat.host.verifying`, as `Host.verify` does it; here it is told.

The one rule: nothing is changed, and a store that somebody owns is looked at up to what that one has published.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from keeve.cli.output import Output
from keeve.cli.proofs import key_texts, read
from keeve.cli.reading import reading
from keeve.cli.text import counted, size
from vat.host.verifying import Look, Trouble, verify_at_once

_DONE = {"log": "record", "snapshots": "session", "catalog": "question"}


def verify(folder: Path, output: Output, keys: Sequence[str], expect: str | None) -> int:
    """Tell what is wrong with a store. Gives 1 when something is. Raises `NotAStore` or `NewerFormat`.

    `keys` are verifier keys that the log has to have signed with, or files of them; `expect` is the file of what
    somebody has seen of it.
    """
    known, seen = key_texts(keys), None if expect is None else read(expect)

    def progress(look: Look, done: int) -> None:
        output.passing(f"{look}: {counted(done, _DONE[look])}")

    with reading(folder) as store:
        report = verify_at_once(store.store, store.catalog, progress, keys=known, expect=seen)
    output.passing("")
    if output.as_json:
        output.document({"sound": report.sound, **attrs.asdict(report)})
        return 0 if report.sound else 1
    for trouble in report.troubles:
        output.say(_line(trouble), "dim" if trouble.harmless else "red")
    counts = report.counts
    output.say(
        f"{'sound' if report.sound else 'NOT SOUND'}: {counted(counts.records, 'record')} and "
        f"{counted(counts.cells, 'cell')} in {counted(counts.segments, 'segment')} ({size(counts.bytes)}), "
        f"{counted(report.snapshots, 'snapshot')} of {counted(report.sessions, 'session')}"
        + (f", {counted(counts.checkpoints, 'checkpoint')}" if counts.checkpoints else "")
    )
    return 0 if report.sound else 1


def _line(trouble: Trouble) -> str:
    session = "" if trouble.session is None else f"session {trouble.session}"
    seq = "" if trouble.seq is None else f"seq {trouble.seq}"
    where = ", ".join(filter(None, (session, seq, trouble.place)))
    return f"{trouble.look}: {where + ': ' if where else ''}{trouble.what}"
