"""`keeve verify`: is everything in a store what was written, and is everything there that was seen?

The looking is done by `vat.host.verifying`, as `Host.verify` does it; here it is told.

The one rule: nothing is changed, and a store that somebody owns is looked at up to what that one has published.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs
from cyclopts import Parameter

from dataspace.encryption.errors import HostKeyNeeded
from dataspace.log.layout import Layout
from keeve.cli.options import OPTIONS, Options
from keeve.cli.output import Output
from keeve.cli.proofs import key_texts, read
from keeve.cli.reading import reading
from keeve.cli.text import counted, local_time, size
from vat.host.reports import Look, Report, Touched, Trouble
from vat.host.verifying import verify_at_once, verify_without_key

_GOOD = {"sound": "green", "proved": "green", "not known": "", "not looked at": "yellow"}


def verify(
    *,
    key: Annotated[list[str] | None, Parameter(negative="")] = None,
    expect: Annotated[list[str] | None, Parameter(negative="")] = None,
    common: Options = OPTIONS,
) -> int:
    """Check everything: frames, chains and checkpoints, snapshots against the log, the catalog against the log.

    Says two things: whether what is there is what was written, and whether all is there that was seen from outside.
    Ends with 1 when something is wrong, with 2 when nothing is and not all could be looked at (an encrypted store, and
    no key). Changes nothing.

    ```
    keeve verify
    keeve verify --expect yesterday --key keys.txt
    ```

    Parameters
    ----------
    key
        A verifier key that the log has to have signed with, one of a witness, or a file of them; may be given several
        times.
    expect
        The file of a receipt or a checkpoint: the log has to have all that was seen in it; may be given several times.
    """
    return tell_verdict(common.where.files("verify"), common.output, key or [], expect or [])


def tell_verdict(folder: Path, output: Output, keys: Sequence[str], expect: Sequence[str]) -> int:
    """Tell what is wrong with a store. Gives 1 when something is, 2 when nothing is and some of it could not be
    looked at (an encrypted store without its key). Raises `NotAStore` or `NewerFormat`.

    `keys` are verifier keys that the log has to have signed with (and those of witnesses), or files of them; `expect`
    are the files of what somebody has seen of it.
    """
    known, seen = key_texts(keys), [read(file) for file in expect]

    def progress(look: Look, done: int, total: int) -> None:
        output.passing(f"{look}: {_far(look, done, total)}")

    try:
        with reading(folder) as store:
            report = verify_at_once(store.store, store.catalog, progress, keys=known, expect=seen)
    except HostKeyNeeded:
        report = verify_without_key(Layout(folder), progress, keys=known, expect=seen)
    output.passing("")
    if output.as_json:
        output.document(document(report))
    else:
        _tell(report, output)
    return 0 if report.sound else 2 if _only_unseen(report) else 1


def _only_unseen(report: Report) -> bool:
    """Whether all that keeps a store from being called sound is that nobody could look at some of it."""
    return all(trouble.harmless or trouble.nature == "unread" for trouble in report.troubles)


def document(report: Report) -> dict[str, Any]:
    """A report as it is given in JSON: `docs/verification.md` says what is in it."""
    return {"format": 1, "sound": report.sound, **attrs.asdict(report)}


def _far(look: Look, done: int, total: int) -> str:
    if look == "log":
        return f"{size(done)} of {size(total)} ({100 * done // max(total, 1)} %)"
    if look == "snapshots":
        return f"session {done + 1} of {total}"
    return counted(done, "question")


def _tell(report: Report, output: Output) -> None:
    for trouble in report.troubles:
        style = "dim" if trouble.harmless else "yellow" if trouble.nature == "unread" else "red"
        output.say(_line(trouble), style)
    counts = report.counts
    headline = "sound" if report.sound else "NOT ALL LOOKED AT" if _only_unseen(report) else "NOT SOUND"
    output.say(
        f"{headline}: {counted(counts.records, 'record')} and "
        f"{counted(counts.cells, 'cell')} in {counted(counts.segments, 'segment')} ({size(counts.bytes)}), "
        f"{counted(report.snapshots, 'snapshot')} of {counted(report.sessions, 'session')}"
        + (f", {counted(counts.checkpoints, 'checkpoint')}" if counts.checkpoints else "")
    )
    if counts.archived:
        away = f"; {counts.away} of them are not there, and nobody looked at them" if counts.away else ""
        output.say(
            f"archived: {counted(counts.archived, 'piece')} of content (`keeve log '(archived . _)'` says where){away}"
        )
    if report.withheld:
        output.say(
            f"erased: {counted(report.withheld, 'piece')} of content that nobody reads any more may lie in the files "
            "yet (`keeve gc` takes them out)",
            "yellow",
        )
    integrity, complete = report.integrity, report.completeness
    output.say(f"integrity: {integrity.verdict} ({integrity.what})", _GOOD.get(integrity.verdict, "red"))
    for touched in integrity.sessions:
        output.say(f"  {_touched(touched)}", "red")
    output.say(f"completeness: {complete.verdict} ({complete.what})", _GOOD.get(complete.verdict, "red"))
    for each in complete.testimonies:
        when = "" if each.time is None else f", {local_time(each.time * 1_000_000)}"
        output.say(f"  {each.said}{when}: {each.size} records: {each.outcome}{each.what and f' ({each.what})'}")
    for line in report.todo:
        output.say(f"→ {line}", "dim")


def _touched(touched: Touched) -> str:
    forks = f", which is in the past of {', '.join(touched.forks)} as well" if touched.forks else ""
    return f"session {touched.session}" + ("" if touched.seq is None else f" from seq {touched.seq} on") + forks


def _line(trouble: Trouble) -> str:
    session = "" if trouble.session is None else f"session {trouble.session}"
    seq = "" if trouble.seq is None else f"seq {trouble.seq}"
    where = ", ".join(filter(None, (session, seq, trouble.place)))
    return f"{trouble.look}: {where + ': ' if where else ''}{trouble.what}"
