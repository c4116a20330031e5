"""English: what means the same, and what has no weight. Each line is a claim that holds wherever its pattern fits.

Tense and number stay: "I lived in Rome" and "I live in Rome" are two facts, and so are a cat and cats.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edge.admission.agree.english_words import ING, STANDS_FOR, THIRD
from edge.admission.agree.marks import CLOSE, DATE, OPEN, TIME

_LIGHT = frozenset(("the", "please", "actually", "basically", "currently", "presently", "our", "my"))

_PASTS = {
    "forgotten": "forgot", "broken": "broke", "chosen": "chose", "begun": "began", "stolen": "stole",
    "written": "wrote",
}  # fmt: skip
_OBJECTS = {"i": "me", "we": "us", "he": "him", "she": "her", "they": "them"}
Put = str | Callable[[re.Match[str]], str]
Rule = tuple[re.Pattern[str], Put]


def _past(m: re.Match[str]) -> str:
    """I have forgotten it is I forgot it."""
    return _PASTS[m[1].lower()]


def _active(m: re.Match[str]) -> str:
    """I was fired by my boss is my boss fired me."""
    return f"{m[3]} {m[2]} {_OBJECTS.get(m[1].lower(), m[1])}"


def _rules(*pairs: tuple[str, Put]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern, re.IGNORECASE | re.ASCII), put) for pattern, put in pairs)


_BE = r"(?:am|is|are)"
_RATE = r"(second|minute|night|person|piece)"
# Before numbers are read.
EARLY = _rules(
    (r"\b(?:currently|presently) ", ""),
    (r"\bgotta\b", "must"),
    (r"\b(?:has|have) retired\b", "is retired"),
    (r"\bgot married\b", "married"),
    (r"\bpassed away\b", "died"),
    (r"\b(in the|in|season is) fall\b", r"\1 autumn"),
    (r"^(?:you can|people|everyone|friends) calls? me (?=[A-Z])", "call me "),
    (r"\bwould prefer (?!not\b)", "prefer "),
    (r"\b(?:am|is|are) (not )?(?:an? )?(?:big |huge )?fan of\b", r"do \1like"),
    (r"\bdo like\b", "like"),
    (r"\bsearch(ing|ed)? for\b", r"look\1 for"),
    (
        r"\b(?:am|is|are) going to (?!the\b|an?\b|my\b|our\b|school|work|bed|church|college|university|see)"
        r"(?=[a-z]+ )",
        "will ",
    ),
    (r"\bhalf an hour\b|\bhalf hour\b", "30 minutes"),
    (r"\ba dozen\b", "12"),
    (r"\b(i|we|they|you) own (?=an?|the|two|three|four|[0-9])", r"\1 have "),
    (r"\bowns (?=an?|the|two|three|four|[0-9])", "has "),
    (r"\b(talk|talking|talked) (?:to|with)\b", r"\1 to"),
    (r"\bmeet (?:up )?with\b", "meet"),
    (r"(?<=\ba )([a-z]+(?: [a-z]+)?) called (?=[A-Z])", r"\1 named "),
    (r"\b(?:have|has) (forgotten|broken|chosen|begun|stolen|written)\b", _past),
    (r"\b(have|has) been ([a-z]{3,})ing\b(?=.* (?:for|since) )", r"\1 \2ed"),
    (r"\b(?:have|has) not got\b", "do not have"),
    (r"\bhave an? fear of\b", "am afraid of"),
    (r"^it is my ([a-z]+) ", r"my \1 is "),
    (r"\bmet (?:up )?with\b", "met"),
    (r"\b(?:dislikes|does not like)\b", "do not like"),
    (r"\b(?:hates|detests)\b", "hate"),
    (r"'s home is (in|on|at|near)\b", r" live \1"),
    (r"\b(?:my|our) home is (in|on|at|near)\b", r"i live \1"),
    (r"\bmy height is (.{2,20})$", r"i is \1 tall"),
    (r"\bmy weight is\b", "i weigh"),
    (r"^there (?:is|are) (.{2,40}?) (?:in|on) ((?:my|our|the|his|her) [a-z]+)[.!]?$", r"\2 has \1"),
    (r"\bco-worker", "coworker"),
    (r"\bgot (?=laid off\b)", "was "),
    (r"\b(?:have|has) no (?=[a-z]+)", "not have "),
    (r"(?<=not )(have|need|eat|drink|want|like|own|know|use|speak) any\b", r"\1"),
    (r"\b(think|thinking) of (?=[a-z]+ing\b)", r"\1 about "),
    (r"\bhave (?:trouble|difficulty|problems) (?=[a-z]+ing\b)", "have trouble "),
    (r"\b(?:in charge of|responsible for)\b", "responsible for"),
    (r"\b(want|wants|hope|hopes|plan|plans) to become\b", r"\1 to be"),
    (r"\b(?:make|cook|prepare|fix)(s?) (dinner|lunch|breakfast)\b", r"cook\1 \2"),
    (r"\b(save|saving|saved) up\b", r"\1"),
    (r"\b(save|saving|saved) money for\b", r"\1 for"),
    (r"\binjured\b", "hurt"),
    (r"^(?:well|so|by the way|btw|fyi|actually|in fact|to be clear),? ", ""),
    (
        r"\b(?:from now on|from here on|from this point on|going forward"
        r"|in (?:the )?future),? (?:please,? )?(?:always )?",
        "from now on ",
    ),
    (rf"(?<=[a-z0-9]) (?:per|an?) {_RATE}\b", r" per \1"),
    (r"\b(?:have|has) got\b", "have"),
    (r"\b(he|she|it) has got\b", r"\1 has"),
    (r"\b(?:would like to|want to|wish to)\b", "want to"),
    (r"\b(?:have to|has to|need to|needs to|must)\b", "must"),
    (rf"\b{_BE} not able to\b|\b{_BE} unable to\b", "can not"),
    (rf"\b{_BE} able to\b", "can"),
    (r"\b(?:do|does) not ever\b", "never"),
    (r"\b(?:do |does )?not (.{1,60}?) (?:anymore|any more|any longer)\b", r"no longer \1"),
    (r"\b(?:do|does) not\b", "do not"),
    (r"\bdislike\b", "do not like"),
    (r"\bcan not stand\b|\bdetest\b", "hate"),
    (r"\b(?:like|enjoy) (?:to (?=[a-z]+))?(?=[a-z]+ing\b)", "like "),
    (r"\b(love|like) to (drink|eat|read|cook|watch|play|walk|listen)\b", r"\1 \2ing"),
    (r"\bprefer (.{1,40}?) (?:over|to|rather than|instead of) ", r"prefer \1 over "),
    (r"\blike (.{1,40}?) (?:more|better) than ", r"prefer \1 over "),
    (rf"\b{_BE} (?:called|named)\b", "is"),
    (r"\bthe name of (my|our|his|her|their) ([a-z]+) is\b", r"\1 \2 is"),
    (r"\b([a-z]+)'s name is\b", r"\1 is"),
    (r"\bmy name is\b", "i is"),
    (r"\b(?:have|has) an? ([a-z]+) allergy\b", r"is allergic to \1"),
    (rf"\b{_BE} (?=[a-z]{{2,}}ing\b(?<!thing)(?<!morning)(?<!evening)(?<!willing))", "being "),
    (r"\b(?:has|have) an? allergy to\b", "is allergic to"),
    (r"\ballergic to ([a-z]{3,}[^su\W])s\b", r"allergic to \1"),
    (
        r"\b(?:has|have) been (?=[a-z]+ed\b)|\bgot (?=(?:moved|changed|cancelled|canceled|fired|hired|promoted)\b)",
        "was ",
    ),
    (r"\btwo times\b", "twice"),
    (r"\bone time\b", "once"),
    (r"\bthe whole time\b|\ball the time\b", "always"),
    (r"^(i|we|they|you) (use|do|drink|eat|wear|have|take) (.{1,40}) always$", r"\1 always \2 \3"),
    (r"\bworks? as an? (?=[a-z])", "is "),
    (r"\bcomes? from (?=[A-Z])", "is from "),
    (r"\b(?:was|were) moved to\b", "moved to"),
    (r"^(when|whenever|if|because|while|after|before|since|although) ([^,.;]{3,60}), (.{3,80}?)[.!]?$", r"\3 \1 \2"),
    (r"\bsome day\b", "someday"),
    (r"\b(my|our|his|her|their) own\b", r"\1"),
    (r"\ba little (?=(?:town|village|house|apartment|flat|garden|farm|shop|cafe|restaurant|room)\b)", "a small "),
    (r"\b(?:gave|given) up (?=[a-z]+ing\b)", "quit "),
    (r"\bgive up (?=[a-z]+ing\b)", "quit "),
    (r"\bgrew up (on|in|at|near)\b|\b(?:was|were) (?:raised|brought up) (on|in|at|near)\b", r"raised \1\2"),
    (r"\bclose to (?=(?:the|a|my|our)\b)", "near "),
    (r"^([A-Z][\w ]{1,30}) is where (i|we) (was born|grew up|live|work)[.!]?$", r"\2 \3 in \1"),
    (r"^they ([a-z]+ed) ((?:the|my|our|me|us)\b(?: [a-z]+)?)(?= (?:to|on|in|from)\b|[.!]?$)", r"\2 was \1"),
    (r"^(.{1,40}?) (?:was|were) ([a-z]+ed) by ((?:my|our|the|his|her) [a-z]+|[A-Z][a-z]+)[.!]?$", _active),
    (r"\b(?<!i )said (?:that )?i should not\b|\btold me not to\b", "told me not to"),
    (r"(?<!\bi )\bsaid (?:that )?i should\b", "told me to"),
    (r"\bcut (?:down|back) on\b|\beat less\b", "cut down on"),
    (r"\bspeak fluent ([A-Z][a-z]+)", r"speak \1 fluently"),
    (r"\bat the moment\b|\bat present\b", ""),
    (r"\bin order to\b", "to"),
    (r"\b(book|thesis|article|talk|paper|course|class|report|essay) (?:about|on)\b", r"\1 about"),
    (r"\b(work|working|worked|works) out\b", "exercise"),
    (r"\bnext to\b", "beside"),
    (r"\b(go|went|going) on an? (trip|vacation|holiday)", r"\1 on a \2"),
    (r"\ba (trip|vacation|holiday) to\b", r"\1 to"),
    (r"\bfloor ([0-9]+)\b", r"\1th floor"),
    (r"\bscience fiction\b", "sci-fi"),
    (r"\bcome back\b", "return"),
    (r"\bcomes back\b", "returns"),
    (r"\bwrote in\b", "written in"),
    (r"\blike (.{1,40}?) (?:better|more)(?=[.!]?$)", r"prefer \1"),
    (r"\b(?:stop|quit)(?:ped)? (?=[a-z]+ing\b)", "quit "),
    (r"\b([0-9]+)k\b", r"\g<1>000"),
    (r"\breside in\b", "live in"),
    (r"\b(work|works|working|worked) for\b", r"\1 at"),
    (r"\b(?:have )?decided (?:to use|on using|to go with|to go for|on)\b", "decided to use"),
    (r"\b(?:moved|rescheduled|changed|shifted|pushed) to\b", "moved to"),
    (r"\bflower pot\b", "flowerpot"),
    (r"\bwi-fi\b", "wifi"),
    (r"\bemail address\b", "email"),
    (r"\bwedding anniversary\b", "anniversary"),
    (r"\bscared of\b", "afraid of"),
    (r"\bwas raised in\b", "grew up in"),
    (r"\bgo to (work|school) by (bus|train|bike|car|subway|metro)\b", r"take \2 to \1"),
    (r"^my car is (?=an? )", "i drive "),
    (r"\b(built|made|written|created|done) using\b", r"\1 with"),
    (r"\byour (?=answers|replies|responses)", ""),
    (r"\b(?:i|we) have an? ([a-z]+(?: [a-z]+)?) (?:named|called) (?=[A-Z])", r"my \1 is "),
    (r"\be-mail\b", "email"),
    (r"\b(?:cell|mobile) ?phone\b", "cellphone"),
    (r"(?<=[a-z]):(?= )", " is"),
    (r"\b(?:right )?now(?=[.!]?$)", ""),
    (r"\b(?:also|too|as well)(?=[.!]?$)", ""),
    (r"\b(?<!not )(?:really|very) (?=[a-z])", ""),
    (r"\bat all(?=[.!]?$)", ""),
    # "A few" and "a little" are more than few and little.
    (r"\ban? (?!few\b|little\b|lot\b|couple\b|bit\b|hundred\b|thousand\b|million\b)(?=[a-z])", ""),
    (
        r"\b(?:approximately|roughly|around|about) "
        r"(?=[0-9]|one|two|three|four|five|six|seven|eight|nine|ten|half|twenty)",
        "roughly ",
    ),
    (r"\bin front of\b", "before-place"),
)
# After numbers and times are marks.
LATE = _rules(
    (rf"\b{_BE} born ({OPEN}{DATE} \?[^{CLOSE}]*{CLOSE})", r"birthday \1"),
    (rf"\bwas born ({OPEN}{DATE} \?[^{CLOSE}]*{CLOSE})", r"birthday \1"),
    (rf"\bi birthday (?={OPEN})", "my birthday "),
    (rf"\b{_BE} (?=(?:{TIME})+)", ""),
    (rf"\b{_BE} ({OPEN}N[^{CLOSE}]*{CLOSE})岁", r"is \1"),
    (r"\bi do not\b", "i not"),
    (r"\bdo not (?!must)", "not "),
)


_BEING = re.compile(r"\bbeing ([a-z]{2,}ing)\b", re.IGNORECASE)


def early(text: str) -> str:
    return _BEING.sub(_plain_form, _apply(EARLY, text))


def late(text: str) -> str:
    return _apply(LATE, text)


def word(text: str) -> str:
    """The word that stands for this one; empty for one without weight."""
    text = THIRD.get(text, text)
    return "" if text in _LIGHT else STANDS_FOR.get(text, text)


def _plain_form(m: re.Match[str]) -> str:
    """Of a verb that is not listed, what is most likely; the same for either sentence at any rate."""
    ing = m[1].lower()
    stem = ing.removesuffix("ing")
    undoubled = stem[:-1] if stem[-1:] == stem[-2:-1] and stem[-1] not in "lsz" else stem
    return ING.get(ing, undoubled)


def _apply(rules: tuple[Rule, ...], text: str) -> str:
    for pattern, put in rules:
        text = pattern.sub(put, text)
    return text
