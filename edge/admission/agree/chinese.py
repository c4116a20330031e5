"""Chinese: phrases that say the same, and words that say nothing. Each line is a claim that holds wherever its pattern
fits; what it calls the same is merged.

Not here, for it would make two facts one: 只, 也许, 可能, 应该, 想, 会, 过, 着, 曾, 太, 几乎, 一点, 有的.
"""

from __future__ import annotations

import re

from edge.admission.agree.chinese_words import STANDS_FOR, WHOLE
from edge.admission.agree.marks import CLOSE, DATE, NUMBER, OPEN, TIME

# The first words too, so that no shorter word is found in them.
_WORDS = re.compile(
    "|".join((*WHOLE, *sorted({*STANDS_FOR, *STANDS_FOR.values()}, key=lambda word: (-len(word), word))))
)
LISTED = re.compile(r"(?<![温暖平柔缓总附饱亲])(?:以及|和|跟|与|及)(?![解平谐睦气尚])|、")

# Between two of these 的 tells whose: 爸爸的妈妈 is not 爸爸妈妈, but 我的妈妈 is 我妈妈.
_PEOPLE = "妈爸哥姐弟妹爷奶婆公女儿子孩舅叔姑姨嫂侄孙友事板师生居"
_PERSON = (
    "妈|爸|哥|姐|弟|妹|爷|奶|外婆|外公|公公|老公|婆婆|老婆|女儿|女朋友|女友|男|儿子|孩子|舅|叔|姑|姨|嫂|侄"
    "|孙|朋友|同事|同学|老板|老师|学生|邻居|医生"
)
# What the listener is asked to do begins without 我: 帮他订票 is an order, 我帮他订票 a story.
_ORDERED = "们和跟与让叫给请把帮替"
_MONEY = "预算|工资|房租|月薪|年薪|价格|首付|奖金|学费|押金"
_THINGS = "半月星礼小钟季学亿百人世多"
_OURS = "公司|项目|数据库|团队|服务器|部门|小组|系统|产品|办公室"
_START = r"(?:^|(?<=[,。;!:]))"
_T = rf"(?:{TIME})"
_N = rf"(?:{OPEN}{NUMBER} [^{CLOSE}]*{CLOSE})"

Rule = tuple[re.Pattern[str], str]


def _rules(*pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern), put) for pattern, put in pairs)


