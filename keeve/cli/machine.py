"""What the machine says: disks, file systems, locks, versions.

Each function asks one thing and gives it as data; what it means is for those who make signs of it.

The one rule: nothing is left behind, and no lock is taken: whoever opens the store meanwhile must not meet us.
"""

from __future__ import annotations

import os
import re
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import attrs

from dataspace.log.layout import Layout

NETWORK: Final = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "ocfs2",
        "gfs2",
    )
)
"""File systems on which locks and syncs do not mean what a store needs. Those of FUSE are `fuse.…`."""
MEMORY: Final = frozenset(("tmpfs", "ramfs", "devtmpfs"))
"""File systems that are gone when the machine is."""

_ROUNDS: Final = 15


@attrs.frozen
class Mount:
    """The file system of a path: where it is mounted, its type, what is mounted, whether it is read-only."""

    point: str
    type: str
    source: str
    readonly: bool

    @property
    def network(self) -> bool:
        """Whether it is somewhere else than on this machine."""
        return self.type in NETWORK or self.type.startswith(
            ("fuse.sshfs", "fuse.gluster", "fuse.s3", "fuse.rclone", "fuse.gcs")
        )


def mount_of(path: Path, mounts: str | None = None) -> Mount | None:
    """The file system that holds `path`; None where /proc does not tell. `mounts` is the text of mountinfo.

    >>> text = "22 1 0:21 / / rw - ext4 /dev/sda1 rw\\n40 22 0:35 / /home rw - nfs4 box:/home rw"
    >>> mount_of(Path("/home/me/data"), text).type
    'nfs4'
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
        except OSError:
            return None
    real = Path(os.path.realpath(path))
    best: Mount | None = None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        own, rest = before.split(), after.split()
        if len(own) < 6 or len(rest) < 2:
            continue
        point = re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), own[4])
        # Of two at the same place the later one covers the earlier.
        if real.is_relative_to(point) and (best is None or len(point) >= len(best.point)):
            readonly = "ro" in own[5].split(",") or "ro" in rest[-1].split(",")
            best = Mount(point, rest[0], rest[1], readonly)
    return best


def nearest(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def command_of(pid: int) -> str:
    """The command line of a process; empty when it cannot be read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def sync_time(folder: Path) -> float | None:
    """Seconds that a write of 4 KiB and its fdatasync take in `folder` (a median); None when nothing can be written."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            times = []
            for _ in range(_ROUNDS):
                began = time.perf_counter()
                file.write(bytes(4096))
                os.fdatasync(file.fileno())
                times.append(time.perf_counter() - began)
            return statistics.median(times)
    except OSError:
        return None


@attrs.frozen
class Space:
    """What is left on a file system: bytes for this user, of how many, and files that can be made (None: no limit)."""

    free: int
    total: int
    files: int | None


def space_of(path: Path) -> Space:
    """The space that is left where `path` is. Raises `OSError`."""
    found = os.statvfs(path)
    return Space(
        found.f_bavail * found.f_frsize,
        found.f_blocks * found.f_frsize,
        found.f_favail if found.f_files else None,
    )


@attrs.frozen
class Access:
    """Who may do what with a store's folder and files. `open_to_others` are paths that others may read."""

    readable: bool
    writable: bool
    foreign: tuple[str, ...]
    open_to_others: tuple[str, ...]

    def remedy(self, folder: Path) -> str:
        """What to do where not all of it can be read and written."""
        if self.foreign:
            return f"run as the user that owns it, or chown -R {os.geteuid()} {folder}"
        return f"chmod -R u+rwX {folder}, unless its file system is to be read only"


def access_of(layout: Layout) -> Access:
    """Look at the folder, the log and its files."""
    paths = [layout.folder, layout.log, layout.format, layout.lock, *map(layout.segment, layout.segments())]
    there = [path for path in paths if path.exists()]
    writable = [path for path in there if path.is_dir() or path == layout.lock or path.suffix == ".seg"]
    return Access(
        all(os.access(path, os.R_OK) for path in there),
        all(os.access(path, os.W_OK) for path in writable),
        tuple(str(path) for path in there if path.stat().st_uid != os.geteuid()),
        tuple(str(path) for path in there if path.is_dir() and path.stat().st_mode & 0o077)[:1],
    )
