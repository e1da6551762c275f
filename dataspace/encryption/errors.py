"""What can be wrong with keys: each its own class, which says what to do.

Those that are about what was asked (a key that is missing, or is not the one) end a command with 2, those about what
lies there with 1.

The one rule: a key is never guessed. What does not fit is named, and nothing is changed.
"""

from __future__ import annotations

from typing import ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy

GIVE_KEY: Final = Remedy(
    "give-key",
    "open it with key=, the key of its host (on the command line KEEVE_KEY_FILE names a file with it)",
)
WITHOUT_KEY: Final = Remedy("without-key", "open it without a key, or make a new store with one")
KEY_FILE: Final = Remedy("key-file", "a file that keeve.host_key makes")


class HostKeyNeeded(KeeveError, quotes=False):
    """The store is encrypted, and no host key was given."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is encrypted: {GIVE_KEY()}")


class WrongHostKey(KeeveError, quotes=False):
    """The host key that was given is not the one that the key file was written with. `given`: where it is from, if that
    is known."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, given: str = "") -> None:
        self.path = path
        self.given = given
        super().__init__(
            f"{path} was written with another host key than the one {f'in {given}' if given else 'given'}: give that "
            "one, or put back the key file that goes with this one"
        )


class BadHostKey(KeeveError, ValueError):
    """What was given as the host's key is none."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"this is no host key: {what}; give 32 random bytes, or {KEY_FILE()}")


class NotEncrypted(KeeveError, quotes=False):
    """A host key was given, and the store was made without one."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is not encrypted, and never will be, since records do not change: {WITHOUT_KEY()}")


class KeyFileError(KeeveError):
    """A key file that cannot be used. Nothing was changed."""


class KeyFileMissing(KeyFileError, quotes=False):
    """The store is encrypted, and its key file is gone."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is missing, and without it nobody can read this store: put back its newest copy; the headers can "
            "still be verified"
        )


class KeyFileDamaged(KeyFileError, quotes=False):
    """The key file is not what was written."""

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        self.what = what
        super().__init__(f"{path} is not what was written ({what}): put back its newest copy")


class KeyFileOfAnotherLog(KeyFileError, quotes=False):
    """The key file belongs to another store."""

    def __init__(self, path: str, expected: bytes, actual: bytes) -> None:
        self.path = path
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"{path} has the keys of log {actual.hex()}, and this is log {expected.hex()}: put back its own"
        )


READ_WITH_THESE: Final = Remedy("read-with-these", "; with readonly=True what its keys open can be read")


class KeyFileOlder(KeyFileError, quotes=False):
    """The key file is older than the log: keys that were in use are not in it, and destroyed ones may be."""

    def __init__(self, path: str, serial: int, seen: int) -> None:
        self.path = path
        self.serial = serial
        self.seen = seen
        super().__init__(
            f"{path} is an older copy, number {serial}, and the log was written with number {seen}: put back the "
            f"newest one{READ_WITH_THESE()}"
        )


class KeyFileWithoutLog(KeyFileError, quotes=False):
    """There are keys of sessions, and no log that they could be of."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} has keys of sessions, and there is no log: put back the log, or move the key file elsewhere"
        )


class KeyFileNewer(KeyFileError, quotes=False):
    """The key file was written by a newer version."""

    def __init__(self, path: str, format: int) -> None:
        self.path = path
        self.format = format
        super().__init__(f"{path} has format {format}, which a newer version of Keeve wrote: open it with that one")
