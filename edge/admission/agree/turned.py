"""Sentences that say the same in another order: 把, 被, what it is about in front, "pick her up", "In March I ...".

`order` exchanges two neighbouring parts of two readings that have the same words. Here light words may differ as well
(`light`), so what is tried is each other order that a sentence has by a rule of grammar.
"""

from __future__ import annotations

from collections.abc import Iterator

from edge.admission.agree.light import ALPHABET, Tokens, laid_beside, without_one, words
from edge.admission.agree.marks import OPEN, PAUSE
from edge.admission.agree.order import BINDING, DIVIDING, run_on, same_but_for_order

# Tokens of a sentence that is compared so, and how many more than the other it may have.
_LONGEST, _MORE = 60, 8
_ALPHABET = ALPHABET | {"把", "被"}
_TIME = f"{OPEN}T"
_RELATED = frozenset("比从到给向和跟对被把让叫最再先")
# What a topic that moves holds none of.
_TOPICLESS = _RELATED | frozenset("不没只你他她它谁人们妈爸哥姐弟妹爷奶婆公女儿子孩舅叔姑姨嫂侄孙友师板")
_SPEAKERS = frozenset("我你他她")
_LEADING = words("for in at on from with during")
_CLAUSES = words("that who which when while if because and or but then than not only")
# Of these a part may tell of the one that says it, or of what is said.
_SAYING = words("think know say said told tell hope believe feel want see saw hear heard not") | frozenset(
    "说知想觉听问告"
)
_ADVERBS = words("usually originally recently often sometimes always still")
_PARTICLES = words("up off out back away 了")
# How far a particle stands from its verb.
_REACH = 4


def same_but_for_light(older: Tokens, newer: Tokens) -> bool:
    """Whether what two readings differ in is light where it stands, or means the same where it stands."""
    if same_but_for_order(older, newer):
        return True
    paused = PAUSE in older or PAUSE in newer
    older, newer = without_one(tuple(run_on(older))), without_one(tuple(run_on(newer)))
    if not older or not newer or max(len(older), len(newer)) > _LONGEST or abs(len(older) - len(newer)) > _MORE:
        return False
    if not {*older} ^ {*newer} <= _ALPHABET:
        return False
    if laid_beside(older, newer):
        return True
    # Over a pause nothing moves.
    if paused:
        return False
    if same_but_for_order(older, newer) or laid_beside(_times_first(older), _times_first(newer)):
        return True
    return any(laid_beside(other, newer) for other in _orders(older)) or any(
        laid_beside(other, older) for other in _orders(newer)
    )


def _orders(tokens: Tokens) -> Iterator[Tokens]:
    if "我" in tokens[2:-1]:
        yield from _topic_last(tokens, tokens.index("我"))
    if tokens[0] in _LEADING and not _CLAUSES & {*tokens}:
        for cut in range(2, min(5, len(tokens) - 1)):
            yield tokens[cut:] + tokens[:cut]
    if "把" in tokens[:-3]:
        yield from _plain_object(tokens, tokens.index("把"))
    if "被" in tokens[:-3]:
        yield from _active(tokens, tokens.index("被"))
    if not _SAYING & {*tokens}:
        for at, token in enumerate(tokens):
            if token in _PARTICLES:
                yield from _moved(tokens, at, _REACH)
            elif token in _ADVERBS:
                yield from _moved(tokens, at, _LONGEST)


def _topic_last(tokens: Tokens, at: int) -> Iterator[Tokens]:
    """去大理的机票我订好了 is 我订好了去大理的机票; a reading has no 我 that begins a sentence."""
    topic, rest = tokens[:at], tokens[at + 1 :]
    if not _TOPICLESS & {*topic} and not _RELATED & {*rest}:
        yield rest + topic


def _plain_object(tokens: Tokens, at: int) -> Iterator[Tokens]:
    """把头发剪短了 is 剪短了头发; where the verb begins is tried."""
    subject = () if tokens[:at] == ("我",) else tokens[:at]
    done = tokens[-1] == "了"
    for cut in range(at + 2, len(tokens) - done):
        verb = tokens[cut : len(tokens) - done]
        if not _SPEAKERS & {*verb} and tokens[at + 1] not in _SPEAKERS:
            yield (*subject, *verb, *("了",) * done, *tokens[at + 1 : cut])


def _active(tokens: Tokens, at: int) -> Iterator[Tokens]:
    """我被公司裁了 is 公司把我裁了."""
    for cut in range(at + 2, len(tokens)):
        yield (*tokens[at + 1 : cut], "把", *(tokens[:at] or ("我",)), *tokens[cut:])


def _moved(tokens: Tokens, at: int, reach: int) -> Iterator[Tokens]:
    """With this one elsewhere, but not beyond a value: "take off on Friday" is not "take Friday off"."""
    rest = tokens[:at] + tokens[at + 1 :]
    for to in range(max(1, at - reach), min(len(rest), at + reach) + 1):
        passed = rest[min(at, to) : max(at, to)]
        if reach > _REACH or not any(token.startswith(OPEN) for token in passed):
            yield (*rest[:to], tokens[at], *rest[to:])


def _times_first(tokens: Tokens) -> Tokens:
    """With when it is before who does what, unless a word binds the time to its place."""
    places = [at for at, token in enumerate(tokens) if token.startswith(_TIME)]
    beside = {token for at in places for token in tokens[max(0, at - 1) : at + 2]}
    kinds = {tokens[at][:3] for at in places}
    if len(kinds) < len(places) or BINDING & beside or DIVIDING & {*tokens}:
        return tokens
    return tuple(tokens[at] for at in places) + tuple(token for token in tokens if not token.startswith(_TIME))
