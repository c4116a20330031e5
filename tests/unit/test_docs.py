"""What the documents tell a reader to do exists: links, Makefile targets, commands, options, names to import."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(path.read_text()) if language in languages]


def commands(path: Path) -> list[list[str]]:
    """The simple commands of a document's `sh` blocks, as words; pipes, lists and redirections divide them."""
    found = []
    for body in blocks(path, "sh"):
        for line in body.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words: list[str] = []
            for word in [*lexer, ";"]:
                if set(word) <= set("|&;<>()"):
                    found += [words] if words else []
                    words = []
                elif words or not re.fullmatch(r"\w+=.*", word):
                    words.append(word)
    return found


def anchors(path: Path) -> set[str]:
    """What GitHub makes of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ALL_COMMANDS = [(name(path), command) for path in DOCUMENTS for command in commands(path)]
EDGE_COMMANDS = sorted({tuple(command[1:]) for _, command in ALL_COMMANDS if command[0].split("/")[-1] == "edge"})


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_leads_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text())
    broken = []
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file) if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_every_make_target_in_the_documents_is_in_the_makefile() -> None:
    used = {word for _, command in ALL_COMMANDS if command[0] == "make" for word in command[1:] if "=" not in word}
    assert used <= TARGETS
    assert {"demo", "test"} <= used


def test_every_target_of_the_makefile_is_named_by_its_help() -> None:
    recipe = (ROOT / "Makefile").read_text()
    assert TARGETS - {"help"} == set(re.findall(r"@echo 'make ([a-z-]+)", recipe))


@cache
def usage(words: tuple[str, ...]) -> str | None:
    done = subprocess.run(
        [sys.executable, "-m", "edge.cli", *words, "--help"], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


@pytest.mark.parametrize("words", EDGE_COMMANDS, ids=" ".join)
def test_every_edge_command_in_the_documents_is_known(words: tuple[str, ...]) -> None:
    path = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
    help_text = usage(tuple(path)) or usage(tuple(path[:1]))
    assert help_text, f"`edge {' '.join(words)}`: there is no such command"
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert not {option for option in options if not re.search(rf"{option}\b", help_text)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_the_python_in_the_documents_compiles_and_imports_what_exists(path: Path) -> None:
    for body in blocks(path, "python"):
        for node in ast.walk(ast.parse(body)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                assert not [alias.name for alias in node.names if not hasattr(module, alias.name)]
