"""Statuses as a box would give them, for the tests of what is shown."""

from __future__ import annotations

from typing import Any

from edge.v1 import appliance_pb2

MIB = 1024 * 1024
SINCE = 1_767_225_600


def a_status(**fields: Any) -> appliance_pb2.Status:
    """A box at work on a warm day; `fields` in place of the governor's own."""
    status = appliance_pb2.Status(
        version="0.1.0", ready=True, resident_bytes=212 * MIB, addresses=["unix:/data/edge.sock"], streams=1
    )
    status.started_at.FromSeconds(SINCE)
    status.now.FromSeconds(SINCE + 8000)
    status.model.id, status.model.dimension, status.model.bytes = "bge-small-zh-v1.5-q", 512, 24_010_842
    status.model.workers, status.model.device, status.model.variant = 1, "cpu", "stock"
    status.queue.recalls, status.queue.ingests, status.queue.ingest_tokens = 1, 200, 20_000
    status.queue.tokens_per_second = 2500.0
    status.queue.estimated_drain.FromSeconds(8)
    status.spaces.add(name="public", turns=1, memories=1200, vectors=800, pending=400, log_bytes=4096, damaged_lines=1)
    status.governor.CopyFrom(a_governor(**fields))
    return status


def a_governor(**fields: Any) -> appliance_pb2.GovernorStatus:
    told: dict[str, Any] = {
        "level": appliance_pb2.PRESSURE_WARM,
        "reason": "tj-thermal is at 78.5 C, 2.5 below its limit",
        "changes": 3,
        "padded_tokens": 384,
        "row_tokens": 512,
        "threads": 2,
        "duty": 0.62,
        "background": False,
        "temperature": 78.5,
        "temperature_limit": 81.0,
        "memory_available": 3072 * MIB,
        **fields,
    }
    governor = appliance_pb2.GovernorStatus(**told)
    governor.since.FromSeconds(SINCE + 60)
    governor.sensors.add(name="tj-thermal", value=78.5, unit="C")
    governor.sensors.add(name="cv0-thermal", unit="C", problem="cannot be read (EAGAIN); it is passed over")
    return governor
