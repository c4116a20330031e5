"""The owner's own patterns, each with a time that it may take.

They are run by the `regex` library, because its searches can be stopped (`re` cannot be), and may use all of Python's
syntax. A pattern that backtracks without end is noticed when its time is over: what it had not read by then goes as a
whole, is counted under its name, and the name is logged. So it neither holds the box up nor lets a secret through
in silence, and the owner sees in the counts that something is wrong.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping

from edge.admission.redact.fold import BARRIER, View
from edge.admission.redact.kinds import PLACEHOLDERS, Span
from edge.admission.visible import has_visible
from edge.errors import InvalidArgument

_LOG = logging.getLogger(__name__)
# Seconds for one pattern on one text, and more for each character: a good pattern takes a hundredth of it, so that a
# slow device under load does not take it for a bad one.
BUDGET = 0.25
_PER_CHARACTER = 2e-6
_MOST_PATTERNS = 100
_LONGEST = 1000
# `regex` unrolls counted repeats when it compiles: nested ones multiply, and a million is already half a second.
_MOST_REPEATS = 100_000
_COUNT = re.compile(r"(\)?)\{([0-9]*),?([0-9]*)\}")
_NAME = re.compile(r"[^\[\]\x00-\x1f\x7f]{1,32}")


class Patterns:
    """Raises InvalidArgument that names the key, `admission.patterns.NAME`."""

    def __init__(self, patterns: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        if len(patterns) > _MOST_PATTERNS:
            raise InvalidArgument(
                f"admission.patterns: {len(patterns)} patterns, more than {_MOST_PATTERNS}; join some of them with |",
                field="admission.patterns",
            )
        self._clock = clock
        self._compiled = [(name, _compile(name, pattern)) for name, pattern in patterns.items()]
        self._told: set[str] = set()

    def find(self, view: View) -> Iterator[Span]:
        for name, search in self._compiled:
            yield from self._find(view.text, name, search)

    def _find(
        self, text: str, name: str, search: Callable[[str, int, float], tuple[int, int] | None]
    ) -> Iterator[Span]:
        budget = BUDGET + len(text) * _PER_CHARACTER
        deadline = self._clock() + budget
        at = 0
        while at < len(text):
            left = deadline - self._clock()
            try:
                found = search(text, at, left) if left > 0 else (at, at)
                late = left <= 0
            except TimeoutError:
                late, found = True, (at, at)
            if late:
                if name not in self._told:
                    self._told.add(name)
                    _LOG.warning(
                        "The redaction pattern %s took more than %.2f s on one text; the rest of that text was hidden. "
                        "Write it without nested repeats.", name, budget,
                    )  # fmt: skip
                yield from _outside_placeholders(text, at, len(text), name)
                return
            if found is None:
                return
            start, end = found
            if end > start:
                yield from _outside_placeholders(text, start, end, name)
            at = end if end > at else at + 1


def _outside_placeholders(text: str, start: int, end: int, name: str) -> Iterator[Span]:
    """What an earlier redaction left of it."""
    at = start
    while at < end:
        if text[at] == BARRIER:
            at += 1
            continue
        stop = text.find(BARRIER, at, end)
        stop = end if stop < 0 else stop
        yield Span(at, stop, name)
        at = stop


def _compile(name: str, pattern: str) -> Callable[[str, int, float], tuple[int, int] | None]:
    field = f"admission.patterns.{name}"
    if not isinstance(name, str) or not _NAME.fullmatch(name) or not has_visible(name):
        raise InvalidArgument(
            f"{field}: a pattern's name is 1 to 32 characters without brackets; rename it", field=field
        )
    if name in PLACEHOLDERS["en"] or name == "custom":
        raise InvalidArgument(f"{field}: this name is one of the box's own classes; rename the pattern", field=field)
    if not isinstance(pattern, str) or not pattern or len(pattern) > _LONGEST:
        raise InvalidArgument(f"{field}: must be a regular expression of 1 to {_LONGEST} characters", field=field)
    if _repeats(pattern) > _MOST_REPEATS:
        raise InvalidArgument(
            f"{field}: its counted repeats multiply to too many; use * or smaller counts", field=field
        )
    # Loaded only where there are patterns: 35 ms.
    import regex

    try:
        compiled = regex.compile(pattern, regex.VERSION0)
        empty = compiled.fullmatch("", timeout=BUDGET)
    except (regex.error, TimeoutError, OverflowError, RecursionError, ValueError, KeyError) as error:
        raise InvalidArgument(f"{field}: is not a valid regular expression ({error}); mend it", field=field) from None
    if empty:
        raise InvalidArgument(f"{field}: matches the empty text, so it would hide nothing; use + for *", field=field)

    def search(text: str, at: int, seconds: float) -> tuple[int, int] | None:
        # Concurrent: other threads go on while it searches.
        found = compiled.search(text, at, timeout=seconds, concurrent=True)
        return found.span() if found else None

    return search


def _repeats(pattern: str) -> int:
    """An upper bound of how often a part may be unrolled: repeats of groups may nest, those of characters cannot."""
    groups, single = [1], 1
    for match in _COUNT.finditer(pattern):
        count = max((int(digits[:9]) for digits in match.groups()[1:] if digits), default=1)
        if match[1]:
            groups.append(max(count, 1))
        else:
            single = max(single, count)
    return math.prod(groups) * single
