from __future__ import annotations

import dataclasses
import json
import logging
import stat
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

from edge.client import vault
from edge.client.certificate import digest_of
from edge.client.store import PairedBox, PairingStore, box_id
from edge.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound, ReadOnly
from edge.lan.tls import Identity

SECRET = "edge_s3cret"


def paired(folder: Path, name: str = "attic", **fields: Any) -> PairedBox:
    identity = Identity.open(folder)
    known = PairedBox(identity.id, name, identity.certificate, SECRET, "desk", ("192.0.2.7:7430",), "2026-01-01")
    return dataclasses.replace(known, **fields)


@pytest.fixture
def store(tmp_path: Path) -> PairingStore:
    return PairingStore(tmp_path / "boxes")


@pytest.fixture
def attic(tmp_path: Path) -> PairedBox:
    return paired(tmp_path / "attic")


def test_a_box_is_kept_for_its_owner_alone(store: PairingStore, attic: PairedBox, tmp_path: Path) -> None:
    store.save(attic)
    [file] = (tmp_path / "boxes").iterdir()
    assert file.name == f"{attic.id}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert store.get(attic.id) == store.find("attic") == attic
    assert store.token(attic) == SECRET


def test_neither_token_nor_certificate_is_in_its_repr(attic: PairedBox) -> None:
    assert SECRET not in repr(attic)
    assert "CERTIFICATE" not in repr(attic)


def test_an_id_is_that_of_the_certificate(attic: PairedBox) -> None:
    assert attic.id == box_id(digest_of(attic.certificate)) == box_id(attic.digest)


def test_what_others_could_read_is_put_right_with_a_warning(
    store: PairingStore, attic: PairedBox, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.save(attic)
    file = tmp_path / "boxes" / f"{attic.id}.json"
    file.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert store.get(attic.id) == attic
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "open to others" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"id": 5}', "[" * 100_000, "cut", "other id", "huge"])
def test_a_damaged_file_is_named_with_the_way_out(
    store: PairingStore, attic: PairedBox, tmp_path: Path, damage: str
) -> None:
    store.save(attic)
    file = tmp_path / "boxes" / f"{attic.id}.json"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-40])
    elif damage == "other id":
        file.write_text(json.dumps({**json.loads(file.read_text()), "id": "0" * 16}))
    else:
        file.write_text("x" * 100_000 if damage == "huge" else damage)
    with pytest.raises(DataLoss) as caught:
        store.find("attic")
    assert str(file) in caught.value.message
    assert "edge pair" in caught.value.message
    assert SECRET not in caught.value.message
    store.forget(attic.id)
    assert store.ids() == ()


def test_one_boxs_damage_does_not_hide_another_box(store: PairingStore, attic: PairedBox, tmp_path: Path) -> None:
    store.save(attic)
    (tmp_path / "boxes" / f"{'0' * 16}.json").write_text("{")
    assert store.find("attic") == attic


def test_a_certificate_put_in_anothers_file_is_not_believed(
    store: PairingStore, attic: PairedBox, tmp_path: Path
) -> None:
    other = paired(tmp_path / "other")
    store.save(attic)
    file = tmp_path / "boxes" / f"{attic.id}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "certificate": other.certificate.decode()}))
    with pytest.raises(DataLoss):
        store.get(attic.id)


def test_two_boxes_of_one_name_go_by_their_ids(store: PairingStore, attic: PairedBox, tmp_path: Path) -> None:
    other = paired(tmp_path / "other")
    store.save(attic)
    store.save(other)
    with pytest.raises(InvalidArgument) as caught:
        store.find("attic")
    assert attic.id in caught.value.message and other.id in caught.value.message
    assert store.find(other.id) == other


@pytest.mark.parametrize("name", ["../x", "%2e%2e", "a\0b", "x" * 300, "", "/etc/passwd"])
def test_no_name_leads_out_of_the_folder(store: PairingStore, attic: PairedBox, name: str) -> None:
    store.save(attic)
    assert store.find(name) is None
    with pytest.raises(NotFound):
        store.forget(name)
    assert store.ids() == (attic.id,)


def test_the_address_that_worked_last_is_the_first_to_try(store: PairingStore, attic: PairedBox) -> None:
    store.save(attic)
    for number in range(20):
        store.moved(attic.id, f"192.0.2.{number}:7430")
    store.moved(attic.id, "192.0.2.15:7430")
    kept = store.get(attic.id)
    assert kept is not None
    assert kept.addresses[:3] == ("192.0.2.15:7430", "192.0.2.19:7430", "192.0.2.18:7430")
    assert len(kept.addresses) == 8
    assert kept.token == SECRET


def test_moving_a_box_that_is_not_paired_makes_none(store: PairingStore, attic: PairedBox) -> None:
    store.moved(attic.id, "192.0.2.1:7430")
    assert store.ids() == ()


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_paired(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReadOnly, match="XDG_CONFIG_HOME"):
        PairingStore(tmp_path / "file" / "boxes").prepare()


# --- the keyring


class Keyring(types.ModuleType):
    """A stand-in for the package, which is its own backend too."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__("keyring")
        self.kept: dict[tuple[str, str], str] = {}

    def get_keyring(self) -> Keyring:
        return self

    def set_password(self, service: str, user: str, secret: str) -> None:
        self.kept[service, user] = secret

    def get_password(self, service: str, user: str) -> str | None:
        return self.kept.get((service, user))

    def delete_password(self, service: str, user: str) -> None:
        del self.kept[service, user]


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Keyring:
    keyring = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    return keyring


def test_a_keyring_that_works_has_the_token_instead_of_the_file(
    store: PairingStore, attic: PairedBox, tmp_path: Path, keyring: Keyring
) -> None:
    store.save(attic)
    assert SECRET not in (tmp_path / "boxes" / f"{attic.id}.json").read_text()
    kept = store.find("attic")
    assert kept is not None
    assert store.token(kept) == SECRET
    store.moved(attic.id, "192.0.2.9:7430")
    assert store.token(kept) == SECRET
    store.forget("attic")
    assert keyring.kept == {}


@pytest.mark.parametrize("fault", ["no priority", "refuses", "forgets"])
def test_a_keyring_that_does_not_work_leaves_the_token_to_the_file(
    store: PairingStore, attic: PairedBox, keyring: Keyring, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def refuse(*arguments: Any) -> None:
        raise RuntimeError("locked")

    if fault == "no priority":
        keyring.priority = 0
    elif fault == "refuses":
        monkeypatch.setattr(keyring, "set_password", refuse)
    else:
        monkeypatch.setattr(keyring, "get_password", lambda service, user: None)
    store.save(attic)
    assert store.get(attic.id) == attic


def test_a_keyring_that_stays_silent_holds_nothing_up(
    store: PairingStore, attic: PairedBox, keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault, "_PATIENCE", 0.01)
    monkeypatch.setattr(keyring, "set_password", lambda *arguments: time.sleep(0.2))
    store.save(attic)
    assert store.get(attic.id) == attic


def test_a_keyring_that_lost_the_token_says_what_to_do(store: PairingStore, attic: PairedBox, keyring: Keyring) -> None:
    store.save(attic)
    keyring.kept.clear()
    kept = store.get(attic.id)
    assert kept is not None
    with pytest.raises(FailedPrecondition, match="edge pair"):
        store.token(kept)
