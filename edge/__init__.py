"""The memory box: what was said, kept on the device and given back when asked."""

__version__ = "0.1.0"
