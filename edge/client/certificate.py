"""Which certificate a machine shows, and whether it is the one that is expected. Nothing here trusts it."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from typing import Any

from edge.errors import InvalidArgument, Unauthenticated, Unavailable

# A handshake in one house takes milliseconds; a device that just wakes may take a second or two.
HANDSHAKE_SECONDS = 4.0
_WORDS = 6


def digest_of(certificate: bytes) -> bytes:
    """SHA-256 of the DER of a PEM certificate, 32 bytes. Raises ValueError when it is none."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode("ascii"))).digest()


def words_of(digest: bytes) -> str:
    """The digest as the box shows it to be read aloud."""
    from edge.lan.words import words

    return " ".join(words(digest))


def read_fingerprint(text: str) -> str:
    """A fingerprint as a person gives it, made plain: 64 hexadecimal digits, or six words with a space between.

    Any case; colons, spaces and hyphens as they come. Raises InvalidArgument (field "tls_fingerprint").
    """
    plain = text.strip().lower().removeprefix("sha256:")
    digits = re.sub(r"[:\s-]", "", plain)
    if re.fullmatch(r"[0-9a-f]{64}", digits):
        return digits
    said = re.split(r"[\s-]+", plain)
    if len(said) == _WORDS and all(word.isascii() and word.isalpha() for word in said):
        return " ".join(said)
    raise InvalidArgument(
        f"tls_fingerprint: give all 64 hexadecimal digits of it, or its {_WORDS} words, as `edge pair --show` on the "
        "box prints them",
        field="tls_fingerprint",
    )


def matches(fingerprint: str, digest: bytes) -> bool:
    """Whether it is the digest's, in either form that `read_fingerprint` gives."""
    return fingerprint == (words_of(digest) if " " in fingerprint else digest.hex())


def parts(address: str) -> tuple[str, int]:
    """Host and port of host:port or [IPv6]:port, as sockets want them."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def joined(host: str, port: int) -> str:
    """host:port, IPv6 in brackets; `parts` undoes it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def shown_at(address: str) -> bytes:
    """The certificate (PEM) that whoever listens at host:port shows in a TLS handshake; nothing else is sent.

    Raises Unavailable: reason UNREACHABLE when nobody listens, NO_TLS for one who listens and does not speak it.
    """
    from edge.lan.tls import SERVER_NAME

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # To look at a certificate, whosever it is; what is trusted is decided by comparing it.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    writer: Any = None
    try:
        host, port = parts(address)
        opening = asyncio.open_connection(host, port, ssl=context, server_hostname=SERVER_NAME)
        _, writer = await asyncio.wait_for(opening, HANDSHAKE_SECONDS)
        der: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    except asyncio.TimeoutError:
        raise _silent(address, f"no answer within {HANDSHAKE_SECONDS:g} s") from None
    except (ssl.SSLError, ConnectionResetError, EOFError) as error:
        raise Unavailable(
            f"what listens at {address} speaks no TLS ({_cause(error)}): is it a box with --lan? Start it with "
            "`edge serve --lan`",
            reason="NO_TLS",
        ) from None
    except (OSError, ValueError, OverflowError) as error:
        # The latter two: a host name that cannot be encoded, no port. A pairing's file may have been edited by hand.
        raise _silent(address, _cause(error)) from None
    finally:
        if writer is not None:
            # There is nothing to flush, and a peer that does not close its side is not waited for.
            writer.transport.abort()
    if not der:
        raise Unavailable(f"what listens at {address} shows no certificate; start the box with --lan", reason="NO_TLS")
    return ssl.DER_cert_to_PEM_cert(der).encode("ascii")


async def expected_at(address: str, digest: bytes) -> None:
    """Returns when the machine there shows the certificate of this digest.

    Raises Unauthenticated (reason WRONG_CERTIFICATE) for another one, and what `shown_at` raises.
    """
    seen = digest_of(await shown_at(address))
    if seen != digest:
        raise wrong_certificate(address, digest.hex(), seen)


def wrong_certificate(address: str, expected: str, seen: bytes) -> Unauthenticated:
    """The machine is not the box that it is taken for."""
    return Unauthenticated(
        f"the machine at {address} is not the box that is meant: its certificate has the fingerprint {seen.hex()}, "
        f"and expected is {expected}. Nothing was sent to it. If the box was set up anew, pair with it "
        "again by `edge pair`, and forget the old one by `edge pair --forget`",
        reason="WRONG_CERTIFICATE",
    )


def _silent(address: str, cause: str) -> Unavailable:
    return Unavailable(
        f"no box answers at {address} ({cause}): is it on, and on this network? `edge discover` lists those that are; "
        "one goes by its name once it is paired: edge pair",
        reason="UNREACHABLE",
    )


def _cause(error: Exception) -> str:
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__
