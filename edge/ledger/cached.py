"""File pages that the kernel keeps for us: they count against the limit of a control group like memory of our own.

Where there is a limit, the kernel makes room by dropping pages only once it is hit, and whoever asks then has to wait.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

# Version 1 has no word for "no limit", and says a number near 2**63.
_NO_LIMIT = 1 << 60


def let_go(file: int) -> None:
    """The clean pages of a file leave the cache; those that are not on the disk yet stay. Never fails."""
    if hasattr(os, "posix_fadvise"):
        with contextlib.suppress(OSError):
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def room(root: Path = Path("/")) -> int | None:
    """Bytes until a limit of the control groups around this process, cached pages counted; None where there is none.

    `root` holds proc/ and sys/. Groups that cannot be read have no limit.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    if "memory" in paths:
        top, path, limit, usage = "memory", paths["memory"], "memory.limit_in_bytes", "memory.usage_in_bytes"
    else:
        top, path, limit, usage = "", paths.get("", "/"), "memory.max", "memory.current"
    mount = root / "sys/fs/cgroup" / top
    group = mount / path.lstrip("/")
    found = []
    # In a container, where the path may be one of the host's, the mount itself is the group.
    for directory in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):
            # "max" is a ValueError too.
            most = int((directory / limit).read_text())
            if most < _NO_LIMIT:
                found.append(most - int((directory / usage).read_text()))
        if directory == mount:
            break
    return min(found, default=None)
