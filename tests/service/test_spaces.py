"""Spaces: listed, made, erased; the idle ones closed without anybody noticing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_calls import SECONDS, Wire, refused

from edge.v1 import appliance_pb2

if TYPE_CHECKING:
    from conftest import Box, BoxFactory

INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
ODD_NAMES = [
    "../x", "private/../x", "%2e%2e", "private/%2e%2e", "private/a\0b", "private/" + "a" * 300, "private/", "private/A",
    "private/a/b", "private/.going-1", "home", "/public", "public/", " public", "private/ａ", "private/-a",
]  # fmt: skip


def names(wire: Wire) -> list[str]:
    answer = wire.appliance.ListSpaces(appliance_pb2.ListSpacesRequest(), timeout=SECONDS)
    return [space.name for space in answer.spaces]


def test_a_space_is_made_listed_and_erased(start_box: BoxFactory) -> None:
    box = start_box()
    with Wire(box.address) as wire:
        made = wire.appliance.CreateSpace(appliance_pb2.CreateSpaceRequest(name="private/desk"), timeout=SECONDS).space
        assert (made.name, made.memories) == ("private/desk", 0)
        wire.say("桌上有一盏绿色的台灯", space="private/desk")
        wire.say("大家都看得到的事", space="public")
        assert names(wire) == ["private/desk", "public"]
        listed = wire.appliance.ListSpaces(appliance_pb2.ListSpacesRequest(), timeout=SECONDS).spaces
        assert listed[0].memories == 1
        assert listed[0].bytes > 0
        assert abs(listed[0].created_at.seconds - time.time()) < 2 * 86_400

        wire.appliance.DeleteSpace(appliance_pb2.DeleteSpaceRequest(name="private/desk"), timeout=SECONDS)
        assert names(wire) == ["public"]
        assert wire.texts("台灯") == ["大家都看得到的事"]
        assert not wire.listed("private/desk")
        assert not list(box.data.glob("spaces/private/*"))
    assert box.stop() == 0
    assert "台灯".encode() not in b"".join(path.read_bytes() for path in box.data.rglob("*") if path.is_file())


def test_making_a_space_that_is_there_changes_nothing(wire: Wire, space: str) -> None:
    wire.say("第一句", space=space)
    made = wire.appliance.CreateSpace(appliance_pb2.CreateSpaceRequest(name=space), timeout=SECONDS).space
    assert made.memories == 1


@pytest.mark.parametrize("name", ["", *ODD_NAMES])
def test_a_name_that_is_no_space_s_is_refused(wire: Wire, shared_box: Box, name: str) -> None:
    with refused(INVALID, "name"):
        wire.appliance.CreateSpace(appliance_pb2.CreateSpaceRequest(name=name), timeout=SECONDS)
    with refused(INVALID, "name"):
        wire.appliance.DeleteSpace(appliance_pb2.DeleteSpaceRequest(name=name), timeout=SECONDS)
    assert not (shared_box.data / "x").exists()
    assert {path.name for path in (shared_box.data / "spaces").iterdir()} <= {"public", "work", "private"}


def test_erasing_what_is_not_there_says_so(wire: Wire, space: str) -> None:
    with refused(NOT_FOUND, "name"):
        wire.appliance.DeleteSpace(appliance_pb2.DeleteSpaceRequest(name=space), timeout=SECONDS)


def test_a_space_can_be_made_again_after_it_was_erased(wire: Wire, space: str) -> None:
    wire.say("从前的话", space=space)
    wire.appliance.DeleteSpace(appliance_pb2.DeleteSpaceRequest(name=space), timeout=SECONDS)
    wire.say("后来的话", space=space)
    assert [memory.text for memory in wire.listed(space)] == ["后来的话"]


def test_a_crash_amid_erasing_is_finished_at_the_next_start(start_box: BoxFactory) -> None:
    box = start_box()
    with Wire(box.address) as wire:
        wire.say("会被抹掉的话", space="private/gone")
    box.kill()
    # As far as a deletion had come when the power went.
    (box.data / "spaces/private/gone").rename(box.data / "spaces/private/.going-0197c5f0")
    box.restart()
    with Wire(box.address) as wire:
        assert names(wire) == ["public"]
    assert not list((box.data / "spaces/private").iterdir())
