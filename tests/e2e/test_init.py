"""`h5mirrord init` once, and again with another name: the same authority, and a server with the new certificate."""

import ssl
import subprocess

from harness import paths
from harness.process import run
from harness.site import Site


def init(directory, *hosts):
    names = ["--host", ",".join(hosts)] if hosts else []
    return run([paths.BIN / "h5mirrord", "init", "--dir", directory / "secrets", *names], directory)


def test_a_new_name_is_served_with_the_clients_old_ca(tmp_path):
    secrets = tmp_path / "secrets"
    init(tmp_path, "node7.example").ok()
    ca = (secrets / "ca.pem").read_text()
    site = Site(tmp_path, options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key", "tokens_file": secrets / "tokens"})
    try:
        site.server.start()
        port = int(site.address.rpartition(":")[2])

        def served() -> str:
            return ssl.get_server_certificate(("127.0.0.1", port))

        before = served()
        said = init(tmp_path, "node8.example").ok().out
        assert "node8.example" in said and "node7.example" in said and "server.pem.until-" in said, said
        assert (secrets / "ca.pem").read_text() == ca
        verify = ["openssl", "verify", "-CAfile", secrets / "ca.pem"]
        for name in ("node7.example", "node8.example"):
            subprocess.run([*verify, "-verify_hostname", name, secrets / "server.pem"], check=True, capture_output=True)
        old, = secrets.glob("server.pem.until-*")
        subprocess.run([*verify, "-verify_hostname", "node7.example", old], check=True, capture_output=True)
        site.server.stop()  # Running it takes notice within a minute.
        site.server.start()
        assert served() != before
        cli = [paths.BIN / "h5mirror", "--server", site.address, "--ca", secrets / "ca.pem", "--token", f"@{secrets}/token", "status"]
        run(cli, tmp_path, env={"HOME": str(site.home)}).ok()
        refused = init(tmp_path)
        assert refused.code == 1 and "h5mirrord init --host NAME" in refused.err, refused.describe()
    finally:
        site.close()


def test_a_private_key_that_all_may_read_is_told_of_at_the_start(tmp_path):
    secrets = tmp_path / "secrets"
    init(tmp_path, "node7.example").ok()
    site = Site(tmp_path, options={"tls_cert": secrets / "server.pem", "tls_key": secrets / "server.key", "tokens_file": secrets / "tokens"})
    told = "server's private key"
    try:
        site.server.start()
        (secrets / "server.key").chmod(0o640)  # A group of its own, as Debian's ssl-cert.
        site.server.stop()
        site.server.start()
        assert told not in site.server.log()
        (secrets / "server.key").chmod(0o644)
        site.server.stop()
        site.server.start()
        warning, = (line for line in site.server.log().splitlines() if told in line)
        assert f'tls_key = "{secrets}/server.key"' in warning and "chmod o=" in warning, warning
    finally:
        site.close()
