"""Case 11: tags and attributes of the wrong shape or size (chroma-core/chroma#1552).

They are refused by name, and nothing is half stored. On this wire a tag is text, so what is none is made by hand.
"""

from __future__ import annotations

from typing import Any

import grpc
import msgpack
import pytest
from grpc_calls import SECONDS, Wire, refused, rejected, turn

from edge.v1 import memory_pb2, types_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
SPACE = "private/case-11"


def with_field(number: int, kind: int, value: bytes) -> types_pb2.Turn:
    """A turn with one more field, as another program would send it."""
    return types_pb2.Turn.FromString(turn("签", space=SPACE).SerializeToString() + bytes([number << 3 | kind]) + value)


@pytest.mark.parametrize(
    ("said", "field"),
    [
        # {"a": 1} as a message in the place of a tag.
        (with_field(7, 2, b"\x05\x0a\x01a\x10\x01"), "tags[0]"),
        (turn("签", space=SPACE, tags=["ok", ""]), "tags[1]"),
        (turn("签", space=SPACE, tags=[" "]), "tags[0]"),
        (turn("签", space=SPACE, tags=[f"t{n}" for n in range(10_000)]), "tags"),
        (turn("签", space=SPACE, tags=["ok", "t" * 1_000_000]), "tags[1]"),
        (turn("签", space=SPACE, tags=["a\nb"]), "tags[0]"),
        (turn("签", space=SPACE, attributes=msgpack.packb({"": 1})), "attributes"),
        (turn("签", space=SPACE, attributes=msgpack.packb({"a": {"": 1}})), "attributes"),
        (turn("签", space=SPACE, attributes=msgpack.packb(None)), "attributes"),
        (turn("签", space=SPACE, attributes=msgpack.packb([{"a": 1}])), "attributes"),
        (turn("签", space=SPACE, attributes=msgpack.packb({1: 1})), "attributes"),
    ],
)
def test_an_odd_tag_or_attribute_is_refused_by_name_and_nothing_is_stored(
    wire: Wire, said: types_pb2.Turn, field: str
) -> None:
    before = len(wire.listed(SPACE))
    first, second = wire.ingest(said)
    assert rejected(first[0]) == rejected(second[0]) == (INVALID.value[0], field)
    assert len(wire.listed(SPACE)) == before


def test_a_number_in_the_place_of_a_tag_is_another_field_and_passed_over(wire: Wire) -> None:
    """protobuf's rule: a field of an unexpected wire type is unknown, and unknown fields are kept out."""
    said = with_field(7, 0, b"\x07")
    wire.ingest(said)
    memories = wire.listed(SPACE, filter={"sessions": [said.session]})
    assert [list(memory.tags) for memory in memories] == [[]]


@pytest.mark.parametrize(
    ("tags", "field"), [([""], "tags[0]"), (["t"] * 10_000, "tags"), (["ok", "t" * 1_000_000], "tags[1]")]
)
def test_remember_and_filters_refuse_them_too(wire: Wire, tags: list[str], field: str) -> None:
    with refused(INVALID, field):
        wire.memory.Remember(memory_pb2.RememberRequest(text="签", space=SPACE, tags=tags), timeout=SECONDS)
    filters: dict[str, Any] = {"filter": {"tags": tags}}
    with refused(INVALID, f"filter.{field}"):
        wire.recall("签", SPACE, **filters)
    with refused(INVALID, f"filter.{field}"):
        wire.listed(SPACE, **filters)


def test_tags_and_attributes_at_the_limit_are_kept(wire: Wire, space: str) -> None:
    tags = [f"{n:02}" + "签" * 42 for n in range(64)]
    attributes = msgpack.packb({"k": "v" * (64 * 1024 - 6)})
    assert len(attributes) == 64 * 1024
    wire.say("正好", space=space, tags=tags, attributes=attributes)
    (memory,) = wire.listed(space, filter={"tags": tags})
    assert (list(memory.tags), memory.attributes) == (tags, attributes)
