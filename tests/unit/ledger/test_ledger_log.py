"""The log keeps what it acknowledged, and nothing else."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_fakes import START, TickingClock, said, turn

from edge.errors import DiskFull, ReadOnly, Unavailable
from edge.ledger import writer
from edge.ledger.events import Erased, Event, Forgotten, TurnSaid, encode
from edge.ledger.log import Allocator, Log


def open_log(directory: Path, segment_bytes: int = 1 << 20, **options: object) -> Log:
    heard: list[Event] = []
    log = Log(
        directory,
        clock=TickingClock(),
        segment_bytes=segment_bytes,
        on_durable=heard.extend,
        **options,  # type: ignore[arg-type]  # the tests name real options
    )
    log.heard = heard  # type: ignore[attr-defined]  # where a test looks
    return log


def submit(log: Log, *texts: str, size: int = 300) -> Future[tuple[tuple[Event, ...], str]]:
    def plan(numbers: Allocator) -> tuple[list[Event], str]:
        return [said(numbers.next(), turn(text), size, numbers.at) for text in texts], "done"

    return log.submit(plan)


def texts(log: Log, after: int = 0) -> list[str]:
    return [event.turn.text for event in log.replay(after) if isinstance(event, TurnSaid)]


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.jsonl"))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def log(directory: Path) -> Iterator[Log]:
    log = open_log(directory)
    yield log
    log.close()


def test_events_are_numbered_from_one_heard_and_resolved_in_order(log: Log) -> None:
    futures = [submit(log, f"a{i}", f"b{i}") for i in range(20)]
    events = [event for future in futures for event in future.result()[0]]
    assert [event.n for event in events] == list(range(1, 41))
    assert log.heard == events == list(log.replay())  # type: ignore[attr-defined]  # set by open_log
    assert futures[0].result()[1] == "done"
    assert log.stats().last_n == 40 and log.stats().segments == 1


def test_a_plan_that_raises_fails_alone_and_leaves_no_gap(log: Log) -> None:
    def broken(numbers: Allocator) -> tuple[list[Event], None]:
        numbers.next()
        raise LookupError("mine")

    first, failed, second = submit(log, "a"), log.submit(broken), submit(log, "b")
    with pytest.raises(LookupError):
        failed.result()
    assert [first.result()[0][0].n, second.result()[0][0].n] == [1, 2]


def test_a_plan_with_a_surrogate_fails_alone(log: Log) -> None:
    def broken(numbers: Allocator) -> tuple[list[Event], None]:
        return [TurnSaid(numbers.next(), START, turn("\ud800"), b"", ())], None

    failed, good = log.submit(broken), submit(log, "good")
    with pytest.raises(UnicodeEncodeError):
        failed.result()
    assert good.result()[0][0].n == 1


def test_a_plan_without_events_is_answered(log: Log) -> None:
    assert log.submit(lambda numbers: ([], 5)).result() == ((), 5)
    assert log.stats().segments == 0


def test_a_listener_that_fails_stops_nobody(directory: Path) -> None:
    def deaf(events: list[Event]) -> None:
        raise RuntimeError

    log = Log(directory, clock=TickingClock(), segment_bytes=1000, on_durable=deaf)
    assert submit(log, "a").result()[0][0].n == 1
    assert submit(log, "b").result()[0][0].n == 2
    log.close()


def test_segments_rotate_and_replay_passes_over_those_before(directory: Path) -> None:
    log = open_log(directory, segment_bytes=900)
    for i in range(12):
        submit(log, f"text {i}").result()
    assert len(segments(directory)) > 3
    assert all(path.stat().st_size <= 900 for path in segments(directory))
    assert [path.name[-12:-6] for path in segments(directory)][:3] == ["000001", "000002", "000003"]
    segments(directory)[0].write_bytes(b"not read\n")
    assert texts(log, after=9) == ["text 9", "text 10", "text 11"]
    assert log.stats().damaged_lines == 0
    log.close()


def test_one_plan_may_fill_several_segments(directory: Path) -> None:
    log = open_log(directory, segment_bytes=900)
    submit(log, *[f"text {i}" for i in range(12)]).result()
    log.close()
    assert len(segments(directory)) > 3
    log = open_log(directory, segment_bytes=900)
    assert len(texts(log)) == 12 and log.last_n == 12
    log.close()


def test_closing_finishes_what_was_submitted_and_then_refuses(directory: Path) -> None:
    log = open_log(directory)
    futures = [submit(log, str(i)) for i in range(50)]
    log.close()
    assert [future.result()[0][0].n for future in futures] == list(range(1, 51))
    with pytest.raises(Unavailable):
        submit(log, "late")
    log.close()


LINES = [encode(said(n, turn(text, n))) for n, text in enumerate(("一", "second", "三\0", "fourth"), 1)]


@settings(max_examples=80)
@given(cut=st.integers(0, sum(map(len, LINES))), padding=st.sampled_from([b"", b"\0" * 100]))
def test_a_log_cut_at_any_byte_has_the_whole_lines_before_and_goes_on(
    tmp_path_factory: pytest.TempPathFactory, cut: int, padding: bytes
) -> None:
    directory = tmp_path_factory.mktemp("cut")
    (directory / "2026-01-01-000001.jsonl").write_bytes(b"".join(LINES)[:cut] + padding)
    whole = b"".join(LINES)[:cut].count(b"\n")
    reading = open_log(directory, read_only=True)
    assert len(texts(reading)) == whole == reading.last_n
    reading.close()
    log = open_log(directory)
    assert len(texts(log)) == whole
    assert submit(log, "next").result()[0][0].n == whole + 1
    log.close()
    data = b"".join(path.read_bytes() for path in segments(directory))
    assert data.startswith(b"".join(LINES[:whole])) and data.count(b"\n") == whole + 1
    assert log.stats().damaged_lines == 0


def test_a_damaged_line_stays_is_counted_and_its_number_is_not_given_again(directory: Path) -> None:
    directory.mkdir()
    path = directory / "2026-01-01-000001.jsonl"
    lines = [LINES[0], LINES[1].replace(b"second", b"secxnd"), LINES[2], LINES[3].replace(b"fourth", b"f\nurth")]
    path.write_bytes(b"".join(lines))
    met: list[tuple[str, int]] = []
    log = open_log(directory, on_damage=lambda name, row: met.append((name, row)))
    assert texts(log) == ["一", "三\0"]
    assert log.stats().damaged_lines == 3 and [row for _, row in met] == [2, 4, 5]
    assert submit(log, "next").result()[0][0].n > 4
    log.close()
    assert path.read_bytes().startswith(b"".join(lines))


def test_numbers_go_on_behind_an_empty_or_wholly_damaged_last_segment(directory: Path) -> None:
    directory.mkdir()
    (directory / "2026-01-01-000001.jsonl").write_bytes(b"".join(LINES))
    (directory / "2026-01-02-000002.jsonl").write_bytes(b"\xff\xff\n")
    (directory / "2026-01-03-000003.jsonl").write_bytes(b"")
    log = open_log(directory)
    assert log.last_n == 5
    assert submit(log, "next").result()[0][0].n == 6
    log.close()


def test_leftovers_of_a_rewrite_are_removed_and_other_files_left_alone(directory: Path) -> None:
    directory.mkdir()
    (directory / "2026-01-01-000001.jsonl.tmp").write_bytes(b"x")
    (directory / "notes.jsonl").write_bytes(b"x")
    open_log(directory).close()
    assert [path.name for path in directory.iterdir()] == ["notes.jsonl"]


def test_reading_only_writes_nothing(directory: Path) -> None:
    directory.mkdir()
    path = directory / "2026-01-01-000001.jsonl"
    path.write_bytes(LINES[0] + b"torn")
    (directory / "x.tmp").write_bytes(b"")
    log = open_log(directory, read_only=True)
    assert texts(log) == ["一"]
    with pytest.raises(ReadOnly):
        submit(log, "no").result()
    with pytest.raises(ReadOnly):
        log.erase({1: Erased(1, START, "m", "f")})
    log.close()
    assert path.read_bytes() == LINES[0] + b"torn" and (directory / "x.tmp").exists()


# Faults of the disk.


class Fault:
    """Makes a function of the writer fail while `error` is set."""

    def __init__(self, real: Callable[..., None], after: Callable[..., None] | None = None) -> None:
        self.real = real
        self.after = after
        self.error: int | None = None

    def __call__(self, *arguments: object) -> None:
        if self.error is not None:
            if self.after:
                self.after(*arguments)
            raise OSError(self.error, os.strerror(self.error))
        self.real(*arguments)


def half(file: int, data: bytes) -> None:
    os.write(file, data[: len(data) // 2])


@pytest.mark.parametrize(
    ("function", "number", "expected"),
    [
        ("write_all", errno.ENOSPC, DiskFull),
        ("write_all", errno.EROFS, ReadOnly),
        ("sync", errno.ENOSPC, DiskFull),
        ("sync", errno.EIO, Unavailable),
        ("sync_directory", errno.EIO, Unavailable),
    ],
)
def test_a_failed_write_is_undone_and_the_next_one_works(
    directory: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int, expected: type[Exception]
) -> None:
    log = open_log(directory, segment_bytes=900)
    submit(log, "first").result()
    fault = Fault(getattr(writer, function), half if function == "write_all" else None)
    monkeypatch.setattr(writer, function, fault)
    fault.error = number
    failed = [submit(log, *[f"lost {i}{k}" for k in range(5)]) for i in range(3)]
    for future in failed:
        with pytest.raises(expected):
            future.result()
    assert texts(log) == ["first"]
    fault.error = None
    assert submit(log, "second").result()[0][0].n == 2
    log.close()
    again = open_log(directory)
    assert texts(again) == ["first", "second"] and again.stats().damaged_lines == 0
    again.close()


def test_nothing_is_written_behind_a_failed_fsync(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(directory)
    submit(log, "first").result()
    fault = Fault(writer.sync)
    monkeypatch.setattr(writer, "sync", fault)
    fault.error = errno.EIO
    with pytest.raises(Unavailable):
        submit(log, "lost").result()
    fault.error = None
    submit(log, "second").result()
    assert len(segments(directory)) == 2
    assert texts(log) == ["first", "second"]
    log.close()


def test_nothing_is_written_until_the_failed_write_could_be_undone(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(directory)
    submit(log, "first").result()
    fault, stuck = Fault(writer.write_all, half), Fault(os.ftruncate)
    monkeypatch.setattr(writer, "write_all", fault)
    monkeypatch.setattr(writer.os, "ftruncate", stuck)
    fault.error = stuck.error = errno.EIO
    with pytest.raises(Unavailable):
        submit(log, "lost").result()
    fault.error = None
    with pytest.raises(Unavailable):
        submit(log, "also lost").result()
    stuck.error = None
    submit(log, "second").result()
    assert texts(log) == ["first", "second"] and log.stats().damaged_lines == 0
    log.close()


# Erasing.


def erased(n: int) -> Erased:
    return Erased(n, START, "m" * 64, "some-forget")


def test_erasing_replaces_the_lines_in_every_segment_and_appending_goes_on(directory: Path) -> None:
    log = open_log(directory, segment_bytes=900)
    for i in range(10):
        submit(log, f"text {i}").result()
    before = len(segments(directory))
    assert log.erase({1: erased(1), 10: erased(10)}) == 2
    assert log.erase({1: erased(1), 10: erased(10), 99: erased(99)}) == 0
    submit(log, "more").result()
    assert texts(log) == [f"text {i}" for i in range(1, 9)] + ["more"]
    assert [event.n for event in log.replay()] == list(range(1, 12))
    assert len(segments(directory)) in (before, before + 1)
    log.close()
    data = b"".join(path.read_bytes() for path in segments(directory))
    assert b"text 0" not in data and b"text 9" not in data and b"some-forget" in data
    again = open_log(directory)
    assert again.last_n == 11
    again.close()


def test_erasing_leaves_other_events_alone_even_under_a_number_asked_for(log: Log) -> None:
    log.submit(lambda numbers: ([Forgotten(numbers.next(), START, "f", (), ())], None)).result()
    assert log.erase({1: erased(1)}) == 0


def test_a_damaged_line_is_erased_where_its_place_confirms_its_number_and_else_stays(directory: Path) -> None:
    directory.mkdir()
    lines = [LINES[0], LINES[1].replace(b"second", b"secxnd"), LINES[2].replace(b'{"n":3', b'{"n":2'), LINES[3]]
    (directory / "2026-01-01-000001.jsonl").write_bytes(b"".join(lines))
    log = open_log(directory)
    assert log.erase({2: erased(2), 4: erased(4)}) == 1
    data = segments(directory)[0].read_bytes()
    assert b"secxnd" not in data and lines[2] in data and b"fourth" not in data
    assert submit(log, "next").result()[0][0].n == 5
    log.close()


def test_no_room_for_the_rewritten_copy_leaves_the_segment_whole(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.ledger import segments as files

    log = open_log(directory)
    submit(log, "a", "b").result()
    fault = Fault(files.sync)
    monkeypatch.setattr(files, "sync", fault)
    fault.error = errno.ENOSPC
    with pytest.raises(DiskFull):
        log.erase({1: erased(1)})
    submit(log, "c").result()
    assert texts(log) == ["a", "b", "c"] and not list(directory.glob("*.tmp"))
    fault.error = None
    assert log.erase({1: erased(1)}) == 1
    submit(log, "d").result()
    assert texts(log) == ["b", "c", "d"]
    log.close()


def test_a_rename_that_did_not_become_durable_loses_no_later_line(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.ledger import segments as files

    log = open_log(directory)
    submit(log, "a", "b").result()
    fault = Fault(files.sync_directory)
    monkeypatch.setattr(files, "sync_directory", fault)
    fault.error = errno.EIO
    with pytest.raises(Unavailable):
        log.erase({1: erased(1)})
    submit(log, "c").result()
    log.close()
    again = open_log(directory)
    assert texts(again) == ["b", "c"]
    again.close()


def test_writers_on_many_threads_get_each_number_once(log: Log) -> None:
    numbers: list[int] = []

    def write(k: int) -> None:
        numbers.extend([submit(log, f"{k} {i}").result()[0][0].n for i in range(20)])

    threads = [threading.Thread(target=write, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 81)) == [event.n for event in log.replay()]