# Before numbers are read.
EARLY = _rules(
    # To the listener, and to oneself.
    (rf"{_START}(?:对了|顺便说一下|顺便说下|其实|话说|嗯|哦|是这样的|跟你说|告诉你|我跟你说|确实|说实话)[,，]?", ""),
    (r"请(?![客假教问求帖柬示愿战])(?<![申邀宴聘敬]请)", ""),
    (r"(?<![不没])(?:非常|特别|十分|相当|挺|超级|超|蛮|真的很|真的|很|好)(?=(?:喜欢|爱|想|高兴|重要|忙|累|贵|便宜"
     r"|远|近))", ""),
    (r"(?<![到至从出发实表呈体])(?:现在|目前|如今|眼下)(?![为起开的])", ""),
    (r"从(?:现在|今天|今)(?:起|开始|以后|往后)[,，]?|从今以后[,，]?|今后[,，]?|往后[,，]?|以后[,，]?", "以后"),
    (r"(?<=以后)(?:请|都|全都|一律)+", ""),
    (rf"(?<={CLOSE})(我?)(?:都|总)(?=[\u4e00-\u9fff])", r"\1"),
    (rf"(?<={CLOSE})[之以](?=[前后])", ""),
    (r"(?<=开)汽车", "车"),
    (r"更换", "换"),
    (r"(?<=学)弹(?=[\u4e00-\u9fff])", ""),
    (r"(?<=用)([^,。]{1,4}文)写$", r"\1"),
    (r"(?:我们家|我家)住", "我住"),
    (r"(?<=[文小网昵全曾])名(?:字)?(?:叫|是|为|:)", "名是"),
    (r"养(?:了|着|有)?(?=(?:[0-9]|[一两二三四五六七八九])?[只条])", "有"),
    (r"里面", "里"),
    (r"从来?(?=不|没)", ""),
    (r"从小就", "从小"),
    (rf"{_START}(?:我们家?|我家)的", "我"),
    (rf"{_START}(?:我们|我)?家里?有(?=[0-9一两二三四五六七八九])", "我有"),
    (r"^([^,。由]{1,12})由([^,。由]{1,6})负责$", r"\2负责\1"),
    (r"(?<=[A-Za-z])语言", ""),
    (r"(前端|后端|数据库)(?:框架)?(?:是|用)(?=[A-Za-z])", r"\1用"),
    (r"(?<=[换找])个(?=工|房|住|手|电)", ""),
    (rf"(开会|面试|考试|上课|比赛)的?时间(?:定在?|改在?|是|在|:)?(?={OPEN}T)", r"\1"),
    # Naming.
    (r"(?:我们|我)?家里?养?(?:有|养)了?一?[只条](猫|狗|鸟|兔子|乌龟)(?:的?名字)?,?(?:叫做|名叫|叫|是)",
     r"我家\1叫"),
    (r"我养(?:了一[只条]|的)(猫|狗|鸟|兔子|乌龟)(?:的?名字)?,?(?:叫做|名叫|叫)", r"我\1叫"),
    (r"(?:我们家|家里|我家里)(?=[的猫狗孩有])", "我家"),
    (r"(?:的)?(?:姓名|名字)(?:叫做|叫|是|为|:)|(?<![文小网昵全曾])名叫|叫做|取名叫?|起名叫?", "叫"),
    (r"(?:的)?姓是", "姓"),
    (r"(?<=[号码址间日价额数量高重龄字名期限别数算租资薪口箱p])(?:为|:|就是)", "是"),
    (r"(?i)ip地址", "ip"),
    (r"我家的?(?=猫|狗|兔|鸟)", "我"),
    # Having.
    (rf"(?<=有)(?:一?个|一?[只条]|一[名位辆台家本间套])(?![{_THINGS}件理性风])", ""),
    (rf"(?<=是)(?:一[个名位只家本条台款种辆间套]|个)(?![{_THINGS}])", ""),
    (r"[只条](?=狗)", "只"),
    (r"有([^,。]{1,8})的习惯", r"习惯\1"),
    # Being somewhere.
    (r"(?<![我他她你们])(?:放|搁|摆|存放|放置)在", "在"),
    (r"(?<=[在到])([^,。]{1,10}?)(?:里面|里)(?=$|[,。]|有)", r"\1"),
    (r"老家是([^,。]{1,8}?)的?$", r"老家在\1"),
    (r"(?<=在)([^,。]{1,12})上班", r"\1工作"),
    (r"(?<=[学院华大])(?:读书|念书|就读|上学)", "上学"),
    (r"[读念上](?=(?:小学|初中|高中|大学)?[0-9一二三四五六七八九]年级)", "上"),
    (r"(?:正在|在)学习?(?![校院会生期历])", "学"),
    (r"(?:正在|在)上(?=幼儿园|小学|初中|高中|大学|班)", "上"),
    (r"(?:计划|准备)(?=[去买学换搬在明今下用做把\x01])", "打算"),
    # Liking, being allergic.
    (r"(?:更)?喜欢([^,。不]{1,12}?)(?:,)?(?:而不是|而非|胜过|多过)([^,。]{1,12})$", r"更喜欢\1胜过\2"),
    (r"(?:比起|相比于?)([^,。]{1,12}?),?(我)?更喜欢([^,。]{1,12})$", r"\2更喜欢\3胜过\1"),
    (r"(我)?[和跟与]([^,。]{1,12}?)(?:相比|比起来),?(我)?更喜欢([^,。]{1,12})$", r"\1\3更喜欢\4胜过\2"),
    (r"(?:对)?([^,。我你他她对]{1,8}?)(?:是)?过敏的?$", r"对\1过敏"),
    (r"血型(?:是|为)?(AB|A|B|O)型?", r"\1型血"),
    (r"是(?=(?:AB|A|B|O)型血)", ""),
    # Ends.
    (r"到期(?:日|日期|时间)?(?:是|为)?", "期满"),
    (rf"截止日期(?:是|为|:)?(?={OPEN})", "截止"),
    (r"个子(?=比)", ""),
)  # fmt: skip
# After numbers and times are marks.
LATE = _rules(
    (rf"(?:是)?({OPEN}{DATE} \?[^{CLOSE}]*{CLOSE})(?:出生|生日|生)的?$", r"生日\1"),
    (rf"生日(?:是|在|:)?(?={OPEN})", "生日"),
    (rf"(?:是|在)(?={OPEN}T)", ""),
    (rf"是(?={_N})", ""),
    (r"(?<![不是])是(?=不(?!是)|没|在|对|用|由|从)", ""),
    (rf"(月{CLOSE}{_N})号", r"\1日"),
    (rf"从(?={_T}(?:开始|起))", ""),
    (rf"({_T})的?会议$", r"会议\1"),
    (rf"(?<={CLOSE})(?:有|开)(?=[\u4e00-\u9fff]{{0,4}}会议?$)", ""),
    (rf"{OPEN}{DATE} 今年{CLOSE}(?=\x01N[^\x02]*\x02岁)", ""),
    (rf"({OPEN}N[^{CLOSE}]*{CLOSE}岁)了", r"\1"),
    (rf"((?:{_MONEY})[^,。]{{0,12}}{_N})元", r"\1"),
    # 了 after what is a change by itself, and where a "not" says what lasts.
    (r"(?<=[改换搬挪调推提][到成为去迟前])了|(?<=[推提][迟前]到)了|(?<=在)了|(?<=[换搬改])了", ""),
    (r"已经?(?=.*[了过年天月])", ""),
    (r"(?<=[戒辞]\w)了$", ""),
    (r"(?<=[不没别].)了$|(?<=[不没别]..)了$|(?<=[不没别]...)了$|(?<=[不没别]....)了$", ""),
    (r"(?<=[改换搬].{2})了$|(?<=[改换搬].{3})了$|(?<=[改换搬].{4})了$", ""),
    (rf"(?<=[改换搬定]到)({_T}+)了$", r"\1"),
    (rf"(?<![{_PEOPLE}])的|的(?!{_PERSON})", ""),
    (r"[啊呀嘛哦噢喔哈啦呗耶]+(?=$|[,。!])", ""),
    # Who speaks need not be said.
    (rf"{_START}({_T}*)我(?![{_ORDERED}])(?=[\u4e00-\u9fff{OPEN}])", r"\1"),
    (rf"(?<={CLOSE})要(?=[\u4e00-\u9fff])(?!要[求是不么紧])", ""),
    (rf"{_START}(?:我们|这个)(?={_OURS})", ""),
)


def early(text: str) -> str:
    """Before numbers are read; times are marks by then."""
    text = _WORDS.sub(lambda m: STANDS_FOR.get(m[0], m[0]), text)
    return LISTED.sub("和", _apply(EARLY, text))


def late(text: str) -> str:
    """After numbers are read."""
    return _apply(LATE, text)


def _apply(rules: tuple[Rule, ...], text: str) -> str:
    for pattern, put in rules:
        text = pattern.sub(put, text)
    return text
