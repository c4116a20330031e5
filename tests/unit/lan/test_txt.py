"""Names and TXT records: ours fit the wire, a peer's are harmless whatever they hold."""

from __future__ import annotations

import string
import unicodedata
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.errors import InvalidArgument
from edge.lan.txt import NAME_BYTES, TXT_BYTES, Txt, avahi_service, decode, encode, instance_name, renamed, visible

TEMPLATE = Path(__file__).parents[3] / "share" / "avahi" / "edge-memory.service"
BOX = Txt(id="0197c5f0-2b7a-7c3e-9d52-0c8d6f0a1b2c", version="0.1.0", api="v1", tls=True, fingerprint="ab" * 32)

letters = string.ascii_letters + string.digits
words = st.builds(str.__add__, st.sampled_from(letters), st.text(letters + ".+-", max_size=23))
records = st.builds(
    Txt,
    id=st.text(letters + "-", min_size=1, max_size=40),
    version=words,
    api=words,
    tls=st.booleans(),
    fingerprint=st.text("0123456789abcdef", min_size=16, max_size=64),
)


def obeyed(text: str) -> list[str]:
    """The characters that a terminal would act on instead of showing them, joiners aside."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\u200c\u200d"]


@given(records)
def test_what_one_box_says_another_reads_and_it_fits_200_bytes(txt: Txt) -> None:
    raw = encode(txt)
    assert len(raw) <= TXT_BYTES
    assert decode(raw) == (txt, "")


def test_the_version_of_the_record_goes_first_as_rfc_6763_wants_it() -> None:
    assert encode(BOX).startswith(b"\x09txtvers=1\x27")


@pytest.mark.parametrize(
    ("field", "txt"),
    [
        ("id", Txt("", "1", "v1", False, "")),
        ("id", Txt("a=b", "1", "v1", False, "")),
        ("id", Txt("a" * 41, "1", "v1", False, "")),
        ("ver", Txt("a", "1\n2", "v1", False, "")),
        ("api", Txt("a", "1", "", False, "")),
        ("fp", Txt("a", "1", "v1", True, "")),
        ("fp", Txt("a", "1", "v1", True, "not hex at all, is it")),
    ],
)
def test_what_must_not_be_published_is_refused_by_the_name_of_its_field(field: str, txt: Txt) -> None:
    with pytest.raises(InvalidArgument) as refused:
        encode(txt)
    assert refused.value.field == field


def test_a_box_without_tls_has_no_fingerprint_to_publish() -> None:
    assert b"fp=" not in encode(Txt("a", "1", "v1", False, ""))


@given(st.binary(max_size=3000))
@example(b"\xff" * 3000)
@example(b"\x09txtvers=2")
@example("\x08id=\u202eevil".encode())
def test_no_bytes_of_a_peer_are_too_bad_to_be_read_and_shown(raw: bytes) -> None:
    txt, problem = decode(raw)
    for shown in (txt.id, txt.version, txt.api, txt.fingerprint, problem):
        assert len(shown) <= 128
        assert not obeyed(shown)


@given(records, st.lists(st.binary(min_size=1, max_size=60), max_size=5))
def test_keys_of_a_later_version_change_nothing(txt: Txt, more: list[bytes]) -> None:
    unknown = b"".join(bytes([len(item) + 2]) + b"x-" + item for item in more)
    assert decode(encode(txt) + unknown) == (txt, "")


def test_of_a_key_said_twice_the_first_counts_in_any_case() -> None:
    txt, problem = decode(encode(BOX) + b"\x05ID=me")
    assert (txt.id, problem) == (BOX.id, "")


def test_each_kind_of_a_wrong_record_is_told_in_words() -> None:
    assert "no TXT record" in decode(b"\x00")[1]
    assert "version 2" in decode(b"\x09txtvers=2\x04id=a")[1]
    assert "no usable id" in decode(b"\x09txtvers=1\x05id=..")[1]
    assert "no usable fingerprint" in decode(b"\x04id=a\x05tls=1")[1]
    assert "3000 bytes" in decode(bytes(3000))[1]


@given(st.text(st.characters(), max_size=200))
@example("e\u0301" * 60)
@example("क्षि" * 20)
@example("\ud800.\x00\u202e")
@example("_sub")
def test_any_text_makes_a_name_of_one_label(text: str) -> None:
    name = instance_name(text)
    assert 1 <= len(name.encode()) <= NAME_BYTES
    assert not obeyed(name)
    assert "." not in name
    assert unicodedata.is_normalized("NFC", name)
    assert visible(name, NAME_BYTES) == name
    assert instance_name(name) == name


@given(st.text(max_size=100), st.integers(2, 9999))
def test_a_renamed_box_still_fits_and_says_its_number(text: str, number: int) -> None:
    name = renamed(instance_name(text), number)
    assert len(name.encode()) <= NAME_BYTES
    assert name.endswith(f" ({number})")


@pytest.mark.parametrize(
    ("given_name", "published"),
    [
        ("客厅的小盒子", "客厅的小盒子"),
        ("  Anna's\tbox\n", "Anna's box"),
        ("raspberrypi.local", "raspberrypi-local"),
        ("", "Edge Memory"),
        ("\x1b\u202e", "Edge Memory"),
        ("記" * 30, "記" * 21),
        # 62 bytes, then a letter with two accents of two bytes each: not even the letter without them.
        ("a" * 62 + "x\u0323\u0348", "a" * 62),
        # A family is one character of 18 bytes to its reader.
        ("a" * 50 + "👨\u200d👩\u200d👧", "a" * 50),
        ("a" * 58 + "👍🏽", "a" * 58),
        ("a" * 58 + "🇩🇪", "a" * 58),
    ],
)
def test_names_are_cut_where_a_reader_would_cut_them(given_name: str, published: str) -> None:
    assert instance_name(given_name) == published


@given(st.text(st.characters(), max_size=100), st.integers(1, 80))
def test_what_is_shown_is_short_and_obeyed_by_no_terminal(text: str, most: int) -> None:
    shown = visible(text, most)
    assert len(shown) <= most
    assert not obeyed(shown)


def service(xml: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for element in ET.fromstring(xml).iter():
        found.setdefault(element.tag, []).append((element.text or "").strip())
    return found


def test_the_file_for_avahi_says_what_the_box_would_say_itself() -> None:
    said = service(avahi_service('厨房 <Box> & "Co"', 7430, BOX))
    assert said["name"] == ['厨房 <Box> & "Co"']
    assert said["type"] == ["_edge-memory._tcp"]
    assert said["port"] == ["7430"]
    raw = b"".join(bytes([len(record)]) + record.encode() for record in said["txt-record"])
    assert decode(raw) == (BOX, "")


def test_the_template_for_avahi_has_the_same_parts() -> None:
    written, template = service(avahi_service("box", 7430, BOX)), service(TEMPLATE.read_text("utf-8"))
    assert template.keys() == written.keys()
    assert (template["type"], template["port"]) == (written["type"], written["port"])
    keys = [[record.partition("=")[0] for record in said["txt-record"]] for said in (template, written)]
    assert keys[0] == keys[1]
