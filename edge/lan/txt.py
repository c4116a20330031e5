"""What a box says of itself by mDNS: its name and its TXT record. Pure; a peer's are hostile input.

Names: RFC 6763, 4.1.1 (an instance is one label of UTF-8 in NFC, 63 bytes at most). TXT: RFC 6763, 6.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape as xml_escape

from edge.errors import InvalidArgument

SERVICE_TYPE = "_edge-memory._tcp.local."
NAME_BYTES = 63
TXT_BYTES = 200
# The only one there is. A box of another is shown with that as its problem.
TXT_VERSION = "1"
_NAMELESS = "Edge Memory"

# Characters of a peer's value that are shown, per key. Every value of ours is shorter.
_SHOWN = {"txtvers": 8, "id": 64, "ver": 24, "api": 24, "tls": 1, "fp": 128}
# Of a peer's TXT no more than this is read; RFC 6763, 6.2 calls 1,300 bytes the most that is sensible.
_READ_BYTES = 1300
_ID = re.compile(r"[A-Za-z0-9-]{1,40}")
_FINGERPRINT = re.compile(r"[0-9a-f]{16,64}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,23}")
# Joiners that words of Persian and Hindi, and family emoji, are spelled with. They move nothing on a terminal.
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Txt:
    """The TXT record of one box. Empty fields were absent, or not what they have to be."""

    id: str
    version: str
    api: str
    tls: bool
    # SHA-256 of its certificate in hex, or the start of it. A hint: only pairing makes trust of it.
    fingerprint: str


def pairs(txt: Txt) -> dict[str, str]:
    """The keys and values that are published, in order. Raises InvalidArgument that names a field of no good form.

    txtvers goes first (RFC 6763, 6.7). The forms bound the whole to less than 200 bytes.
    """
    forms = (
        ("id", txt.id, _ID),
        ("ver", txt.version, _WORD),
        ("api", txt.api, _WORD),
        ("fp", txt.fingerprint, _FINGERPRINT),
    )
    for key, value, form in forms:
        if not form.fullmatch(value) and not (key == "fp" and not value and not txt.tls):
            raise InvalidArgument(f"{key}: cannot be published; it has to match {form.pattern}", field=key)
    values = {
        "txtvers": TXT_VERSION,
        "id": txt.id,
        "ver": txt.version,
        "api": txt.api,
        "tls": "1" if txt.tls else "0",
        "fp": txt.fingerprint,
    }
    return {key: value for key, value in values.items() if value}


def encode(txt: Txt) -> bytes:
    """The record's bytes, at most 200. Raises InvalidArgument as `pairs` does."""
    strings = [f"{key}={value}".encode() for key, value in pairs(txt).items()]
    return b"".join(bytes([len(string)]) + string for string in strings)


def decode(raw: bytes) -> tuple[Txt, str]:
    """What a peer's TXT record says, and what is wrong with it in words (empty: nothing). Never raises.

    All that comes out is fit to be shown: short, and without anything that a terminal would obey.
    """
    values: dict[str, str] = {}
    for string in _strings(raw[:_READ_BYTES]):
        key, separator, value = string.partition(b"=")
        name = key.decode("ascii", "replace").lower()
        # The first of a key counts (RFC 6763, 6.4); keys of a later version are no business of ours.
        if separator and name in _SHOWN and name not in values:
            values[name] = visible(value.decode("utf-8", "replace"), _SHOWN[name])
    txt = Txt(
        id=_formed(values, "id", _ID),
        version=_formed(values, "ver", _WORD),
        api=_formed(values, "api", _WORD),
        tls=values.get("tls") == "1",
        fingerprint=_formed({key: value.lower() for key, value in values.items()}, "fp", _FINGERPRINT),
    )
    return txt, _problem(raw, values, txt)


def _strings(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        end = at + 1 + raw[at]
        yield raw[at + 1 : end]
        at = end


def _formed(values: dict[str, str], key: str, form: re.Pattern[str]) -> str:
    value = values.get(key, "")
    return value if form.fullmatch(value) else ""


def _problem(raw: bytes, values: dict[str, str], txt: Txt) -> str:
    if len(raw) > _READ_BYTES:
        return f"its TXT record has {len(raw)} bytes, so it is no box of ours"
    if not values:
        return "it has no TXT record, so it is no box of ours"
    said = values.get("txtvers", TXT_VERSION)
    if said != TXT_VERSION:
        return f"its TXT record is of version {said}, which this edge does not know; update edge"
    if not txt.id:
        return "its TXT record has no usable id"
    if txt.tls and not txt.fingerprint:
        return "its TXT record has no usable fingerprint; compare the one that the box shows when pairing"
    return ""


def visible(text: str, most: int) -> str:
    r"""The text on one line, `most` characters at most, with what a terminal would obey written out as \uXXXX.

    That is: controls, line ends, lone surrogates, direction marks and all other format characters but joiners.
    """
    shown = "".join(character if _is_plain(character) else _written_out(character) for character in text[:most])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _is_plain(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def instance_name(text: str) -> str:
    """The name under which a box is published: NFC, visible, one label of at most 63 bytes, never empty.

    It is cut between characters as a reader sees them: no accent, joiner or skin tone is parted from its letter.
    A full stop becomes a hyphen, because zeroconf takes it for the end of a label.
    """
    plain = "".join(character if _is_plain(character) or character.isspace() else "" for character in text)
    one_line = " ".join(plain.split()).replace(".", "-").lstrip("_")
    return _cut(unicodedata.normalize("NFC", one_line), NAME_BYTES).strip() or _NAMELESS


def renamed(name: str, number: int) -> str:
    """The name to try when `name` is another box's: `name (2)`, as RFC 6763, appendix D has it. At most 63 bytes."""
    suffix = f" ({number})"
    return _cut(name, NAME_BYTES - len(suffix)).rstrip() + suffix


def _cut(text: str, most: int) -> str:
    if len(text.encode()) <= most:
        return text
    end = len(text.encode()[:most].decode("utf-8", "ignore"))
    whole = end
    while whole and _belongs_together(text[whole - 1], text[whole]):
        whole -= 1
    # One character that is longer than the whole room is cut all the same.
    return text[: whole or end]


def _belongs_together(before: str, after: str) -> bool:
    is_mark = unicodedata.category(after) in ("Mn", "Me", "Mc") or after in _JOINERS
    is_skin_tone = "\U0001f3fb" <= after <= "\U0001f3ff"
    are_flags = all("\U0001f1e6" <= letter <= "\U0001f1ff" for letter in (before, after))
    return is_mark or is_skin_tone or are_flags or before == "\u200d"


def avahi_service(name: str, port: int, txt: Txt) -> str:
    """The service file that lets avahi publish the box: for /etc/avahi/services/edge-memory.service (avahi.service(5)).

    Raises InvalidArgument as `pairs` does.
    """
    records = "\n".join(
        f"    <txt-record>{xml_escape(f'{key}={value}')}</txt-record>" for key, value in pairs(txt).items()
    )
    return f"""<?xml version="1.0" standalone="no"?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group>
  <name>{xml_escape(instance_name(name))}</name>
  <service>
    <type>{SERVICE_TYPE.removesuffix(".local.")}</type>
    <port>{port}</port>
{records}
  </service>
</service-group>
"""
