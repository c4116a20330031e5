"""The box's side of a pairing: which code is good, how often it may be tried, and what a right one gets."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from edge.errors import Exhausted, FailedPrecondition, PermissionDenied
from edge.lan.grants import client_grants
from edge.lan.handshake import (
    ALPHABET,
    CODE_SYMBOLS,
    ELEMENT_BYTES,
    MAC_BYTES,
    BoxPairing,
    Granted,
    check_length,
)
from edge.lan.interfaces import network_of
from edge.lan.tls import Identity
from edge.lan.tokens import Tokens
from edge.ports import Clock
from edge.types import check_name

_logger = logging.getLogger(__name__)

LIFETIME = 600.0
ATTEMPTS = 5
# Attempts in a minute, from one address and from all: one device alone cannot use a code up at once.
_WINDOW = 60.0
_PER_ADDRESS = 3
_OVERALL = 10


@dataclass(eq=False, slots=True)
class Code:
    """A code and what is left of it; belongs to Codes."""

    symbols: str = field(repr=False)
    # The client that may pair again under the name it has.
    again: str
    until: float
    attempts: int = ATTEMPTS


@dataclass(frozen=True, slots=True)
class Left:
    attempts: int
    seconds: float


class Codes:
    """The one code that is good, if any; safe from any thread.

    A code lives ten minutes of the monotonic clock, so that setting the wall clock changes nothing. An attempt is
    counted when it begins and is never given back, so attempts side by side count, and so do those that are given up.
    The sixth is refused. The first success ends the code, and so does a new one. (SPAKE2 comes in pure Python, whose
    arithmetic takes longer for some numbers than for others: five attempts bound what timing can tell, too.)
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._code: Code | None = None
        self._recent: deque[tuple[float, str]] = deque()

    def show(self, again: str = "") -> str:
        """A new code, as `7K2M-9QXD`, for the owner's eyes; the one before it is over.

        With `again`, the client of that name may pair anew and keep its name and its private space. Without, a name in
        use is refused, so that nobody walks into another's space with a code that was meant for a new client.
        """
        if again:
            check_name(again, "again")
        symbols = "".join(secrets.choice(ALPHABET) for _ in range(CODE_SYMBOLS))
        with self._lock:
            self._code = Code(symbols, again, self._clock.monotonic() + LIFETIME)
        return f"{symbols[:4]}-{symbols[4:]}"

    def end(self) -> None:
        """No code is good any more."""
        with self._lock:
            self._code = None

    def left(self) -> Left | None:
        """What is left of the code; None when no attempt can begin."""
        with self._lock:
            now = self._clock.monotonic()
            code = self._living(now)
            return Left(code.attempts, code.until - now) if code and code.attempts else None

    def begin(self, address: str) -> Code:
        """Counts an attempt. Raises FailedPrecondition when no code is good, Exhausted when there were too many."""
        network = network_of(address)
        with self._lock:
            now = self._clock.monotonic()
            code = self._living(now)
            if code is None or not code.attempts:
                raise FailedPrecondition(
                    "no code is good now (one lives ten minutes and serves once); run `edge pair --show` on the box "
                    "and use the code that it shows",
                    reason="NO_PAIRING_OPEN",
                )
            while self._recent and now - self._recent[0][0] >= _WINDOW:
                self._recent.popleft()
            theirs = [at for at, who in self._recent if who == network]
            if len(self._recent) >= _OVERALL or len(theirs) >= _PER_ADDRESS:
                first = theirs[0] if len(theirs) >= _PER_ADDRESS else self._recent[0][0]
                raise Exhausted(
                    "too many attempts to pair within a minute; wait a minute and try again",
                    reason="PAIRING_TOO_OFTEN",
                    retry_after=first + _WINDOW - now,
                )
            self._recent.append((now, network))
            code.attempts -= 1
            return code

    def redeem(self, code: Code, issue: Callable[[], Granted]) -> Granted:
        """Ends the code in exchange for what `issue` gives; when that raises, the code stays good.

        Raises PermissionDenied when the code has ended since the attempt began: of two right ones, one gets a token.
        """
        with self._lock:
            if self._living(self._clock.monotonic()) is not code:
                raise PermissionDenied(
                    "the code has ended meanwhile; run `edge pair --show` on the box for a new one",
                    field="code",
                    reason="CODE_ENDED",
                )
            granted = issue()
            self._code = None
            return granted

    def _living(self, now: float) -> Code | None:
        if self._code is not None and now >= self._code.until:
            self._code = None
        return self._code


