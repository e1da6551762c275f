"""What a server's errors say, in the words of a client: they are written for who has a host.

The one rule: only remedies are put in other words (`keeve.remedies`), and only in errors of ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from keeve.remedies import worded
from vat.failures import exception_of

_OURS: Final = re.compile(r"(dataspace|vat|actors|keeve)\.")


def error_of(failure: Mapping[str, Any]) -> Exception:
    """The exception that a failure stands for, as a client's program reads it."""
    message = failure["message"]
    if isinstance(message, str) and _OURS.match(failure.get("class", "")):
        failure = {**failure, "message": worded(str.__str__(message), "client")}
    return exception_of(failure)
