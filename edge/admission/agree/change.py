"""Whether a sentence takes the place of an older one: the same said of the same, with the one value that it can have at
a time changed (周五开会 and 周六开会, "I live in Boston" and "I live in Austin now"), or with a "not" more or less.

What two people may both say of themselves, what may be had twice, what happened once: all that stands beside each
other. A change that is named (改到, 搬到, 不再, now, instead) says more than a frame that looks alike.
"""

from __future__ import annotations

import re

from edge.admission.agree.marks import DATE, FREQUENCY, NUMBER, OPEN, PAUSE
from edge.admission.agree.read import read

_NAMED = re.compile(
    r"改(?:到|成|为|在|用|名|叫|期|喝|吃|坐|去)|换(?:到|成|用)|搬(?:到|去|家|至)|现在|如今|目前|不再|不.{1,8}了"
    r"|没有?.{1,6}了$|调(?:整)?(?:到|成)|推迟|提前到|延期|挪到|跳槽"
    r"|\b(?:now|instead|no longer|any ?more|switched to|changed to|moved to|rescheduled|renamed|these days"
    r"|from now on)\b",
    re.IGNORECASE,
)
# One more beside what was said before is no change.
_ADDED = re.compile(
    r"[也又]|还(?=[是有在会喜养用要])|另外|此外|\b(?:also|too|as well|another|besides|both)\b", re.IGNORECASE
)
# A question says nothing.
_ASKED = re.compile(r"[?？吗]|(?:有没有|是不是|能不能|会不会|要不要|该不该)")
# A change said as the state that it leads to.
_STATES = tuple(
    (re.compile(pattern, re.IGNORECASE), put)
    for pattern, put in (
        (r"(?<=[号码址箱价金间])(?:换成|换到|改成|改为|改到)了?", "是"),
        (r"(?:时间)?(?:已经?)?(?:从[^,，。改]{1,10})?(?:改到|改成|改为|改在|改期到|推迟到|提前到|延期到|挪到|调到"
         r"|调整到|定在|定到)了?", "在"),
        (r"(?:从[^,，。搬]{1,8})?(?:已经?)?搬(?:家)?(?:到|去|至)了?", "住在"),
        (r"(?:已经?)?(?:换成|改用|换到|换用)了?", "用"),
        (r"(?:改名|改)叫", "叫"),
        (r"跳槽(?:到|去)了?([^,，。了]{1,10})", r"在\1工作"),
        (r"讨厌|厌恶", "不喜欢"),
        (r"不再", "不"),
        (r"戒烟", "不抽烟"),
        (r"戒酒", "不喝酒"),
        (r"戒了", "不喝"),
        (r"了[。.!！]?$", ""),
        (r"\b(?:has |have )?(?:was |been |is |just )?(?:moved|rescheduled|changed|pushed) to (?=(?:mon|tues|wednes"
         r"|thurs|fri|satur|sun)day|\d|noon|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
         "is on "),
        (r"\b(?:have |has )?(?:just )?moved to (?=[a-z])", "live in "),
        (r"\b(?:have |has )?(?:now )?(?:switched to|changed to|moved over to|started using)\b", "use"),
        (r"\b(?:have |has )?(?:quit|stopped|given up|gave up) (smok|drink|eat)(?:ing)\b", r"do not \1"),
        (r"\bdo not smok\b", "do not smoke"),
        (r"\b(?:hate|detest|dislike|can(?:'t|not| not) stand)\b", "do not like"),
        (r"\b(?:hates|detests|dislikes)\b", "does not like"),
        (r"\b(?:no longer|never)\b", "do not"),
        (r"\b(?:any ?more|any longer)\b", ""),
        (r"\binstead\b|\bnow\b|\bthese days\b", ""),
    )
)  # fmt: skip

_NOT = frozenset(("不", "没", "别", "not", "never"))
# What lasts, and so is or is not.
_LASTING = re.compile(
    "喜欢|爱|想|能|会(?!议)|吃|喝|抽烟|吸烟|用|住|有|是|敏症|支持|需要|打算|养|信|怕|同意|值班|加班|坐|开车|上班"
    "|工作|学|含|允许|区分"
    r"|\b(?:like|love|want|can|will|eat|drink|smoke|use|live|have|is|allergic|support|need|plan|work|believe|own"
    r"|drive|study|should|allow)\b"
)
_PAST = re.compile(r"[了过]|\b(?:was|were|did|had|been|[a-z]+ed)\b")
# Takes place once, so that it can be put off.
_ONCE = re.compile(
    "会议|开.{0,4}会|评审|会$|面试|考试|航班|飞机|起飞|火车|高铁|婚礼|截止|发布|上线|期满|约|体检|手术|看牙|看病"
    "|答辩|演出|比赛|聚餐|聚会|见面|搬家|签|闹钟|交付|培训|出发|复查|课|生日"
    r"|\b(?:meeting|interview|exam|flight|train|wedding|deadline|due|release|launch|appointment|dentist|surgery|party|"
    r"dinner|lease|ends|starts|start|leave|birthday|alarm|call|review|demo|class|trip|moving)\b"
)
_ONE_NUMBER = re.compile(
    "岁|房租|工资|月薪|薪|密码|端口|版本|价|预算|身高|体重|体温|楼|超时|上限|下限|重试|间隔|首付|学费|押金|余额"
    "|号|人口|鞋码|限|阈值|内存|温度|工龄|血压|血糖"
    r"|\b(?:rent|salary|port|version|price|budget|timeout|limit|retry|retries|size|weigh|tall|cost|costs|age|year"
    r"|years|discount|"
    r"password|code|pin|needs?|require[sd]?|batch|temperature|rate)\b"
)
# What stands before a value of which there is one at a time.
_ONE_VALUE = re.compile(
    r"(?:^(?:我们?)?住|密码(?:是)?|地址(?:是)?|电话(?:是)?|手机号(?:是)?|邮箱(?:是)?|公司在|总部在|办公室在|座位在"
    r"|(?:数据库|前端|后端|编辑器|输入法|默认)用"
    r"|最喜欢[^是]{1,6}是|(?:钥匙|车|护照|遥控器|眼镜)在|负责人是|班主任是|老板是|经理是|分支叫|默认是)$"
    r"|^i (?:live in|work at)$|\b(?:password is|address is|phone number is|number is|email is|favorite .{1,20} is"
    r"|database is|boss is|manager is|"
    r"branch is|default is|office is (?:in|on|at)|key is(?: in| on| under| with| at)?|editor is)$"
)
_ONE_VALUE_AFTER = re.compile(r"^(?:工作|上学)$|^(?:for (?:database|frontend|backend|ci|deployment))$")
# Without one of these before it, what differs is whom the sentence is about.
_PREDICATE = re.compile(
    "住|用|在|是|叫|姓|喜欢|吃|喝|养|开|学|坐|到|去|信|看|玩|做|买|要|[\x01]"
    r"|\b(?:is|live|in|at|use|like|prefer|drink|eat|work|drive|play|study|call|to|on|for|want|name)\b"
)
_ONE_PLACE = re.compile(r"^(?:我们?)?在$|^we use $|^we use$")
_MOST_NOT = re.compile("最[不没]|不太")
_TIME, _AMOUNT = f"{OPEN}T", f"{OPEN}{NUMBER} "
# Of one value, in tokens.
_LONGEST = 8

