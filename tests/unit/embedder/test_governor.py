"""The governor as a function: what devices say goes in, budgets come out."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.config import Embedding, Governing
from edge.embedder import governor
from edge.embedder.governor import Device, FixedGovernor, State
from edge.embedder.readings import Readings
from edge.ports import Budget
from edge.types import Pressure

CONFIG = Governing()
DEVICE = Device(threads=4, batch_tokens=512)
MB = 1_000_000
# Far from every limit.
COOL = Readings(0.0, temperature=40.0, trip=85.0, memory_available=4000 * MB)


def after(
    *readings: Readings, state: State | None = None, device: Device = DEVICE, config: Governing = CONFIG
) -> State:
    """The state after those readings, each taken as it is handed over."""
    state = state or governor.begin(device, config, readings[0].at)
    for one in readings:
        state = governor.step(state, one, device, config, one.at)
    return state


def held(reading: Readings, seconds: int, state: State | None = None, config: Governing = CONFIG) -> State:
    """The same reading, second after second, until so many have passed."""
    start = state.at + 1 if state else reading.at
    return after(*(replace(reading, at=start + second) for second in range(seconds)), state=state, config=config)


def decided(state: State, device: Device = DEVICE, config: Governing = CONFIG) -> Budget:
    return governor.budget(state, device, config)


# Nothing to object to.


def test_without_any_sensor_the_box_works_at_full_speed() -> None:
    budget = decided(held(Readings(0.0), 100))
    assert budget == Budget(512, 4, 1.0, True, "nothing holds it back", 512, Pressure.NOMINAL)


def test_before_the_first_reading_the_box_works_at_full_speed() -> None:
    budget = decided(governor.begin(DEVICE, CONFIG, 5.0))
    assert (budget.duty, budget.threads, budget.level) == (1.0, 4, Pressure.NOMINAL)


def test_a_cool_device_works_at_full_speed_and_says_how_warm_it_is() -> None:
    budget = decided(held(COOL, 100))
    assert (budget.duty, budget.background, budget.level) == (1.0, True, Pressure.NOMINAL)
    assert budget.reason == "40.0 C of 85 C, steady"


def test_a_governor_that_is_off_gives_the_configured_budget_whatever_the_device_says() -> None:
    off = replace(CONFIG, enabled=False)
    budget = decided(held(replace(COOL, temperature=120.0, memory_available=0), 30, config=off), config=off)
    assert (budget.padded_tokens, budget.threads, budget.duty, budget.background) == (512, 4, 1.0, True)
    assert budget.level is Pressure.NOMINAL


# Heat.


def test_the_duty_falls_before_the_limit_is_reached_when_the_temperature_rises_fast() -> None:
    rising = [replace(COOL, at=float(second), temperature=60 + 0.5 * second) for second in range(42)]
    state = after(*rising)
    assert state.heat.temperature is not None and state.heat.temperature < 85 - CONFIG.margin
    assert decided(state).duty < 1
    assert "rising" in decided(state).reason


def test_what_settles_below_the_limit_gets_its_full_duty_back() -> None:
    assert decided(held(replace(COOL, temperature=79.0), 600)).duty == 1.0


def test_what_stays_above_the_limit_is_brought_down_to_a_trickle() -> None:
    budget = decided(held(replace(COOL, temperature=83.0), 900))
    assert 0 < budget.duty < 0.1
    assert budget.level < Pressure.CRITICAL


def test_at_the_trip_ingests_stand_still_and_recalls_run() -> None:
    budget = decided(held(replace(COOL, temperature=86.0), 30))
    assert (budget.duty, budget.level, budget.background) == (0.0, Pressure.CRITICAL, False)
    assert budget.row_tokens == DEVICE.window
    assert budget.reason.startswith("86.0 C of 85 C")


def test_after_a_critical_heat_the_box_goes_on_by_itself() -> None:
    state = held(COOL, 600, held(replace(COOL, temperature=90.0), 60))
    assert (decided(state).level, decided(state).duty) == (Pressure.NOMINAL, 1.0)


def test_a_single_wild_value_is_not_believed_at_once() -> None:
    state = held(replace(COOL, temperature=70.0), 60)
    wild = decided(after(replace(COOL, at=60.0, temperature=149.0), state=state))
    assert wild.level < Pressure.CRITICAL
    assert wild.duty > 0


@pytest.mark.parametrize("lie", [-256.0, 1000.0, math.nan, math.inf])
def test_an_impossible_temperature_counts_as_none(lie: float) -> None:
    assert decided(held(Readings(0.0, temperature=lie), 60)).duty == 1.0


@pytest.mark.parametrize("trip", [-5.0, 0.0, 20.0, 1000.0, math.nan, None])
def test_an_impossible_trip_is_ignored_for_the_configured_one(trip: float | None) -> None:
    state = held(replace(COOL, trip=trip), 5)
    assert state.heat.trip == CONFIG.trip


def test_a_skipped_reading_changes_nothing() -> None:
    hot = held(replace(COOL, temperature=82.0), 200)
    skipped = after(replace(COOL, at=hot.at + 1, temperature=None), state=hot)
    assert decided(skipped).duty == decided(hot).duty


def test_a_sensor_that_vanishes_leaves_a_careful_budget_and_says_so() -> None:
    budget = decided(held(replace(COOL, temperature=None), 60, held(COOL, 60)))
    assert 0 < budget.duty <= 0.5
    assert budget.level is Pressure.WARM
    assert budget.reason == "the sensors have been silent for 60 s, so half speed at most"


# Other signs.


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        ({"pressure": Pressure.WARM}, "the system says its heat is warm"),
        ({"pressure": Pressure.HOT}, "the system says its heat is hot"),
        ({"overcurrent": 0.4}, "the power supply is at its limit, 0.4 events/s"),
        ({"overcurrent": 30.0}, "the power supply is at its limit, 30 events/s"),
        ({"memory_pressure": 22.0}, "programs wait for memory 22% of the time"),
    ],
)
def test_a_sign_slows_ingests_down_more_the_longer_it_lasts_but_never_to_nothing(
    sign: dict[str, object], words: str
) -> None:
    strained = Readings(0.0, **sign)  # type: ignore[arg-type]  # each is a field's own value
    soon, late = held(strained, 6), held(strained, 1000)
    assert 0 < decided(late).duty < decided(soon).duty < 1
    assert decided(late).level > Pressure.NOMINAL
    assert decided(late).reason == words


def test_at_the_systems_critical_heat_ingests_stand_still() -> None:
    assert decided(held(Readings(0.0, pressure=Pressure.CRITICAL), 2)).duty == 0


def test_once_a_sign_is_gone_the_speed_comes_back_slowly_but_whole() -> None:
    strained = held(Readings(0.0, pressure=Pressure.HOT), 60)
    soon, late = held(Readings(0.0), 120, strained), held(Readings(0.0), 2400, strained)
    assert decided(strained).duty < decided(soon).duty < 1
    assert "recovering" in decided(soon).reason
    assert (decided(late).duty, decided(late).level) == (1.0, Pressure.NOMINAL)


def test_background_work_waits_while_programs_wait_for_memory() -> None:
    assert not decided(held(Readings(0.0, memory_pressure=15.0), 2)).background


def working(state: State, seconds: float, readings: Readings, times: int) -> State:
    for _ in range(times):
        state = governor.learn(state, 100, seconds, DEVICE, CONFIG)
        state = after(replace(readings, at=state.at + 1), state=state)
    return state


def test_a_low_clock_brakes_only_when_the_device_is_hot_and_at_work() -> None:
    hot = replace(COOL, temperature=76.0, frequency=0.5)
    begun = governor.begin(DEVICE, CONFIG, 0.0)
    assert decided(working(begun, 0.01, hot, 300)).duty == 0.5
    assert decided(working(begun, 0.01, replace(hot, temperature=50.0), 300)).duty == 1.0
    assert decided(held(hot, 300)).duty == 1.0


def test_slower_tokens_are_the_last_sign_of_heat_where_no_sensor_tells() -> None:
    quick = working(governor.begin(DEVICE, CONFIG, 0.0), 0.01, Readings(0.0), 100)
    slow = decided(working(quick, 0.03, Readings(0.0), 300))
    assert slow.duty == 0.5
    assert slow.reason.endswith("3.0 times the best")
    assert decided(working(quick, 0.03, COOL, 300)).duty == 1.0


def test_on_battery_the_box_is_gentle_and_gentler_when_it_is_low() -> None:
    some = decided(held(replace(COOL, on_battery=True, battery=0.7), 10))
    low = decided(held(replace(COOL, on_battery=True, battery=0.09), 10))
    assert 0 < low.duty < some.duty < 1
    assert (some.background, low.background) == (True, False)
    assert low.reason == "on battery, 9% left"


# The length of a batch.


def test_batches_that_take_too_long_are_halved_and_those_in_time_grow_slowly() -> None:
    state = governor.begin(DEVICE, CONFIG, 0.0)
    state = governor.learn(state, 512, 0.05, DEVICE, CONFIG)
    assert decided(state).padded_tokens == 256
    state = governor.learn(state, 250, 0.03, DEVICE, CONFIG)
    assert decided(state).padded_tokens == 264


def test_a_batch_that_did_not_use_its_length_says_nothing_of_a_longer_one() -> None:
    state = governor.learn(governor.begin(DEVICE, CONFIG, 0.0), 512, 0.05, DEVICE, CONFIG)
    assert decided(governor.learn(state, 40, 0.001, DEVICE, CONFIG)).padded_tokens == 256


def test_one_long_text_that_must_run_alone_does_not_shorten_the_batches_of_others() -> None:
    state = governor.learn(governor.begin(DEVICE, CONFIG, 0.0), 512, 0.05, DEVICE, CONFIG)
    assert decided(governor.learn(state, 500, 0.09, DEVICE, CONFIG)).padded_tokens == 256


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_duration_teaches_nothing(seconds: float) -> None:
    begun = governor.begin(DEVICE, CONFIG, 0.0)
    assert governor.learn(begun, 100, seconds, DEVICE, CONFIG) == begun


def test_the_batches_find_a_length_that_keeps_to_the_slice() -> None:
    state = governor.begin(DEVICE, CONFIG, 0.0)
    lengths = []
    for _ in range(2000):
        tokens = decided(state).padded_tokens
        lengths.append(tokens)
        state = governor.learn(state, tokens, tokens * 2e-4, DEVICE, CONFIG)
    # 200 tokens take the slice of 40 ms: over it only by the step that finds out.
    assert max(lengths[10:]) <= 208
    assert sum(lengths[10:]) / len(lengths[10:]) > 140


def test_a_neighbour_that_takes_the_core_is_no_heat() -> None:
    def working(cpu_share: float) -> Pressure:
        state = governor.begin(DEVICE, CONFIG, 0.0)
        for second in range(60):
            # For the second half of a minute each batch takes three times as long.
            seconds = 0.02 if second < 30 else 0.06
            worked = 0.02 if second < 30 else 0.06 * cpu_share
            for _ in range(10):
                state = governor.learn(state, 100, seconds, DEVICE, CONFIG, worked)
            state = governor.step(state, Readings(float(second)), DEVICE, CONFIG, float(second))
        return decided(state).level

    assert working(1 / 3) is Pressure.NOMINAL
    assert working(1.0) is Pressure.WARM


# Memory.


def test_little_memory_takes_threads_first_then_length_then_ingests_and_last_the_recalls() -> None:
    device = Device(threads=4, batch_tokens=512, bytes_per_token=100_000)
    reserve = CONFIG.memory_reserve

    def with_room(megabytes: int) -> Budget:
        return decided(after(Readings(0.0, memory_available=reserve + megabytes * MB), device=device), device)

    # A run of 512 tokens takes 51.2 MB, and one is kept for a recall.
    assert (with_room(260).threads, with_room(260).row_tokens) == (4, 512)
    assert (with_room(160).threads, with_room(160).row_tokens) == (2, 512)
    assert (with_room(60).threads, with_room(60).row_tokens, with_room(60).padded_tokens) == (1, 300, 300)
    assert (with_room(4).duty, with_room(4).row_tokens, with_room(4).level) == (0.0, 32, Pressure.CRITICAL)
    assert (with_room(1).duty, with_room(1).row_tokens) == (0.0, 0)
    assert with_room(60).reason == "60 MB free beyond the reserve, a run of 512 tokens needs 51 MB"
    assert not with_room(60).background


def test_freed_memory_is_believed_in_only_by_and_by_and_lost_memory_at_once() -> None:
    device = Device(threads=4, batch_tokens=512, bytes_per_token=100_000)
    little, plenty = 80 * MB, 2000 * MB
    state = after(Readings(0.0, memory_available=plenty), Readings(1.0, memory_available=little), device=device)
    assert decided(state, device).row_tokens < 512
    state = after(Readings(2.0, memory_available=120 * MB), state=state, device=device)
    assert decided(state, device).row_tokens < 200
    state = after(*(Readings(3.0 + n, memory_available=plenty) for n in range(60)), state=state, device=device)
    assert decided(state, device).threads == 4


def test_a_reading_without_memory_leaves_the_last_word_of_it() -> None:
    none_left = after(Readings(0.0, memory_available=0))
    skipped = after(Readings(1.0), state=none_left)
    assert decided(skipped).row_tokens == 0
    assert decided(skipped).level is Pressure.CRITICAL


def test_memory_that_nobody_tells_any_more_leaves_a_careful_budget_and_says_so() -> None:
    budget = decided(held(Readings(0.0), 60, after(Readings(0.0, memory_available=0))))
    assert 0 < budget.duty <= 0.5
    assert budget.level is Pressure.WARM
    assert budget.reason == "the sensors have been silent for 60 s, so half speed at most"
    told = after(Readings(100.0, memory_available=0), state=held(Readings(0.0), 60, after(Readings(0.0))))
    assert decided(told).row_tokens == 0


def test_while_it_waits_after_a_critical_time_the_box_says_that_it_does() -> None:
    state = held(replace(COOL, memory_available=2000 * MB), 10, after(Readings(0.0, memory_available=0)))
    assert decided(state).level is Pressure.CRITICAL
    assert decided(state).reason.startswith("better for ")


# Clocks and silence.


@pytest.mark.parametrize("jump", [-1e9, -3600.0, -0.5, 3 * 86400.0, 1e12])
def test_a_clock_that_jumps_leaves_a_working_governor(jump: float) -> None:
    state = held(replace(COOL, temperature=75.0), 100)
    state = after(replace(COOL, at=state.at + jump, temperature=75.0), state=state)
    state = held(replace(COOL, temperature=75.0), 400, state)
    assert decided(state).duty == 1.0
    assert decided(state).level <= Pressure.WARM


def test_sensors_that_hang_leave_a_careful_live_budget_that_says_for_how_long() -> None:
    state = held(COOL, 60)
    last = replace(COOL, at=state.at)
    for second in range(1, 91):
        state = governor.step(state, last, DEVICE, CONFIG, last.at + second)
    budget = decided(state)
    assert 0 < budget.duty <= 0.5
    assert (budget.level, budget.background) == (Pressure.WARM, False)
    assert budget.reason == "the sensors have been silent for 90 s, so half speed at most"
    assert decided(held(COOL, 400, state)).duty == 1.0


# Levels.


def test_a_level_is_left_only_after_minutes_in_which_less_would_have_done() -> None:
    hot = held(replace(COOL, temperature=84.8), 60)
    assert hot.level is Pressure.HOT
    cooler = held(replace(COOL, temperature=60.0), 200, hot)
    assert cooler.level is Pressure.HOT
    assert held(replace(COOL, temperature=60.0), 200, cooler).level is Pressure.NOMINAL


@given(st.floats(30, 95), st.integers(0, 2**32), st.integers(0, 400), st.sampled_from([0.0, 1.0, 4.0, 10.0]))
def test_noise_of_one_degree_does_not_make_the_level_swing(base: float, seed: int, period: int, margin: float) -> None:
    config = replace(CONFIG, margin=margin)
    chance = random.Random(seed)
    # Without a period it is hiss, with one it goes up and down by the whole degree.
    noise = [float((second // period) % 2 * 2 - 1) if period else chance.uniform(-1, 1) for second in range(1500)]
    readings = [replace(COOL, at=float(at), temperature=base + off) for at, off in enumerate(noise)]
    settled = after(*readings[:60], config=config)
    levels = [settled.level]
    state = settled
    for one in readings[60:]:
        state = governor.step(state, one, DEVICE, config, one.at)
        if state.level != levels[-1]:
            levels.append(state.level)
    # A threshold may lie within the noise: then its upper side is taken once, and kept.
    assert levels == sorted(set(levels))


# Properties over anything a device may say.

numbers = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 120))
anything = st.builds(
    Readings,
    at=st.floats(-1e6, 1e6),
    temperature=numbers,
    trip=numbers,
    pressure=st.one_of(st.none(), st.sampled_from(Pressure)),
    overcurrent=numbers,
    frequency=numbers,
    memory_available=st.one_of(st.none(), st.integers(-(10**6), 10**10)),
    memory_pressure=numbers,
    on_battery=st.one_of(st.none(), st.booleans()),
    battery=numbers,
)
devices = st.builds(
    Device,
    threads=st.integers(1, 16),
    batch_tokens=st.integers(1, 8192),
    window=st.sampled_from([128, 512, 8192]),
    bytes_per_token=st.floats(0, 1e6),
    base_bytes=st.floats(0, 1e8),
)
configs = st.builds(
    Governing,
    slice_seconds=st.floats(0.005, 10),
    trip=st.floats(1, 150),
    margin=st.floats(0, 50),
    memory_reserve=st.integers(0, 10**9),
    interval=st.floats(0.2, 600),
)
steps = st.lists(st.tuples(anything, st.floats(-100, 1e4), st.integers(0, 9000), st.floats(0, 60)), max_size=12)


def wander(device: Device, config: Governing, path: list[tuple[Readings, float, int, float]]) -> State:
    state = governor.begin(device, config, 0.0)
    for readings, passed, tokens, seconds in path:
        at = state.at + passed
        # Half of them are fresh, the others as old as they happen to be.
        fresh = replace(readings, at=at) if tokens % 2 else readings
        state = governor.step(governor.learn(state, tokens, seconds, device, config), fresh, device, config, at)
    return state


@given(devices, configs, steps)
def test_a_budget_is_never_negative_nor_over_its_ceilings(device: Device, config: Governing, path) -> None:
    budget = decided(wander(device, config, path), device, config)
    assert 0 <= budget.padded_tokens <= device.batch_tokens
    assert 0 <= budget.threads <= device.threads
    assert 0 <= budget.duty <= 1
    assert 0 <= budget.row_tokens <= device.window
    assert budget.reason and "\n" not in budget.reason
    assert budget.level is not Pressure.CRITICAL or (budget.duty == 0 and not budget.background)
    assert budget.level is not Pressure.HOT or not budget.background


def no_more(less: Budget, more: Budget) -> bool:
    return (
        less.duty <= more.duty + 1e-9
        and less.threads <= more.threads
        and less.padded_tokens <= more.padded_tokens
        and less.row_tokens <= more.row_tokens
        and less.background <= more.background
        and less.level >= more.level
    )


@given(devices, configs, steps, st.floats(0, 140), st.floats(0, 60), st.floats(0, 8))
def test_hotter_and_all_else_equal_never_gives_more(device, config, path, temperature, hotter, passed) -> None:
    state = wander(device, config, path)
    at = state.at + passed
    cool = Readings(at, temperature=temperature, memory_available=10**9)
    hot = replace(cool, temperature=min(150.0, temperature + hotter))
    budgets = [decided(governor.step(state, one, device, config, at), device, config) for one in (cool, hot)]
    assert no_more(budgets[1], budgets[0])


@given(st.floats(20, 95), st.floats(0, 30), st.integers(1, 400))
def test_a_device_that_has_long_been_hotter_never_gets_more(temperature: float, hotter: float, seconds: int) -> None:
    cool = decided(held(replace(COOL, temperature=temperature), seconds))
    hot = decided(held(replace(COOL, temperature=temperature + hotter), seconds))
    assert no_more(hot, cool)


@given(devices, configs, steps, st.integers(0, 2 * 10**9), st.integers(0, 10**9))
def test_less_memory_and_all_else_equal_never_gives_more(device, config, path, available, less) -> None:
    state = wander(device, config, path)
    much = Readings(state.at + 1, memory_available=available)
    little = replace(much, memory_available=max(0, available - less))
    budgets = [decided(governor.step(state, one, device, config, one.at), device, config) for one in (much, little)]
    assert no_more(budgets[1], budgets[0])


@given(devices, configs, steps)
def test_every_run_that_is_allowed_fits_into_the_memory_beside_a_recall(device, config, path) -> None:
    state = wander(device, config, path)
    budget = decided(state, device, config)
    if state.room is not None and config.enabled and budget.duty > 0:
        row = min(device.window, budget.row_tokens)
        runs = budget.threads + 1
        need = runs * (device.base_bytes + device.bytes_per_token * row)
        assert need <= state.room * (1 + 1e-9)


def test_the_fixed_governor_gives_what_is_configured() -> None:
    assert FixedGovernor(Embedding(workers=3, batch_tokens=64)).budget().threads == 3
