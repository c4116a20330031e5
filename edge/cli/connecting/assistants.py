"""Which assistants there are, where each keeps its MCP servers, and in which form.

As their makers document it: code.claude.com/docs/en/mcp, modelcontextprotocol.io/docs (Claude Desktop),
developers.openai.com/codex/mcp, opencode.ai/docs/mcp-servers, cursor.com/docs/mcp,
code.visualstudio.com/docs/copilot/reference/mcp-configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edge.errors import InvalidArgument

# What the server is called in every file.
NAME = "edge-memory"
SCOPES = ("user", "project")
Environ = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Assistant:
    """`user` and `project` say where the file is; `keys` lead to the object of servers in it. `restart`: what makes it
    read the file.
    """

    name: str
    keys: tuple[str, ...]
    user: Callable[[Environ], Path]
    project: str
    entry: Callable[[Sequence[str]], dict[str, Any]]
    restart: str

    def path(self, scope: str, environ: Environ) -> Path:
        """Raises InvalidArgument (field "scope") for a scope that it does not have."""
        if scope == "user":
            return self.user(environ)
        if not self.project:
            raise InvalidArgument(
                f"scope: {self.name} has no configuration of a project; use --scope user", field="scope"
            )
        return Path.cwd() / self.project

    @property
    def toml(self) -> bool:
        return self.keys == ("mcp_servers",)


def _home(environ: Environ) -> Path:
    return Path(environ["HOME"]) if environ.get("HOME") else Path.home()


def _config(environ: Environ) -> Path:
    """Where desktop programs keep what their user configured."""
    if sys.platform == "darwin":
        return _home(environ) / "Library" / "Application Support"
    return _xdg(environ)


def _xdg(environ: Environ) -> Path:
    given = Path(environ.get("XDG_CONFIG_HOME", ""))
    return given if given.is_absolute() else _home(environ) / ".config"


def _claude_code(environ: Environ) -> Path:
    return Path(environ["CLAUDE_CONFIG_DIR"] if environ.get("CLAUDE_CONFIG_DIR") else _home(environ)) / ".claude.json"


def _codex(environ: Environ) -> Path:
    folder = Path(environ["CODEX_HOME"]) if environ.get("CODEX_HOME") else _home(environ) / ".codex"
    return folder / "config.toml"


def _opencode(environ: Environ) -> Path:
    folder = _xdg(environ) / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def _command(words: Sequence[str]) -> dict[str, Any]:
    return {"command": words[0], "args": list(words[1:])}


def _stdio(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **_command(words)}


def _local(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(words), "enabled": True}


_ALL = (
    Assistant("claude-code", ("mcpServers",), _claude_code, ".mcp.json", _stdio, "start a new session of it"),
    Assistant(
        "claude-desktop",
        ("mcpServers",),
        lambda environ: _config(environ) / "Claude" / "claude_desktop_config.json",
        "",
        _command,
        "quit it and start it again",
    ),
    Assistant("codex", ("mcp_servers",), _codex, ".codex/config.toml", _command, "start a new session of it"),
    Assistant("opencode", ("mcp",), _opencode, "opencode.json", _local, "start a new session of it"),
    Assistant(
        "cursor",
        ("mcpServers",),
        lambda environ: _home(environ) / ".cursor" / "mcp.json",
        ".cursor/mcp.json",
        _stdio,
        "start it again, and switch the server on under MCP in its settings",
    ),
    Assistant(
        "vscode",
        ("servers",),
        lambda environ: _config(environ) / "Code" / "User" / "mcp.json",
        ".vscode/mcp.json",
        _stdio,
        "run “MCP: List Servers” in it and start the server",
    ),
)
ASSISTANTS = {assistant.name: assistant for assistant in _ALL}
