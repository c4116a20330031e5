"""Neighbouring expressions made one: narrowed, stretched from one to the other, limited by before and after."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

from edge.recall.temporal.calendar import DAY, FIRST_YEAR, LAST_YEAR, Bounds, Now, following, preceding
from edge.recall.temporal.numerals import chinese_number, chinese_quantity, english_quantity
from edge.recall.temporal.phrase import UNITS, Phrase, Sense, back, either, fits, narrow, phase_of, stretch

# Where a window has no bound on one side.
BEGINNING = dt.datetime.min  # noqa: DTZ901  # a mark on the asker's wall clock, which is naive (see Bounds)
END = dt.datetime.max  # noqa: DTZ901  # as above

# How far to look for what stands before an expression.
_REACH = 32

_BESIDE = re.compile(r"[ (（]?(?:的|, ?|，)?(?: ?(?:of|in|on))?(?: the)? ?[(（]?")
_PHASE = re.compile(
    r"\b(?:(?P<word>early|mid|late)[ -]+(?:in )?"
    r"|(?:the )?(?P<half>(?:first|second) half|beginning|start|middle|end) of )(?:the )?$"
)
_PHASES = {
    "early": "early", "mid": "mid", "late": "late", "beginning": "early", "start": "early", "middle": "mid",
    "end": "end", "first half": "half1", "second half": "half2",
}  # fmt: skip
_TO = re.compile(r"(?: ?(?:一?直?到|至|[-~]) ?| (?:to|through|thru|until|till|up to) )(?:the )?")
_AND = re.compile(r" ?(?:and|和|与|跟) ?(?:the )?")
_FROM = re.compile(r"(?:\b(?P<between>between)|介于|\bfrom|自?从|自) ?(?:the )?$")
_BETWEEN_END = re.compile(r" ?(?:之间|期间|间)")
_RELATIVE = re.compile(r" (?P<way>before|after|following|preceding) (?:the )?")
_OFFSET = re.compile(
    r"(?:\b(?P<count>[0-9]{1,4}|[a-z]+|a few|a couple of) )?\b(?P<unit>day|night|week|month|year)s? "
    r"(?P<way>before|after|following|preceding|prior to) (?:the )?$"
)
_OFFSET_AFTER = re.compile(
    r"的?(?:(?P<way>[前后])(?P<count>[0-9]{1,4}|[一二两三四五六七八九十]{1,3})(?P<unit>天|周|个?星期|个月|年)|(?P<next>次日|第二天|隔天))"
)
_PREFIX = re.compile(
    r"(?:(?P<before>\b(?:before|prior to|earlier than))"
    r"|(?P<until>\b(?:up until|up to|until|till|by|as of)|直到|截[至止]到?)"
    r"|(?P<after>\b(?:after|later than))"
    r"|(?P<since>\b(?:(?:ever )?since|starting(?: from| in| on)?)|自从)"
    r"|(?P<from>\bfrom|自|打?从))"
    r" ?(?:the )?$"
)
_SUFFIX = re.compile(
    r"(?P<before>之前|以前|前(?![后面台天一二两三几些0-9]))|(?P<after>(?:之|以|过)后|后(?![来面天台一二两三几0-9]))"
    r"|(?P<since>以来|至今|一?直?到(?:现在|目前|如今)|起(?![床来])|开始|,? onwards?\b| on(?= *(?:$|[,.?!]))"
    r"| (?:to|until|till|through) (?:now|date|the present)\b)"
    r"|(?P<around>(?:前后|左右))"
)
_CHINESE_UNITS = {"天": "day", "年": "year", "月": "month"}


def compose(parts: list[Phrase], text: str, now: Now) -> list[Phrase]:
    """The whole expressions, each a time by itself."""
    joined = _stretch(_phases(_narrow(parts, text, now), text, now), text, now)
    limited: list[Phrase] = []
    for phrase, after in zip(joined, [*joined[1:], None], strict=True):
        floor = limited[-1].end if limited else 0
        limited.append(_limit(phrase, text, floor, after.start if after else len(text), now))
    return [phrase for phrase in limited if phrase.sense and phrase.sense.alone]


def _narrow(parts: list[Phrase], text: str, now: Now) -> list[Phrase]:
    """去年 and 国庆, "yesterday" and "morning", "March" and "last year"."""
    out: list[Phrase] = []
    for part in parts:
        if out and _BESIDE.fullmatch(text, out[-1].end, part.start):
            if text[part.start] == "前" and out[-1].sense and out[-1].sense.alone:
                # 国庆前三天: the three days belong to what stands before them.
                continue
            one = _one(out[-1], part, now)
            if one:
                out[-1] = one
                continue
        out.append(part)
    return out


def _one(a: Phrase, b: Phrase, now: Now) -> Phrase | None:
    whole = Phrase(a.start, b.end, None, a.topics + b.topics)
    if a.sense is None or b.sense is None:
        # The evening of a date that does not exist does not exist either.
        other = a.sense or b.sense
        return whole if other and not other.alone else None
    if fits(a.sense, b.sense):
        sense = narrow(a.sense, b.sense, now)
    elif fits(b.sense, a.sense):
        sense = narrow(b.sense, a.sense, now)
    else:
        sense = either(a.sense, b.sense)
        if sense is None:
            return None
    if sense:
        sense = replace(sense, latest=a.sense.latest or b.sense.latest)
    return replace(whole, sense=sense)


def _before(text: str, start: int, floor: int) -> str:
    return text[max(floor, start - _REACH) : start]


def _phases(parts: list[Phrase], text: str, now: Now) -> list[Phrase]:
    out: list[Phrase] = []
    for part in parts:
        match = _PHASE.search(_before(text, part.start, out[-1].end if out else 0))
        if match and part.sense:
            sense = phase_of(part.sense, _PHASES[match["word"] or match["half"]], now)
            part = replace(part, start=part.start - (match.end() - match.start()), sense=sense)
        out.append(part)
    return out


def _stretch(parts: list[Phrase], text: str, now: Now) -> list[Phrase]:
    """From one to the next; and "the Friday before Thanksgiving", which has one time in another's neighbourhood."""
    out: list[Phrase] = []
    for part in parts:
        if out and out[-1].sense and part.sense and not out[-1].ends:
            one = _range(out[-1], part, text, out[-2].end if len(out) > 1 else 0, now) or _nearest(out[-1], part, text)
            if one:
                out[-1] = one
                continue
        out.append(part)
    return out


