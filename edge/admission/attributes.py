"""msgpack from outside (a turn's attributes, a task's state), read byte by byte before anything decodes it.

A msgpack header may promise 2**31 items in five bytes, and a decoder that believes it allocates first (case 33:
`DD 7F FF FF FF`, 100,000 nested arrays, repeated keys of which the last silently wins). This reader
allocates the maps' keys and nothing else, does not recurse, and accepts only what every decoder reads alike.
"""

from __future__ import annotations

from edge.errors import InvalidArgument

MAX_DEPTH = 32

# Bytes of payload after the first byte, for the types of fixed size: nil, false, true, floats, unsigned and signed
# integers.
_FIXED = {
    0xC0: 0,
    0xC2: 0,
    0xC3: 0,
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
}
# Bytes of the length that follows the first byte.
_STR = {0xD9: 1, 0xDA: 2, 0xDB: 4}
_BIN = {0xC4: 1, 0xC5: 2, 0xC6: 4}
_ARRAY = {0xDC: 2, 0xDD: 4}
_MAP = {0xDE: 2, 0xDF: 4}


class _Open:
    """A container whose items are still to come; `keys` is None for an array."""

    __slots__ = ("keys", "left")

    def __init__(self, left: int, keys: set[bytes] | None) -> None:
        self.left = left
        self.keys = keys


def check_attributes(raw: bytes, field: str = "attributes") -> bytes:
    """The bytes, if they are empty or one msgpack map: string keys, none empty and none twice, 32 levels at most, no
    extension types, nothing after it. Else InvalidArgument. Linear in len(raw), whatever the headers promise.
    """
    if not raw:
        return raw
    if not (0x80 <= raw[0] <= 0x8F or raw[0] in _MAP):
        raise _bad("must be one msgpack map", field, "send one with string keys, or leave it empty")
    return check_value(raw, field)


def check_value(raw: bytes, field: str) -> bytes:
    """The bytes, if they are one msgpack value; of maps in it, and of everything else, what check_attributes asks."""
    reader = _Reader(raw, field)
    stack: list[_Open] = []
    while True:
        opened = reader.item(stack[-1].keys if stack and stack[-1].left % 2 == 0 else None)
        if stack:
            stack[-1].left -= 1
        if opened is not None:
            stack.append(opened)
            if len(stack) > MAX_DEPTH:
                raise _bad(f"is nested deeper than {MAX_DEPTH} levels", field)
        while stack and stack[-1].left == 0:
            stack.pop()
        if not stack:
            break
    if reader.at != len(raw):
        raise _bad("has bytes after its value", field)
    return raw


class _Reader:
    def __init__(self, raw: bytes, field: str) -> None:
        self.raw = raw
        self.at = 0
        self.field = field

    def take(self, count: int) -> bytes:
        if count > len(self.raw) - self.at:
            raise _bad("ends too early", self.field)
        self.at += count
        return self.raw[self.at - count : self.at]

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def item(self, keys: set[bytes] | None) -> _Open | None:
        """Reads one value, or the head of a container. With `keys`: it must be a string that is not among them."""
        head = self.take(1)[0]
        if 0xA0 <= head <= 0xBF or head in _STR:
            text = self.take(self.number(_STR[head]) if head in _STR else head & 0x1F)
            self._text(text)
            if keys is not None:
                if not text:
                    raise _bad("has an empty key", self.field)
                if text in keys:
                    raise _bad("has a key twice", self.field)
                keys.add(text)
            return None
        if keys is not None:
            raise _bad("has a key that is not a string", self.field)
        if head <= 0x7F or head >= 0xE0:
            return None
        if head in _FIXED:
            self.take(_FIXED[head])
            return None
        if head in _BIN:
            self.take(self.number(_BIN[head]))
            return None
        if 0x90 <= head <= 0x9F or head in _ARRAY:
            return self._open(self.number(_ARRAY[head]) if head in _ARRAY else head & 0x0F, None)
        if head <= 0x8F or head in _MAP:
            return self._open(2 * (self.number(_MAP[head]) if head in _MAP else head & 0x0F), set())
        raise _bad("has an extension type; use plain values", self.field)

    def _open(self, left: int, keys: set[bytes] | None) -> _Open:
        # Each item takes a byte at least, so a promise beyond the bytes that are left is a lie.
        if left > len(self.raw) - self.at:
            raise _bad("ends too early", self.field)
        return _Open(left, keys)

    def _text(self, text: bytes) -> None:
        try:
            text.decode()
        except UnicodeDecodeError:
            raise _bad("has a string that is not UTF-8", self.field) from None


def _bad(what: str, field: str, next_step: str = "send plain msgpack, its maps with string keys") -> InvalidArgument:
    return InvalidArgument(f"{field}: {what}; {next_step}", field=field)