Tokens = tuple[str, ...]


def takes_place_of(older: str, newer: str) -> bool:
    """Whether the newer says of the same thing what cannot be so beside the older."""
    if _ADDED.search(newer) or _ASKED.search(newer):
        return False
    named = _NAMED.search(newer) is not None
    one, two = _state(older), _state(newer)
    if not one or not two or one == two or PAUSE in one or PAUSE in two:
        return False
    return _denied(one, two, named) or _replaced(one, two, named)


def _state(text: str) -> Tokens:
    for pattern, put in _STATES:
        text = pattern.sub(put, text)
    return read(text.replace("会议", "会"))


def _plain(tokens: Tokens) -> str:
    """Han characters side by side, words with a space between."""
    return re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", " ".join(tokens))


def _denied(one: Tokens, two: Tokens, named: bool) -> bool:
    """Whether one has a "not" more, and nothing else differs."""
    nots = [[token for token in tokens if token in _NOT] for tokens in (one, two)]
    if abs(len(nots[0]) - len(nots[1])) != 1 or min(map(len, nots)):
        return False
    # 没有驾照 is read as 没驾照; without 有, 没 tells of what did not happen.
    without = "没" in nots[0] + nots[1]
    dropped = _NOT | {"有"} if without else _NOT
    rest = [[token for token in tokens if token not in dropped] for tokens in (one, two)]
    if rest[0] != rest[1] or _MOST_NOT.search(_plain(one) + _plain(two)) or (without and "有" not in one + two):
        return False
    text = _plain(one)
    return named or bool(_LASTING.search(text) and not _PAST.search(text + _plain(two)))


def _replaced(one: Tokens, two: Tokens, named: bool) -> bool:
    """Whether one value differs, of those that a thing has one of."""
    times = [[token for token in tokens if token.startswith(_TIME)] for tokens in (one, two)]
    rest = [[token for token in tokens if not token.startswith(_TIME)] for tokens in (one, two)]
    if times[0] and times[1] and times[0] != times[1] and rest[0] == rest[1]:
        return _put_off(times[0], times[1], _plain(tuple(rest[0])), named)
    least = min(len(one), len(two))
    head = next((at for at in range(least) if one[at] != two[at]), least)
    tail = next((at for at in range(least - head) if one[-1 - at] != two[-1 - at]), least - head)
    before, after = _plain(one[:head]), _plain(one[len(one) - tail :])
    was, becomes = one[head : len(one) - tail], two[head : len(two) - tail]
    if not was or not becomes or max(len(was), len(becomes)) > _LONGEST or _NOT & {*was, *becomes}:
        return False
    if len(was) == len(becomes) == 1 and was[0].startswith(_AMOUNT) and becomes[0].startswith(_AMOUNT):
        return _other_number(was[0], becomes[0], before, after, named)
    if any(token.startswith(OPEN) for token in (*was, *becomes)):
        return False
    if _ONE_VALUE.search(before) or (_ONE_VALUE_AFTER.search(after) and _ONE_PLACE.search(before)):
        return True
    return named and bool(_PREDICATE.search(before))


def _put_off(was: list[str], becomes: list[str], rest: str, named: bool) -> bool:
    """Whether a date is the new one of the same thing. A day that is counted from today may be another thing's."""
    if named:
        return not _PAST.search(rest)
    kinds = [[token[1:3] for token in times] for times in (was, becomes)]
    counted = any(token[1:3] == DATE and not re.search(r"\d", token) for token in (*was, *becomes))
    return (
        kinds[0] == kinds[1]
        and not counted
        and FREQUENCY not in kinds[0]
        and bool(_ONCE.search(rest))
        and not _PAST.search(rest)
    )


def _other_number(was: str, becomes: str, before: str, after: str, named: bool) -> bool:
    if after.startswith("岁") and not named:
        # Two children have two ages; one child's is one more next year.
        return 0 < float(becomes[3:-1]) - float(was[3:-1]) <= 2
    frame = f"{before} {after}"
    return bool((named and _PREDICATE.search(before)) or _ONE_NUMBER.search(frame)) and not _PAST.search(frame)
