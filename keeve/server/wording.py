"""What our errors say, in the words of who asks over HTTP: they are written for programs in Python, which have a host.

An error may have been recorded long ago, so that nothing is left of it but its text. So texts are what is changed here.

The one rule: only the remedy is put in other words. What was wrong stays as it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

WORDS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r"; spawn\(Session, (\w+)=\.\.\.\) or configure\(\1=\.\.\.\) sets it", r"; give it another \1"),
        (r": get it with host\.get\(.*?\), or choose", ": choose"),
        (r": look at those of host\.sessions\(\)", ": look at the list of those that there are"),
        (r"host is closed: open it again with open_host\(\.\.\.\); with", "server has stopped: ask again later; with"),
        (r"with the same request id", "with the same Idempotency-Key"),
        (r"; use a new request id for something new", "; use a new Idempotency-Key for something new"),
        (r": open the host with signer=.*", ": the server has to be started with a signer"),
        (r"resolve\(\) takes exactly one of value=\.\.\., error=\.\.\. and again=True", "one outcome has to be given"),
        (r"^fork\(at=None, into=None\): ", "a fork has a place and a name: "),
        (
            r"this host runs (.*?)\. Pass its class to open_host\(\.\.\., actors=\[\.\.\.\]\)",
            r"of its own the server runs \1. Its setting `actors` names the module that has it",
        ),
        (r"[,;.] ?[Gg]ive the device to the host, and mark its method with @effect", ""),
        (r"\bthis host has no (\S+); its devices offer: ", r"there is no \1 here; there are: "),
        (r"this host was opened with Settings\(.*?\), which", "the server"),
        (r" Ask in a host that does: takes_up=\S+ is enough", " Another server has to be asked"),
        (r" Have it return less, or declare @effect\(largest=\.\.\.\)", " Ask it for less"),
        (r" Return \{'message'.*", " Whoever keeps the model has to look at it"),
        (r"; nothing was read or written\. Raise the version of .*", "; nothing was read or written"),
        (r"\bit was opened with readonly=True", "the server only reads it"),
        (r"\bclose it there, or open it here with readonly=True", "one process owns a store at a time"),
        (r"; with readonly=True what its keys open can be read", ""),
        (r"\bit is True, or False\b", "it is true, or false"),
        (r"\bit is a Tools, or a list\b", "it is a list"),
        (r": a schema is a dict, as Tools\(\.\.\.\)\.schemas has them", ": a schema is an object"),
        (r" \(bytes without a Blob, NaN, \.\.\.\)", ""),
        (r"\{'type': 'text', \.\.\.\}", '{"type": "text", "text": "…"}'),
        (r": wait for it, or use force", ": wait for it"),
        (r": give turns more with max_seconds", ": give the session a larger max_seconds"),
        (r" with `keeve show`; what short strings hold that are no `Text` goes only with the session", ""),
        (r": asyncio has no loop here, since Keeve runs on trio: .*", ": what runs there needs asyncio, and has trio"),
    )
)
"""What is written for programs, and what it is here; each is looked for in turn."""

OF_SERVERS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"Open the store with devices=\{'([^']*)': \.\.\.\}, or settle it: keeve resolve (\S+), or host\.resolve",
            r"Start the server with [models.\1] in its file of settings, if that is a model; or settle it: "
            r"keeve resolve \2",
        ),
        (
            r"Pass its class to open_host\(\.\.\., actors=\[\.\.\.\]\)",
            "Name the module that has it in the server's setting `actors`",
        ),
        (
            r"[Gg]ive the device to the host, and mark its method with @effect",
            "name it in the server's file of settings as [models.NAME], if it is a model",
        ),
    )
)
"""What is written for programs, and what it is in the log of a server, for whoever runs that."""


def in_words(message: str) -> str:
    """A message of an error of ours, in the words of who asks over HTTP.

    >>> in_words("there is a session 's1' already: get it with host.get('s1'), or choose another id")
    "there is a session 's1' already: choose another id"
    """
    for pattern, words in WORDS:
        message = pattern.sub(words, message)
    return message


def in_words_of_servers(message: str) -> str:
    """A message for whoever runs the server, who has settings and no program."""
    for pattern, words in OF_SERVERS:
        message = pattern.sub(words, message)
    return message


def there_are(names: Iterable[str]) -> str:
    """What there is, as the end of a sentence.

    >>> there_are(["a", "b", "c"]), there_are(["a"]), there_are([])
    ("there are 'a', 'b' and 'c'", "there is 'a'", 'there is none')
    """
    *most, last = [repr(name) for name in names] or ["none"]
    return f"there are {', '.join(most)} and {last}" if most else f"there is {last}"
