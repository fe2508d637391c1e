"""Network file systems are told from local ones by the mount that holds the path."""

from __future__ import annotations

from pathlib import Path

import pytest

from workflows.stores.mounts import network_file_system

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /srv rw - nfs4 server:/srv rw
31 30 8:2 / /srv/local rw - xfs /dev/sdb rw
32 22 0:26 / /mnt/two\040words rw - cifs //server/share rw
33 22 8:3 / /over rw - nfs server:/over rw
34 22 8:3 / /over rw - ext4 /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/someone/waypost.sqlite3", None),
        ("/srv/waypost.sqlite3", "nfs4"),
        ("/srv/local/waypost.sqlite3", None),
        ("/srvelse/waypost.sqlite3", None),
        ("/mnt/two words/waypost.sqlite3", "cifs"),
        ("/over/waypost.sqlite3", None),
    ],
)
def test_the_innermost_and_latest_mount_decides(path: str, kind: str | None) -> None:
    assert network_file_system(Path(path), mounts=MOUNTS) == kind


def test_mounts_that_cannot_be_read_say_nothing() -> None:
    assert network_file_system(Path("/"), mounts="") is None
