"""Turns and questions for the benches, made from a seed: the same on every machine, and nobody's real words."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from importlib import resources

SHORTEST, LONGEST = 10, 400

_CLAUSE_END = re.compile(r"(?<=[，。！？；、,;!?])")


def _words(*lines: str) -> tuple[str, ...]:
    return tuple(word for line in lines for word in line.split())


_PEOPLE = _words(
    "晓岚 老周 阿哲 小满 陈工 林医生 房东 外婆 表弟 邻居 快递员 徐老师 张师傅 安娜 Kevin Maya 店长 教练 会计 木匠"
)
_PLACES = _words(
    "阳台 书房 厨房 车库 地下室 玄关 储物间 办公室 机房 学校",
    "医院 菜市场 河边 高铁站 图书馆 健身房 老家 码头 咖啡馆 天台",
)
_THINGS = _words(
    "备用钥匙 路由器 体检报告 保修卡 投影仪 自行车 护照 相机 充电宝 种子 雨伞 合同 发票",
    "药盒 吉他 望远镜 电饭煲 滤芯 硬盘 显卡 笔记本 门禁卡 帐篷 猫粮 螺丝刀 毛毯",
    "热水器 温度计 茶叶 相册 日历 台灯 键盘 背包 鱼缸 拼图 电钻 驱动 镜像 备份",
)
_DEEDS = _words(
    "放在 借给 落在 寄到 修好了 换掉了 弄丢了 找回了 预约了 退掉了 答应了 记错了 取消了 升级了 拆开了 锁上了"
)
_ENGLISH = _words(
    "Postgres Redis Nginx Python Kubernetes Terraform MQTT Jetson Raspberry router firmware invoice passport dentist",
    "budget deadline backup migration weekend garden",
)


def turns(count: int, seed: int, shortest: int = SHORTEST, longest: int = LONGEST) -> list[str]:
    """Texts whose lengths in characters are uniform in [shortest, longest]; no two alike.

    Clauses of the demo's conversation in a random order, each text with an invented one in front, so that words are as
    common and as rare as in talk, and every text is another.
    """
    chance = random.Random(seed)  # noqa: S311  # a seed, not a secret
    clauses = _clauses()
    found: dict[str, None] = {}
    while len(found) < count:
        length = chance.randint(shortest, longest)
        text = invented(chance)
        while len(text) < length:
            text += chance.choice(clauses)
        found[text[:length]] = None
    return list(found)


def questions(count: int, seed: int) -> list[str]:
    """Different questions of some 15 to 25 characters about what `turns` tells."""
    chance = random.Random(seed)  # noqa: S311  # a seed, not a secret
    found: dict[str, None] = {}
    while len(found) < count:
        person, place, thing = chance.choice(_PEOPLE), chance.choice(_PLACES), chance.choice(_THINGS)
        shape = chance.choice(
            (
                f"{person}上次说把{thing}放到{place}的哪里了？",
                f"{chance.randint(1, 12)}月里{person}在{place}找{thing}是为什么？",
                f"我们什么时候跟{person}讨论过{thing}和{chance.choice(_ENGLISH)}？",
                f"{place}的那个{thing}后来是谁处理的，花了多少钱？",
            )
        )
        found[shape] = None
    return list(found)


def invented(chance: random.Random) -> str:
    """A clause with names and numbers."""
    day = f"{chance.randint(1, 12)}月{chance.randint(1, 28)}日"
    tail = chance.choice(
        (
            f"编号{chance.randint(100, 99999)}，",
            f"花了{chance.randint(3, 4000)}块，",
            f"用的是 {chance.choice(_ENGLISH)} {chance.randint(1, 30)}.{chance.randint(0, 9)}。",
            "",
        )
    )
    deed, thing, place = chance.choice(_DEEDS), chance.choice(_THINGS), chance.choice(_PLACES)
    return f"{day}{chance.choice(_PEOPLE)}把{thing}{deed}，在{place}，{tail}"


def _clauses() -> Sequence[str]:
    lines = (resources.files("edge.cli.demo") / "conversation.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    # Sorted and each once, so that the corpus does not change with the order of the file.
    return sorted({clause for text in texts for clause in _CLAUSE_END.split(text) if len(clause) > 2})
