"""What both ends of a pairing compute, from a one-time code to a token.

    client                                       box
    name, element  -------------------------->   counts an attempt
                   <--------------------------   element
    mac            -------------------------->   wrong: the pairing ends here
                   <--------------------------   mac, sealed grant

The elements are SPAKE2's (Abdalla and Pointcheval, CT-RSA 2005; RFC 9382 is its later form). They say nothing about
the code: whoever talks to an end tests one guess of the code with it, and who only listens tests none.

The name and the SHA-256 of the certificate go into what both ends hash, each as it sees them: the client the
certificate that its connection showed, the box its own. With a machine in the middle these differ, so neither mac is
right, whoever knows the code or not.

The client proves itself first. Until its mac is found right the box has sent an element and nothing else, and that
attempt is already counted. Were the box's mac to come with its element, a guesser could test a guess on it and go away.
What is left to an impostor of the box is one guess for each time that a person types a code.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import unicodedata
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from spake2 import (  # type: ignore[import-untyped]  # ships no types
    SPAKE2_A,
    SPAKE2_B,
    SPAKEError,
)
from spake2.ed25519_basic import NotOnCurve  # type: ignore[import-untyped]  # ships no types
from spake2.ed25519_group import Ed25519Group  # type: ignore[import-untyped]  # ships no types

from edge.errors import FailedPrecondition, InvalidArgument, PermissionDenied
from edge.types import check_name

# Crockford's base 32: no I, L, O or U, so that nothing is read or heard as another. Five bits a symbol.
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
# 40 bits. A code is only ever tested online, five times at most: a guesser's chance is 5 in 2^40.
CODE_SYMBOLS = 8
ELEMENT_BYTES = 33
MAC_BYTES = 32
SEALED_BYTES = 4096
_PROTOCOL = b"edge-memory pairing 1"
_DIGEST_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,256}")
# Characters; at most twelve bytes each in JSON, so that a grant is always short enough to be taken.
_BOX_NAME = 256
_BOX_ID = re.compile(r"[0-9a-f]{16}")
# The key of a pairing seals one message ever: a nonce need not differ from anything (RFC 8439, section 2.3).
_NONCE = bytes(12)


@dataclass(frozen=True, slots=True)
class Granted:
    """What a client gets: its token, and who the box is."""

    token: str = field(repr=False)
    box_id: str
    box_name: str


def read_code(typed: str) -> str:
    """A code as a person typed it, as both ends hash it: any case, spaces, hyphens, full-width forms, O for 0, I for 1.

    Raises InvalidArgument (field "code") for what cannot be one, before an attempt is lost on it.
    """
    if len(typed) <= 64:
        plain = unicodedata.normalize("NFKC", typed).upper()
        code = re.sub(r"[\s\-‐‑–—−_]", "", plain).translate(str.maketrans("OIL", "011"))
        if len(code) == CODE_SYMBOLS and set(code) <= set(ALPHABET):
            return code
    raise InvalidArgument(
        f"code: it has {CODE_SYMBOLS} letters and digits, as in 7K2M-9QXD; type what the box shows on "
        "`edge pair --show`",
        field="code",
    )


@dataclass(frozen=True, slots=True)
class _Keys:
    """What both ends have once they agree; nothing of it is ever sent."""

    client_mac: bytes = field(repr=False)
    box_mac: bytes = field(repr=False)
    seal: bytes = field(repr=False)
    transcript: bytes


class _End:
    """One end of one pairing. Its steps go in their order, each once; one that fails ends it."""

    def __init__(self, side: type[SPAKE2_A] | type[SPAKE2_B], code: str, name: str, certificate: bytes) -> None:
        if len(certificate) != _DIGEST_BYTES:
            raise ValueError("certificate: the SHA-256 of its DER, 32 bytes")
        self._name = check_name(name).encode()
        self._certificate = certificate
        self._spake = side(
            read_code(code).encode(),
            idA=_PROTOCOL + b" client " + self._name,
            idB=_PROTOCOL + b" box " + certificate,
        )
        self._next = "start"

    def _begin(self, step: str) -> None:
        if self._next != step:
            raise FailedPrecondition(
                "pairing: this message was not due now; begin the pairing anew", reason="PAIRING_OUT_OF_ORDER"
            )
        # A step that succeeds says what comes next.
        self._next = "over"

    def _agree(self, received: bytes, client_element: bytes, box_element: bytes) -> _Keys:
        try:
            # Refuses what is not on the curve, not in its group of prime order, or this end's own element. It knows the
            # neutral element by its bytes alone, which has other encodings too: none but the canonical one passes.
            if Ed25519Group.bytes_to_element(received[1:]).to_bytes() != received[1:]:
                raise unproven()
            shared = self._spake.finish(received)
        except (SPAKEError, NotOnCurve, ValueError):
            raise unproven() from None
        transcript = hashlib.sha256()
        for part in (_PROTOCOL, self._name, self._certificate, client_element, box_element):
            transcript.update(len(part).to_bytes(8, "big") + part)
        salt = transcript.digest()
        derived = HKDF(SHA256(), length=96, salt=salt, info=_PROTOCOL + b" keys").derive(shared)
        return _Keys(derived[:32], derived[32:64], derived[64:], salt)


class ClientPairing(_End):
    """The client's end: start, confirm, finish. `certificate` is the digest of the one that the connection shows."""

    def __init__(self, code: str, name: str, certificate: bytes) -> None:
        super().__init__(SPAKE2_A, code, name, certificate)
        self._element = b""
        self._keys: _Keys | None = None

    def start(self) -> bytes:
        """The element to send with the name."""
        self._begin("start")
        self._element = self._spake.start()
        self._next = "confirm"
        return self._element

    def confirm(self, element: bytes) -> bytes:
        """The mac that answers the box's element. Raises PermissionDenied for an element that no box would send."""
        self._begin("confirm")
        check_length(element, ELEMENT_BYTES, "element")
        self._keys = self._agree(element, self._element, element)
        self._next = "finish"
        return _mac(self._keys.client_mac, self._keys)

    def finish(self, mac: bytes, sealed: bytes) -> Granted:
        """What the box grants. Raises PermissionDenied when it did not prove that it knows the code."""
        self._begin("finish")
        assert self._keys is not None
        check_length(mac, MAC_BYTES, "mac")
        if len(sealed) > SEALED_BYTES or not hmac.compare_digest(_mac(self._keys.box_mac, self._keys), mac):
            raise unproven()
        try:
            opened = ChaCha20Poly1305(self._keys.seal).decrypt(_NONCE, sealed, self._keys.transcript)
        except InvalidTag:
            raise unproven() from None
        return _unpack(opened)


