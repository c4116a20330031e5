"""Time expressions of a question, Chinese and English, as windows of time."""

from edge.recall.temporal.told import tells_time
from edge.recall.temporal.understand import Times, Window, understand

__all__ = ["Times", "Window", "tells_time", "understand"]
