"""`keeve chat`: a conversation at the prompt.

Answers go to the standard output, all else to the standard error, so `keeve chat s1 < questions > answers` gives
answers alone.

The one rule: whoever has the store, a host of this process or a server, is talked to in the same way
(`keeve.cli.conversation`).
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from typing import Final

from keeve.cli.again import chat_with
from keeve.cli.conversation import Conversation
from keeve.cli.options import OWNER_OPTIONS, OwnerOptions
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.prompt import Bell, Keyboard, at_a_terminal
from keeve.cli.stores import Acts
from keeve.cli.where import Where
from keeve.host_thread import OtherThread
from vat.host.host import BadSessionId, may_be_called

PATIENCE: Final = 60.0
"""Seconds that a conversation waits for a server to come back that has gone away."""


def chat(session: str | None = None, /, *, common: OwnerOptions = OWNER_OPTIONS) -> int:
    """Talk to a session. It is made if it is not there; without a name, a new one is.

    Where a server has the store, it answers. Else the model is the one that the environment names, or an echo:
    KEEVE_MODEL is its name, KEEVE_MODEL_URL the base URL of its service, KEEVE_MODEL_KEY the name of the variable that
    holds the key.

    On a terminal Ctrl-D ends, and Ctrl-C ends an answer that is coming. A line that ends with a backslash goes on with
    the next one; lines that are pasted are said together. Elsewhere the lines of the standard input are
    answered, one after another, until one fails.

    ```
    keeve chat s1
    printf 'hello\\nagain\\n' | keeve chat s1 --json
    ```

    Parameters
    ----------
    session
        The id of the session.
    """
    return hold_conversation(common.where, common.output, session, own=common.own)


def hold_conversation(where: Where, output: Output, id: str | None, *, own: Own) -> int:
    """Hold a conversation with session `id`, which is made if it is not there; with a new one if it is None.

    What has an outcome that nobody knows is kept as it is until something is said.

    Gives 0, 1 when a turn failed and nobody was there to see to it, or 130 when that was ended by Ctrl-C.
    """
    if id is not None and not may_be_called(id):
        raise BadSessionId(id)
    opens = partial(where.acting, own, talking=True, makes=True, patience=PATIENCE)
    with closing(Bell()) as bell, closing(OtherThread[Acts](opens, where.folder)) as there:
        talk = Conversation(there, output, id, bell, own.types() if there.opened.alone else ())
        try:
            if not at_a_terminal():
                return talk.line_by_line()
            with Keyboard() as keys:
                return talk.at_the_prompt(keys)
        finally:
            if talk.id is not None:
                output.note(f"resume it with: {chat_with(talk.id, where.folder, own.words(), where.server)}")
