from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge.cli.graphs import columns, sparkline

POINTS = st.lists(st.tuples(st.floats(0, 1e6), st.none() | st.floats(-1e9, 1e9)), max_size=50).map(
    lambda points: sorted(points, key=lambda point: point[0])
)


def test_the_newest_is_at_the_right_and_a_stretch_shows_its_highest() -> None:
    points = [(0.5, 1.0), (1.5, 2.0), (2.2, 9.0), (2.8, 3.0), (3.5, 4.0)]
    assert columns(points, now=3.9, width=4, span=4.0, hold=0.0) == [1.0, 2.0, 9.0, 4.0]


def test_what_is_older_than_the_span_is_not_shown_and_what_is_not_yet_known_is_empty() -> None:
    assert columns([(0.5, 7.0), (9.5, 1.0)], now=9.9, width=4, span=4.0, hold=0.0) == [None, None, None, 1.0]


def test_a_value_stands_until_the_next_but_not_when_the_box_was_away() -> None:
    points = [(0.5, 5.0), (2.5, 6.0)]
    assert columns(points, now=5.9, width=6, span=6.0, hold=2.0) == [5.0, 5.0, 6.0, 6.0, 6.0, None]


def test_a_sensor_that_fell_silent_leaves_a_gap() -> None:
    assert columns([(0.5, 5.0), (1.5, None)], now=2.9, width=3, span=3.0, hold=9.0) == [5.0, None, None]


def test_a_picture_drawn_a_moment_later_moves_by_whole_columns() -> None:
    points = [(float(at), float(at % 7)) for at in range(60)]
    first = columns(points, now=60.1, width=20, span=60.0, hold=3.0)
    assert columns(points, now=61.4, width=20, span=60.0, hold=3.0) == first
    assert columns(points, now=63.1, width=20, span=60.0, hold=3.0)[:-1] == first[1:]


@given(POINTS, st.floats(0, 1e6), st.integers(1, 200), st.floats(0.1, 1e5), st.floats(0, 1e4))
def test_a_graph_has_its_width_and_shows_only_what_was_measured(
    points: list[tuple[float, float | None]], now: float, width: int, span: float, hold: float
) -> None:
    found = columns(points, now, width, span, hold)
    assert len(found) == width
    assert {value for value in found if value is not None} <= {value for _, value in points}


def test_a_line_rises_from_the_lowest_block_to_the_highest() -> None:
    assert sparkline([0.0, None, 50.0, 100.0, 200.0, -5.0], 0.0, 100.0) == "▁ ▅██▁"
    assert sparkline([0.0, 100.0], 0.0, 100.0, blocks=False).isascii()


@given(st.lists(st.none() | st.floats()), st.floats(), st.floats())
def test_no_number_breaks_a_line(values: list[float | None], low: float, high: float) -> None:
    line = sparkline(values, low, high)
    assert len(line) == len(values)
    assert all((mark == " ") == (value is None) for mark, value in zip(line, values, strict=True))


@given(st.lists(st.floats(0, 1), min_size=2))
def test_a_higher_value_never_has_a_lower_block(values: list[float]) -> None:
    assert list(sparkline(sorted(values), 0.0, 1.0)) == sorted(sparkline(values, 0.0, 1.0))
