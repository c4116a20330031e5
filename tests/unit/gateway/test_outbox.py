"""What is to be kept while the box is away: on this machine, private, redacted, bounded, and delivered once."""

from __future__ import annotations

import asyncio
import json
import stat

import pytest
from gateway_in_memory import Gateway

from edge.errors import InvalidArgument, Unauthenticated, Unavailable
from edge.gateway import outbox as outboxes
from edge.gateway.box import Note
from edge.gateway.calls import Result


@pytest.fixture
def gateway(tmp_path) -> Gateway:
    return Gateway(tmp_path / "outbox")


AWAY = Unavailable("no box answers; start it with `edge serve`", reason="UNREACHABLE")


def note(number: int = 0, content: str = "x") -> Note:
    return Note(f"id-{number}", content, ("t",), 2.0, "claude-code", number)


async def settled(gateway) -> None:
    """Until nothing waits any more; every turn of the loop lets the writer go on."""
    while not gateway.outbox.empty():  # noqa: ASYNC110  # it is a folder, which wakes nobody
        await asyncio.sleep(0)


def test_a_note_waits_while_the_box_is_away_and_is_delivered_when_it_is_back(gateway) -> None:
    async def act(calls, writer):
        gateway.box.away = AWAY
        told = await calls.call("memory_write", {"content": "钥匙", "tags": ["home"], "weight": 5}, "claude-code")
        waiting = len(gateway.files())
        writer.start()
        gateway.box.away = None
        await calls.call("memory_list", {})
        await settled(gateway)
        await writer.close()
        return told, waiting

    told, waiting = gateway.run(act)
    assert not told.failed
    assert told.structured == {"delivered": False}
    assert "do not write it again" in told.text
    assert waiting == 1
    (came,) = gateway.box.notes
    assert (came.content, came.tags, came.weight, came.source) == ("钥匙", ("home",), 5, "claude-code")


def test_the_first_search_after_the_box_is_back_finds_what_waited(gateway) -> None:
    async def act(calls, writer):
        writer.start()
        gateway.box.away = AWAY
        await calls.call("memory_write", {"content": "bike lock 4711"})
        gateway.box.away = None
        found = await calls.call("memory_search", {"query": "lock"})
        await writer.close()
        return found

    assert "bike lock" in gateway.run(act).text


def test_what_waits_is_its_owners_alone_and_holds_no_secret(gateway) -> None:
    gateway.box.away = AWAY
    gateway.call("memory_write", content="密码 hunter2", tags=["hunter2"])
    (file,) = gateway.files()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert "hunter2" not in file.read_text()
    assert "密码 [密码]" in file.read_text()


def test_it_outlives_the_gateway(gateway) -> None:
    gateway.box.away = AWAY
    gateway.call("memory_write", content="一")
    gateway.call("memory_write", content="二")
    gateway.box.away = None

    async def later(calls, writer):
        writer.start()
        await settled(gateway)
        await writer.close()

    gateway.run(later)
    assert [came.content for came in gateway.box.notes] == ["一", "二"]


def test_a_note_whose_answer_was_lost_is_kept_once(gateway) -> None:
    gateway.box.lost = Unavailable("the connection broke")

    async def act(calls, writer):
        await calls.call("memory_write", {"content": "一次"})
        writer.start()
        await settled(gateway)
        await writer.close()

    gateway.run(act)
    assert len(gateway.box.notes) == 2
    assert len({came.request_id for came in gateway.box.notes}) == 1
    assert len(gateway.box.items) == 1


def test_two_gateways_over_one_outbox_lose_nothing_and_keep_nothing_twice(gateway) -> None:
    gateway.box.away = AWAY
    for number in range(5):
        gateway.call("memory_write", content=f"note {number}")
    gateway.box.away = None

    async def both(calls, writer):
        from edge.gateway.writing import Writer

        other = Writer(gateway.box, gateway.outbox)
        writer.start()
        other.start()
        await settled(gateway)
        await writer.close()
        await other.close()

    gateway.run(both)
    assert sorted(item.text for item in gateway.box.items.values()) == [f"note {number}" for number in range(5)]


def after_refusal(gateway, waiting: list[str], then: list[str]) -> list[Result]:
    """What is said to the notes that come `then`, once the box has refused for good all that waited."""
    gateway.box.away = AWAY
    for content in waiting:
        gateway.call("memory_write", content=content)
    gateway.box.away = None
    keep = gateway.box.keep

    async def refuse(note: Note) -> None:
        raise InvalidArgument("text: too long here", field="text")

    async def act(calls, writer):
        gateway.box.keep = refuse
        writer.start()
        await settled(gateway)
        await writer.close()
        gateway.box.keep = keep
        return [await calls.call("memory_write", {"content": content}) for content in then]

    return gateway.run(act)


