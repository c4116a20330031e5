"""Texts with secrets in them and texts without, made from a seed, for measuring the redaction.

Written from what people paste (mails, chats, .env files, terminals), not from the detectors' rules: the secrets are
built as their makers build them, digit by digit and byte by byte.
"""

from secrets_corpus.innocents import Innocent, innocents
from secrets_corpus.positives import Secret, positives

__all__ = ["Innocent", "Secret", "innocents", "positives"]
