"""Orders to remember, and orders for all the time to come, in the user's own words."""

from __future__ import annotations

import re

from edge.admission.tiers.speech import LEAD, asks, clauses, sentences

_ASKED = (
    r"(?:(?:请|麻烦|拜托|劳烦|你|您|帮我|给我|替我|一定要?|千万|务必|要|能|可以|可不可以|能不能|能否|请你|请您"
    r"|帮忙|please|kindly|just"
    r"|can you|could you|would you|will you|you (?:must|should|have to|need to)|i(?: want|'d like"
    r"| would like) you to|make sure (?:you|to))\s*)*"
)
_REMEMBER = re.compile(
    rf"\s*{LEAD}{_ASKED}(?:"
    r"记住(?!了吗|没|密码[的功选框是这]|登录|我[的吗]?账号|.{0,6}(?:功能|选项|按钮|框))|记(?:一下|下来|下|着"
    r"|好)(?!了吗|没)|(?:做|作)个?(?:笔记|记录)"
    r"|(?:别|不要|甭|勿|不能|不许)忘(?:了|记|掉)?|请记得|要记得|记得(?=以后|别|不要|每次|把|提醒|叫我|给我"
    r"|我(?!小时候|们?那|以前|当时|上次|第一|们以前|曾))"
    r"|remember(?! (?:when|the (?:time|day|night|summer)|how|last|back|that (?:time|day|night)|those|me\b|him|her"
    r"|us|the good)|ing)(?=[\s,:]|$)"
    r"|(?:take|make) a note|note (?=that|:|this|down)|note:|keep in mind|bear in mind|(?:don't|do not"
    r"|never) forget|save this|write this down"
    r")(?:了|下来|一下|下|着|哦|啊|吧)*(?:\s*(?:that|of that|down|:)(?=\s|:|$))?[\s，,:：—-]*",
    re.IGNORECASE,
)
# After what is to be remembered.
_REMEMBERED = re.compile(
    r"[，,。\s]+(?:请|你|麻烦|帮我|给我|要|一定|千万)*(?:记住(?:了|哦|啊|吧|它|这个|这一点)*|记一下(?:吧|哦)?"
    r"|记下来?(?:吧|哦)?|(?:别|不要)忘(?:了|记)(?:哦|啊)?)[。！!\s]*$"
    r"|[,.]\s*(?:please )?(?:remember (?:that|this|it)|keep (?:that|this|it) in mind|(?:don't"
    r"|do not) forget(?: (?:that|this|it))?|note (?:that|this|it)"
    r"(?: down)?)[.!\s]*$",
    re.IGNORECASE,
)
_REFERS = re.compile(
    r"\s*(?:这个|这些|这件事|这一点|这点|这|那个|它|上面的?|以上|刚才[的说].*|this|that|it|these"
    r"|all of this)?[\s。.!！]*$",
    re.IGNORECASE,
)
_ASSISTING = (
    "answer|reply|respond|use|write|call|speak|include|add|ask|explain|format|keep|start|end|check|show|give|put"
    "|tell|send|run|address|translate|round|cite"
    "|mention|suggest|recommend|delete|push|commit|assume|remind|avoid|name|sign|be|talk|make|do|prefer|say"
    "|return|list|deploy|test|store|share"
)
_FROM_NOW_ON = re.compile(
    rf"\s*{LEAD}{_ASKED}(?:"
    r"(?:以后|今后|往后)[，,]?(?:你|您|请|都|别|不要|不用|不许|不准|一律|每次|全部|统一|只|就|叫我|称呼|回答|回复"
    r"|写|用|说话|给我|记得)(?!没|是我|再说)|以后(?:如果|凡是|每当).{1,20}[，,](?:就|请|都|先|别)"
    r"|从(?:现在|今天|今|此刻|这次|下次)(?:起|开始|以后|往后)|从今以后|永远(?:不要|别)"
    r"|from (?:now|here|today|this point) on\b|going forward\b|in (?:the )?future,? (?:please|always|never|use"
    r"|answer|do not|don't)"
    rf"|(?:always|never) (?:{_ASSISTING})\b(?! (?:able|careful|a |an |the best|nice|good|been))"
    r")",
    re.IGNORECASE,
)


def order(own: str, text: str) -> tuple[str, str] | None:
    """(rule, words to remember) of the first order in it."""
    for start, sentence in sentences(own):
        end = start + len(sentence)
        for at, _clause in clauses(sentence):
            rest = sentence[at:]
            if found := _REMEMBER.match(rest):
                said = rest[found.end() :]
                # "能帮我记一下明天开会吗" asks politely; "记住密码怎么弄" asks.
                polite = re.search("帮我|给我|替我|请|(?:can|could|would|will) you", found[0], re.IGNORECASE)
                if asks(said, polite=polite is not None):
                    continue
                if not _REFERS.match(said):
                    return "remember", text[start + at + found.end() : end].strip()
                if text[end:].strip() and re.search(r"[:：]\s*$", found[0]):
                    return "remember", text[end:].strip()
            if _FROM_NOW_ON.match(rest) and not asks(rest):
                return "from now on", text[start + at : end].strip()
        if (found := _REMEMBERED.search(sentence)) and sentence[: found.start()].strip() and not asks(sentence):
            return "remember", text[start : start + found.start()].strip()
    return None
