"""The memory box: what was said, kept on the device and given back when asked."""

import os

__version__ = "0.1.0"

# onnxruntime reports its host to its maker when it is imported, unless this is set before. Nothing leaves the device.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
