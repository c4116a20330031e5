"""Bank cards: a known issuer's first digits, a length that it uses, and a right check digit (Luhn, ISO/IEC 7812).

What fails one of the checks is kept, also after 卡号: a number with a wrong check digit is no card, and hiding it would
hide order numbers as well.

One number in ten passes Luhn by chance, so a card must also stand alone. A longer run of digits, a letter or a tight
dash that ties the run to a longer id, a label such as 订单号 or `tracking`, and groups of lengths that no person writes
all mean that it is something else. Inside, separators of one kind are read over: spaces, dashes, dots, a line break.
Visa's old 13 digits look like an EAN, and count only after a word that says what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from edge.admission.redact.kinds import Span
from edge.admission.redact.runs import Run

# First digits of issuers, and the lengths of their numbers (ISO/IEC 7812, the card schemes' own tables). 9558, 9559,
# 4563, 6013, 6014, 603 and 685800 are old ranges of mainland banks that are still in purses.
_ISSUERS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = tuple(
    (re.compile(prefix), frozenset(lengths))
    for prefix, lengths in (
        ("4", (16,)),
        ("4563", (16, 19)),
        ("5[1-5]", (16,)),
        ("222[1-9]|22[3-9]|2[3-6]|27[01]|2720", (16,)),
        ("3[47]", (15,)),
        ("6011|64[4-9]|65", (16, 19)),
        ("30[0-5]|3095|36|3[89]", (14, 16, 19)),
        ("352[89]|35[3-8]", (16, 19)),
        ("62", (16, 17, 18, 19)),
        ("81[0-6]|817[01]", (16, 19)),
        ("955[89]|601[34]|603|685800|9111", (16, 17, 18, 19)),
        ("5018|5020|5038|5893|6304|6759|676[123]", (16, 19)),
        ("220[0-4]", (16, 19)),
    )
)
_OLD_VISA = (re.compile("4"), frozenset({13}))

# What any of them begins with: most numbers of a log do not.
_START = re.compile("[3-6]|2[27]|2[3-6]|8[01]|9[15]")

_CARD_WORD = re.compile(
    r"(?:卡号|卡號|银行卡|信用卡|储蓄卡|借记卡|银联|账号|帐号|账户|\b(?:debit|credit|bank)?\s?card\b|\bvisa\b|master\s?card|amex|"
    r"american express|union\s?pay|\bpan\b)",
    re.IGNORECASE,
)
# A number right after one of these says itself that it is something else.
_OTHER_LABEL = re.compile(
    r"(?:身份证|订单|单号|运单|快递|物流|流水|交易号|追踪|条码|序列号|发票|编号|工单|\border|\btracking|\bparcel|\bshipment|\binvoice|\bsku|"
    r"\bisbn|\bimei|\biccid|\btrace|\brequest|\bserial|\bbarcode|\bean|\bticket|\btransaction|\bbatch|timestamp|\bwaybill|\bid)"
    r"[ _-]?(?:号码|编码|编号|号|码|no|nr|num|number|id|code)?\.?\s?(?:是|为|is|was)?\s?[:：#=(（\"']*\s?[\"'#]?$",
    re.IGNORECASE,
)
# The digits of twice a digit, added up.
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


def cards(run: Run, taken: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """`taken`: groups that are something else already, as first and one after the last."""
    free = previous = 0
    named: bool | None = None
    for at, offset in enumerate(run.offsets[:-1]):
        if at < free or not _START.match(run.digits, offset):
            continue
        # In a row of groups alike only the first can begin a card.
        if at > previous and run.length(at) < 13 and run.length(at - 1) == run.length(at):
            continue
        if other := next((stop for start, stop in taken if start <= at < stop), 0):
            free = previous = other
            continue
        # A word before a list of numbers speaks of each of them.
        named = bool(_CARD_WORD.search(*run.before(0))) if named is None else named
        for last in _ends(run, at, named):
            if _card(run, at, last, named):
                yield Span(run.groups[at][0], run.groups[last][1], "bank_card")
                free = previous = last + 1
                break


def luhn(digits: str) -> bool:
    total = sum(map(int, digits[-1::-2])) + sum(map(_DOUBLED.__getitem__, map(int, digits[-2::-2])))
    return total % 10 == 0


def _ends(run: Run, first: int, named: bool) -> Sequence[int]:
    """The last groups of what may be a card that begins with group `first`, the longest first."""
    offset = run.offsets[first]
    ends = []
    ones = run.length(first) == 1
    for last in range(first, len(run.groups)):
        size = run.offsets[last + 1] - offset
        if size > 19:
            break
        if size >= 13:
            ends.append(last)
        # Nobody writes two or three digits in the middle of a card; rows of numbers end here.
        if not named and run.length(last) < 4 and not (ones and run.length(last) == 1):
            break
    return ends[::-1]


def _card(run: Run, first: int, last: int, named: bool) -> bool:
    digits = run.digits[run.offsets[first] : run.offsets[last + 1]]
    if not _issued(digits, named) or not luhn(digits):
        return False
    start, end = run.groups[first][0], run.groups[last][1]
    if not run.alone(first, last, end) or _OTHER_LABEL.search(*run.before(first)):
        return False
    if first == last:
        return True
    lengths = [run.length(at) for at in range(first, last + 1)]
    gaps = [run.gap(at) for at in range(first + 1, last + 1)]
    marks = {gap.strip() for gap in gaps}
    # Cards of 17 and 18 digits are so rare that in groups they are something else.
    if not named and (len(marks) > 1 or len(digits) in (17, 18) or not _written_so(lengths, *marks)):
        return False
    # Four digits more: a row of numbers, or a longer id.
    if last + 1 < len(run.groups) and lengths[-1] == 4:
        following = run.digits[run.offsets[last + 1] : run.offsets[min(last + 5, len(run.groups))]]
        if run.length(last + 1) == 4 and not (_issued(following, named) and luhn(following)):
            return False
        # Three digits more are a card's own security code, unless this issuer has numbers that long.
        longer = digits + following[: run.length(last + 1)]
        same_line = "\n" not in run.gap(last + 1)
        if same_line and run.gap(last + 1) in gaps and _issued(longer, named):
            return False
    breaks = sum("\n" in gap or "\r" in gap for gap in gaps)
    return breaks == 0 or (breaks == 1 and (named or _wrapped(run.text, start, end, lengths)))


def _issued(digits: str, named: bool) -> bool:
    """Whether an issuer has numbers of this length that begin so. `named`: a word says that it is a card."""
    if not 13 <= len(digits) <= 19:
        return False
    issuers = (*_ISSUERS, _OLD_VISA) if named else _ISSUERS
    return any(len(digits) in lengths and prefix.match(digits) for prefix, lengths in issuers)


def _written_so(lengths: Sequence[int], mark: str) -> bool:
    """Whether people write a card in groups of these lengths, parted by white space and `mark`: in fours, as Amex's
    4-6-5, in two parts, or digit by digit.
    """
    head, tail = set(lengths[:-1]), lengths[-1]
    if head == {1}:
        return tail == 1
    if mark and len(lengths) < 3 and (mark in ".·・" or lengths[0] != 6):
        # 123.4567890123456 is a decimal, 20240101-12345678 an order; 622848-0786036235582 is how some banks print it.
        return False
    return (
        (head == {4} and tail <= 4)
        or list(lengths) in ([4, 6, 5], [4, 6, 4])
        or (len(lengths) == 2 and min(lengths) >= 4)
    )


def _wrapped(text: str, start: int, end: int, lengths: Sequence[int]) -> bool:
    """Whether a number over a line's end is one that was wrapped, and not two lines of a column."""
    if set(lengths[:-1]) == {4} and len(lengths) > 2:
        # A column of four-digit numbers breaks after each; then there were more breaks than one.
        return True
    before = text[text.rfind("\n", 0, start) + 1 : start]
    stop = text.find("\n", end)
    after = text[end : stop if stop >= 0 else len(text)]
    return bool(before.strip(" >\t*-") or after.strip())
