"""A graph as bytes: hnswlib's file format, without the vectors of what was forgotten."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# HierarchicalNSW::saveIndex of hnswlib 0.8.0: size_t but for maxlevel (int), enterpoint_node (unsigned), mult (double).
_HEADER = struct.Struct("<6QiI3QdQ")
_HEADER_FIELDS = (
    "offset_level0", "max_elements", "cur_element_count", "size_data_per_element", "label_offset", "offset_data",
    "max_level", "enterpoint_node", "max_M", "max_M0", "M", "mult", "ef_construction",
)  # fmt: skip
_DELETE_MARK = 1
_BLOCK = 4 * 1024 * 1024


class GraphImage:
    """What `save_index` would write, byte for byte, but for the vectors of deleted rows.

    Each of those is replaced by the vector of its nearest living neighbour, so that the paths through a tombstone
    go on leading the same way, and zeroed if it has none. A forgotten vector therefore never reaches the disk.
    """

    def __init__(self, state: Mapping[str, Any], deleted: Sequence[int]) -> None:
        self.deleted = deleted
        self.count = int(state["cur_element_count"])
        self.capacity = int(state["max_elements"])
        self._header = _HEADER.pack(*(state[name] for name in _HEADER_FIELDS))
        self._level0: NDArray[np.uint8] = state["data_level0"].view(np.uint8)
        self._levels: NDArray[np.int32] = state["element_levels"][: self.count]
        self._links: NDArray[np.uint8] = state["link_lists"].view(np.uint8)
        self._links_size = int(state["size_links_per_element"])
        self._links_at = int(state["offset_level0"])
        self._vector = slice(int(state["offset_data"]), int(state["label_offset"]))
        self._scrubbed = not deleted

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return _HEADER.size + len(self._level0) + 4 * self.count + len(self._links)

    def blocks(self) -> Iterator[bytes | memoryview]:
        """The file, in blocks of some megabytes at most."""
        self._scrub()
        yield self._header
        level0 = self._level0.data
        for start in range(0, len(level0), _BLOCK):
            yield level0[start : start + _BLOCK]
        yield from self._upper_links()

    def _upper_links(self) -> Iterator[bytes]:
        links, at, block = self._links.data, 0, bytearray()
        for level in self._levels.tolist():
            size = self._links_size * level
            block += struct.pack("<I", size)
            block += links[at : at + size]
            at += size
            if len(block) >= _BLOCK:
                yield bytes(block)
                block.clear()
        yield bytes(block)

    def _scrub(self) -> None:
        if self._scrubbed:
            return
        rows = self._level0.reshape(self.count, -1)
        # A row: links (uint16 count, the mark, a spare byte, then uint32 each), vector, label.
        dead = (rows[:, self._links_at + 2] & _DELETE_MARK).astype(bool)
        for place in np.flatnonzero(dead):
            links = rows[place, self._links_at : self._vector.start]
            neighbours = links[4 : 4 + 4 * int.from_bytes(links[:2].tobytes(), "little")].copy().view(np.uint32)
            neighbours = neighbours[~dead[neighbours]]
            if len(neighbours):
                vectors = rows[neighbours, self._vector].view(np.float32)
                own = rows[place, self._vector].copy().view(np.float32)
                rows[place, self._vector] = vectors[np.argmax(np.einsum("ij,j->i", vectors, own))].view(np.uint8)
            else:
                rows[place, self._vector] = 0
        self._scrubbed = True
