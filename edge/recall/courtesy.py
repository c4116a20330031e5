"""What is said to be polite and tells nothing: greetings, thanks, 好的, Of course!"""

from __future__ import annotations

import re

_CHINESE = (
    "好的|好啊|好呀|好吧|嗯+|哦+|噢|是的|对的|当然可以|当然|没问题|可以的|明白了?|了解了?|收到|知道了|不客气|不用谢|没关系|没事|"
    "(?:非常)?(?:感谢|谢谢)(?:你|您|大家)?(?:的(?:建议|帮助|分享|回答|提醒|理解|支持|鼓励|关心))?|"
    "(?:你|您|大家)?(?:早上|上午|中午|下午|晚上)?好|早安|晚安|嗨|哈喽|哈+|再见|拜拜|加油|"
    "(?:很)?高兴(?:认识|见到)(?:你|您)|(?:听起来)?(?:真|太|很)(?:好|棒|不错)了?|听起来不错|好主意|(?:这|那)?真?是个好(?:问题|主意)"
)
# The longer ones first.
_ENGLISH = (
    "sure thing|of course|no problem|got it|great question|good question|thank you so much|thanks so much|thanks a lot|"
    "thank you|you'?re welcome|sounds (?:good|great|fun)|(?:good|great|nice) to (?:see|hear from|meet) you(?: again)?|"
    "that'?s (?:so |really )?(?:great|awesome|amazing|nice|cool|good)(?: to hear)?|"
    "(?:hi|hey|hello)(?: there)?|good (?:morning|evening|night)|how (?:have you been|are you(?: doing)?)|"
    "what'?s up(?: with you)?|anything new|talk to you soon|take care|bye|see you|"
    "sure|certainly|absolutely|definitely|okay|ok|yes|yeah|yep|wow|awesome|amazing|great|cool|nice|well|oh|haha|cheers|thanks"
)
# "Hey Mel!", "Thanks, Tim!"
_NAME = r"(?:,? [A-Z]\w{0,19})?"
_PHRASE = rf"(?:(?:{_CHINESE})[啊呀呢哦哈吧啦]?|(?i:{_ENGLISH})(?!\w){_NAME})"
_POLITE = re.compile(rf"{_PHRASE}(?:[\s，,。.!！?？~～、…]+|$)")
_OPENING = re.compile(rf"{_PHRASE}[，,！!。~～]+ ?")
_LONGEST, _OPENINGS = 60, 3


def is_courtesy(sentence: str) -> bool:
    """Whether it holds nothing but courtesies, one after the other."""
    at = 0
    while at < len(sentence) <= _LONGEST and (match := _POLITE.match(sentence, at)):
        at = match.end()
    return 0 < len(sentence) == at


def opening(text: str, start: int, end: int) -> int:
    """Where the courtesies end with which text[start:end] begins; `start` where it begins with none."""
    for _ in range(_OPENINGS):
        match = _OPENING.match(text, start, end)
        if match is None:
            break
        start = match.end()
    return start
