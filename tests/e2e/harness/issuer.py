"""An issuer of tokens, on loopback: OpenID discovery, the device flow, the authorization code flow, and refresh tokens that
count once."""

import base64
import hashlib
import json
import os
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CLIENT = "h5mirror"
PAGE = "h5mirror-web"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """An RSA key, by the openssl command."""

    def __init__(self, directory: Path, name: str):
        self.name, self.path = name, directory / f"{name}.key"
        subprocess.run(["openssl", "genrsa", "-out", self.path, "2048"], check=True, capture_output=True, timeout=60)

    def public(self) -> dict:
        shown = subprocess.run(["openssl", "rsa", "-in", self.path, "-noout", "-modulus"], check=True,
                               capture_output=True, timeout=60, text=True).stdout
        modulus = bytes.fromhex(shown.strip().split("=")[1])
        return {"kty": "RSA", "kid": self.name, "use": "sig", "n": _base64url(modulus), "e": "AQAB"}

    def sign(self, claims: dict) -> str:
        header = {"alg": "RS256", "typ": "JWT", "kid": self.name}
        text = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path], input=text.encode(), check=True,
                                   capture_output=True, timeout=60).stdout
        return f"{text}.{_base64url(signature)}"


class Issuer:
    """Its tokens are for `user`. `answers`: the next answers to requests for a device's token."""

    def __init__(self, directory: Path):
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.keys = [Key(directory, "first")]
        self.key_file = directory / "keys.json"
        self.publish_keys()
        self.user, self.groups, self.audience, self.lifetime = "anna", ["bl7"], "h5mirror", 600
        self.answers: list[str] = []
        self.asked: list[float] = []  # when a device's token was asked for
        self.is_down = self.refuses_refresh = False
        self.refreshes = self.reuses = 0
        self.redirects: list[str] = []  # that it sends browsers back to: those of its client "page"
        self.id_claims: dict = {}  # in place of right ones
        self.id_key: Key | None = None
        self.code_answers: list[dict] = []  # those to the next questions for a code's tokens, in place of tokens
        self.secret: str | None = None  # by which "page" proves to be itself; None: by nothing
        self.way = "client_secret_basic"  # in which it does
        self.more_metadata: dict = {}  # beside what the issuer says of itself
        self.sign_outs: list[dict] = []  # what browsers came with
        self._codes: dict[str, dict] = {}
        self._lock = threading.Lock()
        self._refresh_tokens: set[str] = set()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                issuer._get(self)

            def do_POST(self):
                size = int(self.headers.get("Content-Length", 0))
                fields = dict(urllib.parse.parse_qsl(self.rfile.read(size).decode()))
                with issuer._lock:
                    issuer._post(self, fields)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def options(self) -> dict:
        """Those of a server that takes its tokens."""
        return {"jwt_keys": self.key_file, "jwt_issuer": self.url, "jwt_audience": "h5mirror"}

    def publish_keys(self) -> None:
        new = self.directory / "keys.new"
        new.write_text(json.dumps({"keys": [key.public() for key in self.keys]}))
        os.chmod(new, 0o644)
        os.replace(new, self.key_file)

    def change_key(self) -> None:
        """Another key signs from now on; the one before is taken out."""
        self.keys = [Key(self.directory, f"key-{time.monotonic_ns()}")]
        self.publish_keys()

    def token(self, **claims) -> str:
        now = int(time.time())
        return self.keys[0].sign({"iss": self.url, "aud": self.audience, "sub": self.user, "groups": self.groups,
                                  "iat": now, "exp": now + self.lifetime, "jti": str(time.monotonic_ns()), **claims})

    def _get(self, request) -> None:
        path, _, query = request.path.partition("?")
        if path == "/authorize":
            return self._authorize(request, dict(urllib.parse.parse_qsl(query)))
        if path == "/sign-out":
            return self._sign_out(request, dict(urllib.parse.parse_qsl(query)))
        if path == "/keys":
            return self._answer(request, 200, json.loads(self.key_file.read_text()))
        if path != "/.well-known/openid-configuration":
            return self._answer(request, 404, {"error": "not_found"})
        self._answer(request, 200, {"issuer": self.url, "token_endpoint": f"{self.url}/token",
                                    "authorization_endpoint": f"{self.url}/authorize", "jwks_uri": f"{self.url}/keys",
                                    "authorization_response_iss_parameter_supported": True,
                                    "device_authorization_endpoint": f"{self.url}/device", **self.more_metadata})

    def _post(self, request, fields: dict) -> None:
        if self.is_down:
            return self._answer(request, 503, {})
        client = self._client_of(request, fields)
        if fields.get("grant_type") == "authorization_code" and client == PAGE:
            return self._tokens_for_code(request, fields)
        if client not in (CLIENT, PAGE):
            return self._answer(request, 401, {"error": "invalid_client"})
        if request.path == "/device":
            return self._answer(request, 200, {
                "device_code": "device-1", "user_code": "ABCD-EFGH", "verification_uri": f"{self.url}/activate",
                "verification_uri_complete": f"{self.url}/activate?code=ABCD-EFGH", "expires_in": 120, "interval": 1})
        if fields.get("grant_type") == DEVICE_GRANT and fields.get("device_code") == "device-1":
            self.asked.append(time.monotonic())
            answer = self.answers.pop(0) if self.answers else "ok"
            return self._tokens(request) if answer == "ok" else self._answer(request, 400, {"error": answer})
        if fields.get("grant_type") == "refresh_token":
            return self._refresh(request, fields.get("refresh_token"))
        self._answer(request, 400, {"error": "invalid_grant"})

    def _client_of(self, request, fields: dict) -> str | None:
        """None: it does not prove its identity, or not in the one allowed way."""
        if self.secret is None or fields.get("client_id") == CLIENT:
            return fields.get("client_id")
        pair = f"{urllib.parse.quote_plus(PAGE)}:{urllib.parse.quote_plus(self.secret)}"
        given = request.headers.get("Authorization"), fields.get("client_secret")
        expected = {"client_secret_basic": ("Basic " + base64.b64encode(pair.encode()).decode(), None),
                    "client_secret_post": (None, self.secret)}[self.way]
        return PAGE if given == expected else None

    def _sign_out(self, request, asked: dict) -> None:
        self.sign_outs.append(asked)
        request.send_response(302)
        request.send_header("Location", asked["post_logout_redirect_uri"])
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _authorize(self, request, asked: dict) -> None:
        """Acts as if the user had a session at the issuer, and had agreed before."""
        wanted = {"client_id": PAGE, "response_type": "code", "code_challenge_method": "S256"}
        if any(asked.get(key) != value for key, value in wanted.items()) or asked.get("redirect_uri") not in self.redirects:
            return self._answer(request, 400, {"error": "invalid_request"})
        code = f"code-{time.monotonic_ns()}"
        self._codes[code] = asked
        more = urllib.parse.urlencode({"code": code, "state": asked["state"], "iss": self.url})
        request.send_response(302)
        request.send_header("Location", f"{asked['redirect_uri']}?{more}")
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _tokens_for_code(self, request, fields: dict) -> None:
        if self.code_answers:
            return self._answer(request, 400, self.code_answers.pop(0))
        asked = self._codes.pop(fields.get("code", ""), None)
        challenge = _base64url(hashlib.sha256(fields.get("code_verifier", "").encode()).digest())
        if asked is None or challenge != asked["code_challenge"] or fields.get("redirect_uri") != asked["redirect_uri"]:
            return self._answer(request, 400, {"error": "invalid_grant", "error_description": "no such code"})
        claims = {"aud": PAGE, "nonce": asked["nonce"], **self.id_claims}
        token = self.token(**claims)
        if self.id_key is not None:
            token = self.id_key.sign(json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==")))
        self._tokens(request, id_token=token)

    def _refresh(self, request, token: str) -> None:
        if self.refuses_refresh:
            return self._answer(request, 400, {"error": "invalid_grant", "error_description": "the login has ended"})
        if token not in self._refresh_tokens:
            self.reuses += 1
            self._refresh_tokens.clear()  # A token that is shown twice may be a thief's.
            return self._answer(request, 400, {"error": "invalid_grant", "error_description": "used before"})
        self._refresh_tokens.remove(token)
        self.refreshes += 1
        self._tokens(request)

    def _tokens(self, request, **more) -> None:
        refresh = f"refresh-{time.monotonic_ns()}"
        self._refresh_tokens.add(refresh)
        self._answer(request, 200, {"access_token": self.token(), "token_type": "Bearer",
                                    "expires_in": self.lifetime, "refresh_token": refresh, **more})

    @staticmethod
    def _answer(request, code: int, body: dict) -> None:
        data = json.dumps(body).encode()
        request.send_response(code)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)
