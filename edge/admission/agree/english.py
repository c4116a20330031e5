"""English: what means the same, and what has no weight. Each line is a claim that holds wherever its pattern fits.

Tense and number stay: "I lived in Rome" and "I live in Rome" are two facts, and so are a cat and cats.
"""

from __future__ import annotations

import re

from edge.admission.agree.marks import CLOSE, DATE, OPEN, TIME

# The first word stands for the others of its line.
_SAME = """
mother mom mum mommy mama
father dad daddy papa
grandmother grandma granny
grandfather grandpa granddad
children kids
child kid
movie film
movies films
apartment flat
color colour
favorite favourite
organize organise
center centre
theater theatre
neighbor neighbour
neighbors neighbours
gray grey
program programme
fridge refrigerator
tv television
photo photograph
photos photographs
bike bicycle
plane airplane aeroplane
buy purchase
bought purchased
use utilize utilise
large big
start begin
leave depart
often frequently
whole entire
everyone everybody
someone somebody
hi hello
is are am
ok okay
vs versus
in at
doctor physician
lawyer attorney
couch sofa
trash garbage rubbish
concise brief
answer reply
answers replies
config configuration
repo repository
database db
docs documentation
app application
"""
# Of these "he runs" is "I run", and "is running" what is so: who does it says the subject.
_VERB_LIST = """
live work run use learn study wear take drive write build host play rent plan eat drink smoke go walk read teach own
like love prefer need want know think have sleep cook train start leave end open depart arrive return speak travel
"""
_VERBS = _VERB_LIST.split()
_STANDS_FOR = {word: line.split()[0] for line in _SAME.strip().splitlines() for word in line.split()[1:]}
_THIRD = {f"{verb}{'es' if verb.endswith(('o', 'ch', 'sh')) else 's'}": verb for verb in _VERBS if verb != "have"}
_THIRD |= {"studies": "study", "has": "have"}
_ING = {f"{verb.removesuffix('e')}ing": verb for verb in _VERBS} | {"running": "run", "planning": "plan"}
_LIGHT = frozenset(("the", "please", "actually", "basically", "currently", "presently", "our", "my"))

Rule = tuple[re.Pattern[str], str]


def _rules(*pairs: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern, re.IGNORECASE | re.ASCII), put) for pattern, put in pairs)


_BE = r"(?:am|is|are)"
_RATE = r"(second|minute|night|person|piece)"
# Before numbers are read.
EARLY = _rules(
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
    (r"\b(?:do|does) not ever\b|\bnever\b", "do not"),
    (r"\bnot (.{1,60}?) (?:anymore|any more|any longer)\b", r"not \1"),
    (r"\bno longer (?=[a-z]+)", "do not "),
    (r"\b(?:do|does) not\b", "do not"),
    (r"\bdo not like\b|\bhate\b|\bdislike\b|\bcan not stand\b", "do not like"),
    (r"\b(?:love|like|enjoy) (?:to (?=[a-z]+))?(?=[a-z]+ing\b)", "like "),
    (r"\b(?:love|like) to drink\b", "like drinking"),
    (r"\b(?:love|like) to eat\b", "like eating"),
    (r"\b(?:love|like) to (read|cook|watch|play|walk|listen)\b", r"like \1ing"),
    (r"\bprefer (.{1,40}?) (?:over|to|rather than|instead of) ", r"prefer \1 over "),
    (r"\blike (.{1,40}?) (?:more|better) than ", r"prefer \1 over "),
    (rf"\b{_BE} (?:called|named)\b", "is"),
    (r"\bthe name of (my|our|his|her|their) ([a-z]+) is\b", r"\1 \2 is"),
    (r"\b([a-z]+)'s name is\b", r"\1 is"),
    (r"\bmy name is\b", "i is"),
    (r"\b(?:have|has) an? ([a-z]+) allergy\b", r"am allergic to \1s"),
    (rf"\b{_BE} (?={'|'.join(_ING)})", "being "),
    (r"\b(?:has|have) an? allergy to\b", "is allergic to"),
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
    (r"\bget up\b", "wake up"),
    (r"\bgo to (work|school) by (bus|train|bike|car|subway|metro)\b", r"take \2 to \1"),
    (r"^my car is (?=an? )", "i drive "),
    (r"\b(built|made|written|created|done) using\b", r"\1 with"),
    (r"\byour (?=answers|replies|responses)", ""),
    (r"\b(?:i|we) have an? ([a-z]+) (?:named|called) (?=[A-Z])", r"my \1 is "),
    (r"\be-mail\b", "email"),
    (r"\b(?:cell|mobile) ?phone\b", "cellphone"),
    (r"(?<=[a-z]):(?= )", " is"),
    (r"\b(?:right )?now(?=[.!]?$)", ""),
    (r"\b(?:also|too|as well)(?=[.!]?$)", ""),
    (r"\b(?<!not )(?:really|very) (?=[a-z])", ""),
    (r"\bat all(?=[.!]?$)", ""),
    # "A few" and "a little" are more than few and little.
    (r"\ban? (?!few\b|little\b|lot\b|couple\b|bit\b|hundred\b|thousand\b|million\b)(?=[a-z])", ""),
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


_BEING = re.compile(rf"\bbeing ({'|'.join(_ING)})\b", re.IGNORECASE)


def early(text: str) -> str:
    return _BEING.sub(_plain_form, _apply(EARLY, text))


def late(text: str) -> str:
    return _apply(LATE, text)


def word(text: str) -> str:
    """The word that stands for this one; empty for one without weight."""
    text = _THIRD.get(text, text)
    return "" if text in _LIGHT else _STANDS_FOR.get(text, text)


def _plain_form(m: re.Match[str]) -> str:
    return _ING[m[1].lower()]


def _apply(rules: tuple[Rule, ...], text: str) -> str:
    for pattern, put in rules:
        text = pattern.sub(put, text)
    return text
