"""Who the box is: a key, and the certificate that clients remember it by."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edge.errors import DataLoss, DiskFull, EdgeError, FailedPrecondition, InvalidArgument, ReadOnly
from edge.lan.words import words

_logger = logging.getLogger(__name__)

# Every box has this one name: a client trusts the certificate itself, whatever address the box has today. gRPC wants
# it as grpc.ssl_target_name_override.
SERVER_NAME = "edge-memory.box"
# A box may think it is 1970 and a client may live long. The end is RFC 5280's for "no well-defined date" (4.1.2.5).
_NOT_BEFORE = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NOT_AFTER = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)
_FULL = (errno.ENOSPC, errno.EDQUOT)


def fingerprint(certificate: bytes) -> bytes:
    """SHA-256 of the DER of one PEM certificate, 32 bytes. Raises InvalidArgument when it is not one."""
    try:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.decode("ascii"))).digest()
    except ValueError:
        raise InvalidArgument(
            "certificate: not a PEM certificate; pair with the box anew", field="certificate"
        ) from None


@dataclass(frozen=True, slots=True)
class Identity:
    """The box's certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)
    # SHA-256 of the certificate's DER.
    digest: bytes

    @property
    def fingerprint(self) -> str:
        """The digest as 64 hexadecimal digits."""
        return self.digest.hex()

    @property
    def words(self) -> tuple[str, ...]:
        """The digest as six words, to be compared by reading aloud."""
        return words(self.digest)

    @property
    def id(self) -> str:
        """Names the box on the network and in a client's store: 16 hexadecimal digits."""
        return self.fingerprint[:16]

    @classmethod
    def open(cls, directory: Path) -> Identity:
        """The identity in `directory`, made at the first start: key.pem, and certificate.pem that follows from it.

        All of the certificate, its signature too (RFC 6979), follows from the key. One that a crash or its owner took
        away comes back the same, and the clients that remember it go on.
        Raises DataLoss for a damaged file, ReadOnly or DiskFull when it cannot be made, FailedPrecondition when it
        cannot be read; each says the way out.
        """
        key_path, certificate_path = directory / "key.pem", directory / "certificate.pem"
        try:
            key_pem, certificate_pem = _read(key_path), _read(certificate_path)
        except OSError as error:
            raise FailedPrecondition(
                f"{directory} cannot be read ({error.strerror}); give it to the user that the box runs as",
                reason="IDENTITY_UNREADABLE",
            ) from None
        if key_pem is None:
            if certificate_pem is not None:
                raise DataLoss(
                    f"{key_path} is missing beside its certificate; bring it back from a backup, or remove "
                    f"{certificate_path} for a new identity: then every client has to pair again",
                    reason="IDENTITY_DAMAGED",
                )
            key_pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            _write(key_path, key_pem)
        key = _parse_key(key_path, key_pem)
        _make_private(directory, 0o700)
        _make_private(key_path, 0o600)
        if certificate_pem is None:
            certificate_pem = _certificate(key)
            _write(certificate_path, certificate_pem)
        _check_certificate(certificate_path, certificate_pem, key)
        return cls(certificate_pem, key_pem, fingerprint(certificate_pem))


def _certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    public = key.public_key()
    # No name of a person or a host: it is shown to whoever knocks.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder(subject_name=name, issuer_name=name, public_key=public)
        # 1 to 20 bytes, positive (RFC 5280, 4.1.2.2).
        .serial_number(int.from_bytes(identifier.digest[:16], "big") + 1)
        .not_valid_before(_NOT_BEFORE)
        .not_valid_after(_NOT_AFTER)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(SERVER_NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
    )
    return builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True).public_bytes(serialization.Encoding.PEM)


def _parse_key(path: Path, pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise DataLoss(
            f"{path} is damaged or not a P-256 key; bring it back from a backup, or remove {path.parent.name}/key.pem "
            "and certificate.pem for a new identity: then every client has to pair again",
            reason="IDENTITY_DAMAGED",
        )
    return key


def _check_certificate(path: Path, pem: bytes, key: ec.EllipticCurvePrivateKey) -> None:
    try:
        good = x509.load_pem_x509_certificate(pem).public_key() == key.public_key()
    except (ValueError, UnsupportedAlgorithm):
        good = False
    if not good:
        raise DataLoss(
            f"{path} is damaged or belongs to another key; remove it and restart: it is made anew from key.pem, "
            "and clients need not pair again",
            reason="IDENTITY_DAMAGED",
        )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, data: bytes) -> None:
    """The whole file, for the owner alone, or none."""
    staged = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged.unlink(missing_ok=True)
        with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
        # The directory may be new as well.
        for directory in (path.parent, path.parent.parent):
            _sync_directory(directory)
    except OSError as error:
        raise _refusal(path.parent, error) from None


def _sync_directory(directory: Path) -> None:
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _refusal(directory: Path, error: OSError) -> EdgeError:
    if error.errno in _FULL:
        return DiskFull(f"no room left for {directory}; free some space and start the box again")
    return ReadOnly(f"{directory} cannot be written ({error.strerror}); make it writable and start the box again")


def _make_private(path: Path, mode: int) -> None:
    found = path.stat().st_mode & 0o777
    if not found & 0o077:
        return
    try:
        path.chmod(mode)
        _logger.warning("%s was open to others (mode %o); it is its owner's alone now", path, found)
    except OSError as error:
        _logger.warning("%s is open to others (mode %o, %s); set it to %o", path, found, error.strerror, mode)
