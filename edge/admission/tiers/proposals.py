"""Statements about the speaker that last, and so are proposed for remembering."""

from __future__ import annotations

import re
from collections.abc import Mapping

from edge.admission.tiers.speech import LEAD, asks, clauses, sentences, supposes

_AM = r"(?:i am|i'm|i’m)"
_KIN = (
    "(?:爸爸?|妈妈?|父亲|母亲|老婆|妻子|太太|老公|丈夫|儿子|女儿|孩子|哥哥?|姐姐?|弟弟?|妹妹?|爷爷|奶奶|外公"
    "|外婆|姥姥|姥爷|女朋友|男朋友|未婚[妻夫])"
)
_KIN_EN = (
    r"(?:wife|husband|son|daughter|kids?|child|children|mom|mother|dad|father|parents|brother|sister"
    r"|grandmother|grandfather|grandma|grandpa|girlfriend|boyfriend|fianc[eé]e?|partner)"
)
_PET = "(?:猫咪?|狗狗?|兔子|鹦鹉|仓鼠|乌龟|宠物)"
_DATED = (
    r"(?:[今明后]天|今晚|明晚|下个?(?:周|星期|礼拜)[一二三四五六日天末]?|这?周[一二三四五六日天末]"
    r"|星期[一二三四五六日天]|下个?月|明年|\d{1,2}月\d{1,2}[日号]"
    r"|[一二三四五六七八九十]{1,2}月[一二三四五六七八九十]{1,3}[日号]|\d{1,2}[日号])"
)
_DATED_EN = (
    r"(?:tomorrow|tonight|next (?:week|month|year|mon|tues|wednes|thurs|fri|satur|sun)\w*|(?:on|this"
    r"|by) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:on |by )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep"
    r"|oct|nov|dec)[a-z]*\.? \d{1,2}|in (?:january|february|march|april|june|july|august|september|october"
    r"|november|december))"
)
_TROUBLE = r"(?!.*(?:报错|挂了|崩|出错|失败|坏了|有问题|连不上|\berror|\bdown\b|fail|slow|broken|crash|not working))"


