"""The embedder at work on this device: batcher, governor and sensors, started together and stopped in order."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence

from edge.config import Config
from edge.embedder.batcher import Batcher
from edge.embedder.device import DeviceGovernor
from edge.embedder.governor import Device
from edge.embedder.lanes import Served
from edge.embedder.readings import Readings
from edge.embedder.sensors import Sensors, SensorWatch
from edge.ports import Clock, Embedder

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def running(
    embedder: Embedder,
    device: Device,
    config: Config,
    clock: Clock,
    sensors: Sensors | None = None,
    beside: Sequence[Served] = (),
) -> Iterator[tuple[Batcher, DeviceGovernor]]:
    """`device` is what this one can do at its best; `sensors` are this system's when none are given. `beside` are
    models that run beside the embedder.

    The sensors' beat, once a second at rest, is also when hung runs are noticed and idle buffers given back: no other
    thread has to wake for those. The embedders stay the caller's to close.
    """
    governor = DeviceGovernor(device, config.governor, clock)
    batcher = Batcher(embedder, governor, clock, config.embedding, patience=config.governor.patience, beside=beside)

    embedders = (embedder, *(served.embedder for served in beside))
    held = 0

    def beat(readings: Readings) -> None:
        nonlocal held
        governor.feel(readings, held)
        # A run that hangs may hold what a release waits for, and the beat has to go on.
        if not batcher.status().stalled:
            # The next runs may all be of the model that has the fewest buffers.
            held = min([one.release() for one in embedders])

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
