"""The speaker's own sentences and clauses: what is quoted is taken out, what asks or supposes is told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What is not the speaker's: code, quotations, quoted lines of a mail.
_UNSAID = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|“[^”]{0,2000}”|「[^」]{0,2000}」|『[^』]{0,2000}』|《[^》]{0,200}》"
    r"|\"[^\"\n]{0,2000}\""
    r"|(?<!\w)'[^'\n]{2,2000}'(?!\w)|(?m:^[ \t]*>.*$)",
    re.DOTALL,
)
_SENTENCE = re.compile(r"[^。！？!?；;\n.]*(?:\.(?!\s|$)[^。！？!?；;\n.]*)*[。！？!?；;.]*")
_CLAUSE = re.compile(r"[^，,、：:]+")
_QUESTION = re.compile(
    r"[?？]\s*$|[吗嘛么呢]\s*[?？。]?\s*$|怎么|如何|为什么|为啥|什么|啥|哪[里个些儿种]?|谁|几[点个号时]|多少|是否"
    r"|是不是|有没有|能不能|要不要|会不会|可不可以"
    r"|^\s*(?:what|who|when|where|why|how|which|do|does|did|is|are|am|can|could|would|should|will|have|has|was|were)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"如果|要是|假如|假设|假使|万一|倘若|的话|比如|例如|好像|听说|据说|梦见|可能会|也许|或许|差点|[说讲写道问][:：，,]"
    r"|\b(?:if|suppose|imagine|unless|for example|for instance|e\.g|maybe|perhaps|might|would|could|i heard"
    r"|they say|he said|she said)\b",
    re.IGNORECASE,
)

# Before an order or a statement, and no part of it.
LEAD = (
    r"(?:(?:对了|嗯|哦|那|那么|好的?|好吧|还有|另外|顺便|其实|总之|因为|而且|但是|不过|所以|顺便说一下|跟你说"
    r"|告诉你|另外呢|hi|hey|ok(?:ay)?|and|but|also|well|so"
    r"|by the way|btw|just so you know|fyi|anyway)[\s，,:：]*)*"
)


def own_words(text: str) -> str:
    """The text with a mark for each character of code and quotations: offsets stay what they are."""
    return _UNSAID.sub(lambda m: "\ufffc" * len(m[0]), text.replace("’", "'"))


def sentences(text: str) -> Iterator[tuple[int, str]]:
    for found in _SENTENCE.finditer(text):
        if found[0].strip():
            yield found.start(), found[0]


def clauses(sentence: str) -> Iterator[tuple[int, str]]:
    for found in _CLAUSE.finditer(sentence):
        yield found.start(), found[0]


def asks(text: str, polite: bool = False) -> bool:
    """Whether it is a question; of a polite order what makes it one does not count."""
    if polite:
        text = re.sub(r"(?:[吗么呢]|好吗|可以吗|行吗)?\s*[?？]\s*$|(?:好吗|可以吗|行吗|吗)\s*$", "", text)
    return _QUESTION.search(text) is not None


def supposes(text: str) -> bool:
    """Whether it says what might be, or what others say."""
    return _SUPPOSED.search(text) is not None
