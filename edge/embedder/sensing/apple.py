"""macOS's thermal pressure, which needs no root: the notification of its thermal daemon, asked for its state."""

from __future__ import annotations

import ctypes
from typing import Any

from edge.embedder.sensing.probes import NotCredible
from edge.types import Pressure

_NAME = b"com.apple.system.thermalpressurelevel"
# OSThermalNotification.h: nominal, moderate, heavy, trapping, sleeping.
_LEVELS = (Pressure.NOMINAL, Pressure.WARM, Pressure.HOT, Pressure.CRITICAL, Pressure.CRITICAL)


def pressure(level: int) -> Pressure:
    """Raises NotCredible for a level that macOS does not have."""
    if not 0 <= level < len(_LEVELS):
        raise NotCredible(f"says level {level}, which macOS does not have")
    return _LEVELS[level]


class ThermalPressure:
    """The level, 0 to 4, each time it is called (notify(3)). It may stay 0 on a Mac that is throttled all the same."""

    def __init__(self, library: Any = None) -> None:
        """`library` has notify_register_check and notify_get_state; None: the system's, loaded at the first call."""
        self._library = library
        self._token: ctypes.c_int | None = None

    def __call__(self) -> int:
        """Raises OSError when the notification cannot be had."""
        if self._library is None:
            self._library = ctypes.CDLL("/usr/lib/libSystem.dylib")
        if self._token is None:
            token = ctypes.c_int()
            if self._library.notify_register_check(_NAME, ctypes.byref(token)):
                raise OSError(0, "macOS does not give its thermal pressure")
            self._token = token
        state = ctypes.c_uint64()
        if self._library.notify_get_state(self._token, ctypes.byref(state)):
            # The daemon forgot us: register anew next time.
            self._token = None
            raise OSError(0, "macOS did not say its thermal pressure")
        return state.value
