"""The arrows between the rooms of the house, held by reading every import. docs/architecture.md draws them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EDGE = ROOT / "edge"

LEAVES = {"errors", "types", "ports", "config", "futures", "quoting"}
ROOMS = {"admission", "ledger", "embedder", "index", "lexicon", "graph", "understand", "recall", "working", "lan"}

# Who may import what, besides itself. A part is a file or a package right under edge/.
SEES = {
    **dict.fromkeys(LEAVES, LEAVES),
    **dict.fromkeys(ROOMS, LEAVES),
    "clock": LEAVES,
    "ingest": LEAVES,
    "backlog": LEAVES,
    "views": LEAVES | {"ledger", "index", "ingest"},
    "space": LEAVES | {"ledger", "index", "ingest", "backlog", "views"},
    "spaces": LEAVES | {"admission", "ledger", "backlog", "space", "views"},
    "upkeep": LEAVES | ROOMS | {"space", "spaces", "clock"},
    # Of the upkeep how a memory fades, which it tells.
    "service": LEAVES | {"v1", "ingest", "space", "spaces", "recall", "admission", "working", "lan", "upkeep.decay"},
    "appliance": LEAVES | ROOMS | {"clock", "backlog", "spaces", "upkeep", "service", "console"},
    # Of lan what both ends of a pairing compute, what a box's certificate is known by, and where boxes are.
    "client": LEAVES | {"v1", "lan.handshake", "lan.tls", "lan.words", "lan.discover"},
    "gateway": LEAVES | {"client"},
    "collect": LEAVES | {"client"},
    "console": LEAVES | {"client"},
    "cli": LEAVES | {"client"},
}
# Single files that see more than their part: what they need is on this machine, not behind the client.
SEES_MORE = {
    "cli.serve": {"appliance"},
    "cli.rebuild": {"appliance"},
    "cli.verify": {"upkeep"},
    "cli.doctor": {"upkeep"},
    "cli.model": {"embedder"},
    # Hides secrets in what has to wait on this machine.
    "cli.mcp": {"gateway", "admission.redact"},
    "cli.calibration": {"embedder.variants"},
    # The benches measure the parts against the whole.
    "cli.benches.batcher": {"clock", "embedder"},
    "cli.benches.ceiling": {"embedder"},
    "cli.benches.governor": {"embedder"},
    "cli.benches.ingest": {"admission", "index"},
    "cli.benches.quality": {"embedder", "lexicon", "recall"},
    "cli.benches.quality_pool": {"admission", "index", "ledger"},
    "cli.benches.quality_sets": {"admission"},
    "cli.benches.recall": {"index", "ledger", "recall"},
    "cli.benches.rebuild": {"clock", "embedder", "index", "ledger", "lexicon"},
}

FILES = {
    ".".join(path.relative_to(EDGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(EDGE.rglob("*.py"))
    if path.relative_to(EDGE).parts[0] not in ("v1", "__init__.py")
}
PARTS = sorted({name.split(".")[0] for name in FILES})


def absolute(module: str, node: ast.ImportFrom) -> str:
    """The full name of what a `from … import` speaks of, its leading dots resolved."""
    if not node.level:
        return node.module or ""
    package = ["edge", *module.split(".")]
    if FILES[module].name != "__init__.py":
        package.pop()
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def targets(module: str, node: ast.AST) -> Iterator[str]:
    """What of edge one statement or call imports, without the leading `edge.`; nothing for the bare package."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = absolute(module, node)
        for alias in node.names:
            below = f"{base}.{alias.name}"
            is_module = below.removeprefix("edge.") in FILES or below.startswith("edge.v1")
            names.append(below if is_module else base)
    elif isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in ("import_module", "__import__") and node.args:
            # Of f"edge.cli.{name}" the fixed beginning is what can be checked.
            first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                names = [first.value.rstrip(".")]
    yield from (name.removeprefix("edge.") for name in names if name.startswith("edge."))


def imports(module: str) -> set[str]:
    """All of edge that a file imports, wherever in it: at its top, in a function, for types only."""
    tree = ast.parse(FILES[module].read_text())
    return {target for node in ast.walk(tree) for target in targets(module, node)}


def imports_on_load(module: str) -> set[str]:
    """What is imported while the file itself is being imported."""

    def walk(body: list[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                yield from walk(node.orelse)
                continue
            yield from targets(module, node)
            for block in ("body", "orelse", "finalbody"):
                yield from walk(getattr(node, block, []))
            for handler in getattr(node, "handlers", []):
                yield from walk(handler.body)

    return set(walk(ast.parse(FILES[module].read_text()).body))


def covers(allowed: set[str], target: str) -> bool:
    return any(target == name or target.startswith(f"{name}.") for name in allowed)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_has_a_rule(part: str) -> None:
    assert part in SEES, f"edge/{part} is new: say in SEES, at the top of this file, what it may import"


@pytest.mark.parametrize("module", FILES)
def test_a_file_imports_only_what_its_part_may_see(module: str) -> None:
    part = module.split(".")[0]
    allowed = SEES.get(part, set()) | {part} | SEES_MORE.get(module, set())
    wrong = sorted(target for target in imports(module) if not covers(allowed, target))
    assert not wrong, f"edge.{module} may not import {', '.join(wrong)}"


def test_no_room_sees_another_room() -> None:
    assert not [(room, other) for room in ROOMS for other in ROOMS - {room} if other in SEES[room]]


def test_nothing_is_imported_in_a_circle() -> None:
    graph = {module: {t for t in imports_on_load(module) if t in FILES and t != module} for module in FILES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, "a circle: " + " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for target in sorted(graph[module]):
                visit(target, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def sentences() -> dict[str, str]:
    """The table of docs/architecture.md: a part's name and the sentence on its door."""
    rows = re.findall(r"^\| `([\w.]+)/?` \| (.+?) \|$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    return {name.removesuffix(".py"): sentence for name, sentence in rows}


@pytest.mark.parametrize("part", [*PARTS, "v1"])
def test_the_sentence_on_each_door_is_the_one_in_the_architecture(part: str) -> None:
    file = EDGE / part / "__init__.py" if (EDGE / part).is_dir() else EDGE / f"{part}.py"
    assert file.exists(), f"edge/{part} has no __init__.py with the sentence on its door"
    sentence = sentences().get(part)
    assert sentence, f"docs/architecture.md has no row for `{part}`"
    docstring = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split())
    assert docstring.startswith(sentence.rstrip(".")), f"{file.name} says {docstring!r}, the architecture {sentence!r}"


def test_the_architecture_lists_no_part_that_is_not_there() -> None:
    assert sorted(sentences()) == sorted([*PARTS, "v1"])
