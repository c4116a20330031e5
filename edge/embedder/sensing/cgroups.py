"""The control groups this process is in, of either version, and the memory they leave it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from edge.embedder.sensing.probes import NotCredible, Tree, shown

# Version 1 has no word for "no limit": it says the most pages that fit a signed long, 9223372036854771712 bytes.
_NO_LIMIT = 1 << 60
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Group:
    """One directory of the hierarchy. `version` is 1 or 2."""

    path: Path
    version: int


def own(tree: Tree) -> list[Group]:
    """The groups whose limits hold for this process: its own, then those around it. Empty: it is in none.

    Version 1 wins on a system that has both, for its memory controller cannot be in version 2 at once (cgroups(7)).
    """
    try:
        memberships = [line.split(":", 2) for line in tree.text(tree.root / "proc/self/cgroup").splitlines()]
        mounts = tree.text(tree.root / "proc/self/mountinfo").splitlines()
    except OSError:
        return []
    by_controller = {controllers: path for _, controllers, path in (m for m in memberships if len(m) == 3)}
    for controllers, path in by_controller.items():
        if "memory" in controllers.split(","):
            return _around(tree, mounts, "cgroup", path)
    return _around(tree, mounts, "cgroup2", by_controller[""]) if "" in by_controller else []


def _around(tree: Tree, mounts: list[str], kind: str, path: str) -> list[Group]:
    version = 2 if kind == "cgroup2" else 1
    mount = _mount(mounts, kind, path)
    if mount is None:
        return []
    top, below = mount
    directory = tree.root / top.lstrip("/")
    groups = [Group(directory, version)]
    for part in below.parts:
        directory = directory / part
        groups.append(Group(directory, version))
    groups.reverse()
    if version == 1:
        for depth, parent in enumerate(groups[1:], 1):
            # Without hierarchy a group's limit does not hold for the groups in it.
            if tree.word(parent.path / "memory.use_hierarchy") == "0":
                return groups[:depth]
    return groups


def _mount(mounts: list[str], kind: str, path: str) -> tuple[str, PurePosixPath] | None:
    """Where the hierarchy is mounted, and the way from there to the group; proc(5) has the fields of mountinfo."""
    tops = []
    for line in mounts:
        before, _, after = line.partition(" - ")
        fields, options = before.split(" "), after.split(" ")
        if len(fields) < 5 or options[0] != kind:
            continue
        if kind == "cgroup" and "memory" not in options[-1].split(","):
            continue
        root, top = _unescaped(fields[3]), _unescaped(fields[4])
        tops.append(top)
        if ".." not in path and PurePosixPath(path).is_relative_to(root):
            return top, PurePosixPath(path).relative_to(root)
    # A container that sees only its own part of the hierarchy: what is mounted is its group.
    return (tops[0], PurePosixPath()) if tops else None


def _unescaped(field: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match.group(1), 8)), field)


def available(tree: Tree, groups: list[Group]) -> int | None:
    """Bytes until the first limit of these is reached; None when none has a limit. Raises OSError, NotCredible.

    File pages that nobody used lately count as available: the kernel drops them before it kills.
    """
    rooms = [room for group in groups if (room := _room(tree, group)) is not None]
    return min(rooms, default=None)


def _room(tree: Tree, group: Group) -> int | None:
    if group.version == 1:
        limiting, usage, droppable = ["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file"
    else:
        limiting, usage, droppable = ["memory.max", "memory.high"], "memory.current", "inactive_file"
    limits = [limit for name in limiting if (limit := _limit(tree, group.path / name)) is not None]
    if not limits:
        return None
    used = tree.number(group.path / usage)
    used -= min(used, _stat(tree, group.path / "memory.stat", droppable))
    return max(0, min(limits) - used)


def _limit(tree: Tree, path: Path) -> int | None:
    try:
        text = tree.text(path)
    except FileNotFoundError:
        # The topmost group has no limits.
        return None
    if text == "max":
        return None
    if not text.isdecimal() or not text.isascii() or len(text) > 19:
        raise NotCredible(f"says {shown(text)} in {path.name}, which is no limit")
    limit = int(text)
    return limit if limit < _NO_LIMIT else None


def _stat(tree: Tree, path: Path, key: str) -> int:
    match = re.search(rf"^{key} ([0-9]{{1,19}})$", tree.text(path), re.MULTILINE)
    return int(match.group(1)) if match else 0
