"""The keyring of the machine, if it has one that works: a better place for a token than a file."""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable
from typing import Any

_SERVICE = "edge-memory"
# A keyring may ask its user for a password, on a screen that nobody looks at.
_PATIENCE = 3.0


def keep(box_id: str, token: str) -> bool:
    """Whether the keyring has the token now, and gives it back."""
    keyring = _keyring()
    if keyring is None:
        return False
    _within(lambda: keyring.set_password(_SERVICE, box_id, token))
    return fetch(box_id) == token


def fetch(box_id: str) -> str:
    """The token, empty when there is none or the keyring stays silent."""
    keyring = _keyring()
    found = None if keyring is None else _within(lambda: keyring.get_password(_SERVICE, box_id))
    return found if isinstance(found, str) else ""


def drop(box_id: str) -> None:
    keyring = _keyring()
    if keyring is not None:
        _within(lambda: keyring.delete_password(_SERVICE, box_id))


def _keyring() -> Any:
    """The package, None when it is not installed or has only its backend that refuses everything (priority 0)."""
    try:
        keyring = importlib.import_module("keyring")
        usable = keyring.get_keyring().priority >= 1
    except Exception:  # noqa: BLE001  # a backend may fail in any way at all; there is the file instead
        return None
    return keyring if usable else None


def _within(work: Callable[[], Any]) -> Any:
    """What the work gives, None when it fails or takes too long. A thread, for a keyring cannot be interrupted."""
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put(work())
        except Exception:  # noqa: BLE001  # its text could hold what was to be kept
            done.put(None)

    threading.Thread(target=run, name="edge-keyring", daemon=True).start()
    try:
        return done.get(timeout=_PATIENCE)
    except queue.Empty:
        return None