def _range(a: Phrase, b: Phrase, text: str, floor: int, now: Now) -> Phrase | None:
    assert a.sense and b.sense
    opening = _FROM.search(_before(text, a.start, floor))
    closing = _BETWEEN_END.match(text, b.end)
    joined = _TO.fullmatch(text, a.end, b.start) or (
        ((opening and opening["between"]) or closing) and _AND.fullmatch(text, a.end, b.start)
    )
    if not joined or not (opening or a.sense.alone or b.sense.alone):
        return None
    sense = stretch(a.sense, b.sense, now)
    if sense is None:
        return None
    start = a.start - (opening.end() - opening.start()) if opening else a.start
    return Phrase(start, closing.end() if closing else b.end, sense, a.topics + b.topics, ends=True)


def _nearest(a: Phrase, b: Phrase, text: str) -> Phrase | None:
    assert a.sense and b.sense
    match = _RELATIVE.fullmatch(text, a.end, b.start)
    if not match or not a.sense.at or not b.sense.alone:
        return None
    if match["way"] in ("before", "preceding"):
        bounds = preceding(a.sense.at, a.sense.every, b.sense.bounds.first)
    else:
        # A holiday is given with the days around it; what comes after it comes after its first.
        first, last = b.sense.bounds
        bounds = following(a.sense.at, a.sense.every, last if b.sense.bounds.days > 5 else first + DAY)
    return Phrase(a.start, b.end, Sense(bounds), a.topics + b.topics, ends=True) if bounds else None


def _limit(phrase: Phrase, text: str, floor: int, ceiling: int, now: Now) -> Phrase:
    """With the words before and after it that make a limit of it; those between `floor` and `ceiling` are free."""
    sense = phrase.sense
    # 最近 and 上次 have no bounds that something could be before.
    if sense is None or not (sense.explicit or sense.at):
        return phrase
    before = _before(text, phrase.start, floor)
    prefix = _OFFSET.search(before)
    suffix = _OFFSET_AFTER.match(text, phrase.end, ceiling)
    if prefix and (bounds := _offset(sense, prefix)):
        return replace(phrase, start=phrase.start - len(before) + prefix.start(), sense=Sense(bounds))
    if suffix and (bounds := _offset_after(sense, suffix)):
        return replace(phrase, end=suffix.end(), sense=Sense(bounds))
    prefix, suffix = _PREFIX.search(before), _SUFFIX.match(text, phrase.end, ceiling)
    word = (suffix.lastgroup if suffix else None) or (prefix.lastgroup if prefix else None)
    if word is None or (word == "from" and prefix and not suffix):
        return phrase
    first, last = sense.bounds
    bounds = {
        "before": Bounds(BEGINNING, first),
        "until": Bounds(BEGINNING, last),
        "after": Bounds(last, now.local if last < now.local else END),
        "since": Bounds(first, now.local if first < now.local else END),
        "around": Bounds(first - DAY * 7, last + DAY * 7),
    }[word]
    return replace(
        phrase,
        start=phrase.start - len(before) + prefix.start() if prefix else phrase.start,
        end=suffix.end() if suffix else phrase.end,
        sense=Sense(bounds, explicit=word != "around", alone=sense.alone),
    )


def _offset(sense: Sense, match: re.Match[str]) -> Bounds | None:
    unit = {"night": "day"}.get(match["unit"], match["unit"])
    count = english_quantity(match["count"] or "the")
    return _away(sense, count, unit, match["way"] in ("before", "preceding", "prior to"))


def _offset_after(sense: Sense, match: re.Match[str]) -> Bounds | None:
    if match["next"]:
        return _away(sense, (1, 1), "day", False)
    unit = _CHINESE_UNITS.get(match["unit"][-1], "week")
    count = chinese_number(match["count"])
    if count and unit == "day":
        # 国庆前三天 are three days, where "three days before" is one.
        first, last = sense.bounds
        return Bounds(first - DAY * count, first) if match["way"] == "前" else Bounds(last, last + DAY * count)
    return _away(sense, chinese_quantity(match["count"]), unit, match["way"] == "前")


def _away(sense: Sense, count: tuple[float, float] | None, unit: str, earlier: bool) -> Bounds | None:
    """ "The week before" is that week; "two weeks before" is the day, give or take."""
    if count is None:
        return None
    low, high = count
    if low == high == 1:
        edge = sense.bounds.first if earlier else sense.bounds.last
        other = back(edge, 1 if earlier else -1, unit)
        if other is None:
            return None
        return Bounds(other, edge) if earlier else Bounds(edge, other)
    half = DAY * int(UNITS[unit].half)
    if earlier:
        begin, end = back(sense.bounds.first, high, unit), back(sense.bounds.first, low, unit)
    else:
        begin, end = back(sense.bounds.last - DAY, -low, unit), back(sense.bounds.last - DAY, -high, unit)
    if begin is None or end is None or begin.year < FIRST_YEAR or end.year > LAST_YEAR:
        return None
    return Bounds(begin - half, end + half + DAY)
