"""The governor at work: the pure one, fed with this device's readings and the batches it ran."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from edge.config import Governing
from edge.embedder import governor
from edge.embedder.governor import Device
from edge.embedder.readings import Readings
from edge.ports import Budget, Clock, GovernorState
from edge.types import Pressure

logger = logging.getLogger(__name__)


class DeviceGovernor:
    """ports.Governor. `feel` takes readings as they come; budgets are made when something changed, not when asked."""

    def __init__(self, device: Device, config: Governing, clock: Clock) -> None:
        self._device = device
        self._config = config
        self._clock = clock
        self._lock = threading.Lock()
        self._state = governor.begin(device, config, clock.monotonic())
        self._budget = governor.budget(self._state, device, config)
        self._readings = Readings(clock.monotonic())
        self._since = clock.now()
        self._changes = 0

    def budget(self) -> Budget:
        return self._budget

    def observe(self, padded_tokens: int, seconds: float, cpu_seconds: float) -> None:
        with self._lock:
            self._state = governor.learn(self._state, padded_tokens, seconds, self._device, self._config, cpu_seconds)
            self._budget = governor.budget(self._state, self._device, self._config)

    def feel(self, readings: Readings, held_tokens: int = 0) -> None:
        """What the sensors say now, or said last when they are stuck: `readings.at` tells how old it is.

        For so many padded tokens at once the model has its buffers already: they are not to be found room for again.
        """
        with self._lock:
            before = self._budget
            self._readings = readings
            reckoned = readings
            if readings.memory_available is not None:
                room = readings.memory_available + int(held_tokens * self._device.bytes_per_token)
                reckoned = replace(readings, memory_available=room)
            self._state = governor.step(self._state, reckoned, self._device, self._config, self._clock.monotonic())
            self._budget = after = governor.budget(self._state, self._device, self._config)
            if changed := after.level != before.level:
                self._since = self._clock.now()
                self._changes += 1
        if changed:
            level = logging.WARNING if after.level > before.level else logging.INFO
            logger.log(
                level,
                "level=%s was=%s reason=%r temperature=%s trip=%s memory_available=%s padded_tokens=%d row_tokens=%d "
                "threads=%d duty=%.2f background=%s",
                Pressure(after.level).name.lower(),
                Pressure(before.level).name.lower(),
                after.reason,
                _shown(readings.temperature),
                _shown(readings.trip),
                _shown(readings.memory_available),
                after.padded_tokens,
                after.row_tokens,
                after.threads,
                after.duty,
                str(after.background).lower(),
            )

    def state(self) -> GovernorState:
        with self._lock:
            readings = self._readings
            return GovernorState(
                budget=self._budget,
                since=self._since,
                changes=self._changes,
                temperature=readings.temperature,
                limit=readings.trip if readings.trip is not None else self._config.trip,
                memory_available=readings.memory_available,
                sensors=readings.sensors,
            )


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
