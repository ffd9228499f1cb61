"""Who is signed in: sessions in the memory of the web process, each with the token that its calls carry."""

import hmac
import secrets
import time
from dataclasses import dataclass, field

_LASTS_S = 12 * 3600.0
_SESSIONS_MAX = 1000


@dataclass
class Session:
    """One sign-in."""

    token: str | None = field(repr=False)
    """What the server gets; None: nothing, and the one who started the page is meant."""
    csrf: str = field(repr=False)
    identity: str = field(repr=False)
    """The cookie's value."""
    ends: float
    """By time.monotonic()."""


class Sessions:
    """Used by one thread."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}  # The oldest first, as all last as long.

    def start(self, token: str | None) -> Session:
        """Where there are too many, the oldest ends."""
        self.end_old()
        if len(self._sessions) >= _SESSIONS_MAX:
            del self._sessions[next(iter(self._sessions))]
        identity = secrets.token_urlsafe(32)
        session = Session(token, secrets.token_urlsafe(32), identity, time.monotonic() + _LASTS_S)
        self._sessions[identity] = session
        return session

    def find(self, identity: str) -> Session | None:
        """Of a cookie that anybody may have made up: 32 random bytes are not found by trying."""
        session = self._sessions.get(identity)
        return session if session is not None and time.monotonic() < session.ends else None

    def end(self, session: Session) -> None:
        self._sessions.pop(session.identity, None)

    def end_old(self) -> None:
        now = time.monotonic()
        for session in [each for each in self._sessions.values() if each.ends <= now]:
            self.end(session)

    def live(self) -> set[str]:
        """The identities of all that have not ended."""
        self.end_old()
        return set(self._sessions)


def is_same(given: str, expected: str) -> bool:
    """Takes as long for any `given`."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
