"""Another program on the machine that wants a core for itself."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

# Ends with its parent, however that ended: nobody else would stop it.
_SPIN = """
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    for _ in range(100_000):
        pass
"""


@contextlib.contextmanager
def busy_neighbour() -> Iterator[None]:
    """A process that computes all the time, at normal priority and on whichever core it gets, while the block runs."""
    process = subprocess.Popen(  # noqa: S603  # our own interpreter and the lines above
        [sys.executable, "-c", _SPIN, str(os.getpid())], stdin=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()
