"""The signed-in users: sessions in the memory of the web process, each with the token that its
calls carry."""

import hmac
import math
import secrets
import time
from dataclasses import dataclass, field

_LASTS_S = 12 * 3600.0
_SESSIONS_MAX = 1000


@dataclass(frozen=True)
class Grant:
    """The tokens that an issuer gave for one login."""

    token: str = field(repr=False)
    refresh: str | None = field(repr=False)
    """None: there is nothing to renew it by."""
    subject: str
    ends: float
    """When the token expires, by time.monotonic()."""
    renews: float
    """When half of its time is over."""


@dataclass
class Session:
    """One sign-in."""

    token: str | None = field(repr=False)
    """The token for the server; None: calls carry none, and act for the user who started the
    page."""
    reads: str | None = field(repr=False)
    """The same for processes that read HDF5 and change nothing: it may have fewer rights."""
    csrf: str = field(repr=False)
    identity: str = field(repr=False)
    """The cookie's value."""
    ends: float
    """By time.monotonic()."""
    grant: Grant | None = field(default=None, repr=False)
    """None: no issuer gave the token."""
    user: str = ""
    """By the name that the reverse proxy gives to each request of this session; "": no proxy names users."""

    def is_live(self, now: float) -> bool:
        return now < min(self.ends, math.inf if self.grant is None else self.grant.ends)

    def take(self, grant: Grant) -> None:
        """The same login's next token."""
        self.grant, self.token, self.reads = grant, grant.token, grant.token


class Sessions:
    """Used by one thread."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}  # The oldest first, as all last as long.

    def start(self, token: str | None, reads: str | None, grant: Grant | None = None, user: str = "") -> Session:
        """Where there are too many, the oldest ends."""
        self.end_old()
        if len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        identity = secrets.token_urlsafe(32)
        session = Session(token, reads, secrets.token_urlsafe(32), identity, time.monotonic() + _LASTS_S,
                          grant, user)
        self._sessions[identity] = session
        return session

    def find(self, identity: str) -> Session | None:
        """Of a cookie that anybody may have made up: 32 random bytes are not found by trying."""
        session = self._sessions.get(identity)
        return session if session is not None and session.is_live(time.monotonic()) else None

    def of_user(self, user: str) -> Session | None:
        """The session of a user that the proxy names. Such a user has at most one."""
        now = time.monotonic()
        return next((each for each in self._sessions.values() if each.user == user and each.is_live(now)), None)

    def end(self, session: Session) -> None:
        self._sessions.pop(session.identity, None)

    def end_old(self) -> None:
        now = time.monotonic()
        for session in [each for each in self._sessions.values() if not each.is_live(now)]:
            self.end(session)

    def to_renew(self) -> list[Session]:
        """Those whose token has lived for half of its time, and can be renewed."""
        now = time.monotonic()
        return [each for each in self._sessions.values()
                if each.grant is not None and each.grant.refresh is not None and each.grant.renews <= now and each.is_live(now)]

    def live(self) -> set[str]:
        """The identities of all that have not ended."""
        self.end_old()
        return set(self._sessions)


def is_same(given: str, expected: str) -> bool:
    """Takes as long for any `given`."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
