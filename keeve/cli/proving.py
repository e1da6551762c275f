"""The commands that prove: their names, options and help.

The one rule: a command parses and hands over: what it does is in the module that it calls.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from keeve.cli.options import OPTIONS, Flag, Options
from keeve.cli.proofs import check_file, make_checkpoint, prove, tell_checkpoint, tell_keys


def checkpoint(
    *,
    signer: Path | None = None,
    make: Annotated[bool, Flag] = False,
    former: Path | None = None,
    since: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    common: Options = OPTIONS,
) -> int:
    """Give the newest signed checkpoint of the log; with --signer, sign one of all that is there.

    ```
    keeve checkpoint > yesterday
    keeve checkpoint --signer log.pem --make
    ```

    Parameters
    ----------
    signer
        The file of an Ed25519 key in PEM: sign with it, as the owner of the store.
    make
        Make the key if the file is not there.
    former
        The file of the key until now, when it is another one: it signs that the new one takes its place.
    since
        Give it as a witness takes it that has seen a checkpoint of so many records.
    """
    if signer is None:
        return common.looked_at(partial(tell_checkpoint, output=common.output, since=since))
    folder = common.where.files("checkpoint --signer")
    trio.run(partial(make_checkpoint, folder, common.output, signer, make=make, former=former, since=since))
    return 0


def prove_record(
    session: str,
    seq: int,
    /,
    *,
    checkpoint: str | None = None,
    words: Annotated[bool, Flag] = False,
    common: Options = OPTIONS,
) -> int:
    """Give a receipt: what proves to anybody that a record is in the log; with --words, what it has stated as well.

    ```
    keeve prove s1 2 > s1-2.tlog-proof
    keeve prove s1 2 --words > s1-2.words
    ```

    Parameters
    ----------
    session
        The id of the session.
    seq
        The seq of the record; `keeve show` and `keeve log --json` tell them.
    checkpoint
        The file of the checkpoint that it is to lead to; else the newest one in the store.
    words
        Add all that the record has stated, so that who checks it reads that.
    """
    how: dict[str, Any] = {"session": session, "seq": seq, "checkpoint": checkpoint, "words": words}
    return common.looked_at(partial(prove, output=common.output, **how))


def check(
    file: str,
    /,
    *,
    key: Annotated[list[str] | None, Parameter(negative="")] = None,
    common: Options = OPTIONS,
) -> int:
    """Check a receipt (also with words) or a checkpoint: with a key, anywhere; else against the log in the store.

    ```
    keeve check s1-2.tlog-proof --key keys.txt
    keeve check yesterday
    ```

    Parameters
    ----------
    file
        The file; `/dev/stdin` is the standard input.
    key
        The verifier key of the log or of a witness, or a file of them; may be given several times.
    """
    folder = common.where.folder if key else common.where.files("check (without --key)")
    return check_file(folder, common.output, file, key or [])


def keys(*, common: Options = OPTIONS) -> int:
    """Tell the verifier keys with which the log was signed, the one that signs now last.

    ```
    keeve keys > keys.txt
    ```
    """
    return common.looked_at(partial(tell_keys, output=common.output))
