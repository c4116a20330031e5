"""The live picture: it fits the terminal, says what matters first, and survives whatever a box says."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from statuses import MIB, a_status

from edge.cli.view import View
from edge.v1 import appliance_pb2


def a_view(encoding: str = "utf-8", interval: float = 2.0) -> View:
    return View(Console(file=io.TextIOWrapper(io.BytesIO(), encoding), width=100, height=30), interval)


def picture(view: View, width: int = 100, height: int = 30, now: float = 1000.0) -> list[str]:
    return [line.plain.rstrip() for line in view.lines(width, height, now)]


def test_it_shows_level_temperature_memory_budget_queue_and_recalls() -> None:
    view = a_view()
    view.take(a_status(), at=1000.0)
    lines = picture(view)
    assert lines[0].startswith("edge 0.1.0, ready, up 2 h 13 min")
    assert any(line.startswith("warm since") and "tj-thermal is at 78.5 C" in line for line in lines)
    found = {line.split()[0]: line for line in lines if line.endswith(("▁", "█", "▇"))}
    assert list(found) == ["temperature", "available", "resident", "budget", "queue", "recalls"]
    assert "78.5 °C, limit 81.0 °C" in found["temperature"]
    assert "2 × 384 tokens × 62%" in found["budget"]
    # 200 of the 400 are in the queue, for 8 seconds.
    assert "400 to embed, 16 s left" in found["queue"]


def test_a_graph_grows_from_the_right_and_falls_with_its_value() -> None:
    view = a_view()
    for number in range(61):
        view.take(a_status(duty=1.0 if number < 30 else 0.5), at=1000.0 + 2 * number)
    (line,) = (line for line in picture(view, now=1120.0) if line.startswith("budget"))
    graph = line[39:]
    assert len(graph) == 61
    assert set(graph[:29]) == {"█"} and set(graph[32:]) == {"▅"}


@pytest.mark.parametrize("width", [40, 55])
def test_on_a_narrow_terminal_a_graph_has_a_line_of_its_own(width: int) -> None:
    view = a_view()
    view.take(a_status(), at=1000.0)
    lines = picture(view, width)
    place = next(number for number, line in enumerate(lines) if line.startswith("budget"))
    assert lines[place].endswith("62%")
    assert lines[place + 1].strip() == "█"


@given(st.integers(10, 200), st.integers(3, 60), st.integers(0, 300))
def test_no_line_is_too_wide_and_no_picture_too_high(width: int, height: int, spaces: int) -> None:
    view = a_view()
    status = a_status(reason="读数很热，" * 20)
    for number in range(spaces):
        status.spaces.add(name=f"private/{number}")
    view.take(status, at=1000.0)
    lines = view.lines(width, height, 1000.0)
    assert len(lines) <= height
    assert all(line.cell_len <= width for line in lines)


def test_what_does_not_fit_is_counted() -> None:
    view = a_view()
    status = a_status()
    for number in range(100):
        status.spaces.add(name=f"private/{number}")
    view.take(status, at=1000.0)
    assert picture(view, height=20)[-1].startswith("… ") and picture(view, height=20)[-1].endswith(" more lines")


def test_warnings_come_before_spaces_and_sensors_without_a_reading_are_named() -> None:
    view = a_view()
    status = a_status()
    status.warnings.append("the model has not answered for 34 s; restart the box if it stays")
    view.take(status, at=1000.0)
    text = "\n".join(picture(view))
    assert text.index("warning: the model") < text.index("no reading: cv0-thermal") < text.index("space ")


def test_a_silent_box_is_said_to_be_silent_until_it_speaks_again() -> None:
    view = a_view()
    view.take(a_status(), at=1000.0)
    assert not any("no word" in line for line in picture(view, now=1004.0))
    assert picture(view, now=1030.0)[1] == "no word from the box for 30 s; waiting for it"
    view.away()
    assert picture(view, now=1001.0)[1].startswith("no word from the box")
    view.take(a_status(), at=1031.0)
    assert not any("no word" in line for line in picture(view, now=1031.0))


def test_a_device_without_sensors_has_no_graph_of_what_it_cannot_tell() -> None:
    view = a_view()
    status = appliance_pb2.Status(version="0.1.0", ready=True, resident_bytes=200 * MIB)
    view.take(status, at=1000.0)
    names = [line.split()[0] for line in picture(view) if line]
    assert {"resident", "queue", "recalls"} <= set(names)
    assert not {"temperature", "available", "budget"} & set(names)


def test_a_terminal_without_blocks_gets_ascii_graphs() -> None:
    view = a_view("ascii")
    view.take(a_status(), at=1000.0)
    assert not any(set("▁▂▃▄▅▆▇█") & set(line) for line in picture(view))


@given(st.floats(), st.floats(), st.floats())
def test_no_number_of_a_sensor_breaks_the_picture(temperature: float, limit: float, duty: float) -> None:
    view = a_view()
    view.take(a_status(temperature=temperature, temperature_limit=limit, duty=duty), at=1000.0)
    assert picture(view)


def test_nothing_that_a_box_says_moves_the_cursor() -> None:
    view = a_view()
    status = a_status(reason="hot \x1b[2J\u202e [red]x[/red]")
    status.warnings.append("x\x9b\n")
    view.take(status, at=1000.0)
    text = "\n".join(picture(view))
    assert not set(text) & set("\x1b\u202e\x9b")
    assert "[red]x[/red]" in text


def test_old_statuses_are_let_go() -> None:
    view = a_view(interval=0.2)
    for number in range(2000):
        view.take(a_status(), at=1000.0 + 0.2 * number)
    assert len(view._history) <= 601
