"""Where the order of words changes nothing: a time that stands elsewhere, the two sides of "and" or of "is"."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from edge.admission.agree.marks import OPEN, PAUSE

_SAID_APART = frozenset(("不", "没", "别", "是", "对", "no", "not", "yes"))
_JOINTS = frozenset(("和", "或", "and", "or"))
_IS = frozenset(("是", "is"))
# 我跟他学英语 tells who learns: 跟 is read as 和.
_FROM_WHOM, _SCHOOLS = frozenset("学借租问要"), frozenset("大中小同上放开")
# 我叫张伟 names, and 张伟叫我 calls: it may be turned round into an "is" only.
_NAMED = _IS | {"叫"}
# What divides a sentence in two: over these no time moves.
_DIVIDING_LIST = (
    "的 再 先 然 而 但 如 果 时 候 和 或 不 没 别 that who which when while if because and or but then than not"
)
DIVIDING = frozenset(_DIVIDING_LIST.split())
# What binds a time that stands beside it, on either side.
_BINDING_LIST = (
    "只 才 前 后 起 到 至 从 每 隔 内 左 大 before after by until till since from to for every other about off"
)
BINDING = frozenset(_BINDING_LIST.split())

# Tokens of a sentence whose parts are tried in other orders, which is cubic work.
_LONGEST = 60

Tokens = tuple[str, ...]


def same_but_for_order(older: Tokens, newer: Tokens) -> bool:
    """Whether one is the other, or one harmless exchange of two neighbouring parts away."""
    if run_on(older) == run_on(newer):
        return True
    if PAUSE in older or PAUSE in newer or max(len(older), len(newer)) > _LONGEST:
        return False
    if _turned(older, newer):
        return True
    if sorted(older) != sorted(newer):
        return False
    return any(_harmless(*exchange) for exchange in _exchanges(older, newer)) or _swapped(older, newer)


def run_on(tokens: Tokens) -> list[str]:
    """Without pauses, but for those after a word that stands for a sentence: "no, thanks" is not "no thanks"."""
    return [one for at, one in enumerate(tokens) if one != PAUSE or tokens[at - 1] in _SAID_APART]


def _exchanges(older: Tokens, newer: Tokens) -> Iterator[tuple[Tokens, Tokens, Tokens]]:
    """Two parts that stand in the other order in the newer, and last what is beside them in both."""
    size = len(older)
    head = next(at for at in range(size) if older[at] != newer[at])
    tail = next(at for at in range(1, size + 1) if older[-at] != newer[-at]) - 1
    for start in range(head + 1):
        for end in range(size - tail, size + 1):
            middle, other = older[start:end], newer[start:end]
            for cut in range(1, len(middle)):
                if middle[cut:] + middle[:cut] == other:
                    yield middle[:cut], middle[cut:], older[max(0, start - 1) : start] + older[end : end + 1]


def _harmless(first: Tokens, second: Tokens, beside: Tokens) -> bool:
    return (_is_time(first) and _lets_pass(second, first, beside)) or (
        _is_time(second) and _lets_pass(first, second, beside)
    )


def _is_time(part: Tokens) -> bool:
    """A time, or how many times: 去两次健身房."""
    if len(part) == 2 and part[0].startswith(f"{OPEN}N ") and part[1] in ("次", "趟", "遍", "times"):
        return True
    return all(token.startswith(f"{OPEN}T") for token in part)


def _lets_pass(part: Tokens, time: Tokens, beside: Tokens) -> bool:
    """Whether the time means the same on either side of the part: nothing binds it to where it stands, and neither a
    joint nor another time of its kind is between."""
    if BINDING & {part[0], part[-1], *beside}:
        return False
    kinds = {token[:3] for token in time}
    return not any(token in DIVIDING or token[:3] in kinds for token in part)


def _turned(older: Tokens, newer: Tokens) -> bool:
    """The whole sentence A is B for B is A."""
    for at, token in enumerate(older):
        for cut, other in enumerate(newer):
            if token in _NAMED and other in _NAMED and (token in _IS or other in _IS):
                one, two = older[:at], older[at + 1 :]
                if one and two and _mine(one) == _mine(newer[cut + 1 :]) and _mine(two) == _mine(newer[:cut]):
                    return True
    return False


def _mine(part: Tokens) -> Tokens:
    """Reading drops a 我 that begins a sentence (我老婆), and not one after "is"."""
    return part[1:] if part[:1] == ("我",) and len(part) > 1 else part


def _from_whom(tokens: Tokens) -> bool:
    return any(two in _FROM_WHOM and one not in _SCHOOLS for one, two in itertools.pairwise(tokens))


def _swapped(older: Tokens, newer: Tokens) -> bool:
    """A and B for B and A, both about as long: 我和李娜看张伟 is not 李娜看张伟和我."""
    for at, joint in enumerate(older):
        if joint not in _JOINTS or _from_whom(older[at:]):
            continue
        for start in range(at):
            for end in range(at + 2, len(older) + 1):
                if abs((at - start) - (end - at - 1)) > 1:
                    continue
                turned = (*older[:start], *older[at + 1 : end], joint, *older[start:at], *older[end:])
                if turned == newer:
                    return True
    return False
