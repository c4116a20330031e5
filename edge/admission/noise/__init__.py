"""Noise: what passes through a conversation and is not worth remembering, by rules that one can read.

Only what is certainly no sentence is dropped. A sentence lost is worse than noise kept, so each rule asks for the
whole text to be noise, and one word beside it keeps it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import msgpack

from edge.admission.noise import names
from edge.admission.noise.events import event
from edge.admission.noise.greetings import is_greeting
from edge.admission.noise.names import COMMON_KINDS, KINDS, plain
from edge.admission.noise.shapes import binary, encoded, listing, wordless
from edge.admission.noise.wrapped import wrapped
from edge.types import NOTE_KIND, MemoryState, Turn

RULES: Mapping[str, str] = MappingProxyType(
    {
        names.STREAM: "Pieces of an answer that is still streaming, such as content_block_delta.",
        names.REASONING: "A model's thinking on the way to its answer.",
        names.TOOL: "Calls of tools and their output; diffs, listings and stack traces with no word beside them.",
        names.STRUCTURAL: "What an agent's program notes for itself: snapshots, reminders, commands, interruptions.",
        names.PROMPT: "Instructions that a program gives to a model, in the role system or developer.",
        names.BASE64: "Files in base64 or hexadecimal, with no word beside them.",
        names.BINARY: "Bytes that are no text, mostly control characters.",
        names.GREETING: "Greetings, thanks and assent that stand alone, such as 你好, 谢谢 and ok.",
        names.TOO_SHORT: "Texts without a letter or digit: marks and emoji only.",
    }
)


@dataclass(frozen=True, slots=True)
class Noise:
    """`rule` is a key of RULES; `reason` says why ("it is …"), without a word of the turn's text."""

    rule: str
    reason: str


def judge(turn: Turn, keep: Collection[str] = ()) -> Noise | None:
    """Why the turn is noise, by the first rule that says so; None for what is worth remembering.

    `keep` names rules that are off. What was remembered explicitly is never noise. Pure, never raises, and linear in
    the length of the text.
    """
    if turn.state is MemoryState.CONFIRMED or turn.kind == NOTE_KIND:
        return None
    for rule, reason in _findings(turn):
        if rule not in keep:
            return Noise(rule, reason)
    return None


def _role(turn: Turn, _text: str) -> tuple[str, str] | None:
    role = plain(turn.role)
    rule = KINDS.get(role) or COMMON_KINDS.get(role)
    return (rule, f"its role is {role}") if rule else None


def _attributes(turn: Turn, _text: str) -> tuple[str, str] | None:
    # Decoding costs more than looking for the key.
    if b"type" not in turn.attributes:
        return None
    try:
        attributes = msgpack.unpackb(turn.attributes)
    except (ValueError, TypeError):
        return None
    if not isinstance(attributes, dict):
        return None
    for key in ("type", "content_type"):
        name = attributes.get(key)
        if isinstance(name, str) and plain(name) not in COMMON_KINDS and (rule := KINDS.get(plain(name))):
            return rule, f"its attributes name the {key} {plain(name)}"
    return None


def _event(turn: Turn, text: str) -> tuple[str, str] | None:
    return event(text, plain(turn.role))


def _greeting(_turn: Turn, text: str) -> tuple[str, str] | None:
    return (names.GREETING, "it is a greeting, thanks or assent and nothing else") if is_greeting(text) else None


# In this order; the first that finds something decides. Each takes the turn and its text without white space around.
_TESTS: tuple[Callable[[Turn, str], tuple[str, str] | None], ...] = (
    _role,
    _attributes,
    _event,
    lambda _turn, text: wrapped(text),
    lambda _turn, text: listing(text),
    lambda _turn, text: encoded(text),
    lambda _turn, text: binary(text),
    _greeting,
    lambda _turn, text: wordless(text),
)


def _findings(turn: Turn) -> Iterator[tuple[str, str]]:
    text = turn.text.strip()
    for test in _TESTS:
        if found := test(turn, text):
            yield found
