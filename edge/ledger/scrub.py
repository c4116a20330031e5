"""What SQLite leaves behind when it moves rows from page to page."""

from __future__ import annotations

import os

# The types of b-tree pages, and how long their headers are (sqlite.org/fileformat2.html, 1.6). Every other page of a
# file below 64 GB begins with a zero: the high byte of the number of another page.
_HEADERS = {0x02: 12, 0x05: 12, 0x0A: 8, 0x0D: 8}
# Page 1 begins with the header of the file.
_FILE_HEADER = 100
_BLOCK = 4 * 1024 * 1024
_ZEROS = bytes(65536)


def scrub(file: int) -> int:
    """Zeroes the unused middle of every b-tree page of a database file, durably; on how many pages something was there.

    `secure_delete` overwrites what is deleted. But when a tree is balanced, a page keeps stale copies of the rows that
    went to its neighbours, between its cell pointers and its cells, and no later deletion finds them there. These
    bytes mean nothing to anybody, so readers may go on, and a write cut short does no harm. What must not be is a
    connection with such a page to write back, from its cache or from the write-ahead log.

    `file` is a descriptor open for reading and writing. Raises OSError.
    """
    header = os.pread(file, _FILE_HEADER, 0)
    if len(header) < _FILE_HEADER:
        return 0
    # 1 stands for 65,536, which two bytes cannot hold.
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    usable = size - header[20]
    count = at = 0
    while block := os.pread(file, _BLOCK, at):
        for start in range(0, len(block) - size + 1, size):
            first, end = _unused(
                memoryview(block)[start : start + size], _FILE_HEADER if at + start == 0 else 0, usable
            )
            if block[start + first : start + end] != _ZEROS[: end - first]:
                os.pwrite(file, _ZEROS[: end - first], at + start + first)
                count += 1
        at += _BLOCK
    if count:
        os.fsync(file)
    return count


def _unused(page: memoryview, start: int, usable: int) -> tuple[int, int]:
    """From where to where a b-tree page is unused; (0, 0) for any other page, and for one that makes no sense."""
    length = _HEADERS.get(page[start])
    if length is None:
        return 0, 0
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    content = int.from_bytes(page[start + 5 : start + 7], "big") or 65536
    first = start + length + 2 * cells
    return (first, content) if first <= content <= usable else (0, 0)
