"""Logins at the site's issuer: OpenID Connect's authorization code flow, with PKCE (RFC 7636), a state and a nonce.

The browser gets the issuer's URL, and brings a code and the state back. The secrets that turn a
code into tokens, and the tokens, stay in the web process.
"""

import base64
import hashlib
import json
import math
import secrets
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import aiohttp
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ._sessions import Grant, is_same
from ._settings import Issuer, is_safe_url, is_token

_LOGIN_S = 600.0
_LOGINS_MAX = 10_000
_KNOWN_S = 3600.0
_KEYS_AGAIN_S = 30.0
_CALL_S = 10.0
_ANSWER_MAX = 256 << 10
_WORDS_MAX = 300
_CLOCKS_DIFFER_S = 60
# Neither alg "none" nor algorithms with a shared secret.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_KEY_TYPES = ("RSA", "EC", "OKP")


class LoginRefused(Exception):
    """Says why in words."""


class IssuerAway(Exception):
    """It does not answer, or not as an issuer does."""


@dataclass(frozen=True)
class _Login:
    """A login that has begun, and whose browser has not come back yet."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect: str
    to: str
    """The page that the visitor wanted."""
    ends: float
    """By time.monotonic()."""


@dataclass(frozen=True)
class _Known:
    """The issuer's own description (OpenID Connect Discovery)."""

    authorization: str
    token: str
    keys: str
    is_named_in_answers: bool
    """RFC 9207."""
    takes_basic: bool
    """It takes a client's secret by client_secret_basic; else by client_secret_post."""
    sign_out: str
    """Where a browser ends its login (OpenID Connect RP-Initiated Logout); "": nowhere."""
    until: float


