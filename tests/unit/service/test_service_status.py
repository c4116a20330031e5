"""What the governor and the model are on the wire, and the warning of a model that does not answer."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.ports import Budget, GovernorState, QueueStatus
from edge.service.appliance import _stalled
from edge.service.convert import governor_message, micros, model_message
from edge.types import ModelInfo, Pressure, SensorFact

BUDGET = Budget(384, 2, 0.62, False, "tj-thermal is at 78.5 C", row_tokens=256, level=Pressure.WARM)


@pytest.mark.parametrize("level", list(Pressure))
def test_every_level_has_its_number_on_the_wire(level: Pressure) -> None:
    budget = Budget(1, 1, 1.0, True, "", level=level)
    assert governor_message(GovernorState(budget, since=1, changes=0)).level == int(level)


def test_the_budget_goes_over_whole() -> None:
    message = governor_message(GovernorState(BUDGET, 7_000_000, 3, 78.5, 81.0, 3 << 30))
    assert (message.padded_tokens, message.threads, message.duty, message.background) == (384, 2, 0.62, False)
    assert (message.row_tokens, message.reason, message.changes) == (256, "tj-thermal is at 78.5 C", 3)
    assert (message.temperature, message.temperature_limit, message.memory_available) == (78.5, 81.0, 3 << 30)
    assert micros(message.since, "since") == 7_000_000


def test_what_is_not_known_is_unset_rather_than_nought() -> None:
    message = governor_message(GovernorState(BUDGET, since=0, changes=0))
    for name in ("since", "temperature", "temperature_limit", "memory_available"):
        assert not message.HasField(name)
    assert governor_message(GovernorState(BUDGET, 1, 0, 0.0, 0.0, 0)).HasField("temperature")


@given(st.none() | st.floats(), st.text(max_size=5))
def test_a_sensor_has_a_number_or_a_reason_for_none(value: float | None, problem: str) -> None:
    state = GovernorState(BUDGET, 1, 0, sensors=(SensorFact("tj-thermal", value, "C", problem),))
    (sensor,) = governor_message(state).sensors
    if value is not None and math.isfinite(value):
        assert sensor.value == value and sensor.problem == problem
    else:
        assert not sensor.HasField("value")
        assert sensor.problem or value is None


@pytest.mark.parametrize(
    ("id_", "variant"), [("bge-small-zh-v1.5-q", "stock"), ("bge-small-zh-v1.5-q+static", "static")]
)
def test_the_variant_is_told_apart_and_the_id_is_the_one_of_the_vectors(id_: str, variant: str) -> None:
    message = model_message(ModelInfo(id_, 512, "cpu", 2, 24_000_000), None)
    assert (message.id, message.variant) == (id_, variant)
    assert not message.HasField("calibrated_at")
    measured = model_message(ModelInfo(id_, 512, "cpu", 2, 24_000_000), 5_000_000)
    assert micros(measured.calibrated_at, "at") == 5_000_000


def test_a_model_that_does_not_answer_is_a_warning_with_the_next_step() -> None:
    assert _stalled(QueueStatus(0, 0, 0, 0.0, 0.0)) == []
    (warning,) = _stalled(QueueStatus(1, 2, 3, 0.0, 0.0, stalled=34.2))
    assert warning.startswith("the model has not answered for 34 s; recalls go by words; restart the box")
