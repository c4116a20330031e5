"""Where it is what time."""

from __future__ import annotations

import datetime as dt
import logging
import zoneinfo
from collections.abc import Iterator

import pytest
import tzlocal
from memory_fakes import Model, Room, ask, unit

from edge.errors import InvalidArgument
from edge.recall import zones


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    zones._own.cache_clear()
    yield
    zones._own.cache_clear()


@pytest.mark.parametrize("name", ["Asia/Shanghai", "UTC", "America/Argentina/Buenos_Aires", ""])
def test_a_zone_that_is_known_keeps_its_name(name: str) -> None:
    assert zones.known(name) == name
    assert not name or str(zones.zone(name)) == name


@pytest.mark.parametrize(
    "name",
    [
        "Mars/Olympus",
        "../../etc/passwd",
        "/etc/localtime",
        "Asia",
        "Asia/Shanghai\0",
        " ",
        "+08:00",
        "x" * 5000,
        "上海",
    ],
)
def test_a_zone_that_nobody_knows_names_the_field_and_what_to_give(name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        zones.known(name)
    assert caught.value.field == "time_zone"
    assert "Asia/Shanghai" in caught.value.message


@pytest.mark.parametrize("error", [zoneinfo.ZoneInfoNotFoundError("two of them"), ValueError(), OSError()])
def test_a_box_whose_own_zone_is_unclear_still_answers_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail() -> dt.tzinfo:
        raise error

    monkeypatch.setattr(tzlocal, "get_localzone", fail)
    room = Room()
    room.keep("猫", unit(1))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert ask(Model(unit(1)), {"public": room}, "昨天的猫").hits
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert zones.zone("").utcoffset(dt.datetime.now()) is not None  # noqa: DTZ005  # any moment will do