class Oidc:
    """Used by one event loop, and to be closed in it."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer
        tls = issuer.tls()
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=True if tls is None else tls), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False,
            timeout=aiohttp.ClientTimeout(total=_CALL_S))
        self._logins: dict[str, _Login] = {}  # The oldest first.
        self._known: _Known | None = None
        self._keys: list[dict[str, Any]] = []
        self._keys_at = -math.inf

    async def close(self) -> None:
        await self._client.close()

    async def start(self, redirect: str, to: str) -> tuple[str, str]:
        """The value for the browser's cookie, and the URL where it logs in. Raises IssuerAway."""
        known = await self._about()
        now = time.monotonic()
        while self._logins and (len(self._logins) >= _LOGINS_MAX or next(iter(self._logins.values())).ends <= now):
            del self._logins[next(iter(self._logins))]
        login = _Login(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), redirect, to, now + _LOGIN_S)
        identity = secrets.token_urlsafe(32)
        self._logins[identity] = login
        challenge = _base64url(hashlib.sha256(login.verifier.encode()).digest())
        query = urlencode({
            "response_type": "code", "client_id": self._issuer.client_id, "redirect_uri": redirect, "scope": self._issuer.scope,
            "state": login.state, "nonce": login.nonce, "code_challenge": challenge, "code_challenge_method": "S256"})
        return identity, _with_query(known.authorization, query)

    async def finish(self, identity: str, given: dict[str, Any]) -> tuple[Grant, str]:
        """Of what the issuer sent the browser back with, and the page that was wanted. Each login counts once, whatever comes of
        it. LoginRefused, IssuerAway."""
        login = self._logins.pop(identity, None)
        if login is None or time.monotonic() >= login.ends:
            raise LoginRefused("this login has ended, or began in another browser; log in again")
        if not is_same(_text(given.get("state")), login.state):
            raise LoginRefused("the answer belongs to another login; log in again")
        known = await self._about()
        named = _text(given.get("iss"))
        if (named or known.is_named_in_answers) and named != self._issuer.url:
            raise LoginRefused("the answer is of another issuer; log in again")
        if given.get("error"):
            raise LoginRefused(f"the issuer says: {_words(given.get('error_description') or given.get('error'))}")
        answer = await self._tokens({"grant_type": "authorization_code", "code": _text(given.get("code")),
                                     "redirect_uri": login.redirect, "code_verifier": login.verifier})
        claims = await self._claims(answer.get("id_token"), {"nonce": {"essential": True, "value": login.nonce}})
        return self._grant(answer, str(claims["sub"]), None), login.to

    def sign_out(self, back: str) -> str:
        """The URL where a browser ends the login that it has at the issuer, which sends it on to `back`; "": there is none.

        No token stands in it (no id_token_hint), as histories and logs keep addresses: the issuer may ask the user instead.
        """
        if self._known is None or not self._known.sign_out:
            return ""
        query = urlencode({"client_id": self._issuer.client_id, "post_logout_redirect_uri": back})
        return _with_query(self._known.sign_out, query)

    async def renew(self, grant: Grant) -> Grant:
        """LoginRefused: it ends with its token. IssuerAway: perhaps later."""
        answer = await self._tokens({"grant_type": "refresh_token", "refresh_token": grant.refresh or ""})
        if answer.get("id_token") is not None:
            await self._claims(answer["id_token"], {"sub": {"essential": True, "value": grant.subject}})
        return self._grant(answer, grant.subject, grant.refresh)

    def _grant(self, answer: dict[str, Any], subject: str, refresh: str | None) -> Grant:
        """The token that is for the server, as it alone can judge it, and how long it lasts."""
        token = answer.get("id_token" if self._issuer.takes_id_token else "access_token")
        if not isinstance(token, str) or not is_token(token):
            raise LoginRefused("the issuer gave no token that a server could take")
        seconds = _seconds_left(token)
        told = answer.get("expires_in")
        if isinstance(told, (int, float)) and not self._issuer.takes_id_token:
            seconds = min(seconds, float(told))
        if not seconds > 0:
            raise LoginRefused("the issuer gave a token that has expired; is a clock wrong?")
        now = time.monotonic()
        renews = answer.get("refresh_token", refresh)
        return Grant(token, renews if isinstance(renews, str) else None, subject, now + seconds, now + seconds / 2)

    # The issuer.

    async def _about(self) -> _Known:
        now = time.monotonic()
        if self._known is None or self._known.until <= now:
            url = f"{self._issuer.url.rstrip('/')}/.well-known/openid-configuration"
            _, found = await self._ask("GET", url)
            if found.get("issuer") != self._issuer.url:
                raise IssuerAway(f"{self._issuer.url}: it calls itself {_words(found.get('issuer'))}; give that to --oidc-issuer")
            login, token, keys = (_text(found.get(key)) for key in ("authorization_endpoint", "token_endpoint", "jwks_uri"))
            if not all(is_safe_url(each) for each in (login, token, keys)):
                raise IssuerAway(f"{self._issuer.url}: it names no https addresses for the authorization code flow")
            is_named = found.get("authorization_response_iss_parameter_supported") is True
            sign_out = _text(found.get("end_session_endpoint"))
            self._known = _Known(login, token, keys, is_named, self._takes_basic(found),
                                 sign_out if is_safe_url(sign_out) else "", now + _KNOWN_S)
        return self._known

    def _takes_basic(self, found: dict[str, Any]) -> bool:
        """IssuerAway: it takes no secret, and the page has one."""
        # The default if an issuer names none (OpenID Connect Discovery, 3).
        ways = found.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        ways = ways if isinstance(ways, list) else []
        if self._issuer.client_secret is None or "client_secret_basic" in ways:
            return True
        if "client_secret_post" not in ways:
            raise IssuerAway(f"{self._issuer.url}: it takes a client's secret neither by client_secret_basic nor by "
                             "client_secret_post; leave --oidc-client-secret out, or register the page as a client with a secret")
        return False

    def _of_client(self, known: _Known) -> tuple[dict[str, str], dict[str, str]]:
        """Headers and fields by which the issuer knows the page (RFC 6749, 2.3.1)."""
        identity, secret = self._issuer.client_id, self._issuer.client_secret
        if secret is None:
            return {}, {"client_id": identity}
        if not known.takes_basic:
            return {}, {"client_id": identity, "client_secret": secret}
        pair = f"{quote_plus(identity)}:{quote_plus(secret)}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}

    async def _tokens(self, form: dict[str, str]) -> dict[str, Any]:
        known = await self._about()
        headers, own = self._of_client(known)
        status, answer = await self._ask("POST", known.token, {**form, **own}, headers)
        if status in (400, 401, 403):
            raise LoginRefused(f"the issuer says: {_words(answer.get('error_description') or answer.get('error'))}")
        if status != 200:
            raise IssuerAway(f"{self._issuer.url}: it answers {status}")
        return answer

    async def _claims(self, text: object, more: dict[str, Any]) -> dict[str, Any]:
        """Of an ID token of this issuer for this client. LoginRefused, IssuerAway."""
        registry = jwt.JWTClaimsRegistry(leeway=_CLOCKS_DIFFER_S, **{
            "iss": {"essential": True, "value": self._issuer.url}, "aud": {"essential": True, "value": self._issuer.client_id},
            "exp": {"essential": True}, "iat": {"essential": True}, "sub": {"essential": True}, **more})
        try:
            claims: dict[str, Any] = (await self._decoded(text)).claims
            registry.validate(claims)
            if claims.get("azp", self._issuer.client_id) != self._issuer.client_id:
                raise ValueError("it was made for another client")
        except (JoseError, ValueError, TypeError, LookupError) as error:
            raise LoginRefused(f"the issuer's ID token does not count: {_words(str(error))}") from None
        return claims

    async def _decoded(self, text: object) -> jwt.Token:
        """JoseError, ValueError, IssuerAway."""
        if not isinstance(text, str) or not is_token(text):
            raise ValueError("there is none")
        is_new = await self._take_keys(0 if self._keys else math.inf)
        try:
            return jwt.decode(text, KeySet.import_key_set({"keys": self._keys}), algorithms=_ALGORITHMS)
        except (JoseError, ValueError, TypeError, LookupError):
            # It may have signed with a key that it did not have before.
            if is_new or not await self._take_keys(_KEYS_AGAIN_S):
                raise
        return jwt.decode(text, KeySet.import_key_set({"keys": self._keys}), algorithms=_ALGORITHMS)

    async def _take_keys(self, again_s: float) -> bool:
        """Whether they were asked for: they are older than so many seconds, or than an hour. 0: only the latter."""
        age = time.monotonic() - self._keys_at
        if age < (_KNOWN_S if again_s == 0 else min(again_s, _KNOWN_S)):
            return False
        _, found = await self._ask("GET", (await self._about()).keys)
        listed = found.get("keys")
        self._keys = [each for each in listed if isinstance(each, dict) and each.get("kty") in _KEY_TYPES
                      and each.get("use", "sig") == "sig"] if isinstance(listed, list) else []
        self._keys_at = time.monotonic()
        return True

    async def _ask(self, method: str, url: str, form: dict[str, str] | None = None,
                   headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        """The status, and the JSON of the answer. IssuerAway."""
        try:
            async with self._client.request(method, url, data=form, allow_redirects=False,
                                            headers={"Accept": "application/json", **(headers or {})}) as response:
                body = bytearray()
                async for part in response.content.iter_any():
                    body += part
                    if len(body) > _ANSWER_MAX:
                        raise IssuerAway(f"{self._issuer.url}: its answer is too large")
                if method == "GET" and response.status != 200:
                    raise IssuerAway(f"{url}: it answers {response.status}")
                answer = json.loads(body)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise IssuerAway(f"{self._issuer.url}: {str(error) or 'it does not answer'}") from None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise IssuerAway(f"{self._issuer.url}: its answer is no object of JSON")
        return response.status, answer


def _with_query(url: str, query: str) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{query}"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _seconds_left(token: str) -> float:
    """By what the token says of itself, which the server verifies. Infinity: it says nothing."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        return float(claims["exp"]) - time.time()
    except (ValueError, LookupError, TypeError, RecursionError):
        return math.inf


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _words(value: object) -> str:
    """Somebody else's, on one line."""
    text = "".join(each for each in str(value) if each.isprintable())
    return text[:_WORDS_MAX]
