"""Words that tell nothing where they stand, so that a sentence that has them says what one without them says.

`read` knows the words that are the same in whatever sentence. These are the same only as long as nothing stands in
their place: 我要钱 and 我有钱 differ by a word that either sentence may do without elsewhere. So two readings are laid
side by side, and what one has more must be light there.

Words of closed classes alone are here. One of an open class (a noun, a verb, 红, "step-") is never light, nor is one
that says whether, how sure, how much, how often or of whom: 不, 只, 也, 再, 想, 过, 差点, "only", "almost", "might".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from edge.admission.agree.marks import CLOSE, DATE, FREQUENCY, NUMBER, OPEN, WEEKDAY

Tokens = tuple[str, ...]
# Of a sentence, and from where to where in it: whether the word that stands there is light.
Place = Callable[[Tokens, int, int], bool]

_ONE = f"{OPEN}{NUMBER} 1{CLOSE}"
_NUMBER, _TIME, _OFTEN = f"{OPEN}{NUMBER} ", f"{OPEN}T", f"{OPEN}{FREQUENCY}"
_DAYS = (f"{OPEN}{DATE}", f"{OPEN}{WEEKDAY}")


def words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_MEASURES = frozenset("个只条位名家本台间套份部辆件张把杯棵瓶支副双场门顶座")
# Before these 一个 is a number, or a part of another word.
_COUNTING = frozenset("只每第就才这那上下不没仅同哪另最再又多头前后有")
_TAKING = frozenset("了买开养租订换找签报")
_NOT, _EACH = frozenset("不没"), frozenset("每")
_UNDONE = frozenset("不没要想会快别再每常打准如等")
_GONE_FOR = frozenset("看买做接吃玩取办开参跑爬游旅打逛找拿出见上剪交")
_PUT, _KIN = frozenset("放停存藏忘落丢挂"), frozenset("妈爸哥姐弟妹爷奶")
# Verbs that have one form for the past and for the perfect; of those in -ed, what may go on.
_HAPPENED = words("bought sold quit left met lost found made built sent paid got won caught booked hurt")
_LASTED = words(
    "lived worked used wanted liked loved stayed studied needed owned played hated preferred smoked trained practiced "
    "practised learned"
)
_UNREAL = words("not never ever yet if should could would might must always")
_HAVING = words("have and with need bought adopted")
_COUNTED = words("of day time more percent other or to hour week month year minute second half and")


def _anywhere(_tokens: Tokens, _start: int, _end: int) -> bool:
    return True


def _before(listed: str) -> Place:
    allowed = words(listed)
    return lambda tokens, _start, end: end < len(tokens) and tokens[end] in allowed


def _after(listed: str) -> Place:
    allowed = words(listed)
    return lambda tokens, start, _end: start > 0 and tokens[start - 1] in allowed


def _between(left: str, right: str) -> Place:
    after, before = _after(left), _before(right)
    return lambda tokens, start, end: after(tokens, start, end) and before(tokens, start, end)


def _unless(left: str, right: str) -> Place:
    """Before some word, and neither after the ones nor before the others."""
    after, before = _after(left), _before(right)
    return lambda tokens, start, end: (
        end < len(tokens) and not after(tokens, start, end) and not before(tokens, start, end)
    )


def _dated(place: Place, kinds: tuple[str, ...] = _DAYS) -> Place:
    """In a sentence that says when: what is to come needs no 要 beside "on Friday"."""
    return lambda tokens, start, end: any(token.startswith(kinds) for token in tokens) and place(tokens, start, end)


def _going(tokens: Tokens, start: int, end: int) -> bool:
    """去 before what one goes for; 会做饭 says that one can."""
    return tokens[start - 1 : start] != ("会",) and end < len(tokens) and tokens[end] in _GONE_FOR


def _number_after(tokens: Tokens, _start: int, end: int) -> bool:
    return end < len(tokens) and tokens[end].startswith(_NUMBER)


def _lasting(tokens: Tokens, start: int, end: int) -> bool:
    """有 before how long: 失眠有半年."""
    if start == 0 or tokens[start - 1] in "只没不还也我要会" or end >= len(tokens):
        return False
    return tokens[end] == "半" or (
        _number_after(tokens, start, end) and tokens[end + 1 : end + 2] in (("年",), ("天",))
    )


def _done(tokens: Tokens, start: int, end: int) -> bool:
    """了, where something else says that it is so by now."""
    rest = {*tokens[:start], *tokens[end:]}
    if rest & _UNDONE:
        return False
    past = any(token.startswith(_DAYS) and any(word in token for word in "昨上去") for token in rest)
    put = any(one in _PUT and other in "在到" for one, other in itertools.pairwise(tokens))
    return past or put or bool(rest & {"了", "刚"})


def _subject(tokens: Tokens, start: int, end: int) -> bool:
    """我 after nothing but a time, and before what it does; and in 显示我血糖偏高."""
    if start == 0 or end == len(tokens):
        return False
    times = all(token in _EACH or token.startswith(_TIME) for token in tokens[:start])
    return (times and tokens[end] not in "们和跟与让叫给请把帮替被") or tokens[start - 1] == "示"


def _my_kin(tokens: Tokens, start: int, end: int) -> bool:
    """我和我妈 is 我和妈妈."""
    beside = start in (1, 2) and tokens[start - 1] in "和给对陪帮找" and tokens[: start - 1] in ((), ("我",))
    return beside and end < len(tokens) and tokens[end] in _KIN


def _each_time(tokens: Tokens, start: int, _end: int) -> bool:
    """都 after how often: 每个周末我都去."""
    return any(token in _EACH or token.startswith(_OFTEN) for token in tokens[:start])


def _perfect(tokens: Tokens, _start: int, end: int) -> bool:
    """ "I have decided" is "I decided"; but who has lived somewhere still may."""
    verb = tokens[end] if end < len(tokens) else ""
    return (verb in _HAPPENED or (verb.endswith("ed") and verb not in _LASTED)) and not _UNREAL & {*tokens}


def _single(tokens: Tokens, start: int, end: int) -> bool:
    """ "One cat" is "a cat", and a reading has no "a"."""
    after = tokens[end] if end < len(tokens) else ""
    return start > 0 and tokens[start - 1] in _HAVING and after.isascii() and after.isalpha() and after not in _COUNTED


_BUSY = "不 只 重 主 需 想 没 就 快"
_LIGHT: tuple[tuple[str, Place], ...] = (
    ("把", _unless("个 一 大", "握 手")),
    ("很", _unless("不 没 太 得", "少 多 难 久 快")),
    ("真", _before("喜 爱 怕 想 忙 累 贵 远")),
    ("去", _going),
    ("要", _dated(_unless(_BUSY, "求 是 不 么 紧 点 没 好"))),
    ("要", lambda tokens, start, end: _unless(_BUSY, "")(tokens, start, end) and _number_after(tokens, start, end)),
    ("要去", _dated(_unless(_BUSY, "不 没"))),
    ("会", _dated(_unless("不 开 机 社 学 才 总 就 只 议 误 约 聚 还", "议 计 员 场 面 不 有 话 所 长"), (_TIME,))),
    ("平时", _anywhere),
    ("一般", _anywhere),
    ("其实", _anywhere),
    ("正", _before("在")),
    ("正在", _unless("不 没 改", "于 戒 辞 离")),
    ("一共", _anywhere),
    ("共", _number_after),
    ("了", _done),
    ("有", _lasting),
    ("已经", _lasting),
    ("已经有", _lasting),
    ("已经", lambda tokens, _start, _end: "了" in tokens),
    ("着", _after("戴 穿 住 养 带 背 留 开 用 骑 坐 学")),
    ("掉", _after("坏 丢 忘 扔 删 卖 输")),
    ("都", _each_time),
    ("我", _my_kin),
    ("我", _subject),
    ("家", _before("有 养")),
    ("自己", lambda tokens, _start, end: tokens[end : end + 1] == (_ONE,)),
    ("是", _before("在 从 于 因 跟 和 被 由 去 用 做")),
    ("来", _after("用")),
    ("that", _after("think know said told says say hope believe decided agreed remember so happy glad sure")),
    ("just", _after("have")),
    ("just", _before("moved started began bought got found finished booked adopted sold quit")),
    ("so", _before("much glad tired busy sick")),
    ("together", _before("with")),
    ("will", _dated(_unless("not maybe probably", "not be"))),
    ("usually", _dated(_anywhere, (_TIME,))),
    ("some", _after("need buy lose want get eat drink must bring more")),
    (_ONE, _single),
    ("located", _before("in on near")),
    ("of", _after("all both inside outside off")),
    ("to go on", _before("trip vacation holiday")),
    ("go on", _before("trip vacation holiday")),
    ("how", _between("learn", "to")),
    ("have", _perfect),
    ("have just", _perfect),
)
# Of which one may stand for the other in its place, but not after a "not".
_EQUAL = (
    ("当", "是"),
    ("的是", "了"),
    ("是", "了"),
    ("用", "是"),
    ("一般", "平时"),
)


def _tokens(phrase: str) -> Tokens:
    """As they are read: 一 is a number, Han characters stand alone."""
    if phrase.startswith(OPEN):
        return (phrase,)
    if phrase.isascii():
        return tuple(phrase.split())
    return tuple(_ONE if char == "一" else char for char in phrase)


_BY_FIRST: dict[str, list[tuple[Tokens, Place]]] = {}
for _phrase, _place in _LIGHT:
    _BY_FIRST.setdefault(_tokens(_phrase)[0], []).append((_tokens(_phrase), _place))
_PAIRS = [(_tokens(one), _tokens(two)) for pair in _EQUAL for one, two in (pair, pair[::-1])]
# What two readings may differ in at all, so that most pairs are told apart by it.
ALPHABET = frozenset(
    token for phrase in (*(phrase for phrase, _ in _LIGHT), *sum(_EQUAL, ())) for token in _tokens(phrase)
)


def without_one(tokens: Tokens) -> Tokens:
    """Without 一个 where it counts nothing: after a verb or 了, before what there is one of; and without its 个.

    Beside how often it is a rate: 每天吃一个鸡蛋.
    """
    if any(token.startswith(_OFTEN) or token in _EACH for token in tokens):
        return tokens
    kept: list[str] = []
    for at, token in enumerate(tokens):
        before, after = tokens[at - 1] if at else "", tokens[at + 1] if at + 1 < len(tokens) else ""
        if token == _ONE and after in _MEASURES and before and before not in _COUNTING and before[0] != OPEN:
            last = tokens[at + 2] if at + 2 < len(tokens) else ""
            if last and last[0] != OPEN and last not in "月半星人次":
                continue
        bare = token in _MEASURES and kept and kept[-1] != _ONE and (before == _ONE or before in _TAKING)
        if bare and after and after[0] != OPEN:
            continue
        kept.append(token)
    return tuple(kept)


def laid_beside(older: Tokens, newer: Tokens) -> bool:
    """Whether one can be read along the other, with light words on one side at a time."""
    seen: set[tuple[int, int, int]] = set()
    # How far each is read, and which of them had more last: 1 the older, 2 the newer, 0 neither.
    todo = [(0, 0, 0)]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, by, side = state
        if at == len(older) and by == len(newer):
            return True
        if side != 2:
            todo.extend((end, by, 1) for end in _ends(older, at))
        if side != 1:
            todo.extend((at, end, 2) for end in _ends(newer, by))
        if not _NOT & {*older[max(0, at - 1) : at], *newer[max(0, by - 1) : by]}:
            for one, two in _PAIRS:
                if older[at : at + len(one)] == one and newer[by : by + len(two)] == two:
                    todo.append((at + len(one), by + len(two), 0))
        if at < len(older) and by < len(newer) and older[at] == newer[by]:
            todo.append((at + 1, by + 1, 0))
    return False


def _ends(tokens: Tokens, at: int) -> Iterator[int]:
    """Where a light word ends that begins here."""
    if at < len(tokens):
        for phrase, place in _BY_FIRST.get(tokens[at], ()):
            end = at + len(phrase)
            if tokens[at:end] == phrase and place(tokens, at, end):
                yield end
