"""Users by certificates of the site's own authority: the plugin, the tools, and the end of revoked ones."""

import http.client
import os
import ssl
import subprocess

import pytest

from harness import hdf5, paths
from harness.process import run, wait_until
from harness.site import Site

TABLES = """
[[access]]
files = "home/${user}/**"
allow = ["read", "write", "restore", "delete"]

[[access]]
files = "home/anna/**"
users = ["cert:bob"]
allow = ["read"]
"""


class Authority:
    """A site's authority, by the openssl command."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        (directory / "index.txt").touch()
        (directory / "number").write_text("01\n")
        (directory / "ca.cnf").write_text(f"""
[ca]
default_ca = site
[site]
database = {directory}/index.txt
crlnumber = {directory}/number
default_md = sha256
default_crl_days = 30
certificate = {directory}/ca.pem
private_key = {directory}/ca.key
""")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=The site")
        os.chmod(directory / "ca.pem", 0o644)  # Whatever the umask is: the server refuses a file that others may write.
        self.revoke()

    def openssl(self, *arguments) -> None:
        subprocess.run(["openssl", *map(str, arguments)], cwd=self.directory, check=True, capture_output=True, timeout=60)

    def certify(self, name: str, home) -> None:
        """A certificate of the user, in the client's directory below `home`."""
        client = home / ".config" / "h5mirror"
        client.mkdir(parents=True, exist_ok=True)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                     client / "client.key", "-out", f"{name}.csr", "-subj", "/CN=someone")
        (self.directory / f"{name}.ext").write_text(f"subjectAltName=URI:spiffe://site/user/{name}\n"
                                                    "extendedKeyUsage=clientAuth\n")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                     "-days", "1", "-extfile", f"{name}.ext", "-out", client / "client.pem")
        os.chmod(client / "client.key", 0o600)

    def revoke(self, *certificates) -> None:
        for certificate in certificates:
            self.openssl("ca", "-config", "ca.cnf", "-revoke", certificate)
        self.openssl("ca", "-config", "ca.cnf", "-gencrl", "-out", "crl.new")
        os.chmod(self.directory / "crl.new", 0o644)
        os.replace(self.directory / "crl.new", self.directory / "crl.pem")


class Lab:
    def __init__(self, directory):
        self.authority = Authority(directory / "authority")
        run([paths.BIN / "h5mirrord", "init", "--dir", directory / "server", "--host", "localhost"], directory).ok()
        keys = directory / "server"
        self.site = Site(directory, tables=TABLES, options={
            "tls_cert": keys / "server.pem", "tls_key": keys / "server.key",
            "tls_client_ca": self.authority.directory / "ca.pem", "tls_client_crl": self.authority.directory / "crl.pem",
            "tls_client_names": "uri:spiffe://site/user/${user}", "http_listen": "127.0.0.1:0"})
        self.keys = keys
        self.homes = {}
        for name in ("anna", "bob", "nobody"):
            home = self.homes[name] = directory / name
            (home / ".config" / "h5mirror").mkdir(parents=True)
            (home / ".config" / "h5mirror" / "ca.pem").write_bytes((keys / "ca.pem").read_bytes())
            if name != "nobody":
                self.authority.certify(name, home)

    def command(self, *arguments):
        return [paths.BIN / "h5mirror", "--server", self.site.address, *arguments]

    def run(self, user: str, *arguments):
        return run(self.command(*arguments), self.site.logs, timeout=60, name="h5mirror", cwd=self.homes[user],
                   env=hdf5.plain_env(HOME=str(self.homes[user])))

    def https(self, user: str, **settings) -> http.client.HTTPSConnection:
        """A connection for HTTP, with the user's certificate if there is one."""
        context = ssl.create_default_context(cafile=self.keys / "ca.pem")
        client = self.homes[user] / ".config" / "h5mirror"
        if (client / "client.pem").exists():
            context.load_cert_chain(client / "client.pem", client / "client.key")
        return http.client.HTTPSConnection("localhost", self.site.server.http_port, context=context, timeout=60)

    def ask(self, user: str, path: str) -> tuple[int, bytes]:
        connection = self.https(user)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def write(self, user: str) -> None:
        """A program of the user under the plugin, which knows of no certificate."""
        self.site.py(f"""
            os.makedirs("home/{user}", exist_ok=True)
            with h5py.File("home/{user}/a.h5", "w") as f:
                f["x"] = np.arange(1000)
        """, env={**self.site.env(), "HOME": str(self.homes[user])})


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    try:
        lab.site.server.start()
        yield lab
    finally:
        lab.site.close()


