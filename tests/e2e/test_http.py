"""Files over HTTP, with the clients of Python's own library and with raw sockets, beside a real writer."""

import hashlib
import http.client
import json
import resource
import socket
import ssl
import time

import pytest

from harness import paths
from harness.process import run, wait_until
from harness.site import Site

WRITES = """
    with h5py.File("run.h5", "w", libver="latest") as f:
        f["x"] = np.arange({count})
"""


pytestmark = pytest.mark.site(options={"http_listen": "127.0.0.1:0", "token_timeout": "5s"})


def ask(site, path: str, method: str = "GET", **headers: str):
    """The status, the headers and the body of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", site.server.http_port, timeout=60)
    try:
        connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def exported(site, name: str) -> bytes:
    out = site.directory / f"exported-{time.monotonic_ns()}.h5"
    site.cli("export", name, out).ok()
    return out.read_bytes()


def test_each_version_comes_whole_and_in_ranges(site):
    for count in (1000, 200_000):
        site.py(WRITES.format(count=count))
    site.settle("run.h5")
    for version in (1, 2):
        whole = exported(site, f"run.h5@{version}")
        status, headers, body = ask(site, f"/f/run.h5@{version}")
        assert (status, body == whole) == (200, True)
        assert headers["H5mirror-Version"] == str(version)
        size = len(whole)
        for first, last in ((0, 0), (1, 4096), (size // 2, size // 2 + 70_000), (size - 1, size - 1)):
            last = min(last, size - 1)
            status, headers, body = ask(site, f"/f/run.h5@{version}", Range=f"bytes={first}-{last}")
            assert (status, headers["Content-Range"]) == (206, f"bytes {first}-{last}/{size}")
            assert body == whole[first:last + 1]
    assert ask(site, "/f/run.h5@latest-1")[2] == exported(site, "run.h5@1")


def test_a_list_with_details_tells_who_writes_how_much_and_how_large_the_history_is(site):
    site.py(WRITES.format(count=1000))
    site.settle("run.h5")
    row = lambda: {each["name"]: each for each in json.loads(ask(site, "/v1/files?details=true")[2])["files"]}["run.h5"]  # noqa: E731
    first = row()
    assert (first["last_writer"]["is_writing"], first["last_writer"]["writer"]["host"]) == (False, socket.gethostname())
    assert first["history_bytes"] == str(site.status("run.h5")["history_bytes"])
    sent = lambda: sum(map(int, row()["recent_writes"]["received_bytes"]))  # noqa: E731
    wait_until(lambda: sent() > 8000, "the bytes of the first version are not told", 60)
    before = sent()
    writer = site.start(site.script("""
        with h5py.File("run.h5", "a") as f:
            f["y"] = np.arange(1000)
            f.flush()
            print("open", flush=True)
            sys.stdin.readline()
        print("closed", flush=True)
    """), talks=True)
    assert writer.line() == "open"
    wait_until(lambda: row()["last_writer"]["is_writing"], "no writer is told", 60)
    wait_until(lambda: sent() > before, "no bytes are told", 60)
    assert row()["last_writer"]["writer"]["pid"] == writer.pid
    assert writer.ask("close") == "closed"
    wait_until(lambda: not row()["last_writer"]["is_writing"], "the writer has not gone", 60)
    site.settle("run.h5")
    assert row()["history_bytes"] == str(site.status("run.h5")["history_bytes"])
    assert "last_writer" not in json.loads(ask(site, "/v1/files")[2])["files"][0], "a plain list looks into no file"
    assert ask(site, "/v1/files?details=1")[0] == 400


def test_an_open_file_is_read_at_one_cut(site):
    writer = site.start(site.script("""
        f = h5py.File("live.h5", "w", libver="latest")
        x = f.create_dataset("x", data=np.zeros(100_000))
        for round in range(100_000):
            x[...] = round
            f.flush()
            print(round, flush=True)
            time.sleep(0.05)
    """))
    site.wait_for_cut("live.h5")
    status, headers, body = ask(site, "/f/live.h5")
    assert status == 200 and headers["ETag"].startswith('"c')
    etag, digest = headers["ETag"], hashlib.sha256(body).digest()
    wait_until(lambda: ask(site, "/f/live.h5", "HEAD")[1]["ETag"] != etag, "no newer cut was made", 60)
    # The cut of the tag is unchanged, in ranges too.
    parts = []
    for first in range(0, len(body), 100_000):
        status, headers, part = ask(site, "/f/live.h5", If_Match=etag, Range=f"bytes={first}-{first + 99_999}")
        assert (status, headers["ETag"]) == (206, etag)
        parts.append(part)
    assert hashlib.sha256(b"".join(parts)).digest() == digest
    writer.kill()


def test_a_tag_of_a_server_that_was_killed_counts_no_more(site):
    site.start(site.script("""
        f = h5py.File("live.h5", "w", libver="latest")
        f["x"] = np.arange(1000)
        f.flush()
        time.sleep(600)
    """))
    site.wait_for_cut("live.h5")
    etag = ask(site, "/f/live.h5")[1]["ETag"]
    assert etag.startswith('"c')
    site.server.kill9()
    site.server.start()
    wait_until(lambda: ask(site, "/f/live.h5")[0] == 200, "the file has no cut after the restart", 60)
    assert ask(site, "/f/live.h5", If_Match=etag)[0] == 412


def test_lists_states_and_versions_are_those_of_the_cli(site):
    site.py(WRITES.format(count=1000))
    site.settle("run.h5")
    listed = json.loads(ask(site, "/v1/files")[2])
    assert "run.h5" in [each["name"] for each in listed["files"]]
    status = json.loads(ask(site, "/v1/files/run.h5")[2])
    assert int(status["newest_version"]["version"]) == 1
    versions = json.loads(ask(site, "/v1/files/run.h5/versions")[2])["versions"]
    assert [int(each["version"]) for each in versions] == [1]


def test_events_tell_each_version(site):
    site.py(WRITES.format(count=1000))
    site.settle("run.h5")
    stream = socket.create_connection(("127.0.0.1", site.server.http_port), timeout=60)
    stream.sendall(b"GET /v1/files/run.h5/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    text = ""
    while "event: state\n" not in text:
        received = stream.recv(4096)
        assert received, text
        text += received.decode()
    site.py(WRITES.format(count=2000))
    while "event: version\n" not in text:
        received = stream.recv(4096)
        assert received, text
        text += received.decode()
    stream.close()


HOSTILE = [
    (b"GET /f/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
    (b"GET /f/%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
    (b"GET /f/run.h5.h5m/index HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
    (b"GET /f/run.h5 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=9-1\r\n\r\n", b"416"),
    (b"GET /f/run.h5 HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + b"0-0," * 2000 + b"0-0\r\n\r\n", b"416"),
    (b"GET /f/run.h5 HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
    (b"DELETE /f/run.h5 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"405"),
    (b"GET /f/run.h5 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
    (b"GET /f/run.h5 HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000_000 + b"\r\n\r\n", b""),
    (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n", b""),
    (b"\x16\x03\x01\x00\xa5" + b"\x00" * 200, b""),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""),
    (b"\r\n" * 100_000, b""),
]


@pytest.mark.parametrize("sent, code", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_requests_are_refused_and_the_server_goes_on(site, sent, code):
    site.py(WRITES.format(count=1000))
    stream = socket.create_connection(("127.0.0.1", site.server.http_port), timeout=60)
    answer = b""
    try:
        stream.sendall(sent)
        answer = stream.recv(4096)
    except (BrokenPipeError, ConnectionResetError):
        pass  # It was cut while it sent.
    stream.close()
    assert not answer.startswith(b"HTTP/1.1 2")
    if code:
        assert answer.split(b" ")[1] == code
    assert ask(site, "/f/run.h5")[0] == 200


def test_a_client_that_never_ends_its_headers_is_cut(site):
    stream = socket.create_connection(("127.0.0.1", site.server.http_port), timeout=60)
    stream.sendall(b"GET /f/run.h5 HTTP/1.1\r\n")

    def is_cut() -> bool:
        try:
            stream.sendall(b"X: y\r\n")
        except OSError:
            return True
        return False

    wait_until(is_cut, "a connection that sends header after header is never cut", 30)
    stream.close()


def test_a_thousand_event_streams_take_little_memory(site):
    site.py(WRITES.format(count=1000))
    site.settle("run.h5")
    assert ask(site, "/v1/files/run.h5")[0] == 200
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    site.server.reset_peak()
    before = site.server.peak_kb()
    streams = []
    for _ in range(1000):
        stream = socket.create_connection(("127.0.0.1", site.server.http_port), timeout=60)
        streams.append(stream)
        stream.sendall(b"GET /v1/files/run.h5/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while b"event: state\n" not in text:
            received = stream.recv(4096)
            assert received, text
            text += received
    grown_kb = site.server.peak_kb() - before
    for stream in streams:
        stream.close()
    assert grown_kb < 64 << 10, f"1,000 event streams take {grown_kb} KiB"


def door(site, url: str, *flags) -> tuple[str, bool]:
    """The line of `doctor` about the HTTP door, and whether it says FAIL."""
    said = site.cli(*flags, "doctor", "--no-scratch", "--http", url).out
    line, = (each for each in said.splitlines() if each.split()[1:2] == ["http"])
    return line, line.startswith("FAIL")


def test_doctor_finds_the_door_in_plain_text(site):
    line, failed = door(site, f"http://127.0.0.1:{site.server.http_port}")
    assert not failed and "version 1 of the HTTP interface, plain text" in line, line
    line, failed = door(site, f"http://{site.address}")
    assert failed and "http_listen" in line, line


@pytest.fixture
def tls(tmp_path):
    """A server whose door has TLS; the files are those of `h5mirrord init`."""
    secrets = tmp_path / "secrets"
    run([paths.BIN / "h5mirrord", "init", "--dir", secrets, "--host", "127.0.0.1"], tmp_path).ok()
    site = Site(tmp_path, options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key",
                                   "tokens_file": secrets / "tokens", "http_listen": "0.0.0.0:0"})
    site.ca = secrets / "ca.pem"
    try:
        site.server.start()
        yield site
    finally:
        site.close()


def test_doctor_sees_a_certificate_of_another_name(tls):
    port = tls.server.http_port
    line, failed = door(tls, f"https://127.0.0.1:{port}", "--ca", tls.ca)
    assert not failed and "TLS with a certificate of this name" in line, line
    line, failed = door(tls, f"https://127.0.0.2:{port}", "--ca", tls.ca)
    assert failed and "127.0.0.2" in line and "as its certificate has it" in line, line
    line, failed = door(tls, f"https://127.0.0.1:{port}")
    assert failed and "--ca" in line, line


def test_a_query_of_too_many_arguments_is_refused_with_tls_too(tls):
    connection = http.client.HTTPSConnection("127.0.0.1", tls.server.http_port, timeout=30,
                                             context=ssl.create_default_context(cafile=tls.ca))
    connection.request("GET", "/v1/files?" + "&".join(["a=b"] * 500))
    answer = connection.getresponse()
    assert answer.status == 400 and b"a query has at most 100 arguments" in answer.read()
