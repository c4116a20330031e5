"""The simulated device of `edge bench governor` obeys physics, and the bench compares what it says it compares."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from edge.cli.benches import governor
from edge.cli.benches.governor import Comparison, Governed, Nothing, OnOff, Optimum, Run, compare, drive, ratios
from edge.cli.benches.result import Result
from edge.cli.benches.thermal import Silicon, profile, profiles, world
from edge.cli.show import as_json
from edge.config import Governing

# A mini-PC in a hot corner, with a sensor that is off by up to a degree.
HOT = replace(profile(17, 20260701), burst=0.0, swing=0.0, hog=0)
SECONDS = 1500


def test_the_same_seed_makes_the_same_devices_and_the_same_weather() -> None:
    assert profiles(20, 7) == profiles(20, 7)
    assert profiles(20, 7) != profiles(20, 8)
    assert world(HOT, 300) == world(HOT, 300)


def test_twenty_devices_of_three_kinds_stand_in_15_to_45_degrees_and_could_all_do_some_work() -> None:
    found = profiles()
    assert len(found) == 20
    assert len({one.kind for one in found}) == 3
    for one in found:
        assert one.ambient - one.swing >= 15
        assert one.ambient + one.swing <= 45
        resting = one.ambient + one.swing + (one.idle + one.neighbour) * (one.die_r + one.case_r)
        assert resting <= one.trip - 11.9


def test_varied_devices_differ_by_no_more_than_asked() -> None:
    for plain, varied in zip(profiles(), profiles(vary=0.3), strict=True):
        assert plain.full != varied.full
        assert varied.full == pytest.approx(plain.full, rel=0.3)
        assert varied.case_s == pytest.approx(plain.case_s, rel=0.3)


def test_a_device_settles_where_its_watts_and_its_resistance_say() -> None:
    cool = replace(HOT, trip=500.0)
    silicon = Silicon(cool)
    for _ in range(int(20 * cool.case_s)):
        silicon.step(0.5, 2.0, cool.ambient)
    watts = cool.idle + 2.0 + 0.5 * cool.full
    assert silicon.die == pytest.approx(cool.ambient + watts * (cool.die_r + cool.case_r), abs=0.01)


def test_above_its_trip_the_processor_slows_down_and_recovers_below() -> None:
    silicon = Silicon(HOT)
    done = [silicon.step(1.0, 0.0, HOT.ambient) for _ in range(SECONDS)]
    assert done[0] == 1.0
    assert min(done) < 0.9
    for _ in range(SECONDS):
        silicon.step(0.0, 0.0, HOT.ambient)
    assert silicon.clock == 1.0


def test_the_optimum_is_at_the_trip_and_never_over_it() -> None:
    run = drive(HOT, world(HOT, SECONDS), Optimum(HOT))
    assert run.over == 0
    assert run.hottest == pytest.approx(HOT.trip, abs=1e-3)


def test_the_governor_keeps_a_hot_device_below_its_trip_and_its_recalls_quick() -> None:
    around = world(HOT, SECONDS)
    governed = drive(HOT, around, Governed(HOT, Governing()))
    nothing = drive(HOT, around, Nothing(HOT))
    assert governed.over == 0
    assert nothing.over > 0
    assert sorted(governed.recalls)[-75] < sorted(nothing.recalls)[-75]


def test_on_off_stops_at_its_limit_and_goes_on_some_degrees_below() -> None:
    policy = OnOff(HOT, Governing(margin=4.0), hysteresis=10.0)
    around = world(HOT, 4)
    around.noise[:] = [0.0] * 4
    silicon = Silicon(HOT)
    works = []
    for second, die in enumerate((-20.0, -4.0, -10.0, -14.5)):
        silicon.die = HOT.trip + die
        works.append(policy.order(second, silicon, around).work > 0)
    assert works == [True, False, False, True]


def test_a_cool_run_never_gets_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governor, "_WARM_UP", 0)
    run = drive(HOT, world(HOT, 300), Governed(HOT, Governing()), heat=False)
    assert (run.over, run.hottest) == (0, 0.0)
    assert run.work > 200


def test_a_comparison_is_plain_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governor, "_WARM_UP", 300)
    found = compare(HOT, 0.1, Governing())
    assert 0 < found.vs_optimum <= 1.02
    shown = json.loads(as_json(Result("governor", ratios([found]), {"profiles": [found.as_dict()]}).as_dict()))
    assert {"vs_optimum", "vs_onoff", "minutes_over_trip"} <= shown["ratios"].keys()


def test_the_ratios_take_the_worst_where_the_worst_counts() -> None:
    def one(work: float, over: int) -> Comparison:
        governed = Run(work=work, over=over, changes=4, recalls=[1.0])
        return Comparison(HOT, governed, Run(recalls=[0.5]), Run(), Run(work=50), Run(), Run(work=100), 200, 2.0)

    found = {ratio.name: ratio.value for ratio in ratios([one(90, 0), one(95, 30), one(99, 60)])}
    assert found["vs_optimum"] == 0.95
    assert found["vs_optimum_worst"] == 0.90
    assert found["vs_onoff"] == 1.9
    assert found["minutes_over_trip"] == 1.5
    assert found["recall_p95_vs_cool"] == 2.0
    assert found["level_changes_per_hour"] == 2.0
