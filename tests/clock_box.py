"""`edge` under another wall clock: clock_box.py FILE COMMAND…

FILE holds the seconds by which the clock is wrong, and may change at any moment. (libfaketime would do it for C code
too, but gRPC's waits for absolute times go wrong under it.)
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from edge.cli import main

_right = time.time_ns


def _wrong(file: Path) -> int:
    return _right() + int(file.read_text()) * 10**9


if __name__ == "__main__":
    wrong_by = Path(sys.argv[1])
    time.time_ns = lambda: _wrong(wrong_by)
    time.time = lambda: _wrong(wrong_by) / 1e9
    sys.exit(main(sys.argv[2:]))