# Each rule with the ways to say it, the weightiest rule first. A way is looked for at the beginning of a clause.
_WAYS: Mapping[str, tuple[str, ...]] = {
    "health": (
        rf"我(?:家|们)?的?{_KIN}?(?:从小)?对.{{1,12}}过敏",
        rf"我(?:家|们)?的?{_KIN}?.{{1,8}}过敏\s*$",
        r"我(?:是)?(?:素食|吃素|纯素|乳糖不耐|糖尿病|左撇子)",
        rf"我(?:家|们)?的?{_KIN}?(?:患?有|得了)(?:糖尿病|高血压|低血糖|哮喘|痛风|胃病|心脏病|抑郁症|过敏.{{0,3}}"
        rf"|[\u4e00-\u9fff]{{1,5}}(?:病|症|炎))",
        rf"{_AM} (?:\w+ )?allergic to",
        r"i have (?:an? )?(?:\w+ )?(?:allergy|allergies|diabetes|asthma|celiac)",
        rf"{_AM} (?:a )?(?:vegan|vegetarian|pescatarian|diabetic|lactose|gluten)",
        rf"my {_KIN_EN} (?:is|are) (?:\w+ )?allergic",
    ),
    "name": (
        r"我(?:的名字)?(?:叫|是叫|名叫)(?!了|他|她|你|它|们|上|车|外卖|滴滴|人|醒|不|住|我|来|去|好|过|做"
        r"|得)[\u4e00-\u9fffA-Za-z·]{1,12}\s*$",
        r"我的?(?:名字|英文名|小名|外号|网名)(?:是|叫)",
        r"我姓[\u4e00-\u9fff]\s*$",
        rf"我(?:们?家)?(?:的|里的?|有[一两]?[只条])?(?:{_PET}|{_KIN})(?:的?名字(?:是|叫)|叫|名叫)(?!我|他|她|你|了"
        rf"|来|去|不)[\u4e00-\u9fffA-Za-z]{{1,8}}\s*$",
        r"my name(?:'s| is)\b",
        r"(?:please )?call me (?!back|later|when|tomorrow|today|if|at|on|crazy|now|again|after|before)\w+[.!]?\s*$",
        rf"my (?:\w+ )?(?:{_KIN_EN}|cat|dog|pet|rabbit|parrot)(?:'s name)? (?:is (?:called|named)|is [A-Z])",
    ),
    "person": (
        rf"(?:我|我们?家?的?{_KIN})的?生日(?:是|在|:|：)?.*[月日号]",
        r"我(?:是)?.{0,8}(?:出生|生于)",
        rf"我(?:们?家?的?{_KIN})?(?:今年|现在|快)?[\d一二两三四五六七八九十百]{{1,4}}岁",
        r"我的?(?:身高|体重|血型|鞋码|年龄|星座|属相)",
        r"我属[\u4e00-\u9fff]\s*$",
        r"我是(?:一?[名位个])[\u4e00-\u9fffA-Za-z]{2,12}\s*$",
        r"我是[\u4e00-\u9fffA-Za-z]{0,8}(?:师|员|生|工|医|警|商|人|教授|经理|律师|博士)\s*$",
        r"我(?:现在|目前)?在.{1,14}(?:工作|上班|上学|读书|读研|实习)",
        rf"我(?:们?家)?有[一两二三四五六1-9](?:个|只|条|位)(?:[哥姐弟妹]{{1,2}}|儿子|女儿|孩子|{_PET})",
        r"我(?:结婚|离婚|毕业|退休)",
        rf"我(?:们?家)?的?{_KIN}(?:是|在|今年|属|喜欢|不?爱|不吃|退休|住|做|姓|有)(?!不是)",
        r"my birthday(?:'s| is)",
        r"i was born",
        rf"{_AM} (?:\d+|[a-z-]+) years old",
        rf"{_AM} (?:an? )(?!bit|little|lot|huge fan|few|fan|mess|idiot)[\w -]{{3,40}}\s*\.?\s*$",
        r"i work (?:at|for|as|in)\b",
        r"i (?:have|'ve got) (?:\w+ )(?:kids|children|sons?|daughters?|brothers?|sisters?|cats?|dogs?)",
        rf"my (?:{_KIN_EN}) (?:is|are|has|have|works?|lives?|likes?|loves?|hates?|was born)",
        r"i (?:weigh|studied|study|graduated|go to school)\b",
        r"my (?:blood type|shoe size|age|job|height|weight)\b",
    ),
    "place": (
        r"我(?:们)?(?:现在|目前|家)?住(?:在)?(?!院|了一|酒店)",
        r"我(?:们)?家(?:住)?在",
        r"我(?:老家|家乡)",
        r"我(?:们)?(?:刚)?搬(?:到|去|家)",
        r"我的?(?:家庭)?(?:地址|住址|邮编|手机号码?|电话号?码?|邮箱|微信号?|QQ号?)(?:是|:|：)",
        r"我的?工号",
        r"(?:i|we) (?:currently |now )?live (?:in|at|on|near|with)",
        r"(?:i|we) (?:just |recently )?moved to",
        r"my (?:home )?(?:address|phone(?: number)?|number|email(?: address)?|zip code|hometown)(?:'s| is)",
        r"i(?:'m| am) (?:originally )?from\b",
    ),
    "preference": (
        r"我(?:一直|平时|从小|其实|真的|还是|个人|很|最|更|特别|非常|超|挺|比较|不太|从来|从|都|也|就|只"
        r"|一般)*(?:不?(?:喜欢|爱)(?!(?:你|她|他|它|这样|这种回答|这个回答|这|那)(?:[^\u4e00-\u9fff]|$|的|个|样))"
        r"|讨厌(?!你)|不吃|不喝|只吃|只喝|偏好|偏爱|更倾向|习惯(?!了你)|受不了|吃不了|不能吃|不能喝|怕(?:黑|高|狗"
        r"|猫|冷|热|辣|水)|喝.{1,4}(?:加|不加|要))",
        r"我最?(?:喜欢|爱)的.{1,10}是",
        r"(?:i|we) (?:really |absolutely |usually |generally |always |never |don't |do not |still |also "
        r"|just )*(?:like|love|prefer|hate|dislike|enjoy|avoid|can't stand|cannot stand)\b(?! (?:it|that|this|you"
        r"|your|how|what|to know|them)\b)",
        r"(?:i|we) (?:usually |generally |always |never |only |don't |do not )+(?:eat|drink|use|take|wear|buy|work)\b",
        r"i (?:don't|do not) (?:eat|drink)",
        r"my favou?rite\b",
        r"i'm (?:used to|afraid of|scared of)\b",
        r"i am (?:used to|afraid of|scared of)\b",
    ),
    "decision": (
        r"(?:我们?|咱们?|团队|大家|最后|最终)?(?:已经|一致|最后|最终|今天|刚刚|都)*(?:决定(?!不了|要不要)|定了"
        r"|定下|说好|商量好|选定|敲定|拍板)",
        r"(?:那)?就(?:用|选|定|按|这么定)(?!什么).{0,20}(?:吧|了)?\s*$",
        r"(?:i|we)(?:'ve| have)? (?:finally |all |just )?(?:decided|agreed|settled on|chose|picked)",
        r"let's (?:go with|use|stick with|settle on)",
        r"we(?:'re| are) going with",
        r"we(?:'ll| will) (?:go with|use|stick with)",
    ),
    "plan": (
        rf"(?:我们?|咱们?|我{_KIN}|全家).{{0,8}}{_DATED}.{{0,12}}(?:要|去|开|交|飞|出发|考|面试|看|搬|约|回|到|出差"
        r"|值班|参加|手术|体检|见|签|办|上|做|请)(?!了|过)",
        rf"{_DATED}.{{0,8}}(?:我们?|咱们).{{0,3}}(?:要|去|得|约|打算|准备|有)(?!了|过)",
        rf"{_DATED}.{{0,10}}(?:开会|面试|考试|体检|出差|手术|婚礼|截止|到期|出发|起飞|答辩|有个?会|交房租|家长会|看牙)",
        rf"(?:会议|面试|考试|航班|飞机|火车|高铁|婚礼|体检|手术|截止|ddl|合同|签证|驾照).{{0,10}}{_DATED}",
        rf"(?:i|we|my {_KIN_EN})(?:'m| am|'re| are|'ll| will| have| has| need| must| plan)\b.{{0,60}}{_DATED_EN}",
        r"(?:the |my |our )?(?:meeting|interview|exam|flight|wedding|deadline|appointment|surgery|party|release"
        rf"|launch|lease|trip|dentist)\b.{{0,30}}{_DATED_EN}",
        rf"{_DATED_EN},? (?:i|we)(?:'m| am|'re| are|'ll| will| have| need)\b",
    ),
    "project": (
        rf"{_TROUBLE}(?:我们的?|这个|该|公司的?)?(?:项目|数据库|前端|后端|服务器|接口|仓库|主?分支|部署|端口"
        rf"|生产环境|测试环境|配置文件|日志|预算|缓存|代码|团队|公司).{{0,20}}(?:使?用的?是?|采用|是|在|为|叫|跑在"
        r"|放在|基于|写的|有\d)(?!否|不是)",
        rf"{_TROUBLE}(?:the|our|this) (?:\w+ )?(?:project|database|backend|frontend|front end|back end|server|repo"
        r"|repository|api|budget|port|main branch|branch|config|deployment|codebase|app|cluster|staging|production"
        rf"|team|stack|ci)\b.{{0,30}}\b(?:is|are|uses?|runs?|lives?|listens?|written|based|needs?|requires?|has)\b",
        r"we use\b",
        r"we (?:deploy|host|store|keep|run)\b",
    ),
}
_PATTERNS = {rule: re.compile(rf"\s*{LEAD}(?:{'|'.join(ways)})", re.IGNORECASE) for rule, ways in _WAYS.items()}
# Sentences end so without saying more.
_ENDS = " 。.!！了啊呢哦哈\n\t"


def proposal(own: str) -> str:
    """The weightiest rule that a sentence of the user's own words fits; empty for none."""
    found: set[str] = set()
    for _, sentence in sentences(own):
        if not asks(sentence) and not supposes(sentence):
            for _, clause in clauses(sentence):
                plain = clause.rstrip(_ENDS)
                found.update(rule for rule, pattern in _PATTERNS.items() if pattern.match(plain))
    return next((rule for rule in _PATTERNS if rule in found), "")