class Attempt:
    """One attempt of one client, from its first message to its token; see edge.lan.handshake for the order.

    `issue(name, again)` makes the token; `again` says that a living one of that name is to be replaced. Each step takes
    some 10 to 30 ms of CPU: keep it off the event loop.
    """

    def __init__(self, codes: Codes, certificate: bytes, address: str, issue: Callable[[str, bool], Granted]) -> None:
        self._codes = codes
        self._certificate = certificate
        self._address = address
        self._issue = issue
        self._name = ""
        self._code: Code | None = None
        self._pairing: BoxPairing | None = None

    def start(self, name: str, element: bytes) -> bytes:
        """The box's element. Raises InvalidArgument for a malformed message, which costs no attempt; what
        Codes.begin raises; PermissionDenied for an element that no client would send.
        """
        if self._code is not None:
            raise FailedPrecondition(
                "pairing: it has begun already; open another stream", reason="PAIRING_OUT_OF_ORDER"
            )
        check_name(name)
        check_length(element, ELEMENT_BYTES, "element")
        self._name = name
        self._code = self._codes.begin(self._address)
        self._pairing = BoxPairing(self._code.symbols, name, self._certificate)
        return self._pairing.start(element)

    def confirm(self, mac: bytes) -> tuple[bytes, bytes]:
        """The box's mac and the sealed grant. Raises PermissionDenied for a wrong mac or a code that has ended, and
        what `issue` raises.
        """
        if self._code is None or self._pairing is None:
            raise FailedPrecondition(
                "pairing: the name and the element come first; begin the pairing anew", reason="PAIRING_OUT_OF_ORDER"
            )
        check_length(mac, MAC_BYTES, "mac")
        try:
            self._pairing.check(mac)
        except PermissionDenied:
            _logger.warning("a pairing from %s failed: wrong code or certificate", self._address[:64])
            raise
        again = self._code.again == self._name
        granted = self._codes.redeem(self._code, lambda: self._issue(self._name, again))
        _logger.info("%s paired from %s", self._name, self._address[:64])
        return self._pairing.grant(granted)


class Pairings:
    """What a box on the LAN has to pair with: its certificate, its codes, and tokens to give."""

    def __init__(
        self,
        identity: Identity,
        tokens: Tokens,
        name: str,
        clock: Clock,
        spaces: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """name: the box's, as clients will list it. spaces: the names of those that there are."""
        self._identity = identity
        self._tokens = tokens
        self._spaces = spaces
        self._name = name
        self._codes = Codes(clock)

    @property
    def fingerprint(self) -> str:
        return self._identity.fingerprint

    @property
    def words(self) -> tuple[str, ...]:
        return self._identity.words

    def show(self, again: str = "") -> tuple[str, float]:
        """A new code and the seconds it lives; see Codes.show."""
        return self._codes.show(again), LIFETIME

    def attempt(self, address: str) -> Attempt:
        """Of a client at this address, without port."""
        return Attempt(self._codes, self._identity.digest, address, self._issue)

    def _issue(self, name: str, again: bool) -> Granted:
        # A private space that is there already is somebody's, and a code is no leave to read it.
        known = any(token.name == name for token in self._tokens.listed()) or f"private/{name}" in self._spaces()
        if not again and known:
            raise FailedPrecondition(
                f"name: {name} is or was another client, or has a private space already; choose another name, or if it "
                f"is the same client, use a code of `edge pair --show --again {name}`",
                field="name",
                reason="NAME_TAKEN",
            )
        _, secret = self._tokens.create(name, client_grants(name), replace=again)
        return Granted(secret, self._identity.id, self._name)
