"""h5mirror://HOST[:PORT]/NAME[@VERSION] and h5mirror+unix:///SOCKET?name=NAME[@VERSION]."""

import re
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, unquote, urlsplit

# Versions after the last '@', as in the FILE@VERSION of `h5mirror`; anything else there is part of the name. Times in words
# are those of rpc/time_words.cc.
_DAY = r"(today|yesterday|(last[ _-])?(mon|tue|wed|thu|fri|sat|sun|(mon|tues|wednes|thurs|fri|satur|sun)day))"
_VERSION = re.compile(r"[0-9]+|latest(-[0-9]+)?|tag:.+|[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"
                      rf"|(?i:now|{_DAY}([ _-][0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}})?)?|([0-9]|an?[ _-])[^/]*[ _-]ago)", re.DOTALL)
# Characters with a meaning in a url, at fsspec too.
_SPECIAL = re.compile(r"[%@?#&*\[\]\x00-\x20\x7f]|(?<=:):")
_FORMS = "h5mirror://HOST[:PORT]/NAME, h5mirror:///NAME or h5mirror+unix:///SOCKET?name=NAME"


@dataclass(frozen=True)
class Url:
    """A file on a server, or one version of it.

    In a url %40 is an '@' that begins no version, and %3F a '?'.
    """

    server: str | None
    """HOST[:PORT] or unix:PATH; None: that of the client's own configuration."""
    name: str
    """The file's name under the server's root."""
    version: str | None = None
    """A number, "latest", "latest-K", "tag:NAME" or a time; None: the url has none."""
    text: str = field(default="", compare=False, repr=False)
    """As it was written."""

    @classmethod
    def parse(cls, text: str) -> "Url":
        """ValueError: the text is no such url; the message says why."""
        server, quoted = _server_and_name(text)
        name, version = _split(quoted)
        if not name:
            raise _wrong(text, f"it names no file: {_FORMS}")
        return cls(server, unquote(name), None if version is None else unquote(version), text)

    @classmethod
    def parse_directory(cls, text: str) -> "Url":
        """Of a directory; without a name that of the server's root, whose name is "". ValueError: as of parse()."""
        server, quoted = _server_and_name(text)
        return cls(server, unquote(quoted).strip("/"), None, text)

    def url(self) -> str:
        """The url of server, name and version."""
        at = "" if self.version is None else "@" + _quoted(self.version)
        name = _quoted(self.name)
        if self.server is not None and self.server.startswith("unix:"):
            return f"h5mirror+unix://{_quoted(self.server.removeprefix('unix:'))}?name={name}{at}"
        return f"h5mirror://{self.server or ''}" + (f"/{name}{at}" if name else "")

    def with_server(self, server: str | None) -> "Url":
        """The same, on the server of an argument, which may be None. ValueError: it names one itself."""
        if server is None:
            return self
        if self.server is not None:
            raise ValueError(f"server={server!r}, and {self.text} names the server {self.server} already: give one of them")
        return replace(self, server=server)

    def without_version(self) -> "Url":
        """Itself. ValueError: it names one version."""
        if self.version is not None:
            raise ValueError(f"{self.text} names one version, {self.version}: leave '@{self.version}' out")
        return self


def is_url(text: str) -> bool:
    """Whether it is meant as one."""
    return text.startswith(("h5mirror:", "h5mirror+"))


def _server_and_name(text: str) -> tuple[str | None, str]:
    """The name as it is written."""
    parts = urlsplit(text)
    if parts.fragment:
        raise _wrong(text, "a '#' in a name is written %23")
    if parts.scheme == "h5mirror":
        if parts.query:
            raise _wrong(text, "a '?' in a name is written %3F, and keys are arguments")
        if "@" in parts.netloc:
            raise _wrong(text, "it names a user; leave that out, as the token names you")
        return parts.netloc or None, parts.path[1:]
    if parts.scheme == "h5mirror+unix":
        return _of_socket(text, parts.netloc, parts.path, parts.query)
    raise _wrong(text, f"it begins with none of these: {_FORMS}")


def _quoted(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _of_socket(text: str, netloc: str, path: str, query: str) -> tuple[str, str]:
    # Kept as it is written, so that %40 is told from '@'.
    quoted = [pair.partition("=")[2] for pair in query.split("&") if pair.startswith("name=")]
    if netloc or not path.strip("/"):
        raise _wrong(text, "a socket's path is absolute: h5mirror+unix:///run/h5mirror/socket?name=NAME")
    if len(quoted) != 1 or any(key != "name" for key, _ in parse_qsl(query, keep_blank_values=True)):
        raise _wrong(text, "after the '?' stands name=NAME, once, and nothing else")
    return "unix:" + unquote(path), quoted[0]


def _split(name: str) -> tuple[str, str | None]:
    file, at, version = name.rpartition("@")
    return (file, version) if at and _VERSION.fullmatch(unquote(version)) else (name, None)


def _wrong(text: str, why: str) -> ValueError:
    return ValueError(f"{text!r} is not an h5mirror URL: {why}")
