"""Hides secrets before anything of a text reaches the disk: passwords, keys, cards, identity numbers."""

from edge.admission.redact.kinds import SecretClass
from edge.admission.redact.redactor import Redacted, Redactor
from edge.admission.redact.stream import SessionRedactor

__all__ = ["Redacted", "Redactor", "SecretClass", "SessionRedactor"]
