"""What `edge status` says of a status."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from statuses import a_status

from edge.cli.show import as_json
from edge.cli.words import counted, span, status_dict, status_text
from edge.v1 import appliance_pb2


def test_the_owner_sees_the_level_with_its_reason_the_budget_the_heat_and_the_memory() -> None:
    text = status_text(a_status())
    assert "warm since 2026-01-01" in text or "warm since 2025-12-31" in text
    assert "tj-thermal is at 78.5 C, 2.5 below its limit" in text
    assert "384 tokens a batch, 2 threads, 62% of the time; snapshots and rebuilds wait" in text
    assert "78.5 °C, limit 81.0 °C" in text
    assert "212.0 MiB resident, 3.0 GiB available" in text


def test_only_sensors_with_a_problem_get_a_line_and_json_has_all() -> None:
    text = status_text(a_status())
    assert "1 of 2 sensors read" in text
    assert "cv0-thermal  cannot be read (EAGAIN); it is passed over" in text
    assert "\ntj-thermal" not in text
    assert [sensor["name"] for sensor in status_dict(a_status())["governor"]["sensors"]] == [
        "tj-thermal",
        "cv0-thermal",
    ]


def test_one_of_a_thing_is_one_thing() -> None:
    text = status_text(a_status())
    assert "1 thread on cpu" in text and "1 recall waiting" in text and "1 stream open" in text
    assert "1 damaged line:" in text
    assert [counted(number, "turn") for number in (0, 1, 2, 1234)] == ["0 turns", "1 turn", "2 turns", "1,234 turns"]


def test_the_queue_counts_all_that_has_no_vector_and_how_long_all_of_it_takes() -> None:
    assert "queue     400 to embed, 16 s left, 1 recall waiting, 2,500 tokens/s" in status_text(a_status())
    assert "nothing to embed" in status_text(appliance_pb2.Status(version="0.1.0"))


def test_a_device_without_sensors_leaves_out_what_nobody_knows() -> None:
    status = appliance_pb2.Status(version="0.1.0", ready=True)
    status.governor.reason = "fixed by the configuration"
    status.governor.level = appliance_pb2.PRESSURE_NOMINAL
    text = status_text(status)
    assert "level     nominal: fixed by the configuration" in text
    assert "heat" not in text and "available" not in text and "sensor" not in text
    governor = status_dict(status)["governor"]
    assert (governor["temperature"], governor["memory_available"], governor["since"]) == (None, None, None)


def test_an_older_box_that_tells_nothing_of_a_governor_is_shown_without_one() -> None:
    status = appliance_pb2.Status(version="0.1.0", ready=True)
    assert "level" not in status_text(status)
    assert status_dict(status)["governor"] is None


def test_a_level_of_a_later_version_is_shown_by_its_number() -> None:
    assert status_dict(a_status(level=9))["governor"]["level"] == "level 9"


def two_models() -> Any:
    status = a_status()
    status.models.add().CopyFrom(status.model)
    status.models.add(id="bge-small-en-v1.5-q", dimension=384, device="cpu", workers=1, language="en")
    for space in (status.spaces[0], status.spaces.add(name="work", memories=10)):
        space.models.add(id="bge-small-zh-v1.5-q", vectors=700, pending=300)
        space.models.add(id="bge-small-en-v1.5-q", vectors=1, pending=0)
    return status


def test_of_two_models_each_is_told_with_its_vectors() -> None:
    lines = [line for line in status_text(two_models()).splitlines() if line.startswith("model")]
    assert [line.split()[1] for line in lines] == ["bge-small-zh-v1.5-q", "bge-small-en-v1.5-q"]
    assert "1,400 vectors, 600 pending" in lines[0]
    assert "2 vectors, 0 pending" in lines[1]
    read = json.loads(as_json(status_dict(two_models())))
    assert [model["id"] for model in read["models"]] == ["bge-small-zh-v1.5-q", "bge-small-en-v1.5-q"]
    assert read["spaces"][1]["models"][1] == {"id": "bge-small-en-v1.5-q", "vectors": 1, "pending": 0}


def test_a_single_model_is_told_as_ever_also_by_an_older_box() -> None:
    assert "pending" not in next(line for line in status_text(a_status()).splitlines() if line.startswith("model"))
    assert [model["id"] for model in status_dict(a_status())["models"]] == ["bge-small-zh-v1.5-q"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_json_does_not_know_becomes_null(value: float) -> None:
    status = a_status(temperature=value, duty=value)
    status.queue.tokens_per_second = value
    status.governor.sensors[0].value = value
    read = json.loads(as_json(status_dict(status)))
    assert read["governor"]["temperature"] is None and read["governor"]["duty"] is None
    assert read["governor"]["sensors"][0]["value"] is None
    assert read["queue"]["tokens_per_second"] is None
    assert "heat" not in status_text(status)


def test_nothing_that_a_box_says_moves_the_cursor() -> None:
    status = a_status(reason="hot \x1b[2J\u202e")
    status.governor.sensors.add(name="\x1b[1A", problem="a\nb")
    status.warnings.append("x\x9b")
    assert not set(status_text(status)) & set("\x1b\u202e\x9b")


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (8000, "2 h 13 min"),
        (90 * 3600, "3 d 18 h"),
    ],
)
def test_a_span_of_time_is_said_in_two_units_at_most(length: float, said: str) -> None:
    assert span(length) == said


def test_what_was_not_kept_is_counted_over_all_spaces_the_most_frequent_first() -> None:
    status = a_status()
    for space, filtered, hidden in (
        (status.spaces[0], {"greeting": 1, "tool_dump": 2000}, {"bank_card": 1, "badge": 2}),
        (status.spaces.add(name="work"), {"greeting": 11}, {"address": 2, "token": 1}),
    ):
        space.filtered.update(filtered)
        space.hidden.update(hidden)
    status.spaces[0].samples.add(rule="greeting", source="chat", session="s", seq=7, length=2)
    text = status_text(status)
    assert "\nfiltered  2,000 tool dump, 12 greeting\n" in text
    assert "\nhidden    2 address lines, 2 badge, 1 bank card, 1 API key\n" in text
    read = json.loads(as_json(status_dict(status)))["spaces"][0]
    assert read["filtered"] == {"greeting": 1, "tool_dump": 2000}
    assert read["hidden"] == {"badge": 2, "bank_card": 1}
    assert read["filtered_samples"] == [{"rule": "greeting", "source": "chat", "session": "s", "seq": 7, "length": 2}]


def test_where_all_was_kept_there_is_nothing_to_tell() -> None:
    text = status_text(a_status())
    assert "filtered" not in text and "hidden" not in text
