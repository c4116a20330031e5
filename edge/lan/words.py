"""Bytes as words that can be read aloud, for two people who compare them."""

from __future__ import annotations

from mnemonic import Mnemonic

_BITS = 11


def words(digest: bytes, count: int = 6) -> tuple[str, ...]:
    """The first `count` times 11 bits of a digest, as words of the English list of BIP-39.

    Six words are 66 bits: whoever wants a certificate of their own with the same words has to make some 2^66 keys.
    No two words of the list share their first four letters. Raises ValueError for a digest that is too short.
    """
    if len(digest) * 8 < count * _BITS:
        raise ValueError(f"{count} words need {count * _BITS} bits")
    chosen = int.from_bytes(digest, "big") >> (len(digest) * 8 - count * _BITS)
    listed = Mnemonic("english").wordlist
    return tuple(listed[chosen >> (_BITS * place) & (1 << _BITS) - 1] for place in reversed(range(count)))