def test_a_certificate_is_a_user(lab):
    lab.write("anna")
    shown = lab.run("anna", "log", "home/anna/a.h5", "--json").ok().out
    assert '"user": "anna"' in shown and '"user_verified": true' in shown, shown
    lab.run("bob", "log", "home/anna/a.h5").ok()
    assert lab.run("bob", "rm", "home/anna/a.h5").code == 8
    assert lab.run("bob", "push", lab.site.local("home/anna/a.h5"), "--name", "home/anna/b.h5").code != 0
    refused = lab.run("nobody", "log", "home/anna/a.h5")
    assert refused.code == 8 and "client.pem" in refused.err, refused.describe()
    config = ("--config", lab.site.logs / "h5mirrord.toml", "--root", lab.site.root)
    check = run([paths.BIN / "h5mirrord", *config, "access", "check", "cert:bob", "home/anna/a.h5"], lab.site.logs).ok()
    assert 'certificate "bob"' in check.out and "rights: read" in check.out, check.out


def test_a_revoked_certificate_ends_what_it_has_open(lab):
    lab.write("anna")
    env = hdf5.plain_env(HOME=str(lab.homes["bob"]))
    watcher = lab.site.start(lab.command("watch", "home/anna/a.h5"), env=env)
    wait_until(watcher.out, "the follower hears of no cut", 60)
    lab.authority.revoke(lab.homes["bob"] / ".config" / "h5mirror" / "client.pem")
    os.kill(lab.site.server.pid, 1)
    result = watcher.wait(60)
    assert result.code == 8 and "was revoked" in result.err, result.describe()
    assert lab.run("bob", "log", "home/anna/a.h5").code == 8
    lab.run("anna", "log", "home/anna/a.h5").ok()
    lab.authority.certify("bob", lab.homes["bob"])
    lab.run("bob", "log", "home/anna/a.h5").ok()


def test_another_authority_is_nobody(lab, tmp_path):
    lab.write("anna")
    Authority(tmp_path / "stranger").certify("anna", lab.homes["anna"])
    refused = lab.run("anna", "--timeout", "5", "log", "home/anna/a.h5")
    assert refused.code != 0, refused.describe()


def test_certificates_count_over_http(lab, tmp_path):
    lab.write("anna")
    path = "/f/home/anna/a.h5"
    status, body = lab.ask("anna", path)
    assert status == 200 and body.startswith(b"\x89HDF")
    assert lab.ask("bob", path)[0] == 200
    assert lab.ask("bob", "/f/home/nobody/a.h5")[0] == 404
    assert lab.ask("nobody", path)[0] == 401
    lab.authority.revoke(lab.homes["bob"] / ".config" / "h5mirror" / "client.pem")
    os.kill(lab.site.server.pid, 1)
    wait_until(lambda: lab.ask("bob", path)[0] == 401, "a revoked certificate counts over HTTP", 60)
    assert lab.ask("anna", path)[0] == 200
    Authority(tmp_path / "stranger").certify("anna", lab.homes["anna"])
    assert lab.ask("anna", path)[0] == 401


def test_http_takes_a_renewed_certificate(lab):
    lab.write("anna")

    def served() -> bytes:
        connection = lab.https("anna")
        connection.connect()
        certificate = connection.sock.getpeercert(binary_form=True)
        connection.close()
        return certificate

    old = served()
    events = lab.https("anna")
    events.request("GET", "/v1/files/home/anna/a.h5/events")
    stream = events.getresponse()
    assert stream.readline().startswith(b"event: state")
    run([paths.BIN / "h5mirrord", "init", "--dir", lab.keys, "--host", "localhost"], lab.site.logs).ok()
    os.kill(lab.site.server.pid, 1)
    wait_until(lambda: served() != old, "HTTP goes on with the old certificate", 60)
    # Connections from before go on.
    seen = b""
    while not seen.endswith(b": \n"):
        seen = stream.readline()
        assert seen, "the stream has ended"
    events.close()
