"""Whether a path lies on a network file system, where SQLite's locks are not reliable."""

from __future__ import annotations

from pathlib import Path

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
        "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs",
    }
)  # fmt: skip


def network_file_system(path: Path, *, mounts: str | None = None) -> str | None:
    """The type of the network file system that holds ``path``, None for a local one or where that cannot be known.

    ``mounts`` is the text of ``/proc/self/mountinfo``, read when it is not given.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    real = path.resolve()
    best, kind = -1, None
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        words = before.split()
        if not separator or len(words) < 5:
            continue
        point = Path(words[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        # a later mount on the same point hides the earlier one
        if real.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split()[0]
    return kind if kind in NETWORK_FILE_SYSTEMS else None
