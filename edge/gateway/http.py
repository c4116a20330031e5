"""MCP over streamable HTTP: on loopback, or with TLS and a token of the box for every request.

A page of another site that a browser shows may reach loopback too, by a name that it makes point there (DNS rebinding).
So every request's Host and Origin must be ours, and no header ever lets a page of another origin read an answer.
"""

from __future__ import annotations

import ipaddress
import signal
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from edge import __version__
from edge.errors import EdgeError, FailedPrecondition, InvalidArgument
from edge.gateway.identity import Identity, Where
from edge.gateway.process import log_to_stderr
from edge.gateway.server import Context, build
from edge.gateway.stdio import LINE_BYTES

PATH = "/mcp"
_BEARER = "bearer "
# Tokens that are known at once, and seconds for which the box's word on one is believed.
_IDENTITIES, _BELIEVED = 64, 10.0
_LET_IN = (0, "")
# Where a request that was let in carries whom it comes from.
_IDENTITY = "edge.identity"


def run(
    where: Where,
    listen: str,
    names: Sequence[str],
    certificate: Path | None,
    key: Path | None,
    say: Callable[[str], None],
) -> int:
    """Serves until SIGTERM or Ctrl-C. Raises InvalidArgument, FailedPrecondition for an address that is taken or not
    to be served without TLS.
    """
    log_to_stderr()
    host, port = _parts(listen)
    if (certificate is None) != (key is None):
        raise InvalidArgument("tls-cert: give --tls-cert and --tls-key, both", field="tls-cert")
    open_to_others = not _is_loopback(host)
    if open_to_others and certificate is None:
        raise InvalidArgument(
            f"http: {listen} is reached by other machines, and what is remembered must not travel there in the clear; "
            "give --tls-cert and --tls-key (the box's own are certificate.pem and key.pem in its identity folder), or "
            "serve 127.0.0.1",
            field="http",
        )
    listening = _listening(host, port)
    shown = listening.getsockname()
    door = Identities(where, needs_token=open_to_others)
    app = _app(door, names)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        lifespan="on",
        timeout_graceful_shutdown=5,
        ws="none",
    )
    try:
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise InvalidArgument(f"tls-cert: cannot be used ({error}); give PEM files that belong together") from None
    scheme = "https" if certificate else "http"
    place = f"[{shown[0]}]" if ":" in shown[0] else shown[0]
    say(f"ready {scheme}://{place}:{shown[1]}{PATH}")
    for number in (signal.SIGTERM, signal.SIGINT):
        # Once it has stopped, uvicorn raises what stopped it again, for whoever was there before.
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listening])
    return 0


class Identities:
    """The gateway's own for a request without a token, where that is allowed; else that of its token.

    With a token the box is never asked over a socket that trusts whoever holds it: see `admit`.
    """

    def __init__(self, where: Where, *, needs_token: bool) -> None:
        self._where = where
        self.needs_token = needs_token
        self._own: Identity | None = None
        self._known: OrderedDict[str, tuple[Identity, float]] = OrderedDict()

    async def admit(self, token: str) -> tuple[int, str]:
        """The status with which this token is not let in, and why; 0 when it is."""
        if not token:
            return (401, "a token of the box is needed: Authorization: Bearer TOKEN") if self.needs_token else _LET_IN
        known = token in self._known
        identity, asked = self._known[token] if known else (self._where.identity(token), 0.0)
        if known and time.monotonic() - asked < _BELIEVED:
            self._known.move_to_end(token)
            return _LET_IN
        status, why = await self._doubt(identity, known)
        if status:
            self._known.pop(token, None)
            await identity.close()
            return status, why
        if not known:
            if token in self._known:
                # Another request came with it meanwhile.
                await identity.close()
                return _LET_IN
            identity.writer.start()
        self._known[token] = identity, time.monotonic()
        while len(self._known) > _IDENTITIES:
            _, (oldest, _) = self._known.popitem(last=False)
            await oldest.close()
        return _LET_IN

    async def _doubt(self, identity: Identity, known: bool) -> tuple[int, str]:
        """What speaks against a token."""
        try:
            rights = await identity.box.rights()
        except EdgeError as error:
            if error.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                return 401, error.message
            # A box that is away does not make a token wrong that it knew; the tools tell that it is away.
            return _LET_IN if known else (503, error.message)
        if rights.caller == "owner":
            return 401, (
                "the box asks for no token where the gateway reaches it, so it cannot tell whose this is; start the "
                "gateway with --address HOST:PORT of a box without --no-auth"
            )
        return _LET_IN

    def of(self, token: str) -> Identity:
        """Of a token that was admitted; empty for none."""
        if token:
            return self._known[token][0]
        if self._own is None:
            self._own = self._where.identity()
            self._own.writer.start()
        return self._own

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            for identity in [*([self._own] if self._own else []), *(one for one, _ in self._known.values())]:
                await identity.close()


class Guard:
    """Turns away a request whose Host or Origin is not ours, or whose token is not the box's."""

    def __init__(self, app: ASGIApp, door: Identities, names: Sequence[str]) -> None:
        self._app = app
        self._door = door
        self._names = frozenset(name.lower().rstrip(".") for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            status, why = await self._refused(request)
            if status:
                headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
                await JSONResponse({"error": why}, status, headers)(scope, receive, send)
                return
            scope[_IDENTITY] = self._door.of(token_of(request))
        await self._app(scope, receive, send)

    async def _refused(self, request: Request) -> tuple[int, str]:
        here = (request.scope.get("server") or ("", 0))[0]
        if len(request.headers.getlist("host")) != 1 or not self._is_ours("//" + request.headers["host"], here):
            return 421, "Host: is no name of this gateway; add it with --allow-host if it should be"
        for origin in request.headers.getlist("origin"):
            if not self._is_ours(origin, here):
                return 403, "Origin: pages of other sites may not ask"
        return await self._door.admit(token_of(request))

    def _is_ours(self, url: str, here: str) -> bool:
        """Whether the host of a URL is the address that the connection came in by, or a name that was allowed."""
        try:
            host = (urlsplit(url).hostname or "").rstrip(".")
        except ValueError:
            return False
        if host in self._names:
            return True
        if host == "localhost":
            return _is_loopback(here)
        return _address(host) is not None and _address(host) == _address(here)


def token_of(request: Request) -> str:
    given = request.headers.get("authorization", "")
    return given[len(_BEARER) :].strip() if given.lower().startswith(_BEARER) else ""


def _app(door: Identities, names: Sequence[str]) -> Guard:
    def whose(ctx: Context) -> Identity:
        # That of this very request, whoever began the session.
        request: Any = ctx.request
        identity: Identity = request.scope[_IDENTITY]
        return identity

    server = build(whose, __version__, door.living)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=LINE_BYTES,
        # The guard looks at every request, before any of it is read.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    known = (
        {socket.gethostname(), f"{socket.gethostname().partition('.')[0]}.local", *names} if door.needs_token else names
    )
    return Guard(app, door, [*known])


def _parts(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else -1
    if not colon or not host or not 0 <= number <= 65535:
        raise InvalidArgument("http: use HOST:PORT, as in 127.0.0.1:7431", field="http")
    return host, number


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """None for a name. A socket of both families has IPv4 addresses as ::ffff:192.0.2.1 (RFC 4291, 2.5.5.2)."""
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        raise FailedPrecondition(
            f"http: {host}:{port} cannot be served ({error.strerror}); choose another with --http HOST:PORT",
            field="http",
        ) from None
    return listening
