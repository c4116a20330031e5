"""Mainland identity numbers (GB 11643): a province, a date that exists, and a right check character.

The check is ISO 7064, MOD 11-2, and with the date a chance match is one in millions, so any grouping is read over. What
fails one of the checks is kept, also after 身份证: hiding it would hide other long numbers as well. The 15 digits of
before 1999 have no check; they count only after a word that says what they are.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

from edge.admission.redact.kinds import Span
from edge.admission.redact.runs import Run

_IDENTITY_WORD = re.compile(r"身份证|身分證|身份號|证件号|身份号|\bidentity|\bid\s?(?:card|number|no)", re.IGNORECASE)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CHECKS = "10X98765432"
_PROVINCES = frozenset(
    str(n)
    for n in (
        *range(11, 16),
        *range(21, 24),
        *range(31, 38),
        *range(41, 47),
        *range(50, 55),
        *range(61, 66),
        71,
        81,
        82,
        83,
    )
)
# Of an identity number, or of a foreigner's permanent card: 9 and a province.
_STARTS = _PROVINCES | {"9" + place[0] for place in _PROVINCES}


def identities(run: Run) -> Iterator[tuple[Span, int, int]]:
    """Each with the groups that it takes: the first, and the one after the last."""
    free = 0
    for at, offset in enumerate(run.offsets[:-1]):
        if run.digits[offset : offset + 2] not in _STARTS or at < free:
            continue
        if found := _identity_from(run, at):
            span, free = found
            yield span, at, free


def identity(number: str) -> bool:
    """Whether 18 characters are an identity number."""
    if not _placed(number) or not "1900" <= number[6:10] <= "2099" or not _date(number[6:14]):
        return False
    total = sum(int(digit) * weight for digit, weight in zip(number[:17], _WEIGHTS, strict=True))
    return _CHECKS[total % 11] == number[17].upper()


def _identity_from(run: Run, first: int) -> tuple[Span, int] | None:
    offset = run.offsets[first]
    digits = run.digits[offset : offset + 18]
    start = run.groups[first][0]
    if len(digits) < 15 or not _placed(digits):
        return None
    if run.length(first) == 15 and _date("19" + digits[6:12]) and _IDENTITY_WORD.search(*run.before(first)):
        end = run.groups[first][1]
        if run.alone(first, first, end):
            return Span(start, end, "identity"), first + 1
    number = digits if len(digits) == 18 else digits + "X" if len(digits) == 17 and run.check else ""
    if not number or not identity(number):
        return None
    for last in range(first, len(run.groups)):
        if run.offsets[last + 1] - offset == len(digits):
            end = run.check if len(digits) == 17 else run.groups[last][1]
            return (Span(start, end, "identity"), last + 1) if run.alone(first, last, end) else None
        if run.offsets[last + 1] - offset > len(digits):
            break
    return None


def _placed(digits: str) -> bool:
    """Whether it begins with a province's number, or with 9 and one: a foreigner's permanent card."""
    return (digits[1:3] if digits[0] == "9" else digits[:2]) in _PROVINCES


def _date(digits: str) -> bool:
    try:
        dt.date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return True
