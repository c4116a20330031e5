"""A private key that comes line by line, as turns of its own.

Redaction sees one turn, and a secret that a program cut into several is in none of them. For keys that is told by a
state: after a turn that ends inside a block (a BEGIN, and base64 up to its end) the turns of the same session go on
being hidden while they hold nothing but lines of base64, until the END or the first turn of anything else.

Lines of base64 without a BEGIN before them stay. They cannot be told from a wrapped image or certificate, and hiding
those would be a hidden false positive. A first line that begins as a key's DER does is known by that, and opens a
block as well. Other secrets are not followed: half a card number is a number, half a password is a word.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from edge.admission.redact.keys import goes_on, open_block
from edge.admission.redact.kinds import PLACEHOLDERS
from edge.admission.redact.redactor import Redacted, Redactor

# Lines that one block may go on for; a key of 16,384 bits has 210.
_MOST_TURNS = 400
_HIDDEN = tuple(words["private_key"] for words in PLACEHOLDERS.values())
# A shorter run of letters may be a word.
_SURELY = 16


def resumes(text: str, before: Callable[[], str]) -> bool:
    """Whether this turn is the rest of a key that an earlier one began, when what was followed is not known any more.

    `before()` is what the session's turn before it, or an earlier sending of this very one, became.
    """
    bare = text.strip()
    if goes_on(text) is None or (len(bare) < _SURELY and bare.isalpha()):
        return False
    said = before().strip()
    # Whoever had a whole key in a longer turn may go on with a number; a line of a key is longer.
    return open_block(said) or said in _HIDDEN or (len(bare) >= _SURELY and said.endswith(_HIDDEN))


class SessionRedactor:
    """Redacts the turns of one session, in their order; not for several threads at once.

    `inside`: as if a key had begun in an earlier turn.
    """

    def __init__(self, redactor: Redactor, *, inside: bool = False) -> None:
        self._redactor = redactor
        self._inside = int(inside)

    @property
    def inside(self) -> bool:
        """Whether the next turn may be the rest of a key."""
        return self._inside > 0

    def redact(self, text: str) -> Redacted:
        if self._inside:
            rest = goes_on(text)
            if rest is not None:
                end, closed = rest
                self._inside = 0 if closed or self._inside > _MOST_TURNS else self._inside + 1
                after = self._redactor.redact(text[end:])
                counts = {**after.counts, "private_key": after.counts.get("private_key", 0) + 1}
                hidden = self._redactor.placeholder("private_key") + after.text
                return Redacted(hidden, MappingProxyType(counts))
        self._inside = 1 if open_block(text) else 0
        return self._redactor.redact(text)
