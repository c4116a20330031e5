"""The box's key and certificate: made once, kept through crashes, believed by whoever has the certificate."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import ssl
from datetime import datetime, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import DataLoss, DiskFull, EdgeError, FailedPrecondition, InvalidArgument, ReadOnly
from edge.lan.tls import SERVER_NAME, Identity, fingerprint
from edge.lan.words import words


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "identity"


def modes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in (directory, *directory.iterdir())}


def test_the_first_start_makes_it_and_the_next_finds_it(directory: Path) -> None:
    made = Identity.open(directory)
    assert Identity.open(directory) == made
    assert modes(directory) == {"identity": 0o700, "key.pem": 0o600, "certificate.pem": 0o600}


def test_two_boxes_are_two(tmp_path: Path) -> None:
    assert Identity.open(tmp_path / "a").digest != Identity.open(tmp_path / "b").digest


def test_the_fingerprint_is_the_sha_256_of_the_der_as_other_tools_give_it(directory: Path) -> None:
    identity = Identity.open(directory)
    der = ssl.PEM_cert_to_DER_cert(identity.certificate.decode())
    assert identity.fingerprint == hashlib.sha256(der).hexdigest() == fingerprint(identity.certificate).hex()
    assert identity.id == identity.fingerprint[:16]
    assert len(identity.words) == 6


def test_the_certificate_names_nobody_and_does_not_end(directory: Path) -> None:
    certificate = x509.load_pem_x509_certificate(Identity.open(directory).certificate)
    assert certificate.subject.rfc4514_string() == certificate.issuer.rfc4514_string() == f"CN={SERVER_NAME}"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [name.value for name in names] == [SERVER_NAME]
    assert certificate.not_valid_before_utc <= datetime(1970, 1, 1, tzinfo=timezone.utc)
    assert certificate.not_valid_after_utc.year == 9999
    assert socket.gethostname() not in certificate.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize("crash", ["before the certificate", "half a certificate", "half a key"])
def test_a_crash_while_it_was_made_is_made_good_at_the_next_start(directory: Path, crash: str) -> None:
    if crash == "half a key":
        directory.mkdir()
        (directory / "key.pem.tmp").write_bytes(b"-----BEGIN")
        before = None
    else:
        before = Identity.open(directory)
        (directory / "certificate.pem").unlink()
        if crash == "half a certificate":
            (directory / "certificate.pem.tmp").write_bytes(b"-----BEGIN")
    after = Identity.open(directory)
    # The same to the last byte: clients go on trusting it.
    assert before is None or after == before
    assert Identity.open(directory) == after
    assert not list(directory.glob("*.tmp"))


def test_a_key_that_others_can_read_is_closed_to_them_with_a_warning(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    identity = Identity.open(directory)
    (directory / "key.pem").chmod(0o644)
    directory.chmod(0o755)
    assert Identity.open(directory) == identity
    assert modes(directory)["key.pem"] == 0o600
    assert modes(directory)["identity"] == 0o700
    assert "key.pem was open to others (mode 644)" in caplog.text


@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_damaged_key_is_told_with_the_way_out_and_left_alone(directory: Path, content: bytes) -> None:
    Identity.open(directory)
    (directory / "key.pem").write_bytes(content)
    with pytest.raises(DataLoss, match=r"backup.*pair again"):
        Identity.open(directory)
    assert (directory / "key.pem").read_bytes() == content


def test_a_key_of_another_kind_or_with_a_password_is_refused(directory: Path) -> None:
    Identity.open(directory)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    other = ec.generate_private_key(ec.SECP384R1()).private_bytes(pem, pkcs8, serialization.NoEncryption())
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        pem, pkcs8, serialization.BestAvailableEncryption(b"x")
    )
    for key in (other, locked):
        (directory / "key.pem").write_bytes(key)
        with pytest.raises(DataLoss):
            Identity.open(directory)


@pytest.mark.parametrize("damage", ["cut", "empty", "of another box"])
def test_a_damaged_certificate_is_told_and_comes_back_the_same_when_removed(
    directory: Path, tmp_path: Path, damage: str
) -> None:
    identity = Identity.open(directory)
    other = Identity.open(tmp_path / "other").certificate
    path = directory / "certificate.pem"
    path.write_bytes({"cut": identity.certificate[:99], "empty": b"", "of another box": other}[damage])
    with pytest.raises(DataLoss, match="remove it and restart"):
        Identity.open(directory)
    path.unlink()
    assert Identity.open(directory) == identity


def test_a_certificate_without_its_key_is_told_and_no_new_identity_made(directory: Path) -> None:
    Identity.open(directory)
    (directory / "key.pem").unlink()
    with pytest.raises(DataLoss, match=r"key\.pem is missing"):
        Identity.open(directory)
    assert not (directory / "key.pem").exists()


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EROFS, ReadOnly), (errno.EACCES, ReadOnly), (errno.ENOSPC, DiskFull)]
)
def test_a_directory_that_cannot_be_written_is_told(
    directory: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[EdgeError]
) -> None:
    def refuse(file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(kind, match="identity"):
        Identity.open(directory)
    monkeypatch.undo()
    Identity.open(directory)


def test_a_file_that_cannot_be_read_is_told(directory: Path) -> None:
    (directory / "key.pem").mkdir(parents=True)
    with pytest.raises(FailedPrecondition, match="cannot be read"):
        Identity.open(directory)


def test_an_identity_that_is_there_needs_no_writable_disk(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity.open(directory)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (directory / "key.pem").chmod(0o644)
    monkeypatch.setattr(Path, "chmod", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert Identity.open(directory) == identity


def test_the_key_shows_in_no_repr(directory: Path) -> None:
    identity = Identity.open(directory)
    assert "PRIVATE" not in repr(identity)


@pytest.mark.parametrize("certificate", [b"", b"nonsense", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\n"])
def test_the_fingerprint_of_no_certificate_is_refused(certificate: bytes) -> None:
    with pytest.raises(InvalidArgument):
        fingerprint(certificate)


def handshake(identity: Identity, files: Path, trusted: bytes, version: ssl.TLSVersion) -> str:
    """The TLS version that a client, which trusts one certificate alone, and this box agree on; all in memory."""
    (files / "box.pem").write_bytes(identity.certificate + identity.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files / "box.pem")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.maximum_version = version
    # As Python 3.13 has it by default.
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    client.load_verify_locations(cadata=trusted.decode())
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(down, up, server_hostname=SERVER_NAME)
    far = server.wrap_bio(up, down, server_side=True)
    for end in (near, far) * 4:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    return near.version() or ""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_knows_the_certificate_believes_it(
    directory: Path, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    identity = Identity.open(directory)
    assert handshake(identity, tmp_path, identity.certificate, version) == version.name.replace("_", ".")


def test_a_client_that_knows_another_boxs_certificate_does_not(directory: Path, tmp_path: Path) -> None:
    other = Identity.open(tmp_path / "other")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(Identity.open(directory), tmp_path, other.certificate, ssl.TLSVersion.TLSv1_3)


def test_words_are_those_of_bip_39() -> None:
    # The first six words of the standard's own vectors for 128 bits of zeros and of ones.
    assert words(bytes(32)) == ("abandon",) * 6
    assert words(b"\xff" * 32) == ("zoo",) * 6
    assert words(b"\x80" * 32)[:6] == ("letter", "advice", "cage", "absurd", "amount", "doctor")


@given(st.binary(min_size=32, max_size=32), st.integers(0, 65))
def test_words_tell_digests_apart_by_each_of_their_first_66_bits(digest: bytes, bit: int) -> None:
    other = bytearray(digest)
    other[bit // 8] ^= 128 >> bit % 8
    assert words(digest) != words(bytes(other))


def test_too_few_bytes_make_no_words() -> None:
    with pytest.raises(ValueError, match="66 bits"):
        words(bytes(8))
