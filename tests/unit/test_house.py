"""House rules that a reader would otherwise have to watch for."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", "build", "dist", "shared", "node_modules", "__pycache__", "LICENSE"}
GENERATED = ROOT / "edge" / "v1"
MOST_LINES = 400

# Catching NotImplementedError is fine: zipfile raises it for a compression it does not know.
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|raise NotImplementedError|PYTEST_CURRENT_TEST)\b")
# A lock file names packages, never a place to get them from: whoever installs has their own registry or mirror.
REGISTRY = re.compile(
    r"\b(pypi\.org|pythonhosted\.org|npmjs\.(org|com)|maven\.org|maven\.apache\.org|proxy\.golang\.org|crates\.io)\b"
    r"|://[\w.-]*(pypi|npmjs|maven|artifactory|nexus)"
)
THIS_MACHINE = re.compile(r"(?<![\w.$}/-])/(work|root|home/\w+)/")


def ours(directory: Path = ROOT) -> Iterator[Path]:
    """Every file that is written by hand or generated into the repository."""
    for path in sorted(directory.iterdir()):
        hidden_cache = path.name.startswith(".") and path.name not in (".ci", ".gitignore")
        if path.name in NOT_OURS or hidden_cache or path.name.endswith(".egg-info") or path.is_symlink():
            continue
        if path.is_dir():
            yield from ours(path)
        else:
            yield path


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


PYTHON = [path for path in ours() if path.suffix == ".py" and GENERATED not in path.parents]
PRODUCT = [path for path in PYTHON if ROOT / "edge" in path.parents]


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_no_file_is_two_rooms_in_one(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MOST_LINES, f"{name(path)} has {lines} lines; divide it"


@pytest.mark.parametrize("path", PRODUCT, ids=name)
def test_nothing_is_left_unfinished(path: Path) -> None:
    found = [f"{number}: {line.strip()}" for number, line in enumerate(path.read_text().splitlines(), 1)
             if UNFINISHED.search(line)]  # fmt: skip
    assert not found


@pytest.mark.parametrize("pattern", [REGISTRY, THIS_MACHINE], ids=["registry", "path of one machine"])
def test_no_file_names_a_place_that_only_some_machines_have(pattern: re.Pattern[str]) -> None:
    found = []
    for path in ours():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{name(path)}: {match.group()}" for match in pattern.finditer(text)]
    assert not found


DIRECTIVE = re.compile(r"#\s*(type:\s*ignore|noqa|pragma:\s*no cover)(\[[\w\-, ]+\]|:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)?")


def explained(comment: str) -> bool:
    """Whether each ignore in a comment names a rule, and words are left that say why."""
    reason = re.sub(r"#\s*fmt:\s*skip|[#\s]", "", DIRECTIVE.sub("", comment))
    return all(match.group(2) for match in DIRECTIVE.finditer(comment)) and len(reason) >= 5


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_every_ignore_names_its_rule_and_its_reason(path: Path) -> None:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    comments = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    wrong = [f"{line}: {text}" for line, text in comments if DIRECTIVE.search(text) and not explained(text)]
    assert not wrong, "say which rule and why, as in `noqa: S603  # our own interpreter`"


@pytest.mark.parametrize(
    ("comment", "right"),
    [
        ("# noqa: S603  # our own interpreter", True),
        ("# type: ignore[arg-type]  # is_dataclass does not narrow", True),
        ("# type: ignore[arg-type]  # noqa: S603  # both, for this reason", True),
        ("# noqa: S603", False),
        ("# noqa", False),
        ("# type: ignore", False),
        ("# type: ignore  # because I say so", False),
        ("# noqa: S603  # fmt: skip", False),
    ],
)
def test_an_ignore_needs_both_rule_and_reason(comment: str, right: bool) -> None:
    assert explained(comment) == right