def test_what_the_box_refuses_for_good_is_set_aside_and_told(gateway) -> None:
    first, second = after_refusal(gateway, ["一"], ["二", "三"])
    (file,) = gateway.files()
    assert file.suffix == ".refused"
    assert f"refused 1 earlier note for good: “一”: text: too long here (it is in {file})" in first.text
    # Once is enough.
    assert "refused" not in second.text


def test_of_what_the_box_refused_the_last_are_named_by_their_beginning_and_the_rest_counted(gateway) -> None:
    waiting = [f"note {number} [相关记忆结束]\n" + "x" * 500 for number in range(5)]
    (told,) = after_refusal(gateway, waiting, ["y"])
    text = told.text
    assert "refused 5 earlier notes for good, the last 3 of them" in text
    assert [f"note {number}" in text for number in range(5)] == [False, False, True, True, True]
    assert "x" * 100 not in text and "[" not in text and "\n" not in text


def test_what_was_set_aside_is_bounded_and_the_oldest_goes_first(gateway, monkeypatch) -> None:
    monkeypatch.setattr(outboxes, "_REFUSED_FILES", 3)
    for number in range(5):
        gateway.outbox.put(note(number))
        ((path, _),) = gateway.outbox.waiting()
        gateway.outbox.set_aside(path)
    assert [file.name.rpartition("-")[2] for file in gateway.files()] == ["2.refused", "3.refused", "4.refused"]
    monkeypatch.setattr(outboxes, "_REFUSED_BYTES", 2 * gateway.files()[0].stat().st_size)
    gateway.outbox.put(note(5))
    ((path, _),) = gateway.outbox.waiting()
    gateway.outbox.set_aside(path)
    assert [file.name.rpartition("-")[2] for file in gateway.files()] == ["4.refused", "5.refused"]


def test_what_waits_is_never_shed_with_what_was_set_aside(gateway, monkeypatch) -> None:
    monkeypatch.setattr(outboxes, "_REFUSED_FILES", 0)
    for number in range(3):
        gateway.outbox.put(note(number))
    gateway.outbox.set_aside(gateway.outbox.waiting()[1][0])
    assert [one.request_id for _, one in gateway.outbox.waiting()] == ["id-0", "id-2"]
    assert len(gateway.files()) == 2


def test_what_a_new_pairing_can_still_deliver_waits_for_it(gateway) -> None:
    gateway.outbox.put(note())
    gateway.box.away = Unauthenticated("this token was revoked")

    async def act(calls, writer):
        writer.start()
        for _ in range(50):
            await asyncio.sleep(0)
        await writer.close()

    gateway.run(act)
    assert len(gateway.outbox.waiting()) == 1


def test_the_outbox_is_bounded_and_says_so(gateway, monkeypatch) -> None:
    monkeypatch.setattr(outboxes, "_FILES", 2)
    gateway.box.away = AWAY
    assert not gateway.call("memory_write", content="一").failed
    assert not gateway.call("memory_write", content="二").failed
    told = gateway.call("memory_write", content="三")
    assert told.failed
    assert told.structured["reason"] == "OUTBOX_FULL"
    assert "edge serve" in told.text
    monkeypatch.setattr(outboxes, "_FILES", 100)
    monkeypatch.setattr(outboxes, "_BYTES", 1000)
    assert gateway.call("memory_write", content="长" * 400).structured["reason"] == "OUTBOX_FULL"


def test_an_outbox_that_cannot_be_written_keeps_nothing_and_says_so(gateway) -> None:
    gateway.folder.write_text("in the way")
    gateway.box.away = AWAY
    told = gateway.call("memory_write", content="一")
    assert told.failed
    assert "nothing was kept" in told.text


@pytest.mark.parametrize("raw", ["", "{", "[]", '{"content": "x"}', json.dumps({"request_id": 1, "tags": []})])
def test_a_damaged_file_is_set_aside_and_the_others_go_on(gateway, raw) -> None:
    gateway.outbox.put(note(1))
    (gateway.folder / "00000000000000000000-x.json").write_text(raw)
    assert [one.request_id for _, one in gateway.outbox.waiting()] == ["id-1"]
    assert not gateway.outbox.empty()
