"""Merging in a real box with the real model: what its owner sees of it, and takes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conftest import Box, BoxFactory

from edge.client import Client
from edge.v1 import types_pb2

CONFIRMED, SUPERSEDED = types_pb2.MEMORY_STATE_CONFIRMED, types_pb2.MEMORY_STATE_SUPERSEDED
# Waited for only when something is broken.
CAP_SECONDS = 60.0


def until(wanted: Callable[[], Any]) -> Any:
    """What it gives, as soon as that is anything."""
    end = time.monotonic() + CAP_SECONDS
    while not (found := wanted()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)
    return found


def made(client: Client, why: str) -> list[Any]:
    return [deed for deed in client.deeds(limit=200) if deed.why == why]


def texts(client: Client, **which: Any) -> list[str]:
    return sorted(memory.text for memory in client.list(**which))


def said(client: Client, *sentences: str) -> list[str]:
    """The ids of what the user said, each in a session of its own."""
    turns = [
        {"source": "chat", "session": f"s-{sentence}", "seq": 0, "role": "user", "text": sentence}
        for sentence in sentences
    ]
    return [result.memory_ids[0] for result in client.ingest(turns, wait="searchable")]


def test_what_is_said_twice_is_one_memory_and_its_history_is_kept(box: Box) -> None:
    with Client(box.address) as client:
        (older,) = client.remember("我对花生过敏", weight=7)
        (newer,) = client.remember("我对花生过敏。")
        (deed,) = until(lambda: made(client, "merged"))

        assert texts(client) == ["我对花生过敏。"]
        assert [hit.memory.id for hit in client.recall("花生").hits] == [newer.id]
        was, now = client.get(older.id), client.get(newer.id)
        assert (was.state, was.replaced_by, was.text) == (SUPERSEDED, newer.id, "我对花生过敏")
        assert (now.state, now.weight, list(now.replaces)) == (CONFIRMED, 7.0, [older.id])
        assert (deed.by, deed.abstract) == ("rule", "我对花生过敏 → 我对花生过敏。") and not deed.obstacle
        (space,) = client.status().spaces
        assert dict(space.revised) == {"merged": 1}

        client.undo(deed.id)
        assert texts(client) == ["我对花生过敏", "我对花生过敏。"]
        # It would have been looked at again by the time that another pair is merged.
        client.recall("花生", wait_for=[older.id])
        client.remember("我家的猫叫豆包")
        client.remember("我家的猫叫豆包。")
        until(lambda: len(made(client, "merged")) == 2)
        assert texts(client) == ["我家的猫叫豆包。", "我对花生过敏", "我对花生过敏。"]


def test_what_contradicts_takes_the_place_of_what_was_known(box: Box) -> None:
    with Client(box.address) as client:
        (older,) = client.remember("我住在北京")
        (newer,) = client.remember("我住在上海")
        (deed,) = until(lambda: made(client, "replaced"))
        assert deed.abstract == "我住在北京 → 我住在上海"
        was, now = client.get(older.id), client.get(newer.id)
        assert was.valid_until == now.valid_from == now.occurred_at and was.replaced_by == newer.id


def test_what_was_said_three_times_is_promoted_from_candidates(box: Box) -> None:
    with Client(box.address) as client:
        *_, newest = said(client, "我对花生过敏", "我对花生过敏！", "我对花生过敏。")
        (deed,) = until(lambda: made(client, "promoted"))
        assert deed.by == "rule" and deed.description == "promoted 1 memory from candidates"
        assert until(lambda: len(texts(client)) == 1) and not list(client.candidates())
        client.undo(deed.id)
        assert len(list(client.candidates())) == 1
        assert newest in {memory.id for memory in client.list(states=["candidate", "superseded"])}


def test_nothing_is_merged_where_the_owner_does_not_want_it(start_box: BoxFactory, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[admission]\nmerge = false\n")
    box = start_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(config), data=tmp_path / "d")
    with Client(box.address) as client:
        client.remember("我对花生过敏")
        client.remember("我对花生过敏。")
        assert len(texts(client)) == 2
    box.stop()
    # Once it is wanted again, what was said meanwhile is merged too.
    config.write_text("")
    box.start()
    with Client(box.address) as client:
        assert until(lambda: made(client, "merged"))
        assert texts(client) == ["我对花生过敏。"]
