"""How memories are marked as quotations in a model's context.

The box makes the block of a recall, the gateway that of what is read and listed: both with these words.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """The lines before and behind what is quoted, of which no memory may produce the first or the last."""

    start: str
    note: str
    end: str


WORDINGS = {
    "zh": Wording("[相关记忆开始]", "以下为历史记忆，可能过时，请以当前对话为准。", "[相关记忆结束]"),
    "en": Wording(
        "[Related memories begin]",
        "These are past memories and may be out of date; the current conversation takes precedence.",
        "[Related memories end]",
    ),
}

# Square, lenticular and tortoise shell, the pieces of large ones and half ones among them. Those that are none until
# they are normalised (NFKC) are here too; a test goes through all of Unicode for others.
_OPENING = "[［【〖〔〘〚⟦❲⁅﹇︹︻︗﹝⦋⦍⦏⦗⟬⌈⌊⸢⸤⎡⎢⎣⎴⸦⹕⹗"
_CLOSING = "]］】〗〕〙〛⟧❳⁆﹈︺︼︘﹞⦌⦎⦐⦘⟭⌉⌋⸣⸥⎤⎥⎦⎵⸧⹖⹘"
BRACKETS = str.maketrans(_OPENING + _CLOSING, "(" * len(_OPENING) + ")" * len(_CLOSING))
