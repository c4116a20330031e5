"""What `edge status --watch` draws: the last statuses as lines that fit the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from edge.cli import words
from edge.cli.graphs import columns, sparkline
from edge.cli.show import local, one_line, seconds, size, table

# Seconds that the graphs show, and the fewest points they are made of.
_SPAN = 120.0
_POINTS = 60
# Columns of a graph's name and its value; below this width of the terminal the graph gets a line of its own.
_NAME, _VALUE = 13, 26
_NARROW = 56
# Degrees that a graph of temperature shows below the limit.
_COOL = 25.0
_COLOURS = {"nominal": "green", "warm": "yellow", "hot": "red", "critical": "bold red"}


@dataclass(frozen=True, slots=True)
class Graph:
    """`value` is what is drawn, None where the box does not know it; `said` the same in words.

    `scale` gives (low, high) for the values on the picture.
    """

    name: str
    value: Callable[[Any], float | None]
    said: Callable[[Any], str]
    scale: Callable[[list[float], Any], tuple[float, float]]


def _from_zero(values: list[float], _status: Any) -> tuple[float, float]:
    return 0.0, max([*values, 1.0])


def _close(values: list[float], _status: Any) -> tuple[float, float]:
    """Small changes of a large number are to be seen, but not its noise."""
    return min(min(values), 0.9 * max(values)), max(values)


def _to_the_limit(values: list[float], status: Any) -> tuple[float, float]:
    limit = words.optional(status.governor, "temperature_limit")
    high = max(values) if limit is None else max(*values, limit)
    return min(*values, high - _COOL), high


def _budget(status: Any) -> float:
    return float(status.governor.padded_tokens * status.governor.threads * status.governor.duty)


def _budget_said(status: Any) -> str:
    governor = status.governor
    return f"{governor.threads} × {governor.padded_tokens} tokens × {governor.duty:.0%}"


GRAPHS = (
    Graph(
        "temperature",
        lambda status: words.optional(status.governor, "temperature"),
        lambda status: words.heat_line(status.governor),
        _to_the_limit,
    ),
    Graph(
        "available",
        lambda status: words.optional(status.governor, "memory_available"),
        lambda status: f"{size(status.governor.memory_available)} of memory",
        _close,
    ),
    Graph(
        "resident",
        lambda status: float(status.resident_bytes),
        lambda status: f"{size(status.resident_bytes)} of memory",
        _close,
    ),
    Graph(
        "budget",
        lambda status: _budget(status) if status.HasField("governor") else None,
        _budget_said,
        _from_zero,
    ),
    Graph("queue", lambda status: float(words.pending(status)), words.pending_line, _from_zero),
    Graph(
        "recalls",
        lambda status: float(status.queue.recalls),
        lambda status: f"{status.queue.recalls:,} waiting, {words.counted(status.streams, 'stream')}",
        _from_zero,
    ),
)


class View:
    """`take` and `away` are told what happens; `picture` may be drawn on another thread meanwhile."""

    def __init__(self, console: Console, interval: float) -> None:
        self._console = console
        self._interval = interval
        self._span = max(_SPAN, _POINTS * interval)
        # Replaced as a whole, never changed: (seconds, status), oldest first.
        self._history: tuple[tuple[float, Any], ...] = ()
        self._away = False

    def take(self, status: Any, at: float) -> None:
        """A status, and when it came: seconds of time.monotonic()."""
        kept = (point for point in self._history if point[0] > at - self._span)
        self._history = (*kept, (at, status))
        self._away = False

    def away(self) -> None:
        """The box cannot be reached just now."""
        self._away = True

    def picture(self) -> Group:
        width, height = self._console.size
        return Group(*self.lines(width, height, time.monotonic()))

    def lines(self, width: int, height: int, now: float) -> list[Text]:
        """`height` lines at most, each of `width` cells at most; what does not fit is left out from below."""
        history = self._history
        if not history:
            return [Text("waiting for the box …")]
        at, status = history[-1]
        parts = [
            list(self._head(status, now - at, width)),
            [self._axis(width), *(line for graph in GRAPHS for line in self._graph(graph, history, now, width))],
            [line for warning in self._warnings(status) for line in self._wrapped(warning, width)],
            [Text(line) for line in _spaces(status)],
        ]
        lines = [line for part in parts if part for line in (*part, Text())][:-1]
        if len(lines) > height:
            lines = [line for line in lines if line.plain]
        if len(lines) > height:
            left = words.counted(len(lines) - height + 1, "more line")
            lines = [*lines[: height - 1], Text(f"… {left}", style="dim")]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return lines

    def _head(self, status: Any, silent: float, width: int) -> Iterator[Text]:
        state = "ready" if status.ready else "not ready"
        age = words.span(max(0.0, seconds(status.now) - seconds(status.started_at)))
        title = Text.assemble(("edge ", "bold"), one_line(f"{status.version}, {state}, up {age}"))
        clock = local(status.now)
        if title.cell_len + len(clock) < width:
            title.pad_right(width - title.cell_len - len(clock))
            title.append(clock, style="dim")
        yield title
        if self._away or silent > max(5.0, 3 * self._interval):
            yield Text(f"no word from the box for {words.span(silent)}; waiting for it", style="bold yellow")
        threads = words.counted(status.model.workers, "thread")
        names = " and ".join(model.id for model in words.models(status))
        model = f"{names}, {threads} on {status.model.device}, {status.queue.tokens_per_second:,.0f} tokens/s"
        yield Text(one_line(model))
        if not status.HasField("governor"):
            return
        level = words.level_name(status.governor)
        said = Text(one_line(words.level_line(status.governor)))
        said.stylize(_COLOURS.get(level, "bold"), 0, len(level))
        yield from self._wrapped(said, width)
        if not status.governor.background:
            yield Text("snapshots and rebuilds wait")

    def _axis(self, width: int) -> Text:
        """What the left and the right end of the graphs are."""
        begins, room = f"{words.span(self._span)} ago", _room(width)
        return Text(" " * (width - room) + begins + "now".rjust(room - len(begins)), style="dim")

    def _graph(self, graph: Graph, history: tuple[tuple[float, Any], ...], now: float, width: int) -> Iterator[Text]:
        status = history[-1][1]
        if graph.value(status) is None:
            return
        room = _room(width)
        points = [(at, graph.value(status)) for at, status in history]
        values = columns(points, now, room, self._span, 2.5 * self._interval)
        known = [value for value in values if value is not None]
        low, high = graph.scale(known, status) if known else (0.0, 1.0)
        drawn = Text(sparkline(values, low, high, self._console.encoding.startswith("utf")), style="cyan")
        said = Text.assemble((f"{graph.name:<{_NAME}}", "bold"), graph.said(status))
        if room == width:
            yield said
            yield drawn
        else:
            said.truncate(_NAME + _VALUE - 1, overflow="ellipsis")
            said.pad_right(_NAME + _VALUE - said.cell_len)
            yield said.append_text(drawn)

    def _warnings(self, status: Any) -> Iterator[Text]:
        sensors = status.governor.sensors if status.HasField("governor") else ()
        if status.read_only:
            yield Text.assemble(("read-only: ", "bold red"), one_line(status.read_only))
        for warning in status.warnings:
            yield Text.assemble(("warning: ", "bold yellow"), one_line(warning))
        for sensor in sensors:
            if sensor.problem:
                yield Text.assemble(("no reading: ", "bold"), one_line(f"{sensor.name}, {sensor.problem}"))

    def _wrapped(self, text: Text, width: int) -> list[Text]:
        return list(text.wrap(self._console, width))


def _room(width: int) -> int:
    """Columns of a graph."""
    return width if width < _NARROW else width - _NAME - _VALUE


def _spaces(status: Any) -> list[str]:
    if not status.spaces:
        return []
    rows = [
        (
            one_line(space.name),
            f"{space.turns:,}",
            f"{space.memories:,}",
            f"{space.pending:,}",
            size(space.log_bytes),
            "rebuilding" if space.rebuilding else "",
        )
        for space in status.spaces
    ]
    return table([("space", "turns", "memories", "pending", "log", ""), *rows]).splitlines()
