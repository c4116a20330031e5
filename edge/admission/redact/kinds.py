"""The classes of secrets, and what stands in their place."""

from __future__ import annotations

import enum
from typing import NamedTuple


class SecretClass(enum.Enum):
    """The value is the name that secrets of the class are counted under; those of CUSTOM go by their pattern's."""

    CREDENTIAL = "credential"
    TOKEN = "token"  # noqa: S105  # the name of a class, no password
    BANK_CARD = "bank_card"
    IDENTITY = "identity"
    PRIVATE_KEY = "private_key"
    PHONE = "phone"
    ADDRESS = "address"
    CUSTOM = "custom"


PLACEHOLDERS = {
    "zh": {
        "credential": "[密码]",
        "token": "[密钥]",
        "bank_card": "[银行卡]",
        "identity": "[身份证号]",
        "private_key": "[私钥]",
        "phone": "[电话]",
        "address": "[地址]",
    },
    "en": {
        "credential": "[password]",
        "token": "[API key]",
        "bank_card": "[bank card]",
        "identity": "[identity number]",
        "private_key": "[private key]",
        "phone": "[phone number]",
        "address": "[address]",
    },
}


class Span(NamedTuple):
    """A secret at text[start:end] of a view; `name` is what it is counted under."""

    start: int
    end: int
    name: str


# Where two overlap, both go, under the name of the first of these; an owner's own pattern comes last.
RANK = {name: rank for rank, name in enumerate(PLACEHOLDERS["en"])} | {"private_key": -2, "token": -1}
