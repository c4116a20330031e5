"""Sets a working copy up: .venv, the locked dependencies, this package, the default model.

Each stage leaves a stamp that holds what it was made from, and is skipped while that is still so: a second run
touches no network. Runs on the standard library alone, started by scripts/setup with a Python that fits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMPS = VENV / "stamps"
REQUIREMENTS = ROOT / "requirements"
# Present while pip writes into .venv: if it is found at the start, a run was killed there and .venv cannot be trusted.
INSTALLING = STAMPS / "installing"
MODEL = "bge-small-zh-v1.5-q"
PIP_ENVIRONMENT = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PIP_NO_INPUT": "1"}


def main() -> None:
    try:
        with only_one():
            virtual_environment()
            dependencies()
            package()
            model()
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; next: make setup, which goes on from here")


@contextlib.contextmanager
def only_one() -> Iterator[None]:
    """`make demo` and `make test` at the same time: the second waits for the first. The lock dies with its owner."""
    path = ROOT / "build" / "setup.lock"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another set-up is running here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def virtual_environment() -> None:
    # Console scripts hold the absolute path of .venv, so a folder that was moved needs a new one.
    made_from = f"{VENV}\n"
    if current("venv", made_from) and not INSTALLING.exists() and usable():
        return
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if not headers.exists():
        command = brings("python3-dev", "python3-devel", "xcode-select --install")
        stop(f"no {headers} (hnswlib is compiled here)", command)
    try:
        import ensurepip  # noqa: F401  # Debian leaves it out of python3; venv then fails half way
        import venv  # noqa: F401  # only to know that it is there
    except ImportError:
        stop("this Python has no venv module", brings("python3-venv", "python3", "xcode-select --install"))
    if VENV.exists():
        say(".venv is unfinished, moved or of a Python that is gone: making it anew")
        shutil.rmtree(VENV)
    say(f"making .venv with Python {platform.python_version()} ({sys.executable})")
    run([sys.executable, "-m", "venv", str(VENV)])
    stamp("venv", made_from)


def usable() -> bool:
    """Whether the interpreter of .venv still runs and is new enough; it is a link, and its Python may be gone."""
    check = "import sys; sys.exit(sys.version_info < (3, 10))"
    try:
        return subprocess.run([VENV / "bin" / "python", "-c", check], check=False).returncode == 0  # noqa: S603  # our own interpreter
    except OSError:
        return False


def dependencies() -> None:
    lock = (REQUIREMENTS / "dev.txt").read_text()
    build = (REQUIREMENTS / "build.txt").read_text()
    made_from = build + lock
    if current("dependencies", made_from):
        return
    environment = compiler_environment()
    say("installing the locked dependencies (a few minutes the first time)")
    STAMPS.mkdir(exist_ok=True)
    INSTALLING.touch()
    # hnswlib comes as source only. It is built here with locked tools, and never taken from pip's cache of wheels: that
    # one may have been compiled with other flags, or for another machine that shares the home directory.
    pip("install", "--require-hashes", "-r", str(REQUIREMENTS / "build.txt"))
    pinned = STAMPS / "hnswlib.txt"
    pinned.write_text(requirement(lock, "hnswlib"))
    pip("install", "--require-hashes", "--no-deps", "--no-build-isolation", "--no-cache-dir", "--no-binary", "hnswlib",
        "-r", str(pinned), environment=environment)  # fmt: skip
    pip("install", "--require-hashes", "-r", str(REQUIREMENTS / "dev.txt"))
    stamp("dependencies", made_from)
    INSTALLING.unlink()


def package() -> None:
    made_from = (ROOT / "pyproject.toml").read_text()
    if current("package", made_from):
        return
    pip("install", "--no-index", "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    stamp("package", made_from)


def model() -> None:
    where = "from edge.config import models_directory as d; print(d().resolve())"
    models = Path(subprocess.check_output([VENV / "bin" / "python", "-c", where], text=True).strip())  # noqa: S603  # our own interpreter
    manifests = [path.read_text() for path in sorted((ROOT / "models").glob("*.toml"))]
    made_from = "\n".join([str(models), *manifests])
    if current("model", made_from) and (models / MODEL / "model.onnx").is_file():
        return
    say(f"fetching the model {MODEL} into {models}")
    run([VENV / "bin" / "edge", "model", "pull"])
    stamp("model", made_from)


def requirement(lock: str, name: str) -> str:
    """The lines of one package in a lock file: its pin and its hashes."""
    lines = lock.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"{name}=="))
    last = next(number for number in range(first, len(lines)) if not lines[number].endswith("\\"))
    return "\n".join(lines[first : last + 1]) + "\n"


def compiler_environment() -> dict[str, str]:
    """What builds hnswlib so that it is fast here and still runs on a sister machine.

    Its own default is -march=native, which a copied .venv may not survive. With AVX compiled in it decides at run time
    between SSE and AVX; without, it is left with SSE.
    """
    compiler = os.environ.get("CXX") or next(filter(works, ("c++", "g++", "clang++")), "")
    if not compiler:
        stop("no C++ compiler (hnswlib is compiled here)", brings("g++", "gcc-c++", "xcode-select --install"))
    flags = ["-mavx2", "-mfma"] if {"avx2", "fma"} <= cpu_flags() else []
    environment = {"HNSWLIB_NO_NATIVE": "1", "CXX": compiler, "CC": os.environ.get("CC") or compiler}
    for name in ("CFLAGS", "CXXFLAGS"):
        environment[name] = " ".join([os.environ.get(name, ""), *flags]).strip()
    return environment


def works(compiler: str) -> bool:
    # macOS has a /usr/bin/c++ that only asks for the developer tools, so being there is not enough.
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, check=False).returncode == 0  # noqa: S603  # one of three names
    except OSError:
        return False


def cpu_flags() -> set[str]:
    """The x86 features that Linux lists; empty on other systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def brings(debian: str, redhat: str, macos: str) -> str:
    """The command that installs what is missing."""
    if sys.platform == "darwin":
        return macos
    if shutil.which("dnf") and not shutil.which("apt-get"):
        return f"sudo dnf install {redhat}"
    return f"sudo apt-get install {debian}"


def pip(*arguments: str, environment: Mapping[str, str] | None = None) -> None:
    run([VENV / "bin" / "python", "-m", "pip", arguments[0], "--quiet", *arguments[1:]],
        {**PIP_ENVIRONMENT, **(environment or {})})  # fmt: skip


def run(command: list[str | Path], environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}, check=False)  # noqa: S603  # commands of this file
    if done.returncode:
        # pip undoes an installation that fails; only one that was killed leaves .venv in doubt.
        if done.returncode > 0:
            INSTALLING.unlink(missing_ok=True)
        stop(f"`{' '.join(map(str, command))}` failed (see above)", "mend that, then make setup again")


def current(name: str, made_from: str) -> bool:
    path = STAMPS / name
    return path.exists() and path.read_text() == made_from


def stamp(name: str, made_from: str) -> None:
    STAMPS.mkdir(exist_ok=True)
    unfinished = STAMPS / f"{name}.new"
    unfinished.write_text(made_from)
    unfinished.replace(STAMPS / name)


def say(message: str) -> None:
    print(f"setup: {message}", flush=True)


def stop(message: str, command: str) -> None:
    sys.exit(f"setup: {message}; next: {command}")


if __name__ == "__main__":
    main()
