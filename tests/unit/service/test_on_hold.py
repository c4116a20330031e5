"""Why nothing is embedded just now, as ingest streams ask it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from edge.appliance import Core
from edge.ports import Budget


@pytest.mark.parametrize(
    ("duty", "stuck", "reason"),
    [
        (1.0, False, ""),
        (0.02, False, ""),
        (0.0, False, "91 C of 85 C"),
        (1.0, True, "the model does not come back from its present work"),
    ],
    ids=["at full speed", "at a trickle", "too hot", "in a model that hangs"],
)
def test_ingests_are_on_hold_only_while_none_gets_its_vector(duty: float, stuck: bool, reason: str) -> None:
    budget = Budget(512, 2, duty, True, "91 C of 85 C")
    box = SimpleNamespace(governor=SimpleNamespace(budget=lambda: budget), batcher=SimpleNamespace(stuck=lambda: stuck))
    assert Core.on_hold(box) == reason  # type: ignore[arg-type]  # the two parts of a box that it asks
