"""One command a file, over the client (serve alone builds the appliance)."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from edge import __version__
from edge.errors import (
    EdgeError,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)

# Where each command is, and its line in the help: nothing of it is imported before it is asked for.
_COMMANDS = {
    "serve": ("serve", "Run a box in the foreground."),
    "ingest": ("ingest", "Stream turns in from files of JSON lines."),
    "remember": ("remember", "Keep one sentence."),
    "recall": ("recall", "Ask what is remembered."),
    "get": ("get", "Show one memory."),
    "ls": ("ls", "List memories, newest first."),
    "state": ("state", "Keep the state of a task, so that an agent resumes."),
    "forget": ("forget", "Erase memories for good."),
    "candidates": ("candidates", "Confirm or reject what was proposed."),
    "archive": ("archive", "Put memories away, or bring them back."),
    "undo": ("undo", "Take back what was done."),
    "status": ("status", "How the box is."),
    "space": ("space", "List, make and delete spaces."),
    "token": ("token", "Give and revoke the tokens of clients."),
    "discover": ("discover", "List the boxes on this network."),
    "pair": ("pair", "Trust a box, and be trusted by it, by a one-time code."),
    "connect": ("connect", "Give an assistant the memory: write its configuration."),
    "mcp": ("mcp", "Serve the memory to an assistant as MCP tools."),
    "doctor": ("doctor", "Check what the box needs on this machine."),
    "model": ("model", "List, fetch and calibrate embedding models."),
    "demo": ("demo.command", "Store and recall a conversation of 84 days."),
    "verify": ("verify", "Check the data directory against its checksums."),
    "rebuild": ("rebuild", "Make the index, or everything, anew from the log."),
    "bench": ("bench", "Measure the box, each figure beside its ceiling."),
}

_DONE, _FAILED, _USAGE, _UNREACHABLE, _NOT_ALLOWED, _NOT_FOUND = range(6)
_INTERRUPTED = 130


class LazyGroup(click.Group):
    """Imports a command's file when the command is called, so that `edge --help` loads none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click's
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"edge.cli.{_COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click's
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(cls=LazyGroup, invoke_without_command=True)
@click.version_option(__version__, message="edge %(version)s")
@click.pass_context
def edge(ctx: click.Context) -> int:
    """A memory box for the home: keeps what was said, and gives it back when asked.

    Where the box is: EDGE_ADDRESS (host:port, unix:path or a paired box's name), else the socket in EDGE_DATA, else
    127.0.0.1:7430, else the box that is paired; EDGE_TOKEN for addresses that need one and are not paired.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return _USAGE
    return _DONE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; the exit status: 0 done, 1 failed, 2 wrong usage, 3 no box, 4 not allowed, 5 not found."""
    # gRPC's own lines on stderr say in C++ what ours say in a sentence. Read when it is imported, so not later.
    os.environ.setdefault("GRPC_VERBOSITY", "DEBUG" if os.environ.get("EDGE_DEBUG") == "1" else "NONE")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = edge.main(list(arguments) if arguments is not None else None, "edge", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has left, as in `edge ls | head`; nothing may be flushed there at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except click.exceptions.Abort:
        return _complain("stopped; nothing more was done", _INTERRUPTED)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "edge"
        # Click lists choices over several lines.
        words = " ".join(error.format_message().split())
        return _complain(f"{words.rstrip('.')}; see `{path} --help`", _USAGE)
    except click.ClickException as error:
        return _complain(error.format_message(), error.exit_code)
    except EdgeError as error:
        return _complain(error.message, _status_of(error))
    except Exception as error:  # noqa: BLE001  # the door of the program: whatever it is, it ends as one sentence
        return _complain(f"{type(error).__name__}: {error}; run it again with EDGE_DEBUG=1 to see where", _FAILED)
    return status if isinstance(status, int) else _DONE


def _complain(message: str, status: int) -> int:
    from edge.cli.show import one_line

    if os.environ.get("EDGE_DEBUG") == "1":
        traceback.print_exc()
    click.echo(f"edge: {one_line(message)}", err=True)
    return status


def _status_of(error: EdgeError) -> int:
    if isinstance(error, InvalidArgument):
        return _USAGE
    if isinstance(error, Unavailable):
        return _UNREACHABLE
    if isinstance(error, (Unauthenticated, PermissionDenied)):
        return _NOT_ALLOWED
    return _NOT_FOUND if isinstance(error, NotFound) else _FAILED
