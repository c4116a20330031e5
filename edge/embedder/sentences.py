"""Invented sentences of many kinds and lengths, to measure a model with: made from a seed, and nobody's real words."""

from __future__ import annotations

import random


def _words(line: str, between: str = " ") -> tuple[str, ...]:
    return tuple(line.split(between))


_ZH_WHO = _words("外婆 老周 房东 林医生 小满 快递员 隔壁的孩子 班主任 Kevin 会计 木匠 店长")
_ZH_WHAT = _words("备用钥匙 体检报告 路由器 保修卡 热水器 猫粮 合同 相册 自行车 护照 显卡 药盒 发票 茶叶")
_ZH_WHERE = _words("阳台 玄关 地下室 菜市场 机房 高铁站 图书馆 老家 车库 三楼会议室 河边 冰箱后面")
_ZH_SHAPES = (
    "{who}把{what}落在{where}了。",
    "{month}月{day}日要和{who}去{where}取{what}，别忘了带身份证。",
    "{who}说{what}花了{number}块，比{where}那家便宜！",
    "为什么{what}总是在{where}出问题？",
    "重启{code}以后，{where}的{what}就恢复了，版本是{number}.{day}。",
    "我不喜欢{what}，更不喜欢在{where}等{who}。",
    "提醒我{day}号之前给{who}打电话，问{what}的事",
    "{where}：{what}×{day}、{code}×{month}",
)
_EN_WHO = _words("my sister|the plumber|Dr. Okafor|our landlord|Priya|the night nurse|an old friend|Tomás", "|")
_EN_WHAT = _words(
    "spare key|tax return|router firmware|violin|garden hose|insurance policy|seed packet|blood test", "|"
)
_EN_WHERE = _words(
    "the cellar|Lisbon|rack 12|the third drawer|the dentist's office|platform 9|the shed|the staging cluster", "|"
)
_EN_SHAPES = (
    "{who} left the {what} in {where}.",
    "Please remind me on {month}/{day} that {who} needs the {what} back.",
    "The {what} cost {number} euros, twice what {who} paid in {where}!",
    "Why does the {what} always break when {who} is in {where}?",
    "{code} failed with exit status {day} after the upgrade to {number}.{month}; {who} rolled it back.",
    "I would rather walk to {where} than ask {who} about the {what} again",
)
_CODE = _words("nginx|PostgreSQL|kubectl|systemd|gen-itgc|MQTT|redis-cli|libssl|cron|ffmpeg", "|")
_ODD = (
    "x", "好", "🦄", "！！！", "1234567890", "2026-07-01 10:00:00", "SELECT id, name FROM people WHERE age >= 3;",
    "https://example.org/a/b?c=d&e=f#g", "мама мыла раму", "ありがとうございました", "résumé naïve façade",
    "def f(x):\n    return x ** 2", "{\"key\": [1, 2, null]}", "a b c d e f g h", "哈哈哈哈哈哈哈哈哈哈", "OK 👌 收到",
)  # fmt: skip


def made(count: int, seed: int) -> list[str]:
    """`count` different texts, of one sentence (half of them) to thirty; Chinese, English, both, and oddities."""
    chance = random.Random(seed)  # noqa: S311  # a seed, not a secret
    texts = dict.fromkeys(_ODD[:count])
    while len(texts) < count:
        language = chance.choice(("zh", "zh", "zh", "en", "en", "both"))
        length = chance.choice((1, 1, 1, 2, 4, 8)) if chance.random() < 0.95 else 30
        texts["".join(_sentence(language, chance) for _ in range(length)).strip()] = None
    return list(texts)


def _sentence(language: str, chance: random.Random) -> str:
    chinese = language == "zh" or (language == "both" and chance.random() < 0.5)
    who, what, where, shapes = (
        (_ZH_WHO, _ZH_WHAT, _ZH_WHERE, _ZH_SHAPES) if chinese else (_EN_WHO, _EN_WHAT, _EN_WHERE, _EN_SHAPES)
    )
    text = chance.choice(shapes).format(
        who=chance.choice(who), what=chance.choice(what), where=chance.choice(where), code=chance.choice(_CODE),
        month=chance.randint(1, 12), day=chance.randint(1, 28), number=chance.randint(3, 9999),
    )  # fmt: skip
    return text if chinese else text[0].upper() + text[1:] + " "
