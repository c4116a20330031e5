"""What the box keeps of what comes in: secrets nowhere on its disk, noise only counted, tiers given at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgpack
import pytest
from grpc_calls import SECONDS, IngestState, Wire, message, reason_of, turn

from edge.v1 import appliance_pb2, memory_pb2, types_pb2

if TYPE_CHECKING:
    from conftest import Box, BoxFactory

STORED = IngestState.INGEST_STATE_STORED
SEARCHABLE = IngestState.INGEST_STATE_SEARCHABLE
DUPLICATE = IngestState.INGEST_STATE_DUPLICATE
FILTERED = IngestState.INGEST_STATE_FILTERED
CARD = "6222020000000000000"


def facts(wire: Wire, space: str) -> appliance_pb2.SpaceStatus:
    return next(one for one in wire.status().spaces if one.name == space)


def edge(box: Box, *arguments: str, given: str = "") -> str:
    """What `edge …` prints."""
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", *arguments, "--address", box.address],
        input=given, capture_output=True, encoding="utf-8", timeout=SECONDS, check=True,
    )  # fmt: skip
    return done.stdout


# Secrets.


def test_a_card_is_hidden_and_counted_wherever_it_stands_in_a_turn(wire: Wire, space: str) -> None:
    said = turn(f"卡号{CARD}元", session="s", space=space, tags=[CARD, "账单"], attributes=msgpack.packb({"pan": CARD}))
    (first,), (second,) = wire.ingest(said)
    assert (second.state, dict(second.hidden), dict(first.hidden)) == (SEARCHABLE, {"bank_card": 3}, {"bank_card": 3})
    (memory,) = wire.listed(space)
    assert (memory.text, list(memory.tags)) == ("卡号[银行卡]元", ["[银行卡]", "账单"])
    assert msgpack.unpackb(memory.attributes) == {"pan": "[银行卡]"}
    assert dict(facts(wire, space).hidden) == {"bank_card": 3}


def test_the_fingerprint_is_that_of_what_was_kept_and_the_turn_again_is_a_duplicate(wire: Wire, space: str) -> None:
    said = turn(f"卡号{CARD}元", session="s", space=space)
    (first,), _ = wire.ingest(said)
    clean, _ = wire.ingest(turn("卡号[银行卡]元", session="s", space=space))
    again, _ = wire.ingest(said)
    assert [one.state for one in (*clean, *again)] == [DUPLICATE, DUPLICATE]
    assert {one.fingerprint for one in (*clean, *again)} == {first.fingerprint}
    assert dict(facts(wire, space).hidden) == {"bank_card": 1}


def test_what_is_remembered_loses_its_secrets_too_and_says_so(shared_box: Box, wire: Wire, space: str) -> None:
    request = memory_pb2.RememberRequest(text=f"工资卡是{CARD}", tags=[CARD], space=space)
    response = wire.memory.Remember(request, timeout=SECONDS)
    (memory,) = response.memories
    assert (memory.text, list(memory.tags), dict(response.hidden)) == (
        "工资卡是[银行卡]",
        ["[银行卡]"],
        {"bank_card": 2},
    )
    shown = edge(shared_box, "remember", f"备用卡是{CARD}", "--space", space)
    assert "hidden: 1 bank card\n" in shown


def test_a_long_text_is_redacted_before_it_is_cut(wire: Wire, space: str) -> None:
    words = "我把备用钥匙放在阳台第三个花盆下面了，记得浇水。" * 300
    wire.say(f"{words}{CARD}{words}", space=space)
    memories = wire.listed(space)
    assert sum(memory.text.count("[银行卡]") for memory in memories) == 1
    assert not any(CARD[:8] in memory.text for memory in memories)


# Noise.


def test_noise_is_filtered_with_its_rule_and_its_neighbours_go_on(wire: Wire, space: str) -> None:
    said = [turn(text, seq=seq, session="s", space=space) for seq, text in enumerate(("今天去了植物园", "你好", "👍"))]
    first, second = wire.ingest(*said)
    assert [one.state for one in first] == [STORED, FILTERED, FILTERED]
    assert [one.state for one in second] == [SEARCHABLE, FILTERED, FILTERED]
    assert [one.rule for one in first] == ["", "greeting", "too_short"]
    assert reason_of(first[1].error) == "NOISE"
    assert first[1].error.message.startswith("kept out as noise (greeting): ")
    assert not first[1].memory_ids
    assert [memory.text for memory in wire.listed(space)] == ["今天去了植物园"]


def test_noise_that_comes_again_is_filtered_again_counted_once_and_takes_no_turn_s_place(
    wire: Wire, space: str
) -> None:
    wire.ingest(turn("今天去了植物园", session="s", space=space))
    for _ in range(2):
        (result,), _ = wire.ingest(turn("谢谢", session="s", space=space))
        assert result.state == FILTERED
    assert wire.texts("植物园", space) == ["今天去了植物园"]
    assert dict(facts(wire, space).filtered) == {"greeting": 1}


def test_the_last_of_each_rule_are_told_without_their_text(wire: Wire, space: str) -> None:
    wire.ingest(*(turn("谢谢", seq=seq, session="s", space=space) for seq in range(5)))
    told = [(one.rule, one.source, one.session, one.seq, one.length) for one in facts(wire, space).samples]
    assert told == [("greeting", "test", "s", seq, 2) for seq in (2, 3, 4)]


def test_what_was_counted_survives_a_restart_and_views_made_anew(box: Box) -> None:
    with Wire(box.address) as wire:
        wire.ingest(*(turn(text, space="work") for text in ("谢谢", f"卡号{CARD}元", "你好", "窗户关好了")))
        log = (box.data / "spaces/work/log").glob("*.jsonl")
        tallied = [json.loads(line) for path in log for line in path.read_text().splitlines() if '"tallied"' in line]
        assert [event["counts"] for event in tallied] == [{"noise/greeting": 2, "secret/bank_card": 1}]
    box.restart()
    with Wire(box.address) as wire:
        for _ in range(2):
            told = facts(wire, "work")
            assert (dict(told.filtered), dict(told.hidden)) == ({"greeting": 2}, {"bank_card": 1})
            request = appliance_pb2.RebuildRequest(spaces=["work"], scope=appliance_pb2.REBUILD_SCOPE_LOG)
            wire.appliance.Rebuild(request, timeout=SECONDS)


def test_the_command_line_says_what_was_filtered_and_hidden(shared_box: Box, wire: Wire, space: str) -> None:
    texts = ("你好", "谢谢", "👍", f"卡号{CARD}元", "窗户关好了")
    lines = "".join(json.dumps({"text": text, "space": space}) + "\n" for text in texts)
    shown = edge(shared_box, "ingest", "-", given=lines)
    assert "2 searchable" in shown and "3 filtered" in shown
    assert "\nfiltered: 2 greeting, 1 too short\n" in shown and "\nhidden: 1 bank card\n" in shown
    read = json.loads(edge(shared_box, "ingest", "-", "--json", given=lines))
    assert (read["filtered"], read["hidden"]) == ({"greeting": 2, "too_short": 1}, {"bank_card": 1})
    status = json.loads(edge(shared_box, "status", "--json"))
    told = next(one for one in status["spaces"] if one["name"] == space)
    assert (told["filtered"], told["hidden"]) == ({"greeting": 4, "too_short": 2}, {"bank_card": 2})
    assert {one["rule"] for one in told["filtered_samples"]} == {"greeting", "too_short"}
    text = edge(shared_box, "status")
    assert "\nfiltered  " in text and "\nhidden    " in text


# Tiers.


@pytest.mark.parametrize(
    ("text", "role", "state", "weight"),
    [
        ("记住：备用钥匙在花盆下面", "user", types_pb2.MEMORY_STATE_CONFIRMED, 5.0),
        ("Remember that the spare key is under the pot.", "user", types_pb2.MEMORY_STATE_CONFIRMED, 5.0),
        ("我对花生过敏", "user", types_pb2.MEMORY_STATE_CANDIDATE, 2.0),
        ("记住：备用钥匙在花盆下面", "assistant", types_pb2.MEMORY_STATE_TEMPORARY, 1.0),
        ("今天去了植物园", "user", types_pb2.MEMORY_STATE_TEMPORARY, 1.0),
    ],
)
def test_a_turn_gets_the_tier_that_its_words_ask_for(
    wire: Wire, space: str, text: str, role: str, state: int, weight: float
) -> None:
    wire.say(text, space=space, role=role)
    (memory,) = wire.listed(space)
    assert (memory.text, memory.state, memory.weight) == (text, state, weight)


# The configuration.


def configured(start_box: BoxFactory, folder: Path, text: str) -> Box:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    return start_box("--no-auth", "--listen", "127.0.0.1:0", "--config", str(path))


def test_the_owner_s_configuration_holds(start_box: BoxFactory, tmp_path: Path) -> None:
    box = configured(
        start_box,
        tmp_path,
        "[recall]\nlanguage = 'en'\n[admission]\noptional = ['phone']\nkeep = ['greeting']\ntiers = false\n"
        "[admission.patterns]\nbadge = 'E-[0-9]{6}'\n",
    )
    texts = ("call 13812345678", "badge E-123456", "hello", "👍", "I am allergic to peanuts")
    with Wire(box.address) as wire:
        first, _ = wire.ingest(*(turn(text, seq=seq, session="s", space="work") for seq, text in enumerate(texts)))
        assert [one.state for one in first] == [STORED, STORED, STORED, FILTERED, STORED]
        kept = {memory.seq: memory for memory in wire.listed("work")}
        assert [kept[seq].text for seq in (0, 1, 2)] == ["call [phone number]", "badge [badge]", "hello"]
        assert kept[4].state == types_pb2.MEMORY_STATE_TEMPORARY
        assert dict(facts(wire, "work").hidden) == {"badge": 1, "phone": 1}


def test_with_everything_off_what_was_said_is_what_is_kept(start_box: BoxFactory, tmp_path: Path) -> None:
    box = configured(start_box, tmp_path, "[admission]\nredact = false\ntiers = false\n")
    with Wire(box.address) as wire:
        wire.say(f"卡号{CARD}元", space="work")
        assert [memory.text for memory in wire.listed("work")] == [f"卡号{CARD}元"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[admission]\nkeep = ['greetings']\n", ("admission.keep", "greeting,")),
        ("[admission]\noptional = ['names']\n", ("admission.optional", "phone")),
        ("[admission.patterns]\nbadge = '('\n", ("admission.patterns.badge", "regular expression")),
    ],
)
def test_a_configuration_that_cannot_be_meant_keeps_the_box_from_starting(
    model_directory: Path, tmp_path: Path, text: str, names: Sequence[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    arguments = ["serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--config", str(path)]
    environment = {"EDGE_MODELS": str(model_directory), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", *arguments],
        capture_output=True, encoding="utf-8", timeout=SECONDS, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "Traceback" not in done.stderr
    for name in names:
        assert name in done.stderr


def test_a_catastrophic_pattern_holds_nobody_up_and_lets_nothing_through(start_box: BoxFactory, tmp_path: Path) -> None:
    box = configured(start_box, tmp_path, "[admission.patterns]\nslow = '(x+x+)+y'\n")
    with Wire(box.address) as wire:
        bad = turn("x" * 4000, space="work", session="bad")
        call = wire.memory.Ingest(iter([message(bad)]), timeout=SECONDS)
        # Another stream is answered beside it.
        wire.say("窗户关好了", space="work")
        (first, second) = call
        assert (first.results[0].state, second.results[0].state) == (STORED, SEARCHABLE)
        assert {memory.text for memory in wire.listed("work")} == {"[slow]", "窗户关好了"}
        assert "The redaction pattern slow took more than" in box.log
        assert "xxxx" not in box.log
