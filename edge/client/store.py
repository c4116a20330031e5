"""The boxes that this machine has paired with: a file each, for their owner alone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from edge.client import vault
from edge.client.certificate import digest_of
from edge.errors import DataLoss, FailedPrecondition, InvalidArgument, NotFound, ReadOnly

_logger = logging.getLogger(__name__)

_ID = re.compile(r"[0-9a-f]{16}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{0,256}")
# A file of ours has some 2 KB.
_FILE_BYTES = 64 * 1024
MOST_ADDRESSES = 8


@dataclass(frozen=True, slots=True)
class PairedBox:
    """A box that is trusted by its certificate. `addresses`: host:port, the last that worked first."""

    id: str
    name: str
    # PEM.
    certificate: bytes = field(repr=False)
    # Empty when the keyring has it; PairingStore.token knows.
    token: str = field(repr=False)
    # This machine's name, as the box knows it.
    client: str
    addresses: tuple[str, ...]
    # RFC 3339.
    paired_at: str

    @property
    def digest(self) -> bytes:
        """SHA-256 of the certificate's DER."""
        return digest_of(self.certificate)


def box_id(digest: bytes) -> str:
    """What a box is called by: of its certificate, never of what it says, so that none takes another's place."""
    return digest.hex()[:16]


class PairingStore:
    """`boxes/<id>.json` in the user's configuration directory ($XDG_CONFIG_HOME/edge-memory on Linux).

    Reading raises DataLoss for a damaged file, FailedPrecondition for one that cannot be read; writing ReadOnly. Each
    names the file and the way out.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or Path(platformdirs.user_config_dir("edge-memory", appauthor=False)) / "boxes"

    def ids(self) -> tuple[str, ...]:
        """Of all boxes, without reading their files."""
        try:
            names = [path.name for path in self._directory.iterdir()]
        except OSError:
            return ()
        return tuple(sorted(name[:-5] for name in names if name.endswith(".json") and _ID.fullmatch(name[:-5])))

    def boxes(self) -> list[PairedBox]:
        """All of them, by name."""
        return sorted((box for one in self.ids() if (box := self.get(one))), key=lambda box: (box.name, box.id))

    def get(self, id_: str) -> PairedBox | None:
        """The box of an id."""
        return self._read(self._path(id_)) if _ID.fullmatch(id_) else None

    def find(self, name_or_id: str) -> PairedBox | None:
        """The box of an id or a name. Raises InvalidArgument (field "address") when several have the name."""
        if (box := self.get(name_or_id)) is not None:
            return box
        named, damage = [], None
        for one in self.ids():
            found, error = self._attempt(one)
            # Another box's damage is only of interest when no good one has the name.
            damage = damage or error
            named += [found] if found is not None and found.name == name_or_id else []
        if len(named) > 1:
            raise InvalidArgument(
                f"address: {len(named)} paired boxes have this name; give an id, or forget one that is no more by "
                f"`edge pair --forget ID`: {', '.join(box.id for box in named)}",
                field="address",
            )
        if not named and damage is not None:
            raise damage
        return named[0] if named else None

    def _attempt(self, id_: str) -> tuple[PairedBox | None, DataLoss | None]:
        try:
            return self.get(id_), None
        except DataLoss as error:
            return None, error

    def token(self, box: PairedBox) -> str:
        """Its token, from wherever it is kept. Raises FailedPrecondition when the keyring does not give it."""
        token = box.token or vault.fetch(box.id)
        if not token or not _TOKEN.fullmatch(token):
            raise FailedPrecondition(
                f"the keyring does not give the token of {box.name}; unlock it, or set EDGE_TOKEN, or pair again: "
                "edge pair",
                reason="KEYRING_SILENT",
            )
        return token

    def prepare(self) -> None:
        """Makes the folder, so that a pairing does not end with a token that cannot be kept. Raises ReadOnly."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_private(self._directory, self._directory.stat().st_mode, 0o700)
            if not os.access(self._directory, os.W_OK | os.X_OK):
                raise PermissionError(13, "no right to write there")
        except OSError as error:
            raise self._unwritable(error) from None

    def save(self, box: PairedBox) -> None:
        """In place of what was known of it; the token goes to the keyring if that takes it."""
        self.prepare()
        if box.token and vault.keep(box.id, box.token):
            box = dataclasses.replace(box, token="")
        self._write(box)

    def moved(self, id_: str, address: str) -> None:
        """The address worked: it is the first to try from now on."""
        box = self.get(id_)
        if box is not None and box.addresses[:1] != (address,):
            others = [one for one in box.addresses if one != address]
            self._write(dataclasses.replace(box, addresses=(address, *others)[:MOST_ADDRESSES]))

    def forget(self, name_or_id: str) -> None:
        """Certificate and token are gone from this machine; the box still knows the token. Raises NotFound.

        A damaged file is removed by its id.
        """
        id_ = name_or_id
        if not _ID.fullmatch(name_or_id) or name_or_id not in self.ids():
            box = self.find(name_or_id)
            if box is None:
                raise NotFound("no paired box has this name or id; `edge discover` shows which are paired")
            id_ = box.id
        vault.drop(id_)
        try:
            self._path(id_).unlink(missing_ok=True)
        except OSError as error:
            raise self._unwritable(error) from None

    def _path(self, id_: str) -> Path:
        return self._directory / f"{id_}.json"

    def _read(self, path: Path) -> PairedBox | None:
        try:
            with path.open("rb") as file:
                self._make_private(path, os.fstat(file.fileno()).st_mode, 0o600)
                raw = file.read(_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FailedPrecondition(
                f"{path} cannot be read ({error.strerror}); give it back to the user who paired",
                reason="PAIRING_UNREADABLE",
            ) from None
        box = _unpack(raw)
        if box is None or box.id != path.stem:
            raise DataLoss(f"{path} is damaged; remove it and pair with the box again: edge pair")
        return box

    def _write(self, box: PairedBox) -> None:
        staged = ""
        try:
            # Made for its owner alone (mkstemp), and put in place whole.
            descriptor, staged = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=self._directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_pack(box))
                file.flush()
                os.fsync(file.fileno())
            os.replace(staged, self._path(box.id))  # noqa: PTH105  # the staged file is a string as mkstemp gives it
        except OSError as error:
            if staged:
                with contextlib.suppress(OSError):
                    os.unlink(staged)  # noqa: PTH108  # as above
            raise self._unwritable(error) from None

    def _make_private(self, path: Path, mode: int, wanted: int) -> None:
        if not mode & 0o077:
            return
        try:
            path.chmod(wanted)
            _logger.warning("%s was open to others (mode %o); it is its owner's alone now", path, mode & 0o777)
        except OSError as error:
            _logger.warning("%s is open to others (%s); set its mode to %o", path, error.strerror, wanted)

    def _unwritable(self, error: OSError) -> ReadOnly:
        return ReadOnly(
            f"{self._directory} cannot be written ({error.strerror}); make it writable, or choose another folder with "
            "XDG_CONFIG_HOME"
        )


def _pack(box: PairedBox) -> bytes:
    said = {
        "id": box.id,
        "name": box.name,
        "certificate": box.certificate.decode("ascii"),
        "token": box.token,
        "client": box.client,
        "addresses": list(box.addresses),
        "paired_at": box.paired_at,
    }
    return json.dumps(said, ensure_ascii=False, indent=2).encode() + b"\n"


def _unpack(raw: bytes) -> PairedBox | None:
    """None for what is not one of our files, or was altered: the id is that of the certificate."""
    try:
        said: Any = json.loads(raw)
        texts = [said[key] for key in ("id", "name", "certificate", "token", "client", "paired_at")]
        addresses: Sequence[Any] = said["addresses"]
        if not all(isinstance(text, str) for text in (*texts, *addresses)) or not isinstance(addresses, list):
            return None
        id_, name, certificate, token, client, paired_at = texts
        box = PairedBox(id_, name, certificate.encode("ascii"), token, client, tuple(addresses), paired_at)
        return box if box_id(box.digest) == id_ and _TOKEN.fullmatch(token) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
