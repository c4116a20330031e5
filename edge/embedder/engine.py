"""The embedder at work on this device: batcher, governor and sensors, started together and stopped in order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from edge.config import Config
from edge.embedder.batcher import Batcher
from edge.embedder.device import DeviceGovernor
from edge.embedder.governor import Device
from edge.embedder.readings import Readings
from edge.embedder.sensors import Sensors, SensorWatch
from edge.ports import Clock, Embedder

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def running(
    embedder: Embedder, device: Device, config: Config, clock: Clock, sensors: Sensors | None = None
) -> Iterator[tuple[Batcher, DeviceGovernor]]:
    """`device` is what this one can do at its best; `sensors` are this system's when none are given.

    The sensors' beat, once a second at rest, is also when hung runs are noticed and idle buffers given back: no other
    thread has to wake for those. The embedder stays the caller's to close.
    """
    governor = DeviceGovernor(device, config.governor, clock)
    batcher = Batcher(embedder, governor, clock, config.embedding, patience=config.governor.patience)

    held = 0

    def beat(readings: Readings) -> None:
        nonlocal held
        governor.feel(readings, held)
        # A run that hangs may hold what a release waits for, and the beat has to go on.
        if not batcher.status().stalled:
            held = embedder.release()

    watch = SensorWatch(
        sensors or Sensors(clock), config.governor.interval, beat, busy=lambda: batcher.status().ingests > 0
    )
    batcher.start()
    watch.start()
    try:
        yield batcher, governor
    finally:
        watch.close()
        batcher.close()