class BoxPairing(_End):
    """The box's end: start, check, grant. `certificate` is the digest of its own."""

    def __init__(self, code: str, name: str, certificate: bytes) -> None:
        super().__init__(SPAKE2_B, code, name, certificate)
        self._keys: _Keys | None = None

    def start(self, element: bytes) -> bytes:
        """The element that answers the client's. Raises PermissionDenied for one that no client would send."""
        self._begin("start")
        check_length(element, ELEMENT_BYTES, "element")
        own: bytes = self._spake.start()
        self._keys = self._agree(element, element, own)
        self._next = "check"
        return own

    def check(self, mac: bytes) -> None:
        """Raises PermissionDenied unless the client knows the code and sees this box's certificate."""
        self._begin("check")
        assert self._keys is not None
        check_length(mac, MAC_BYTES, "mac")
        if not hmac.compare_digest(_mac(self._keys.client_mac, self._keys), mac):
            raise unproven()
        self._next = "grant"

    def grant(self, granted: Granted) -> tuple[bytes, bytes]:
        """The box's mac and the sealed grant, for a client that was found right."""
        self._begin("grant")
        assert self._keys is not None
        said = {"token": granted.token, "id": granted.box_id, "name": granted.box_name[:_BOX_NAME]}
        sealed = ChaCha20Poly1305(self._keys.seal).encrypt(_NONCE, json.dumps(said).encode(), self._keys.transcript)
        return _mac(self._keys.box_mac, self._keys), sealed


def unproven() -> PermissionDenied:
    """The other end did not prove that it knows the code; which of the two reasons it was, nobody can tell."""
    return PermissionDenied(
        "code: it is not the one that the box shows, or another machine answers in the box's place; look at the code "
        "again, and compare the words of the certificate with those on the box",
        field="code",
        reason="PAIRING_FAILED",
    )


def check_length(message: bytes, expected: int, field: str) -> None:
    """Raises InvalidArgument, before any work is done on a message of another length."""
    if len(message) != expected:
        raise InvalidArgument(f"{field}: it has {expected} bytes; update the older of box and client", field=field)


def _mac(key: bytes, keys: _Keys) -> bytes:
    return hmac.digest(key, keys.transcript, "sha256")


def _unpack(opened: bytes) -> Granted:
    """What the box sealed; it proved itself, and may still be of another version."""
    try:
        said = json.loads(opened)
        token, box_id, box_name = said["token"], said["id"], said["name"]
        good = bool(_TOKEN.fullmatch(token) and _BOX_ID.fullmatch(box_id)) and isinstance(box_name, str)
    except (ValueError, TypeError, KeyError):
        good = False
    if not good:
        raise FailedPrecondition(
            "the box granted something that this version cannot read; update the older of the two",
            reason="PAIRING_VERSION",
        )
    return Granted(token, box_id, box_name)
