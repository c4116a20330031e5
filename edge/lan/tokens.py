"""Which clients the box knows: tokens, stored as hashes, checked from memory."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from edge.errors import EdgeError, FailedPrecondition, NotFound
from edge.lan.grants import check_grants
from edge.lan.store import Token, TokenStore
from edge.ports import Clock
from edge.types import Caller, Grant, Micros, check_name

_logger = logging.getLogger(__name__)

# 256 random bits in URL-safe base64; the prefix lets scanners for leaked secrets know one.
_PREFIX = "edge_"
_SECRET = re.compile(r"edge_[A-Za-z0-9_-]{43}")


@dataclass(slots=True)
class _Living:
    """A token that is good."""

    caller: Caller
    key: bytes
    used_at: Micros
    written_at: Micros


class Tokens:
    """The tokens of a box, kept in the file at `path`; safe from any thread.

    A secret is random, so its SHA-256 is as good as a slow hash, and looking that up tells a timing attacker about
    hashes alone. The file is written when a token is made or revoked, and by flush(), which keeps the last uses.
    Raises what TokenStore raises when the file cannot be opened.
    """

    def __init__(self, path: Path, clock: Clock, *, read_only: bool = False) -> None:
        self._clock = clock
        self._read_only = read_only
        # Of the file, and of which tokens there are. authenticate() never takes it, so no call waits for the disk.
        self._lock = threading.Lock()
        # Of the watchers, and of who is living as they see it; never held while the disk is waited for.
        self._ending = threading.Lock()
        self._watchers: dict[str, list[Callable[[], None]]] = {}
        self._tokens: dict[str, Token] = {}
        self._by_id: dict[str, _Living] = {}
        self._by_key: dict[bytes, _Living] = {}
        self._store = TokenStore(path, read_only=read_only)
        try:
            for token, key in self._store.load():
                self._tokens[token.id] = token
                if key is not None and not token.revoked_at:
                    self._live(token, key)
        except BaseException:
            self._store.close()
            raise

    def authenticate(self, secret: str) -> Caller | None:
        """Whose secret it is; None for nobody's. Reads memory only."""
        living = self._by_key.get(_hash(secret)) if _SECRET.fullmatch(secret) else None
        if living is None:
            return None
        living.used_at = self._now()
        return living.caller

    def create(self, name: str, grants: Iterable[Grant], *, replace: bool = False) -> tuple[Token, str]:
        """A new token and its secret, which is nowhere afterwards.

        A name is one client's, for its private space goes by it. One that is in use is refused, or with `replace` its
        old token is revoked. A revoked token's name is free: who takes it takes over its private space.
        Raises InvalidArgument, FailedPrecondition (NAME_TAKEN), and what TokenStore raises.
        """
        check_name(name)
        granted = check_grants(grants)
        secret = _PREFIX + secrets.token_urlsafe(32)
        # A capital letter: no name can be taken for an id.
        token = Token(f"T-{secrets.token_hex(8)}", name, granted, self._now())
        with self._lock:
            old = self._named(name)
            if old is not None and not replace:
                raise FailedPrecondition(
                    f"name: a client named {name} has a token already; choose another name, or if it is the same "
                    f"client, use a code of `edge pair --show --again {name}`, or `edge token revoke {name}` first",
                    field="name",
                    reason="NAME_TAKEN",
                )
            self._store.add(token, _hash(secret), old.id if old else "")
            if old is not None:
                self._tokens[old.id] = dataclasses.replace(self._seen(old), revoked_at=token.created_at)
            self._tokens[token.id] = token
            self._live(token, _hash(secret))
            ended = self._end(old.id) if old else []
        _tell(ended)
        return token, secret

    def revoke(self, id_or_name: str) -> Token:
        """No call gets in with it from now on, and whoever watches it is told; of a revoked one it changes nothing.

        Raises NotFound. When the disk refuses, it raises what TokenStore raises: the token is good again after a
        restart, unless it is revoked once more.
        """
        with self._lock:
            token = self._tokens.get(id_or_name) or self._named(id_or_name)
            if token is None:
                raise NotFound("id: no token that is good has this id or name; `edge token list` shows all", field="id")
            if token.revoked_at:
                return token
            token = dataclasses.replace(self._seen(token), revoked_at=self._now())
            # Before the disk is asked: a full one must not keep a stolen token good.
            _tell(self._end(token.id))
            self._store.revoke(token.id, token.revoked_at)
            self._tokens[token.id] = token
            return token

    def listed(self) -> tuple[Token, ...]:
        """All, the revoked too, the oldest first."""
        with self._lock:
            return tuple(map(self._seen, self._tokens.values()))

    def on_revoked(self, caller: Caller, ended: Callable[[], None]) -> Callable[[], None]:
        """Calls `ended` once when the caller's token is revoked, at once if it is already; returns how to stop that.

        It is called on the revoking thread, and should only pass the word on.
        """
        if not caller.token:
            return lambda: None
        with self._ending:
            good = caller.token in self._by_id
            if good:
                self._watchers.setdefault(caller.token, []).append(ended)
        if not good:
            ended()

        def stop() -> None:
            with self._ending, contextlib.suppress(KeyError, ValueError):
                self._watchers[caller.token].remove(ended)

        return stop

    def flush(self) -> None:
        """Writes the last uses. Raises what TokenStore raises; they stay for the next time."""
        if self._read_only:
            return
        with self._lock:
            used = [(one, one.used_at) for one in self._by_id.values() if one.used_at != one.written_at]
            if used:
                self._store.used((one.caller.token, at) for one, at in used)
            for one, at in used:
                one.written_at = at

    def close(self) -> None:
        """Writes the last uses if it can; afterwards nothing can be made or revoked."""
        try:
            self.flush()
        except EdgeError as error:
            _logger.warning("the last uses of tokens were not written: %s", error.message)
        with self._lock:
            self._store.close()

    def _now(self) -> Micros:
        """Never 0, which means never: a device may start in 1970."""
        return max(1, self._clock.now())

    def _named(self, name: str) -> Token | None:
        return next((token for token in self._tokens.values() if token.name == name and not token.revoked_at), None)

    def _seen(self, token: Token) -> Token:
        """The token with its last use, which memory knows first."""
        living = self._by_id.get(token.id)
        return dataclasses.replace(token, last_used_at=living.used_at) if living else token

    def _live(self, token: Token, key: bytes) -> None:
        living = _Living(Caller(token.name, token.grants, token=token.id), key, token.last_used_at, token.last_used_at)
        self._by_id[token.id] = self._by_key[key] = living

    def _end(self, token_id: str) -> list[Callable[[], None]]:
        """Turns the token away from now on; whom to tell."""
        with self._ending:
            living = self._by_id.pop(token_id, None)
            if living is not None:
                self._by_key.pop(living.key)
            return self._watchers.pop(token_id, [])


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("ascii")).digest()


def _tell(ended: Iterable[Callable[[], None]]) -> None:
    for one in ended:
        _tell_one(one)


def _tell_one(ended: Callable[[], None]) -> None:
    try:
        ended()
    except Exception as error:  # noqa: BLE001  # one watcher's fault must not keep another's stream open
        _logger.error("a watcher of a revoked token failed: %s", type(error).__name__)
